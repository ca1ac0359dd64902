//! Bulk calls: listing, scheduling, cancelling and redriving many timers.

use serde_json::{Value, json};

use crate::world::World;

#[test]
fn many_timers_are_made_all_or_none() {
    let world = World::new();
    world.steps(&[
        ("POST q/timers", r#"{"timers":[{"in":"1h","key":"a"},{"in":"2h"}]}"#, 201,
            r#"{"timers":[{"key":"a","due":"2000-01-01T01:00:00.000Z","outcome":"made"},{"outcome":"made"}]}"#),
        ("POST q/timers", r#"{"timers":[{"in":"1h","key":"b"},{"in":"2h","key":"a"}]}"#, 409,
            r#"{"code":"key_taken","index":1,"state":"scheduled"}"#),
        ("GET q/timers/b", "", 404, "{}"),
        ("POST q/timers", r#"{"timers":[{"in":"1h","key":"b"},{"in":"2h","key":"b"}]}"#, 400,
            r#"{"code":"key_twice","index":1,"field":"key"}"#),
        ("POST q/timers", r#"{"timers":[{"in":"1h","key":"b"},{"in":"x"}]}"#, 400,
            r#"{"code":"bad_value","index":1,"field":"in"}"#),
        ("POST q/timers", r#"{"timers":[]}"#, 400, r#"{"field":"timers"}"#),
        ("POST q/timers?on_conflict=keep", r#"{"timers":[{"in":"9h","key":"a"}]}"#, 200,
            r#"{"timers":[{"key":"a","due":"2000-01-01T01:00:00.000Z","outcome":"kept"}]}"#),
        ("POST q/timers?on_conflict=replace", r#"{"timers":[{"in":"9h","key":"a"},{"in":"1h","key":"n"}]}"#,
            201, r#"{"timers":[{"outcome":"replaced","replaced":{"state":"scheduled"}},{"outcome":"made"}]}"#),
        ("GET q", "", 200, r#"{"counts":{"scheduled":3,"due":0,"delivering":0,"dead":0}}"#),
    ]);
    let list = |count| json!({"timers": vec![json!({"in": "1h"}); count]}).to_string();
    assert_eq!(world.ask("POST /v1/queues/r/timers", &list(10_000)).status, 201);
    let answer = world.ask("POST /v1/queues/r/timers", &list(10_001));
    assert_eq!((answer.status, &answer.json["field"]), (400, &json!("timers")));
}

#[test]
fn lists_go_by_time_or_by_key() {
    let world = World::new();
    let timer = |nth: u64| json!({"in": format!("{}s", 100 - nth), "key": format!("k{nth:02}"), "payload": nth});
    let body = json!({"timers": (0..50).map(timer).collect::<Vec<_>>()}).to_string();
    world.steps(&[("POST q/timers", &body, 201, "{}")]);
    let all = |query: &str| {
        let (mut keys, mut cursor) = (Vec::new(), String::new());
        loop {
            let answer = world.ask(&format!("GET q/timers?{query}{cursor}"), "");
            assert_eq!(answer.status, 200, "{}", answer.text);
            let page = answer.json["timers"].as_array().unwrap();
            keys.extend(page.iter().map(|timer| timer["key"].as_str().unwrap().to_owned()));
            match &answer.json["next"] {
                Value::String(next) => cursor = format!("&cursor={next}"),
                _ => return keys,
            }
        }
    };
    let up: Vec<String> = (0..50).map(|nth| format!("k{nth:02}")).collect();
    let down: Vec<String> = up.iter().rev().cloned().collect();
    assert_eq!(all("limit=7"), down);
    assert_eq!(all("limit=7&prefix=k"), up);
    assert_eq!(all("prefix=k1"), up[10..20]);
    assert_eq!(all("from=2000-01-01T00:01:00Z&to=2000-01-01T00:01:10Z"), down[9..19]);
    assert!(all("state=dead").is_empty());
    world.advance(60);
    assert_eq!(all("state=due"), down[..10]);
    world.steps(&[
        ("GET q/timers?limit=1", "", 200, r#"{"timers":[{"key":"k49"}]}"#),
        (
            "GET q/timers?limit=1&payload=true",
            "",
            200,
            r#"{"timers":[{"key":"k49","payload":49}]}"#,
        ),
        ("GET /v1/queues/none/timers", "", 200, r#"{"timers":[],"next":null}"#),
        ("DELETE q/timers/k00", "", 200, "{}"),
        ("GET q/timers?state=cancelled", "", 200, r#"{"timers":[{"key":"k00"}]}"#),
    ]);
    let page = world.ask("GET q/timers?limit=1", "");
    assert!(page.json["timers"][0].get("payload").is_none(), "{}", page.text);
}

#[test]
fn an_answer_stops_at_16_mib_of_payloads() {
    let world = World::new();
    let payload = "x".repeat((256 << 10) - 2);
    for part in 0..2 {
        let timer =
            |nth: u64| json!({"in": "1h", "key": format!("{part}-{nth:02}"), "payload": payload});
        let body = json!({"timers": (0..40).map(timer).collect::<Vec<_>>()}).to_string();
        assert_eq!(world.ask("POST q/timers", &body).status, 201);
    }
    let first = world.ask("GET q/timers?limit=1000&payload=true", "");
    assert_eq!(first.json["timers"].as_array().unwrap().len(), 64);
    let next = first.json["next"].as_str().unwrap();
    let second = world.ask(&format!("GET q/timers?limit=1000&payload=true&cursor={next}"), "");
    assert_eq!(second.json["timers"].as_array().unwrap().len(), 16);
}

#[test]
fn many_timers_are_cancelled() {
    let world = World::new();
    let timer = |nth: u64| json!({"in": "1h", "key": format!("k{nth}")});
    let body = json!({"timers": (0..30).map(timer).collect::<Vec<_>>()}).to_string();
    world.steps(&[
        ("POST q/timers", &body, 201, "{}"),
        (
            "POST q/cancel",
            r#"{"keys":["k0","k1","nobody","k0"]}"#,
            200,
            r#"{"cancelled":3,"delivering":0,"done":[],"unknown":["nobody"]}"#,
        ),
        ("POST q/cancel", r#"{"keys":["k0"]}"#, 200, r#"{"cancelled":1}"#),
        ("POST q/cancel", r#"{"keys":[]}"#, 200, r#"{"cancelled":0}"#),
        ("POST q/cancel", "{}", 400, r#"{"code":"missing_field","field":"keys"}"#),
        ("POST q/cancel", r#"{"keys":["a",""]}"#, 400, r#"{"field":"keys","index":1}"#),
        ("POST q/cancel", r#"{"keys":["a",1]}"#, 400, r#"{"field":"keys","index":1}"#),
        ("DELETE q/timers?prefix=k2", "", 200, r#"{"cancelled":11,"delivering":0,"more":false}"#),
        ("DELETE q/timers?prefix=", "", 400, r#"{"field":"prefix"}"#),
        ("DELETE q/timers", "", 400, r#"{"code":"missing_field","field":"prefix"}"#),
        ("GET q", "", 200, r#"{"counts":{"scheduled":17}}"#),
        ("POST q/redrive", "", 200, r#"{"revived":0,"more":false}"#),
        ("POST q/redrive", r#"{"prefix":"a"}"#, 200, r#"{"revived":0,"more":false}"#),
        ("POST q/redrive", r#"{"prefix":""}"#, 400, r#"{"field":"prefix"}"#),
    ]);
    let keys = json!({"keys": vec!["a"; 10_001]}).to_string();
    world.steps(&[("POST q/cancel", &keys, 400, r#"{"field":"keys"}"#)]);
}

#[test]
fn a_queue_is_cleared_and_deleted() {
    let world = World::new();
    let timers =
        r#"{"timers":[{"in":"1h","key":"a"},{"in":"0s","key":"b"},{"in":"1h","key":"c"}]}"#;
    world.steps(&[
        ("POST q/timers", timers, 201, "{}"),
        ("DELETE q/timers/c", "", 200, "{}"),
        ("POST q/receive", "", 200, r#"{"deliveries":[{"key":"b"}]}"#),
        ("DELETE q/timers?all=true&prefix=a", "", 400, r#"{"code":"exclusive_fields"}"#),
        ("DELETE q/timers?all=false", "", 400, r#"{"code":"missing_field"}"#),
        ("DELETE q/timers?all=true", "", 200, r#"{"cancelled":1,"delivering":1,"more":false}"#),
        // None of these timers is remembered, nor is the timer that was remembered before.
        ("GET q/timers/a", "", 404, "{}"),
        ("GET q/timers/c", "", 404, "{}"),
        ("GET q", "", 200, r#"{"counts":{"scheduled":0,"due":0,"delivering":0,"dead":0}}"#),
        ("POST q/timers", timers, 201, "{}"),
        ("POST q/receive", "", 200, r#"{"deliveries":[{"key":"b"}]}"#),
        ("DELETE q", "", 409, r#"{"code":"delivering"}"#),
        ("DELETE q?force=true", "", 200, r#"{"state":"deleted"}"#),
        ("GET q", "", 404, r#"{"code":"unknown_queue"}"#),
        ("GET q/timers/a", "", 404, r#"{"code":"unknown_timer"}"#),
        ("DELETE q", "", 404, r#"{"code":"unknown_queue"}"#),
        ("POST q/timers", timers, 201, "{}"),
        ("DELETE q", "", 200, r#"{"state":"deleted"}"#),
    ]);
}
