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

/// A queue of a server. Its calls fail with [`Error`]; see [`Client`] for which are retried.
#[derive(Clone, Debug)]
pub struct Queue {
    client: Client,
    name: String,
    path: String,
}

/// What to do if the key is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conflict {
    /// Refuse the call: `key_taken`.
    #[default]
    Refuse,
    /// Keep the existing timer and return it.
    Keep,
    /// Replace the existing timer. Not safe to repeat.
    Replace,
}

/// A precondition of replacing, moving or cancelling; if it fails the call is refused: `precondition_failed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// None. Replacing is then not safe to repeat.
    #[default]
    Any,
    /// No timer has the key.
    Absent,
    /// The timer has this generation.
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

/// What to list. By default: timers that are not done or cancelled, by next attempt, 100 per page, without payloads.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// Only timers in this state.
    pub state: Option<String>,
    /// Only timers whose next attempt is at or after this moment.
    pub from: Option<SystemTime>,
    /// Only timers whose next attempt is before this moment.
    pub to: Option<SystemTime>,
    /// Only keys with this prefix; the list is then ordered by key.
    pub prefix: Option<String>,
    /// The maximum number of timers per page, up to 1000.
    pub limit: Option<u32>,
    /// Where the page begins: `next` of the previous page.
    pub cursor: Option<String>,
    /// Include payloads.
    pub payload: bool,
}

/// What to receive. By default: one delivery, without waiting, with a lease of 30 s.
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
    /// The maximum number of deliveries, up to 1000.
    pub fn max(mut self, max: u32) -> Self {
        self.max = Some(max);
        self
    }

    /// How long the server waits for the first one, up to 60 s.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// The lease: how long no other worker receives them, 1 s to 12 h.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }
}

/// A change of a queue's settings: fields that are `None` stay as they are; `Some(None)` removes a setting.
#[derive(Clone, Debug, Default, Serialize)]
pub struct QueueChange {
    /// Whether the queue is paused: a paused queue hands out nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// The default for new timers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// The default for new timers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Option<Webhook>>,
    /// The default for new timers whose key the caller chose.
    #[serde(with = "time::span_or_null", skip_serializing_if = "Option::is_none")]
    pub remember: Option<Duration>,
    /// How long dead timers are kept.
    #[serde(with = "time::span_or_null", skip_serializing_if = "Option::is_none")]
    pub dead_keep: Option<Duration>,
    /// The maximum number of deliveries per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Option<u32>>,
    /// The maximum number of timers in delivery at once.
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

    /// Schedules a timer. Refused if its key is taken.
    pub async fn schedule(&self, timer: &NewTimer) -> Result<Timer, Error> {
        self.schedule_or(timer, Conflict::Refuse).await
    }

    /// Schedules a timer; `conflict` says what to do if its key is taken.
    pub async fn schedule_or(&self, timer: &NewTimer, conflict: Conflict) -> Result<Timer, Error> {
        let request = self.post_timers(conflict).body(timer)?;
        self.client.call(request.safe_for(safe_for(timer, conflict))).await
    }

    /// Schedules up to 10 000 timers: all or none.
    pub async fn schedule_many(
        &self,
        timers: &[NewTimer],
        conflict: Conflict,
    ) -> Result<Vec<Scheduled>, Error> {
        let safe = timers.iter().map(|timer| safe_for(timer, conflict)).min();
        let request = self.post_timers(conflict).body(&json!({ "timers": timers }))?;
        let request = request.safe_for(safe.unwrap_or_default());
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

    /// Schedules a timer under this key, or replaces the timer that has it.
    pub async fn replace(
        &self,
        key: &str,
        timer: &NewTimer,
        condition: Condition,
    ) -> Result<Timer, Error> {
        let mut timer = timer.clone();
        timer.key = None;
        let request = self.timer(Method::PUT, key, "").body(&timer)?;
        let safe = match condition {
            Condition::Any => Duration::ZERO,
            Condition::Absent => timer.remembered(),
            // After a replacement the key never has this generation again, so a repetition has no effect.
            Condition::Generation(_) => Duration::MAX,
        };
        let request = request.safe_for(safe);
        self.client.call(Request { condition: condition.header(), ..request }).await
    }

    /// Returns a timer, also one that is dead or remembered.
    pub async fn get(&self, key: &str) -> Result<Timer, Error> {
        self.client.call(self.timer(Method::GET, key, "")).await
    }

    /// Moves a timer's current occurrence to a moment; revives a dead timer.
    ///
    /// Not safe to repeat, whatever the condition: if the occurrence was handed out and settled meanwhile, the
    /// repetition moves the next one of a recurring timer, or revives the timer a second time.
    pub async fn move_to(
        &self,
        key: &str,
        moment: SystemTime,
        condition: Condition,
    ) -> Result<Timer, Error> {
        let at = time::moment(moment);
        let at = at.ok_or_else(|| Error::Argument("a moment is in 1970 to 9999".into()))?;
        let request = self.timer(Method::PATCH, key, "").body(&json!({ "at": at }))?;
        self.client.call(Request { condition: condition.header(), ..request }).await
    }

    /// As [`Queue::move_to`], relative to the server's clock.
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
        let request = self.timer(Method::DELETE, key, "").safe();
        self.client.call(Request { condition: condition.header(), ..request }).await
    }

