//! One timer: schedule, get, move, cancel, run.

use serde_json::json;

use tourbillon_server::Settings;

use crate::world::{World, request};

const Q: &str = "/v1/queues/q/timers";

#[test]
fn a_timer_is_made_shown_and_cancelled() {
    let world = World::new();
    world.steps(&[
        ("POST q/timers", r#"{"in":"30m","key":"a","payload":{"id":17}}"#, 201,
            r#"{"queue":"q","key":"a","state":"scheduled","due":"2000-01-01T00:30:00.000Z",
                "next_attempt":"2000-01-01T00:30:00.000Z","occurrence":1,"attempt":0,
                "created":"2000-01-01T00:00:00.000Z","payload":{"id":17},"every":null,"cron":null,"zone":null,
                "missed":null,"until":null,"times":null,"expires":null,"remember":"10m","last_error":null,
                "retry":{"attempts":10,"first":"1s","factor":2.0,"longest":"1h","jitter":0.1}}"#),
        ("GET q/timers/a", "", 200, r#"{"key":"a","state":"scheduled","payload":{"id":17}}"#),
        ("GET q/timers/b", "", 404, r#"{"code":"unknown_timer"}"#),
        ("GET /v1/queues/other/timers/a", "", 404, r#"{"code":"unknown_timer"}"#),
        ("DELETE q/timers/a", "", 200, r#"{"state":"cancelled"}"#),
        ("DELETE q/timers/a", "", 200, r#"{"state":"cancelled"}"#),
        ("GET q/timers/a", "", 200, r#"{"state":"cancelled"}"#),
        ("POST q/timers", r#"{"in":"1s","key":"a"}"#, 409, r#"{"code":"key_taken","state":"cancelled"}"#),
        ("DELETE q/timers/b", "", 404, r#"{"code":"unknown_timer"}"#),
    ]);
    // A remembered timer is forgotten after ten minutes.
    world.advance(601);
    world.steps(&[
        ("GET q/timers/a", "", 404, r#"{"code":"unknown_timer"}"#),
        ("POST q/timers", r#"{"in":"1s","key":"a"}"#, 201, r#"{"state":"scheduled"}"#),
    ]);
}

#[test]
fn a_key_that_is_taken_is_refused_kept_or_replaced() {
    let world = World::new();
    let first = world.ask(&format!("POST {Q}"), r#"{"in":"1h","key":"a"}"#);
    let generation = &first.json["generation"];
    world.steps(&[
        ("POST q/timers", r#"{"in":"2h","key":"a"}"#, 409,
            r#"{"code":"key_taken","status":409,"field":"key","state":"scheduled"}"#),
        ("POST q/timers?on_conflict=keep", r#"{"in":"2h","key":"a"}"#, 200,
            &json!({"generation": generation, "due": "2000-01-01T01:00:00.000Z"}).to_string()),
        ("POST q/timers?on_conflict=replace", r#"{"in":"2h","key":"a"}"#, 200,
            &json!({"due": "2000-01-01T02:00:00.000Z", "replaced": {"generation": generation, "state": "scheduled"}})
                .to_string()),
        ("POST q/timers?on_conflict=other", r#"{"in":"2h","key":"a"}"#, 400, r#"{"field":"on_conflict"}"#),
        ("PUT q/timers/a", r#"{"in":"3h"}"#, 200, r#"{"key":"a","replaced":{"state":"scheduled"}}"#),
        ("PUT q/timers/b", r#"{"in":"3h","key":"b"}"#, 201, r#"{"key":"b"}"#),
        ("PUT q/timers/b", r#"{"in":"3h","key":"c"}"#, 400, r#"{"field":"key"}"#),
        ("PUT q/timers/~b", r#"{"in":"3h"}"#, 400, r#"{"field":"key"}"#),
    ]);
    let made = world.ask("PUT q/timers/new", r#"{"in":"3h"}"#);
    assert!(made.json.get("replaced").is_none(), "{}", made.text);
}

#[test]
fn a_key_is_assigned_if_there_is_none() {
    let world = World::new();
    let made = world.ask(&format!("POST {Q}"), r#"{"in":"1h"}"#);
    let key = made.json["key"].as_str().unwrap();
    assert!(key.starts_with('~'), "{key}");
    assert_eq!(made.json["remember"], "0s");
    assert_eq!(made.headers["location"], format!("{Q}/{key}"));
    let etag = format!("\"{}\"", made.json["generation"]);
    assert_eq!(made.headers["etag"], etag);
    let shown = world.ask(&format!("GET {Q}/{key}"), "");
    assert_eq!((shown.status, shown.headers["etag"].to_str().unwrap()), (200, &*etag));
}

#[test]
fn payloads_come_back_as_they_came() {
    let world = World::new();
    for (nth, sent, shown) in [
        (
            1,
            r#""payload":{ "b" : 1.0e2 ,"a":[ ],"a":"\u00e4" }"#,
            r#""payload":{ "b" : 1.0e2 ,"a":[ ],"a":"\u00e4" }"#,
        ),
        (2, r#""payload":null"#, r#""payload":null"#),
        (3, r#""payload":  "text"  "#, r#""payload":"text""#),
        (
            4,
            r#""payload":123456789012345678901234567890"#,
            r#""payload":123456789012345678901234567890"#,
        ),
        (5, r#""payload_base64":"AP8=""#, r#""payload_base64":"AP8=""#),
        (6, r#""payload_base64":"e30=""#, r#""payload_base64":"e30=""#),
        (7, r#""times":1"#, r#""payload":null"#),
    ] {
        let body = format!(r#"{{"every":"1h","key":"{nth}",{sent}}}"#);
        let made = world.ask(&format!("POST {Q}"), &body);
        assert_eq!(made.status, 201, "{}", made.text);
        for text in [made.text, world.ask(&format!("GET {Q}/{nth}"), "").text] {
            assert!(text.contains(&format!("{shown},")), "{text}\n  expected {shown}");
        }
    }
}

#[test]
fn keys_are_decoded_after_the_path_is_split() {
    let world = World::new();
    for (path, key) in [
        ("a%2Fb", "a/b"),
        ("%2e%2e%2f", "../"),
        ("%C3%A4", "ä"),
        ("a+b", "a+b"),
        ("a%20b", "a b"),
        ("100%25", "100%"),
        ("a%3Fb%23c", "a?b#c"),
        ("...", "..."),
    ] {
        let made = world.ask(&format!("PUT {Q}/{path}"), r#"{"in":"1h"}"#);
        assert_eq!((made.status, &made.json["key"]), (201, &json!(key)), "{path}");
        let location = made.headers["location"].to_str().unwrap();
        assert_eq!(world.ask(&format!("GET {location}"), "").json["key"], key);
    }
    for path in ["%2e", "%2E%2E", "..", "%00", "a%0Ab", "%ff", "%c3"] {
        let answer = world.ask(&format!("PUT {Q}/{path}"), r#"{"in":"1h"}"#);
        assert_eq!(
            (answer.status, &answer.json["field"]),
            (400, &json!("key")),
            "{path} {}",
            answer.text
        );
    }
    let long = "ä".repeat(128);
    let encoded = "%C3%A4".repeat(128);
    let made = world.ask(&format!("PUT {Q}/{encoded}"), r#"{"in":"1h"}"#);
    assert_eq!((made.status, &made.json["key"]), (201, &json!(long)));
    assert_eq!(world.ask(&format!("PUT {Q}/{encoded}a"), r#"{"in":"1h"}"#).status, 400);
}

#[test]
fn moments_round_up_and_are_shown_in_utc() {
    let world = World::new();
    for (at, due) in [
        ("2026-11-16T19:30:00.2501+01:00", "2026-11-16T18:30:00.251Z"),
        ("2026-11-16T18:30:00Z", "2026-11-16T18:30:00.000Z"),
        ("2026-11-16T18:30:00.000000001z", "2026-11-16T18:30:00.001Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
    ] {
        let body = json!({"at": at}).to_string();
        world.steps(&[("POST q/timers", &body, 201, &json!({"due": due}).to_string())]);
    }
    for at in
        ["2026-11-16", "2026-11-16T18:30:00", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59.9991Z"]
    {
        let body = json!({"at": at}).to_string();
        world.steps(&[("POST q/timers", &body, 400, r#"{"code":"bad_value","field":"at"}"#)]);
    }
}

#[test]
fn recurring_timers_show_their_rhythm() {
    let world = World::new();
    world.steps(&[
        ("POST q/timers", r#"{"every":"90s","key":"e","times":3,"missed":"skip"}"#, 201,
            r#"{"every":"1m30s","due":"2000-01-01T00:01:30.000Z","times":3,"missed":"skip","cron":null}"#),
        ("POST q/timers", r#"{"every":"1h","at":"2000-01-01T00:10:00Z","key":"f"}"#, 201,
            r#"{"every":"1h","due":"2000-01-01T00:10:00.000Z","missed":"once"}"#),
        ("POST q/timers", r#"{"cron":"30 2 * * *","zone":"Europe/Berlin","key":"c"}"#, 201,
            r#"{"cron":"30 2 * * *","zone":"Europe/Berlin","due":"2000-01-01T01:30:00.000Z","every":null}"#),
        ("POST q/timers", r#"{"cron":"0 9 * * *","until":"2000-01-01T08:00:00Z"}"#, 400, r#"{"code":"never"}"#),
        ("POST q/timers/e/run", "", 200, r#"{"due":"2000-01-01T00:00:00.000Z","occurrence":1,"state":"due"}"#),
    ]);
}

#[test]
fn a_timer_is_moved_and_run() {
    let world = World::new();
    world.steps(&[
        ("POST q/timers", r#"{"in":"1h","key":"a"}"#, 201, r#"{"state":"scheduled"}"#),
        ("PATCH q/timers/a", r#"{"in":"2h"}"#, 200, r#"{"due":"2000-01-01T02:00:00.000Z"}"#),
        ("PATCH q/timers/a", r#"{"at":"2000-01-01T03:00:00Z"}"#, 200, r#"{"due":"2000-01-01T03:00:00.000Z"}"#),
        ("PATCH q/timers/a", "{}", 400, r#"{"code":"missing_field","field":"in"}"#),
        ("PATCH q/timers/a", r#"{"in":"1s","at":"2000-01-01T03:00:00Z"}"#, 400, r#"{"code":"exclusive_fields"}"#),
        ("PATCH q/timers/b", r#"{"in":"1s"}"#, 404, r#"{"code":"unknown_timer"}"#),
        ("POST q/timers/a/run", "", 200,
            r#"{"state":"due","due":"2000-01-01T03:00:00.000Z","next_attempt":"2000-01-01T00:00:00.000Z"}"#),
        ("POST q/timers/b/run", "", 404, r#"{"code":"unknown_timer"}"#),
        ("DELETE q/timers/a", "", 200, r#"{"state":"cancelled"}"#),
        ("PATCH q/timers/a", r#"{"in":"1s"}"#, 409, r#"{"code":"cancelled","state":"cancelled"}"#),
        ("POST q/timers/a/run", "", 409, r#"{"code":"cancelled"}"#),
    ]);
}

/// A key may be named as a call. Its change is answered even if there is no room for the answer: the change happened.
#[test]
fn a_change_of_a_timer_named_as_a_call_is_answered() {
    let world = World::with(Settings { max_bytes: 1, ..Settings::default() });
    let body = format!(r#"{{"in":"1h","payload":"{}"}}"#, "x".repeat(40_000));
    assert_eq!(world.ask("PUT q/timers/receive", &body).status, 201);
    // An answer that is not sent yet takes the room.
    let unsent = world.response(request("GET q/timers/receive", ""));
    assert_eq!(
        (unsent.status().as_u16(), world.ask("GET q/timers/receive", "").status),
        (200, 429)
    );
    world.steps(&[("PATCH q/timers/receive", r#"{"in":"2h"}"#, 200, r#"{"state":"scheduled"}"#)]);
    // A receive changes nothing if its answer is refused.
    world.steps(&[
        ("POST q/timers/receive/run", "", 200, r#"{"state":"due"}"#),
        ("POST q/receive", "", 429, r#"{"code":"too_many"}"#),
    ]);
    drop(unsent);
    world.steps(&[("POST q/receive", "", 200, r#"{"deliveries":[{"key":"receive"}]}"#)]);
}
