//! A server in this process, under virtual time, and helpers to call it.
//!
//! A step is a request, the expected status, and the expected part of the answer: the answer must have each field of
//! the part, with that value. Every answer is also checked against the OpenAPI document.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, Response};
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::runtime::Runtime;
use tourbillon::VirtualClock;
use tourbillon_durable::Durable;
use tourbillon_server::{Api, Settings};
use tower::ServiceExt;
use tower::util::Oneshot;

use crate::schema;

pub(crate) struct World {
    pub(crate) clock: VirtualClock,
    pub(crate) durable: Durable,
    pub(crate) api: Api,
    router: Router,
    runtime: Runtime,
}

/// A request whose answer is pending.
pub(crate) struct Begun {
    method: Method,
    path: String,
    future: Pin<Box<Oneshot<Router, Request<Body>>>>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: axum::http::HeaderMap,
    pub(crate) text: String,
    pub(crate) json: Value,
}

/// A request, its body, the expected status, and the expected part of the answer.
pub(crate) type Step<'a> = (&'a str, &'a str, u16, &'a str);

impl World {
    pub(crate) fn new() -> Self {
        World::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let clock = settings.test_clock.clone().unwrap_or_default();
        let durable = Durable::builder().clock(&clock).memory().unwrap();
        World::of(durable, clock, settings)
    }

    /// A server in this process, on the system's clock.
    pub(crate) fn real(settings: Settings) -> Self {
        World::of(Durable::memory().unwrap(), VirtualClock::new(), settings)
    }

    pub(crate) fn of(durable: Durable, clock: VirtualClock, settings: Settings) -> Self {
        let api = Api::new(durable.clone(), settings);
        let router = api.router();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        World { clock, durable, api, router, runtime }
    }

    /// Sends a request. Returns the response before its body is read.
    pub(crate) fn response(&self, request: Request<Body>) -> Response<Body> {
        self.runtime.block_on(self.router.clone().oneshot(request)).unwrap()
    }

    /// Sends a request that must not be answered at once. Dropping it disconnects the client.
    pub(crate) fn begin(&self, request: Request<Body>) -> Begun {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let mut future = Box::pin(self.router.clone().oneshot(request));
        let answered = self
            .runtime
            .block_on(poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())));
        assert!(!answered, "{method} {path} is answered at once");
        Begun { method, path, future }
    }

    /// Waits for the answer.
    pub(crate) fn finish(&self, begun: Begun) -> Answer {
        let Begun { method, path, future } = begun;
        let response = self.runtime.block_on(future).unwrap();
        self.read(method, &path, response)
    }

    /// Runs a future.
    pub(crate) fn run<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    pub(crate) fn stop_polls(&self) {
        self.api.stop_polls();
    }

    /// Sends a request and reads its answer.
    pub(crate) fn send(&self, request: Request<Body>) -> Answer {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = self.response(request);
        self.read(method, &path, response)
    }

    fn read(&self, method: Method, path: &str, response: Response<Body>) -> Answer {
        let (parts, body) = response.into_parts();
        let bytes = self.runtime.block_on(body.collect()).unwrap().to_bytes();
        let text = String::from_utf8(bytes.into()).unwrap();
        let json = serde_json::from_str(&text).unwrap_or(Value::Null);
        let answer = Answer { status: parts.status.as_u16(), headers: parts.headers, text, json };
        assert!(answer.headers.contains_key("tourbillon-now"), "{answer:?}");
        schema::check(method.as_str(), path, &answer);
        answer
    }

    /// Sends `METHOD PATH` with a body, or without one if it is empty. A path that does not start with a slash is below
    /// `/v1/queues/`.
    pub(crate) fn ask(&self, line: &str, body: &str) -> Answer {
        self.send(request(line, body))
    }

    /// Runs steps in order and checks their answers.
    pub(crate) fn steps(&self, steps: &[Step<'_>]) {
        for (line, body, status, part) in steps {
            let answer = self.ask(line, body);
            let shown = format!("{line} {body}\n  answered {} {}", answer.status, answer.text);
            assert_eq!(answer.status, *status, "{shown}");
            let part: Value = serde_json::from_str(part).unwrap_or_else(|_| panic!("{part}"));
            assert!(has(&answer.json, &part), "{shown}\n  expected {part}");
        }
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds)).unwrap();
    }
}

pub(crate) fn request(line: &str, body: &str) -> Request<Body> {
    let (method, path) = line.split_once(' ').unwrap();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/v1/queues/{path}") };
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
    if !body.is_empty() {
        request = request.header("content-type", "application/json");
    }
    request.body(Body::from(body.to_owned())).unwrap()
}

/// Whether a value has every field of a part, with equal values. Lists must have the same length.
pub(crate) fn has(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(value), Value::Object(part)) => {
            part.iter().all(|(name, part)| value.get(name).is_some_and(|value| has(value, part)))
        }
        (Value::Array(value), Value::Array(part)) => {
            value.len() == part.len()
                && value.iter().zip(part).all(|(value, part)| has(value, part))
        }
        _ => value == part,
    }
}
