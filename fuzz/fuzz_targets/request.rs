//! Requests of any bytes: none makes the server panic or fail, and every answer is JSON with the server's clock.
//!
//! `cargo +nightly fuzz run request`. The first line is the method, the path with its query, and headers, separated by
//! tabs; the rest is the body. Whoever wants a corpus begins with `POST<tab>/v1/queues/q/timers` and `{"in":"0s"}`.
#![no_main]

use std::sync::LazyLock;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use libfuzzer_sys::fuzz_target;
use tokio::runtime::Runtime;
use tourbillon::VirtualClock;
use tourbillon_durable::Durable;
use tourbillon_server::{Api, Settings};
use tower::ServiceExt;

struct World {
    clock: VirtualClock,
    router: Router,
    runtime: Runtime,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let clock = VirtualClock::new();
    let durable = Durable::builder().clock(&clock).memory().expect("timers in memory");
    let router = Api::new(durable, Settings::default()).router();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    World { clock, router, runtime }
});

fuzz_target!(|bytes: &[u8]| {
    let at = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len());
    let (line, body) = (&bytes[..at], bytes.get(at + 1..).unwrap_or_default());
    let mut words = line.split(|&byte| byte == b'\t');
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return };
    // A poll that waits, and a stream, have no end.
    if path.ends_with(b"/events") || body.windows(4).any(|word| word == b"wait") {
        return;
    }
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
    request = request.header("content-type", "application/json");
    for header in words {
        let mut parts = header.splitn(2, |&byte| byte == b':');
        if let (Some(name), Some(value)) = (parts.next(), parts.next()) {
            request = request.header(name, value);
        }
    }
    let Ok(request) = request.body(Body::from(body.to_vec())) else { return };
    let answer = WORLD.runtime.block_on(WORLD.router.clone().oneshot(request)).expect("it answers");
    let (status, headers) = (answer.status(), answer.headers().clone());
    assert!(headers.contains_key("tourbillon-now"));
    assert!(status.as_u16() < 500, "{status}");
    let body = WORLD.runtime.block_on(answer.into_body().collect()).expect("a body").to_bytes();
    let kind = headers.get("content-type").map_or(&b""[..], |kind| kind.as_bytes());
    if matches!(kind, b"application/json" | b"application/problem+json") && !body.is_empty() {
        serde_json::from_slice::<serde_json::Value>(&body).expect("JSON");
    }
    let _ = WORLD.clock.advance(std::time::Duration::from_millis(1));
});
