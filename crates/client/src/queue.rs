//! The calls on a queue and its timers.

use std::time::{Duration, SystemTime};

use hyper::Method;
use serde::Serialize;
use serde_json::json;

use crate::answers::{
    Bucket, Buckets, Cancelled, CancelledKeys, Deliveries, Delivery, Many, Outcomes, Page,
    QueueStats, Revived, Scheduled, Settled,
};
use crate::client::{Client, queue_path};
use crate::error::Error;
use crate::request::{Request, encode, query};
use crate::time;
use crate::timer::{NewTimer, Retry, Timer, Webhook};

/// A queue of a server. Its calls fail with [`Error`]; see [`Client`] for which are repeated.
#[derive(Clone, Debug)]
pub struct Queue {
    client: Client,
    name: String,
    path: String,
}

/// What becomes of a key that is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conflict {
    /// The call is refused: `key_taken`.
    #[default]
    Refuse,
    /// The timer that is there stays, and is returned.
    Keep,
    /// It is replaced. Not safe to repeat.
    Replace,
}

/// What must hold of a key that is replaced, moved or cancelled; else the call is refused: `precondition_failed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Nothing. A replacement is then not safe to repeat.
    #[default]
    Any,
    /// No timer has the key.
    Absent,
    /// The timer is of this generation.
    Generation(u64),
}

impl Condition {
    fn header(self) -> Option<(&'static str, String)> {
        match self {
            Condition::Any => None,
            Condition::Absent => Some(("if-none-match", "*".into())),
            Condition::Generation(number) => Some(("if-match", format!("\"{number}\""))),
        }
    }
}

/// What to list. All that are not done or cancelled, by their next attempt, 100 a page, without payloads, at first.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// Only in this state.
    pub state: Option<String>,
    /// Only with a next attempt not before it.
    pub from: Option<SystemTime>,
    /// Only with a next attempt before it.
    pub to: Option<SystemTime>,
    /// Only keys that begin so; the order is by key then.
    pub prefix: Option<String>,
    /// The most timers of a page, up to 1000.
    pub limit: Option<u32>,
    /// Where the page begins: `next` of the last one.
    pub cursor: Option<String>,
    /// With payloads.
    pub payload: bool,
}

/// What to receive. One delivery, at once, for 30 s, at first.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Receive {
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<u32>,
    #[serde(with = "time::span_or_null", skip_serializing_if = "Option::is_none")]
    wait: Option<Duration>,
    #[serde(with = "time::span_or_null", skip_serializing_if = "Option::is_none")]
    lease: Option<Duration>,
}

impl Receive {
    /// The most deliveries, up to 1000.
    pub fn max(mut self, max: u32) -> Self {
        self.max = Some(max);
        self
    }

    /// How long the server waits for the first one, up to 60 s.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// How long nobody else gets them, 1 s to 12 h.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }
}

/// Settings of a queue to be changed: those that are `Some`. `Some(None)` removes one.
#[derive(Clone, Debug, Default, Serialize)]
pub struct QueueChange {
    /// Whether it hands out nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// The default of new timers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// The default of new timers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Option<Webhook>>,
    /// The default of new timers with a chosen key.
    #[serde(with = "time::span_or_null", skip_serializing_if = "Option::is_none")]
    pub remember: Option<Duration>,
    /// How long the dead are kept.
    #[serde(with = "time::span_or_null", skip_serializing_if = "Option::is_none")]
    pub dead_keep: Option<Duration>,
    /// The most hand-outs a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Option<u32>>,
    /// The most timers that are out at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Option<u32>>,
}

