//! Checks before a call: hosts, origins, paths, methods, content types and body sizes.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Request;
use http_body_util::BodyExt;
use http_body_util::channel::Channel;
use serde_json::json;
use tourbillon_server::{Hosts, Settings};

use crate::world::{World, request};

#[test]
fn a_foreign_host_or_origin_is_turned_away() {
    let world = World::with(Settings {
        hosts: Hosts::Only(vec!["timers.example".into()]),
        ..Settings::default()
    });
    for (headers, status) in [
        (&[("host", "localhost:7420")][..], 200),
        (&[("host", "127.0.0.1")], 200),
        (&[("host", "[::1]:1")], 200),
        (&[("host", "TIMERS.example:443")], 200),
        (&[], 421),
        (&[("host", "evil.example")], 421),
        (&[("host", "localhost"), ("host", "localhost")], 421),
        (&[("host", "localhost"), ("origin", "http://localhost")], 200),
        (&[("host", "localhost:1"), ("origin", "http://localhost:2")], 403),
        (&[("host", "localhost"), ("origin", "null")], 403),
        (&[("host", "localhost"), ("origin", "https://evil.example")], 403),
    ] {
        let mut request = Request::builder().uri("/v1/queues");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = world.send(request.body(Body::empty()).unwrap());
        assert_eq!(answer.status, status, "{headers:?} {}", answer.text);
    }
    let any = World::with(Settings { hosts: Hosts::Any, ..Settings::default() });
    let request = Request::builder().uri("/v1/queues").header("host", "evil.example");
    assert_eq!(any.send(request.body(Body::empty()).unwrap()).status, 200);
}

#[test]
fn paths_and_methods_are_exact() {
    let world = World::new();
    for (line, status, code) in [
        ("GET /v1", 404, "unknown_path"),
        ("GET /v1/", 404, "unknown_path"),
        ("GET /v1/queues/", 404, "unknown_path"),
        ("GET /v1/queues/q/", 404, "unknown_path"),
        ("GET /v1/queues/q/timers/", 404, "unknown_path"),
        ("GET /v1/queues/q/timers/a/", 404, "unknown_path"),
        ("GET /v1/queues//timers", 404, "unknown_path"),
        ("GET //v1/queues", 404, "unknown_path"),
        ("GET /v1/../v1/queues", 404, "unknown_path"),
        ("GET /V1/queues", 404, "unknown_path"),
        ("GET /v1%2fqueues", 404, "unknown_path"),
        ("GET /v1/queues/..", 400, "bad_value"),
        ("GET /v1/queues/%2e%2e", 400, "bad_value"),
        ("GET /v1/queues/a%2fb", 400, "bad_value"),
        ("GET /v1/queues/a%20b", 400, "bad_value"),
        ("GET /v1/queues/%ff", 400, "bad_value"),
        ("GET /v1/queues/%c3%a4", 400, "bad_value"),
        ("POST /v1/queues", 405, "method_not_allowed"),
        ("PUT /v1/queues/q", 405, "method_not_allowed"),
        ("POST /v1/queues/q/timers/a", 405, "method_not_allowed"),
        ("GET /v1/queues/q/cancel", 405, "method_not_allowed"),
        ("TRACE /v1/queues", 405, "method_not_allowed"),
        ("OPTIONS /v1/queues", 405, "method_not_allowed"),
        ("DELETE /healthz", 405, "method_not_allowed"),
        ("GET /v1/queues?a=1", 400, "unknown_field"),
        ("GET /v1/queues/q/timers?limit=0", 400, "bad_value"),
        ("GET /v1/queues/q/timers?limit=1001", 400, "bad_value"),
        ("GET /v1/queues/q/timers?state=Due", 400, "bad_value"),
        ("GET /v1/queues/q/timers?cursor=x", 400, "bad_value"),
        ("GET /v1/queues/q/timers?prefix=", 400, "bad_value"),
        ("GET /v1/queues/q/timers?limit=1&limit=1", 400, "duplicate_field"),
        ("GET /v1/queues/q/timers?from=%", 400, "bad_value"),
    ] {
        let answer = world.ask(line, "");
        assert_eq!(
            (answer.status, &answer.json["code"]),
            (status, &json!(code)),
            "{line} {}",
            answer.text
        );
        assert_eq!(answer.headers["content-type"], "application/problem+json", "{line}");
    }
    assert_eq!(world.ask("POST /v1/queues", "").headers["allow"], "GET,HEAD");
    assert_eq!(world.ask(&format!("GET /v1/queues/{}", "q".repeat(65)), "").status, 400);
    assert_eq!(world.ask(&format!("GET /v1/queues/{}", "q".repeat(64)), "").status, 404);
}

