//! `If-Match` and `If-None-Match`: a change applies to the timer that the client expects, or not at all.

use crate::world::{World, request};

#[test]
fn a_change_is_of_the_timer_that_was_meant() {
    let world = World::new();
    let first = world.ask("PUT q/timers/a", r#"{"in":"1h"}"#).json["generation"].to_string();
    let second = world.ask("PUT q/timers/a", r#"{"in":"1h"}"#).json["generation"].to_string();
    let ask = |line: &str, body: &str, header: &str, value: &str| {
        let mut request = request(line, body);
        request
            .headers_mut()
            .insert(header.parse::<axum::http::HeaderName>().unwrap(), value.parse().unwrap());
        let answer = world.send(request);
        (answer.status, answer.json["code"].as_str().unwrap_or_default().to_owned())
    };
    let (old, new) = (format!("\"{first}\""), format!("\"{second}\""));
    let both = format!("{old}, {new}");
    let failed = "precondition_failed";
    for (line, body, header, value, status, code) in [
        ("PUT q/timers/a", r#"{"in":"2h"}"#, "if-none-match", "*", 412, failed),
        ("PUT q/timers/a", r#"{"in":"2h"}"#, "if-match", &*old, 412, failed),
        ("PUT q/timers/a", r#"{"in":"2h"}"#, "if-match", "\"x\"", 412, failed),
        ("PUT q/timers/b", r#"{"in":"2h"}"#, "if-match", &new, 412, failed),
        ("PUT q/timers/b", r#"{"in":"2h"}"#, "if-match", "*", 412, failed),
        ("PUT q/timers/a", r#"{"in":"2h"}"#, "if-match", "17", 400, "bad_value"),
        ("PUT q/timers/a", r#"{"in":"2h"}"#, "if-none-match", &new, 400, "bad_value"),
        ("PATCH q/timers/a", r#"{"in":"2h"}"#, "if-match", &old, 412, failed),
        ("PATCH q/timers/a", r#"{"in":"2h"}"#, "if-match", &new, 200, ""),
        ("PATCH q/timers/a", r#"{"in":"2h"}"#, "if-match", &both, 200, ""),
        ("PATCH q/timers/a", r#"{"in":"2h"}"#, "if-match", "*", 200, ""),
        ("PATCH q/timers/b", r#"{"in":"2h"}"#, "if-match", &new, 404, "unknown_timer"),
        // For a timer that does not exist, the answer is `unknown_timer`, whatever the condition.
        ("PATCH q/timers/b", r#"{"in":"2h"}"#, "if-match", &both, 404, "unknown_timer"),
        ("PATCH q/timers/b", r#"{"in":"2h"}"#, "if-match", "*", 404, "unknown_timer"),
        ("DELETE q/timers/b", "", "if-match", &new, 404, "unknown_timer"),
        ("DELETE q/timers/b", "", "if-match", &both, 404, "unknown_timer"),
        ("DELETE q/timers/b", "", "if-match", "\"x\"", 404, "unknown_timer"),
        ("PUT q/timers/b", r#"{"in":"2h"}"#, "if-match", &both, 412, failed),
        ("PATCH q/timers/a", r#"{"in":"2h"}"#, "if-none-match", "*", 400, "bad_value"),
        ("DELETE q/timers/a", "", "if-match", &old, 412, failed),
        ("GET q/timers/a", "", "if-none-match", &new, 200, ""),
        ("DELETE q/timers/a", "", "if-match", &new, 200, ""),
        ("DELETE q/timers/a", "", "if-match", &new, 200, ""),
        // A remembered timer counts as existing, and is replaced.
        ("PUT q/timers/a", r#"{"in":"2h"}"#, "if-none-match", "*", 412, failed),
        ("PUT q/timers/a", r#"{"in":"2h"}"#, "if-match", &new, 200, ""),
        ("PUT q/timers/c", r#"{"in":"2h"}"#, "if-none-match", "*", 201, ""),
    ] {
        assert_eq!(
            ask(line, body, header, value),
            (status, code.to_owned()),
            "{line} {header}: {value}"
        );
    }
}

#[test]
fn an_assigned_key_is_replaced_only_where_it_is() {
    let world = World::new();
    let made = world.ask("POST q/timers", r#"{"in":"1h"}"#);
    let key = made.json["key"].as_str().unwrap();
    let put = format!("PUT q/timers/{key}");
    world.steps(&[
        (
            &put,
            r#"{"in":"2h"}"#,
            200,
            r#"{"replaced":{"state":"scheduled"},"due":"2000-01-01T02:00:00.000Z"}"#,
        ),
        ("PUT q/timers/~1-1", r#"{"in":"2h"}"#, 400, r#"{"code":"bad_value","field":"key"}"#),
    ]);
}
