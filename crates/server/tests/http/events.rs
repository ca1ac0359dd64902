//! The stream of events, metrics, and the dump.

use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use serde_json::{Value, json};
use tourbillon::VirtualClock;
use tourbillon_durable::{Durable, Limits};
use tourbillon_server::{Settings, Tokens};

use crate::world::{World, request};

#[test]
fn what_happens_is_told() {
    let world = World::new();
    let mut all = world.response(request("GET /v1/events", ""));
    let mut other = world.response(request("GET /v1/events?queue=other", ""));
    assert_eq!(all.headers()["content-type"], "text/event-stream");
    world.ask("POST q/timers", r#"{"in":"10s","key":"a"}"#);
    world.advance(10);
    let token = world.ask("POST q/receive", "").json["deliveries"][0]["token"].clone();
    world.ask("POST q/ack", &json!({"tokens": [token]}).to_string());
    world.ask("POST other/timers", r#"{"in":"10s","key":"b"}"#);
    world.ask("DELETE other/timers/b", "");
    let read = |response: &mut axum::http::Response<axum::body::Body>, count: usize| {
        let mut text = String::new();
        while text.matches("event: ").count() < count {
            let frame = world.run(response.body_mut().frame()).unwrap().unwrap();
            text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
        let names = text.lines().filter_map(|line| line.strip_prefix("event: "));
        (names.map(str::to_owned).collect::<Vec<_>>().join(" "), text)
    };
    let (names, text) = read(&mut all, 6);
    assert_eq!(names, "scheduled due handed acked scheduled cancelled", "{text}");
    let first = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let first: Value = serde_json::from_str(first).unwrap();
    assert_eq!(
        (&first["queue"], &first["key"], &first["occurrence"]),
        (&json!("q"), &json!("a"), &json!(1))
    );
    assert_eq!(read(&mut other, 2).0, "scheduled cancelled");
    // Stopping the server ends the streams.
    world.stop_polls();
    assert!(world.run(all.body_mut().frame()).is_none());
}

#[test]
fn streams_have_a_limit_and_a_scope() {
    let tokens = Tokens::parse("one:only-one:read:one\nall:all-of-it:admin").unwrap();
    let world =
        World::with(Settings { tokens: Some(tokens), max_streams: 1, ..Settings::default() });
    let ask = |line: &str, token: &str| {
        let mut request = request(line, "");
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        world.response(request)
    };
    assert_eq!(ask("GET /v1/events?queue=other", "only-one").status(), 403);
    let mut first = ask("GET /v1/events?queue=one", "only-one");
    assert_eq!(first.status(), 200);
    assert_eq!(ask("GET /v1/events", "all-of-it").status(), 429);
    assert!(world.run(first.body_mut().frame()).is_some());
    drop(first);
    assert_eq!(ask("GET /v1/events", "all-of-it").status(), 200);
    assert_eq!(ask("GET /metrics", "only-one").status(), 403);
    assert_eq!(ask("GET /metrics", "all-of-it").status(), 200);
    assert_eq!(ask("GET /v1/dump", "only-one").status(), 403);
    assert_eq!(ask("GET /v1/dump", "all-of-it").status(), 200);
}

#[test]
fn a_stream_ends_with_its_token() {
    let tokens = |text: &str| Tokens::parse(text).unwrap();
    let first = tokens("one:only-one:read\nall:all-of-it:admin\nsome:some-more:read");
    let world = World::with(Settings { tokens: Some(first), ..Settings::default() });
    let mut streams = ["only-one", "all-of-it", "some-more"].map(|token| {
        let mut request = request("GET /v1/events", "");
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        world.response(request)
    });
    for stream in &mut streams {
        assert!(world.run(stream.body_mut().frame()).is_some());
    }
    // One is gone, one has another right, one stays.
    world.api.set_tokens(tokens("all:all-of-it:write\nsome:some-more:read\nnew:new-token:admin"));
    let [one, all, some] = &mut streams;
    let ended = |stream: &mut axum::http::Response<axum::body::Body>| {
        let next = stream.body_mut().frame();
        let within = tourbillon::tasks::timeout(Duration::from_secs(1), next);
        world.run(within).is_ok_and(|next| next.is_none())
    };
    assert_eq!((ended(one), ended(all), ended(some)), (true, true, false));
}

#[test]
fn metrics_say_what_queues_hold_and_how_late_they_are() {
    let world = World::new();
    world.ask("POST q/timers", r#"{"in":"1h"}"#);
    world.ask("POST q/timers", r#"{"in":"2s"}"#);
    world.ask("POST q/timers", r#"{"in":"0s"}"#);
    world.advance(1);
    let taken = world.ask("POST q/receive", "{}");
    assert_eq!(taken.json["deliveries"].as_array().unwrap().len(), 1);
    world.advance(4);
    world.ask("PATCH other", r#"{"paused":true}"#);
    let metrics = world.ask("GET /metrics", "");
    for line in [
        "# TYPE tourbillon_timers gauge",
        "tourbillon_ready 1",
        r#"tourbillon_timers{queue="q",state="scheduled"} 1"#,
        r#"tourbillon_timers{queue="q",state="due"} 1"#,
        r#"tourbillon_timers{queue="q",state="delivering"} 1"#,
        r#"tourbillon_timers{queue="other",state="dead"} 0"#,
        r#"tourbillon_lateness_seconds{queue="q",quantile="1"} 1"#,
        r#"tourbillon_oldest_due_seconds{queue="q"} 3"#,
        r#"tourbillon_paused{queue="other"} 1"#,
        r#"tourbillon_paused{queue="q"} 0"#,
    ] {
        assert!(
            metrics.text.lines().any(|there| there == line),
            "{line} is not in\n{}",
            metrics.text
        );
    }
}

#[test]
fn a_dump_has_every_timer() {
    let world = World::new();
    let body = r#"{"in":"1h","key":"a","payload":{ "x" : 1 },
        "webhook":{"url":"https://a.example/","headers":{"authorization":"hush"}}}"#;
    world.ask("POST q/timers", body);
    world.ask("POST q/timers", r#"{"in":"1h","key":"b"}"#);
    world.ask("DELETE q/timers/b", "");
    let dump = world.ask("GET /v1/dump", "");
    assert_eq!(dump.headers["content-type"], "application/x-ndjson");
    let lines: Vec<Value> =
        dump.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let timers: Vec<&Value> = lines.iter().filter(|line| line.get("key").is_some()).collect();
    assert_eq!(timers.len(), 2, "{}", dump.text);
    assert!(
        dump.text.contains(r#""payload":{ "x" : 1 }"#) && dump.text.contains("hush"),
        "{}",
        dump.text
    );
}

#[test]
fn the_number_of_dumps_is_limited() {
    let world = World::with(Settings { max_dumps: 1, ..Settings::default() });
    let timers: Vec<String> =
        (0..20).map(|_| format!(r#"{{"in":"1h","payload":"{}"}}"#, "x".repeat(100_000))).collect();
    world.ask("POST q/timers", &format!(r#"{{"timers":[{}]}}"#, timers.join(",")));
    // The first dump is not read to its end, so a second one is refused.
    let first = world.response(request("GET /v1/dump", ""));
    let refused = world.ask("GET /v1/dump", "");
    assert_eq!((refused.status, &refused.json["code"]), (429, &json!("too_many")));
    drop(first);
    let began = Instant::now();
    while world.ask("GET /v1/dump", "").status != 200 {
        assert!(began.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn the_number_of_timers_is_limited() {
    let clock = VirtualClock::new();
    let limits = Limits { timers: 2, ..Limits::default() };
    let durable = Durable::builder().clock(&clock).limits(limits).memory().unwrap();
    let world = World::of(durable, clock, Settings::default());
    world.steps(&[
        (
            "POST q/timers",
            r#"{"timers":[{"in":"1h"},{"in":"1h"},{"in":"1h"}]}"#,
            429,
            r#"{"code":"too_many"}"#,
        ),
        ("POST q/timers", r#"{"timers":[{"in":"1h","key":"a"},{"in":"1h"}]}"#, 201, "{}"),
        ("PUT q/timers/b", r#"{"in":"1h"}"#, 429, r#"{"code":"too_many"}"#),
        ("PUT q/timers/a", r#"{"in":"1h"}"#, 200, "{}"),
        ("DELETE q/timers/a", "", 200, "{}"),
        ("PUT q/timers/b", r#"{"in":"1h"}"#, 201, "{}"),
        ("GET /v1/queues", "", 200, r#"{"damaged":false}"#),
    ]);
    assert!(world.ask("POST q/timers", r#"{"in":"1h"}"#).headers.contains_key("retry-after"));
}
