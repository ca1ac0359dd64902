//! Invalid bodies: each is answered with 400 and names the field.

use serde_json::{Value, json};

use crate::world::{World, request};

#[test]
fn what_is_wrong_is_named() {
    let world = World::new();
    let none = Value::Null;
    for (body, code, field) in [
        ("[]", "bad_json", &none),
        ("null", "bad_json", &none),
        ("17", "bad_json", &none),
        ("\"in\"", "bad_json", &none),
        ("{", "bad_json", &none),
        ("{\"in\":\"1s\"", "bad_json", &none),
        ("{\"in\":\"1s\",}", "bad_json", &none),
        ("{\"in\":\"1s\"} x", "bad_json", &none),
        ("{\"in\":\"1s\"}{}", "bad_json", &none),
        ("{in:\"1s\"}", "bad_json", &none),
        ("{\"in\":\"1s\",\"payload\":NaN}", "bad_json", &none),
        ("{\"in\":\"1s\",\"payload\":[1,]}", "bad_json", &none),
        ("{\"in\":\"1s\",\"payload\":\"\u{1}\"}", "bad_json", &none),
        ("// \n{\"in\":\"1s\"}", "bad_json", &none),
        (" ", "bad_json", &none),
        ("{}", "missing_field", &json!("in")),
        (r#"{"in":"1s","x":1}"#, "unknown_field", &json!("x")),
        (r#"{"in":"1s","In":"1s"}"#, "unknown_field", &json!("In")),
        (r#"{"in":"1s","state":"due"}"#, "unknown_field", &json!("state")),
        (r#"{"in":"1s","retry":{"x":1}}"#, "unknown_field", &json!("retry.x")),
        (r#"{"in":"1s","in":"1s"}"#, "duplicate_field", &json!("in")),
        (r#"{"in":"1s","\u0069n":"1s"}"#, "duplicate_field", &json!("in")),
        (r#"{"in":"1s","payload":1,"payload":1}"#, "duplicate_field", &json!("payload")),
        (
            r#"{"in":"1s","retry":{"attempts":1,"attempts":1}}"#,
            "duplicate_field",
            &json!("retry.attempts"),
        ),
        (r#"{"in":1}"#, "bad_value", &json!("in")),
        (r#"{"in":null}"#, "bad_value", &json!("in")),
        (r#"{"in":""}"#, "bad_value", &json!("in")),
        (r#"{"in":"1"}"#, "bad_value", &json!("in")),
        (r#"{"in":"+1s"}"#, "bad_value", &json!("in")),
        (r#"{"in":"-1s"}"#, "bad_value", &json!("in")),
        (r#"{"in":"1.5s"}"#, "bad_value", &json!("in")),
        (r#"{"in":"1 s"}"#, "bad_value", &json!("in")),
        (r#"{"in":"1S"}"#, "bad_value", &json!("in")),
        (r#"{"in":"1y"}"#, "bad_value", &json!("in")),
        (r#"{"in":"365251d"}"#, "bad_value", &json!("in")),
        (r#"{"in":"99999999999999999999w"}"#, "bad_value", &json!("in")),
        (r#"{"at":1700000000}"#, "bad_value", &json!("at")),
        (r#"{"at":"tomorrow"}"#, "bad_value", &json!("at")),
        (r#"{"every":"0s"}"#, "bad_value", &json!("every")),
        (r#"{"every":"999ms"}"#, "bad_value", &json!("every")),
        (r#"{"cron":"* * * *"}"#, "bad_value", &json!("cron")),
        (r#"{"cron":"61 * * * *"}"#, "bad_value", &json!("cron")),
        (r#"{"cron":"0 0 30 2 *"}"#, "bad_value", &json!("cron")),
        (r#"{"cron":["* * * * *"]}"#, "bad_value", &json!("cron")),
        (r#"{"cron":"* * * * *","zone":"Nowhere"}"#, "bad_value", &json!("zone")),
        (r#"{"in":"1s","zone":"UTC"}"#, "bad_value", &json!("zone")),
        (r#"{"in":"1s","times":1}"#, "bad_value", &json!("times")),
        (r#"{"in":"1s","missed":"once"}"#, "bad_value", &json!("missed")),
        (r#"{"in":"1s","until":"2030-01-01T00:00:00Z"}"#, "bad_value", &json!("until")),
        (r#"{"every":"1s","times":-1}"#, "bad_value", &json!("times")),
        (r#"{"every":"1s","times":1.5}"#, "bad_value", &json!("times")),
        (r#"{"every":"1s","missed":"ALL"}"#, "bad_value", &json!("missed")),
        (r#"{"in":"1s","key":17}"#, "bad_value", &json!("key")),
        (r#"{"in":"1s","key":"."}"#, "bad_value", &json!("key")),
        (r#"{"in":"1s","key":"~a"}"#, "bad_value", &json!("key")),
        (r#"{"in":"1s","key":"a\tb"}"#, "bad_value", &json!("key")),
        (r#"{"in":"1s","key":"\ud800"}"#, "bad_value", &json!("key")),
        (r#"{"in":"1s","retry":[]}"#, "bad_value", &json!("retry")),
        (r#"{"in":"1s","retry":null}"#, "bad_value", &json!("retry")),
        (r#"{"in":"1s","retry":{"attempts":"3"}}"#, "bad_value", &json!("retry.attempts")),
        (r#"{"in":"1s","retry":{"factor":0}}"#, "bad_value", &json!("retry.factor")),
        (r#"{"in":"1s","retry":{"factor":1e999}}"#, "bad_value", &json!("retry.factor")),
        (r#"{"in":"1s","remember":5}"#, "bad_value", &json!("remember")),
        (r#"{"in":"1s","expires":true}"#, "bad_value", &json!("expires")),
        (r#"{"in":"1s","payload_base64":"%%"}"#, "bad_value", &json!("payload_base64")),
        (r#"{"in":"1s","at":"2030-01-01T00:00:00Z"}"#, "exclusive_fields", &json!("at")),
        (r#"{"in":"1s","every":"1s"}"#, "exclusive_fields", &json!("every")),
        (r#"{"every":"1s","cron":"* * * * *"}"#, "exclusive_fields", &json!("cron")),
        (
            r#"{"in":"1s","payload":1,"payload_base64":"MQ=="}"#,
            "exclusive_fields",
            &json!("payload_base64"),
        ),
        (r#"{"timers":[{"in":"1s"}],"in":"1s"}"#, "unknown_field", &json!("in")),
        (r#"{"timers":7}"#, "bad_value", &json!("timers")),
        (r#"{"timers":[7]}"#, "bad_value", &json!("timers")),
    ] {
        let answer = world.ask("POST q/timers", body);
        let (said, of) = (&answer.json["code"], &answer.json["field"]);
        assert_eq!(
            (answer.status, said, of),
            (400, &json!(code), field),
            "{body}\n{}",
            answer.text
        );
        assert!(answer.json["detail"].as_str().unwrap().len() < 500, "{}", answer.text);
    }
    assert_eq!(
        world.ask("GET /v1/queues", "").text,
        r#"{"queues":[],"damaged":false,"right":"admin"}"#
    );
}

#[test]
fn a_body_is_at_most_64_deep() {
    let world = World::new();
    // The body's object is the first level.
    let body = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 1), "]".repeat(depth - 1));
        format!(r#"{{"in":"1s","payload":{open}{close}}}"#)
    };
    assert_eq!(world.ask("POST q/timers", &body(64)).status, 201);
    for deep in [65, 200, 100_000] {
        let answer = world.ask("POST q/timers", &body(deep));
        assert_eq!((answer.status, &answer.json["code"]), (400, &json!("bad_json")));
    }
    let text = format!(r#"{{"in":"1s","payload":"{}\"{{"}}"#, "[".repeat(100));
    assert_eq!(world.ask("POST q/timers", &text).status, 201);
}

/// What a call does not take is refused, and nothing is changed: a client that sends it expects an effect.
#[test]
fn what_a_call_does_not_take_is_refused() {
    let world = World::new();
    world.steps(&[("PUT q/timers/a", r#"{"in":"1h"}"#, 201, "{}")]);
    for (line, body, header) in [
        ("POST q/timers/a/run", "", "if-match"),
        ("POST q/timers/a/run", "{}", ""),
        ("POST q/timers?on_conflict=replace", r#"{"in":"2h","key":"a"}"#, "if-match"),
        ("POST q/timers?on_conflict=replace", r#"{"in":"2h","key":"a"}"#, "if-none-match"),
        ("DELETE q", r#"{"force":false}"#, ""),
        ("DELETE q?force=true", "", "if-match"),
        ("GET /v1/dump?queue=q", "", ""),
        ("GET /healthz?a=b", "", ""),
        ("GET q/timers/a", "", "if-match"),
    ] {
        let mut request = request(line, body);
        if !header.is_empty() {
            let value = if header == "if-match" { "\"17\"" } else { "*" };
            let name = header.parse::<axum::http::HeaderName>().unwrap();
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        let answer = world.send(request);
        assert_eq!(answer.status, 400, "{line} {header} {}", answer.text);
    }
    world.steps(&[
        ("GET q/timers/a", "", 200, r#"{"state":"scheduled","due":"2000-01-01T01:00:00.000Z"}"#),
        // A call without a body, and a condition that a read may ignore.
        ("POST q/timers/b/run", "", 404, "{}"),
        ("PUT q/timers/b", r#"{"in":"1h"}"#, 201, "{}"),
    ]);
    // The cursor of a list goes on with a list in the same order.
    let cursors = ["", "&prefix=a", "&state=cancelled"].map(|query| {
        if query.contains("cancelled") {
            world.ask("DELETE q/timers/a", "");
            world.ask("DELETE q/timers/b", "");
        } else {
            world.ask("PUT q/timers/aa", r#"{"in":"1h"}"#);
        }
        let list = world.ask(&format!("GET q/timers?limit=1{query}"), "");
        list.json["next"].as_str().unwrap_or_else(|| panic!("{}", list.text)).to_owned()
    });
    for (of, query) in ["", "&prefix=a", "&state=cancelled"].into_iter().enumerate() {
        for (from, cursor) in cursors.iter().enumerate() {
            let list = world.ask(&format!("GET q/timers?cursor={cursor}{query}"), "");
            let status = if of == from { 200 } else { 400 };
            assert_eq!(list.status, status, "{from} {query} {}", list.text);
        }
    }
}
