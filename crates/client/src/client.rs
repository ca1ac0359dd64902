//! The client: sends requests, and retries those that are safe to repeat.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Method, Response, Uri};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::de::DeserializeOwned;
use tokio::time::{sleep, timeout};

use crate::answers::Queues;
use crate::connect::Connector;
use crate::error::{Error, Problem};
use crate::events::Events;
use crate::queue::Queue;
use crate::request::{Request, encode, query};

/// The maximum length of an answer, in bytes. The server stops at 16 MiB of payloads.
const MOST_BYTES: usize = 64 << 20;
/// The longest pause before a retry. If the server requests a longer one, the call fails instead.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How long an idle connection is kept. The server closes one after 10 s; a call on a connection that is being closed
/// is lost, and [`blocking`](crate::blocking) reads no socket between two calls, so it would not notice.
const IDLE: Duration = Duration::from_secs(5);

/// A client of one server. Clones share its connections.
///
/// It retries a call, up to [`Builder::retries`] times, in two cases only:
///
/// - the call was not carried out: there was no connection, or the server answered 503 `unavailable` or 429 `too_many`;
/// - the call may have been carried out, and is safe to repeat according to the API: every read, scheduling with a key
///   (plain or [`Conflict::Keep`](crate::Conflict::Keep)), replacing under a [`Condition`](crate::Condition),
///   cancelling by key, `ack`, `nack`, `extend`, and settings of a queue.
///
/// A call that schedules a timer is safe for as long as the server remembers its key: the client stops retrying
/// [`Builder::patience`] before [`NewTimer::remember`](crate::NewTimer::remember) has passed since the first try (10
/// minutes if it is not set; set it if the queue's own default is shorter).
///
/// Any other call ends with the first [`Error::Lost`], and the caller decides whether to repeat it.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    http: legacy::Client<Connector, Full<Bytes>>,
    base: String,
    token: Option<HeaderValue>,
    patience: Duration,
    retries: u32,
    /// The server's wall clock and the instant at which it was read.
    seen: Mutex<Option<(SystemTime, Instant)>>,
}

/// Settings of a [`Client`].
#[derive(Clone, Debug)]
pub struct Builder {
    base: String,
    token: Option<String>,
    patience: Duration,
    retries: u32,
}

impl Builder {
    /// The token that is sent with every request.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// How long an answer may take, in addition to the `wait` of a `receive`. The default is 30 s.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The maximum number of retries of a call. The default is 3.
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Creates the client. Opens no connection yet.
    ///
    /// # Errors
    /// [`Error::Argument`]: the address is not that of a server, or the token cannot be sent.
    pub fn build(self) -> Result<Client, Error> {
        let base = self.base.trim_end_matches('/').to_owned();
        let scheme = ["http://", "https://"].iter().any(|scheme| base.starts_with(scheme));
        let host = base.parse::<Uri>().ok().is_some_and(|uri| uri.host().is_some());
        if !scheme || !host || base.contains(['?', '#', '@']) {
            let wrong = format!("{base:?} is no address of a server: give http://HOST:PORT");
            return Err(Error::Argument(wrong));
        }
        let token = self.token.map(|token| HeaderValue::try_from(format!("Bearer {token}")));
        let token = token.transpose().map_err(|_| {
            Error::Argument("the token has characters that no header may have".into())
        })?;
        let token = token.map(|mut token| {
            token.set_sensitive(true);
            token
        });
        let connector = Connector::new().map_err(Error::Argument)?;
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        let Builder { patience, retries, .. } = self;
        let seen = Mutex::new(None);
        Ok(Client(Arc::new(Inner { http, base, token, patience, retries, seen })))
    }
}

impl Client {
    /// A client of the server at that address, as `http://localhost:7420`.
    ///
    /// # Errors
    /// [`Error::Argument`]: it is not the address of a server.
    pub fn new(address: impl Into<String>) -> Result<Self, Error> {
        Client::builder(address).build()
    }

    /// The same, with settings.
    pub fn builder(address: impl Into<String>) -> Builder {
        let (patience, retries) = (Duration::from_secs(30), 3);
        Builder { base: address.into(), token: None, patience, retries }
    }

    /// The address of the server.
    pub fn address(&self) -> &str {
        &self.0.base
    }

    /// A queue by its name. Sends no request.
    pub fn queue(&self, name: &str) -> Queue {
        Queue::new(self.clone(), name)
    }