#[test]
fn a_body_is_json_and_not_encoded() {
    let world = World::new();
    for (kind, encoding, status) in [
        (Some("application/json"), None, 201),
        (Some("Application/JSON; charset=utf-8"), None, 201),
        (Some("application/json"), Some("identity"), 201),
        (None, None, 415),
        (Some("text/plain"), None, 415),
        (Some("application/x-www-form-urlencoded"), None, 415),
        (Some("application/problem+json"), None, 415),
        (Some("application/json"), Some("gzip"), 415),
    ] {
        let mut request = Request::post("/v1/queues/q/timers").header("host", "localhost");
        for (name, value) in [("content-type", kind), ("content-encoding", encoding)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let answer = world.send(request.body(Body::from(r#"{"in":"1h"}"#)).unwrap());
        assert_eq!(answer.status, status, "{kind:?} {encoding:?}");
    }
}

#[test]
fn bodies_and_payloads_have_limits() {
    let world = World::with(Settings { max_payload: 10, ..Settings::default() });
    world.steps(&[
        ("POST /v1/queues/q/timers", r#"{"in":"1h","payload":"12345678"}"#, 201, "{}"),
        (
            "POST /v1/queues/q/timers",
            r#"{"in":"1h","payload":"123456789"}"#,
            413,
            r#"{"code":"payload_too_large","field":"payload"}"#,
        ),
        (
            "POST /v1/queues/q/timers",
            r#"{"in":"1h","payload_base64":"MTIzNDU2Nzg5MA=="}"#,
            201,
            "{}",
        ),
        (
            "POST /v1/queues/q/timers",
            r#"{"timers":[{"in":"1h"},{"in":"1h","payload":"123456789"}]}"#,
            413,
            r#"{"code":"payload_too_large","index":1}"#,
        ),
    ]);
    let fits = format!("{}{}", r#"{"in":"1h"}"#, " ".repeat((16 << 20) - 11));
    assert_eq!(world.ask("POST /v1/queues/q/timers", &fits).status, 201);
    let large = format!("{fits} ");
    let answer = world.ask("POST /v1/queues/q/timers", &large);
    assert_eq!((answer.status, &answer.json["code"]), (413, &json!("body_too_large")));
    // The large length is only declared: the body is short.
    let mut declared = request("POST /v1/queues/q/timers", "{}");
    declared.headers_mut().insert("content-length", "16777217".parse().unwrap());
    assert_eq!(world.send(declared).status, 413);
}

#[test]
fn a_body_that_does_not_arrive_is_408() {
    let world =
        World::with(Settings { body_time: Duration::from_millis(20), ..Settings::default() });
    let (sender, channel) = Channel::<Bytes>::new(1);
    let mut slow = request("POST /v1/queues/q/timers", "{}");
    *slow.body_mut() = Body::new(channel.boxed());
    let answer = world.send(slow);
    assert_eq!((answer.status, &answer.json["code"]), (408, &json!("timeout")));
    drop(sender);
}

#[test]
fn the_page_asks_no_other_host() {
    let world = World::new();
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/page.css", "text/css; charset=utf-8"),
        ("/base.css", "text/css; charset=utf-8"),
        ("/main.js", "text/javascript; charset=utf-8"),
        ("/shared.js", "text/javascript; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
    ] {
        let answer = world.ask(&format!("GET {path}"), "");
        assert_eq!((answer.status, answer.headers["content-type"].to_str().unwrap()), (200, kind));
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'none'"), "{policy}");
        let foreign = answer.text.matches("://").count();
        let known = answer.text.matches("http://www.w3.org/2000/svg").count();
        assert_eq!(foreign, known, "{path}");
    }
}