#[allow(clippy::missing_errors_doc, reason = "one type of error, described on the type")]
impl Queue {
    pub(crate) fn new(client: Client, name: &str) -> Self {
        Queue { client, name: name.to_owned(), path: queue_path(name) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes a timer. Refused if its key is taken.
    pub async fn schedule(&self, timer: &NewTimer) -> Result<Timer, Error> {
        self.schedule_or(timer, Conflict::Refuse).await
    }

    /// The same, and says what becomes of a key that is taken.
    pub async fn schedule_or(&self, timer: &NewTimer, conflict: Conflict) -> Result<Timer, Error> {
        let safe = timer.key.is_some() && conflict != Conflict::Replace;
        self.client.call(self.post_timers(conflict).body(timer)?.safe(safe)).await
    }

    /// Makes up to 10 000 timers: all or none.
    pub async fn schedule_many(
        &self,
        timers: &[NewTimer],
        conflict: Conflict,
    ) -> Result<Vec<Scheduled>, Error> {
        let keys = timers.iter().all(|timer| timer.key.is_some());
        let request = self.post_timers(conflict).body(&json!({ "timers": timers }));
        let request = request?.safe(keys && conflict != Conflict::Replace);
        Ok(self.client.call::<Outcomes>(request).await?.timers)
    }

    fn post_timers(&self, conflict: Conflict) -> Request {
        let query = match conflict {
            Conflict::Refuse => "",
            Conflict::Keep => "?on_conflict=keep",
            Conflict::Replace => "?on_conflict=replace",
        };
        Request::new(Method::POST, format!("{}/timers{query}", self.path))
    }

    /// Makes a timer under this key, or replaces the one that has it.
    pub async fn replace(
        &self,
        key: &str,
        timer: &NewTimer,
        condition: Condition,
    ) -> Result<Timer, Error> {
        let mut timer = timer.clone();
        timer.key = None;
        let request = self.timer(Method::PUT, key, "").body(&timer)?;
        let request = request.safe(condition != Condition::Any);
        self.client.call(Request { condition: condition.header(), ..request }).await
    }

    /// Shows a timer, also one that is dead or remembered.
    pub async fn get(&self, key: &str) -> Result<Timer, Error> {
        self.client.call(self.timer(Method::GET, key, "")).await
    }

    /// Moves the occurrence of a timer to a moment; a dead one lives again.
    pub async fn move_to(
        &self,
        key: &str,
        moment: SystemTime,
        condition: Condition,
    ) -> Result<Timer, Error> {
        let at = time::moment(moment);
        let at = at.ok_or_else(|| Error::Argument("a moment is in 1970 to 9999".into()))?;
        let request = self.timer(Method::PATCH, key, "").body(&json!({ "at": at }))?.safe(true);
        self.client.call(Request { condition: condition.header(), ..request }).await
    }

    /// The same, so long from now. Not safe to repeat.
    pub async fn move_after(
        &self,
        key: &str,
        delay: Duration,
        condition: Condition,
    ) -> Result<Timer, Error> {
        let body = json!({ "in": time::duration(delay) });
        let request = self.timer(Method::PATCH, key, "").body(&body)?;
        self.client.call(Request { condition: condition.header(), ..request }).await
    }

    /// Cancels a timer.
    pub async fn cancel(&self, key: &str, condition: Condition) -> Result<Cancelled, Error> {
        let request = self.timer(Method::DELETE, key, "").safe(true);
        self.client.call(Request { condition: condition.header(), ..request }).await
    }

    /// Cancels up to 10 000 timers.
    pub async fn cancel_keys(&self, keys: &[&str]) -> Result<CancelledKeys, Error> {
        self.client.call(self.post("cancel").body(&json!({ "keys": keys }))?.safe(true)).await
    }

    /// Cancels the timers whose keys begin so, at most 100 000 a call. Not safe to repeat, for its counts.
    pub async fn cancel_prefix(&self, prefix: &str) -> Result<Many, Error> {
        let query = query(&[("prefix", Some(prefix.to_owned()))]);
        let path = format!("{}/timers{query}", self.path);
        self.client.call(Request::new(Method::DELETE, path)).await
    }

    /// Makes a timer due now; of a recurring one, an extra occurrence. Not safe to repeat.
    pub async fn run(&self, key: &str) -> Result<Timer, Error> {
        self.client.call(self.timer(Method::POST, key, "/run")).await
    }

    /// Makes dead timers due now, at most 10 000 a call. Not safe to repeat.
    pub async fn redrive(&self, prefix: Option<&str>) -> Result<Revived, Error> {
        let body = prefix.map_or_else(|| json!({}), |prefix| json!({ "prefix": prefix }));
        self.client.call(self.post("redrive").body(&body)?).await
    }

    /// Lists timers, a page at a time.
    pub async fn list(&self, list: &List) -> Result<Page, Error> {
        let moment = |at: Option<SystemTime>| at.and_then(time::moment);
        let query = query(&[
            ("state", list.state.clone()),
            ("from", moment(list.from)),
            ("to", moment(list.to)),
            ("prefix", list.prefix.clone()),
            ("limit", list.limit.map(|limit| limit.to_string())),
            ("cursor", list.cursor.clone()),
            ("payload", list.payload.then(|| "true".to_owned())),
        ]);
        self.client.call(Request::new(Method::GET, format!("{}/timers{query}", self.path))).await
    }

    /// Takes timers that are due. Not safe to repeat: it uses up an attempt.
    pub async fn receive(&self, receive: &Receive) -> Result<Vec<Delivery>, Error> {
        let request = self.post("receive").body(receive)?;
        let request = Request { wait: receive.wait.unwrap_or_default(), ..request };
        Ok(self.client.call::<Deliveries>(request).await?.deliveries)
    }

    /// Says that the work of deliveries is done.
    pub async fn ack(&self, tokens: &[&str]) -> Result<Settled, Error> {
        self.client.call(self.post("ack").body(&json!({ "tokens": tokens }))?.safe(true)).await
    }

    /// Says that the work of deliveries failed: they are tried again after that delay or by their backoff, or given up.
    pub async fn nack(
        &self,
        tokens: &[&str],
        delay: Option<Duration>,
        error: Option<&str>,
    ) -> Result<Settled, Error> {
        let mut body = json!({ "tokens": tokens });
        if let Some(delay) = delay {
            body["in"] = time::duration(delay).into();
        }
        if let Some(error) = error {
            body["error"] = error.into();
        }
        self.client.call(self.post("nack").body(&body)?.safe(true)).await
    }

    /// Extends the leases of deliveries, from now.
    pub async fn extend(&self, tokens: &[&str], lease: Duration) -> Result<Settled, Error> {
        let body = json!({ "tokens": tokens, "lease": time::duration(lease) });
        self.client.call(self.post("extend").body(&body)?.safe(true)).await
    }

    /// What the queue holds, and its settings.
    pub async fn stats(&self) -> Result<QueueStats, Error> {
        self.client.call(Request::new(Method::GET, self.path.clone())).await
    }

    /// Changes settings of the queue, and makes it if it is not there.
    pub async fn set(&self, change: &QueueChange) -> Result<QueueStats, Error> {
        let request = Request::new(Method::PATCH, self.path.clone());
        self.client.call(request.body(change)?.safe(true)).await
    }

    /// Deletes the queue and all its timers; refused if some are out, unless `force`. Not safe to repeat.
    pub async fn delete(&self, force: bool) -> Result<(), Error> {
        let query = query(&[("force", force.then(|| "true".to_owned()))]);
        let request = Request::new(Method::DELETE, format!("{}{query}", self.path));
        self.client.call::<serde::de::IgnoredAny>(request).await.map(drop)
    }

    /// Counts timers by when they are due.
    pub async fn forecast(
        &self,
        from: SystemTime,
        to: SystemTime,
        buckets: u32,
    ) -> Result<Vec<Bucket>, Error> {
        let query = query(&[
            ("from", time::moment(from)),
            ("to", time::moment(to)),
            ("buckets", Some(buckets.to_string())),
        ]);
        let request = Request::new(Method::GET, format!("{}/forecast{query}", self.path));
        Ok(self.client.call::<Buckets>(request).await?.buckets)
    }

    fn timer(&self, method: Method, key: &str, verb: &str) -> Request {
        // A key of dots would be taken for a folder.
        let key = if matches!(key, "." | "..") { key.replace('.', "%2E") } else { encode(key) };
        Request::new(method, format!("{}/timers/{key}{verb}", self.path))
    }

    fn post(&self, verb: &str) -> Request {
        Request::new(Method::POST, format!("{}/{verb}", self.path))
    }
}