    /// Every queue that the token sees, by name.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn queues(&self) -> Result<Queues, Error> {
        let mut queues: Queues = self.call(Request::new(Method::GET, "/v1/queues".into())).await?;
        queues.queues.sort_by(|one, other| one.queue.cmp(&other.queue));
        Ok(queues)
    }

    /// Succeeds if the server accepts changes.
    ///
    /// # Errors
    /// See [`Error`]. [`Error::Refused`] gives the reason if the server does not accept changes.
    pub async fn ready(&self) -> Result<(), Error> {
        let request = Request::new(Method::GET, "/readyz".into());
        self.call::<serde::de::IgnoredAny>(request).await.map(drop)
    }

    /// Streams the events of timers from now on, of one queue or of all.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn events(&self, queue: Option<&str>) -> Result<Events, Error> {
        let query = query(&[("queue", queue.map(str::to_owned))]);
        let request = Request::new(Method::GET, format!("/v1/events{query}"));
        let answer = self.repeated(&request, Client::begin).await?;
        Ok(Events::new(answer.into_body()))
    }

    /// The server's wall clock, extrapolated from its last answer; the local clock before the first answer.
    pub fn now(&self) -> SystemTime {
        let seen = *self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.map_or_else(SystemTime::now, |(now, at)| now + at.elapsed())
    }

    /// Sends a request and reads the answer.
    pub(crate) async fn call<T: DeserializeOwned>(&self, request: Request) -> Result<T, Error> {
        let body = self.repeated(&request, Client::once).await?;
        serde_json::from_slice(&body).map_err(|wrong| Error::Unreadable(wrong.to_string()))
    }

    /// Sends a request, and retries it as described on [`Client`].
    async fn repeated<'a, T, F: Future<Output = Result<T, Error>>>(
        &'a self,
        request: &'a Request,
        send: fn(&'a Client, &'a Request) -> F,
    ) -> Result<T, Error> {
        let (mut lost, mut pause, began) = (false, Duration::from_millis(100), Instant::now());
        for left in (0..=self.0.retries).rev() {
            let mut error = match send(self, request).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let earlier = lost;
            lost |= error.may_have_happened();
            // The time counts from the first try: if it was carried out, every later try is a repetition.
            // The next try may take its whole time before the server sees it.
            let next = self.0.patience.saturating_add(request.wait);
            let safe = |pause: Duration| {
                began.elapsed().saturating_add(pause).saturating_add(next) < request.safe_for
            };
            let asked = pause_before_next(&error).map(|asked| asked.max(pause));
            let again = asked
                .filter(|asked| left > 0 && *asked <= LONGEST_PAUSE && (!lost || safe(*asked)));
            let Some(asked) = again else {
                if let Error::Refused(problem) = &mut error {
                    problem.after_lost = earlier;
                }
                return Err(error);
            };
            sleep(asked).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        unreachable!("the last try returns")
    }

    /// Tries once. Returns the whole body of a successful answer.
    async fn once(&self, request: &Request) -> Result<Bytes, Error> {
        let patience = self.0.patience.saturating_add(request.wait);
        let answer = async {
            let answer = self.open(request).await?;
            let body = Limited::new(answer.into_body(), MOST_BYTES).collect().await;
            Ok(body.map_err(|error| Error::Lost(error.to_string()))?.to_bytes())
        };
        timeout(patience, answer).await.map_err(|_| late(patience))?
    }

    /// Tries once. Returns a successful answer as soon as its head is there; the body may take any time.
    async fn begin(&self, request: &Request) -> Result<Response<Incoming>, Error> {
        let patience = self.0.patience;
        timeout(patience, self.open(request)).await.map_err(|_| late(patience))?
    }

    /// Tries once. Returns a successful answer as soon as its head has arrived.
    async fn open(&self, request: &Request) -> Result<Response<Incoming>, Error> {
        let Inner { base, token, .. } = &*self.0;
        let mut builder = hyper::Request::builder().method(&request.method);
        builder = builder.uri(format!("{base}{}", request.path));
        if let Some(token) = token {
            builder = builder.header(AUTHORIZATION, token.clone());
        }
        if request.body.is_some() {
            builder = builder.header(CONTENT_TYPE, "application/json");
        }
        if let Some((name, value)) = &request.condition {
            builder = builder.header(*name, value);
        }
        let body = Full::new(Bytes::from(request.body.clone().unwrap_or_default()));
        let sent = builder.body(body).map_err(|wrong| Error::Argument(wrong.to_string()))?;
        let answer = self.0.http.request(sent).await.map_err(|error| failed(&error))?;
        self.see(&answer);
        if answer.status().is_success() { Ok(answer) } else { Err(refused(answer).await) }
    }

    /// Records the server's clock.
    fn see(&self, answer: &Response<Incoming>) {
        let now = answer.headers().get("tourbillon-now").and_then(|now| now.to_str().ok());
        if let Some(now) = now.and_then(|now| humantime::parse_rfc3339(now).ok()) {
            let mut seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
            *seen = Some((now, Instant::now()));
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("address", &self.0.base).finish_non_exhaustive()
    }
}

fn late(patience: Duration) -> Error {
    Error::Lost(format!("no answer within {} s", patience.as_secs_f64()))
}

/// The pause before the next try after this error; `None` if another try would fail in the same way.
fn pause_before_next(error: &Error) -> Option<Duration> {
    match error {
        Error::Unreachable(_) | Error::Lost(_) => Some(Duration::ZERO),
        Error::Refused(problem) => {
            let passing = ["unavailable", "too_many", "unknown"].contains(&&*problem.code);
            passing.then_some(problem.retry_after.unwrap_or_default())
        }
        Error::Unreadable(_) | Error::Argument(_) => None,
    }
}

/// Why a request has no answer.
fn failed(error: &legacy::Error) -> Error {
    // The innermost cause is the clearest: "Connection refused", not "client error".
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    let why = cause.to_string();
    if error.is_connect() { Error::Unreachable(why) } else { Error::Lost(why) }
}

/// The error for an answer whose status is not a success.
async fn refused(answer: Response<Incoming>) -> Error {
    let status = answer.status();
    let retry_after = answer
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.parse().ok().map(Duration::from_secs));
    let body = match Limited::new(answer.into_body(), 1 << 20).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return Error::Lost(error.to_string()),
    };
    match serde_json::from_slice::<Problem>(&body) {
        Ok(problem) => Error::Refused(Box::new(Problem { retry_after, ..problem })),
        Err(_) => {
            let text = String::from_utf8_lossy(&body);
            let text: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
            Error::Unreadable(format!("status {status} without a problem of this API: {text}"))
        }
    }
}

/// The path of a queue.
pub(crate) fn queue_path(name: &str) -> String {
    format!("/v1/queues/{}", encode(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_gives_up_an_idle_connection_before_the_server_does() {
        let server = tourbillon_server::Connections::default().head_time;
        assert!(IDLE + Duration::from_secs(5) <= server, "{IDLE:?} {server:?}");
    }
}