    /// Cancels up to 10 000 timers.
    pub async fn cancel_keys(&self, keys: &[&str]) -> Result<CancelledKeys, Error> {
        self.client.call(self.post("cancel").body(&json!({ "keys": keys }))?.safe()).await
    }

    /// Cancels the timers whose keys have this prefix, at most 100 000 per call.
    ///
    /// Not safe to repeat: the counts would differ.
    pub async fn cancel_prefix(&self, prefix: &str) -> Result<Many, Error> {
        let query = query(&[("prefix", Some(prefix.to_owned()))]);
        let path = format!("{}/timers{query}", self.path);
        self.client.call(Request::new(Method::DELETE, path)).await
    }

    /// Makes a timer due now; a recurring timer gets an extra occurrence. Not safe to repeat.
    pub async fn run(&self, key: &str) -> Result<Timer, Error> {
        self.client.call(self.timer(Method::POST, key, "/run")).await
    }

    /// Makes dead timers due now, at most 10 000 per call. Not safe to repeat.
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

    /// Receives timers that are due. Not safe to repeat: each call uses up an attempt.
    pub async fn receive(&self, receive: &Receive) -> Result<Vec<Delivery>, Error> {
        let request = self.post("receive").body(receive)?;
        let request = Request { wait: receive.wait.unwrap_or_default(), ..request };
        Ok(self.client.call::<Deliveries>(request).await?.deliveries)
    }

    /// Acknowledges deliveries: their work is done.
    pub async fn ack(&self, tokens: &[&str]) -> Result<Settled, Error> {
        self.client.call(self.post("ack").body(&json!({ "tokens": tokens }))?.safe()).await
    }

    /// Reports that deliveries failed: retries them after `delay` or by their backoff, or gives them up.
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
        self.client.call(self.post("nack").body(&body)?.safe()).await
    }

    /// Extends the leases of deliveries, from now.
    pub async fn extend(&self, tokens: &[&str], lease: Duration) -> Result<Settled, Error> {
        let body = json!({ "tokens": tokens, "lease": time::duration(lease) });
        self.client.call(self.post("extend").body(&body)?.safe()).await
    }

    /// Returns the queue's counts, rates and settings.
    pub async fn stats(&self) -> Result<QueueStats, Error> {
        self.client.call(Request::new(Method::GET, self.path.clone())).await
    }

    /// Changes settings of the queue; creates it if it does not exist.
    pub async fn set(&self, change: &QueueChange) -> Result<QueueStats, Error> {
        let request = Request::new(Method::PATCH, self.path.clone());
        self.client.call(request.body(change)?.safe()).await
    }

    /// Deletes the queue and all its timers; refused if some are in delivery, unless `force`. Not safe to repeat.
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
        // Unescaped, `.` and `..` would be relative path segments.
        let key = if matches!(key, "." | "..") { key.replace('.', "%2E") } else { encode(key) };
        Request::new(method, format!("{}/timers/{key}{verb}", self.path))
    }

    fn post(&self, verb: &str) -> Request {
        Request::new(Method::POST, format!("{}/{verb}", self.path))
    }
}

/// How long the key of the first call is remembered, so that a repeated call schedules no second timer.
fn safe_for(timer: &NewTimer, conflict: Conflict) -> Duration {
    match (&timer.key, conflict) {
        (None, _) | (_, Conflict::Replace) => Duration::ZERO,
        (Some(_), Conflict::Refuse | Conflict::Keep) => timer.remembered(),
    }
}
