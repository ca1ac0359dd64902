//! Queues: reading, settings, forecast; and the paths outside `/v1`.

use serde_json::json;
use tourbillon::VirtualClock;
use tourbillon_server::Settings;

use crate::world::World;

#[test]
fn a_queue_is_made_by_a_timer_or_a_setting() {
    let world = World::new();
    world.steps(&[
        ("GET /v1/queues", "", 200, r#"{"queues":[]}"#),
        ("GET q", "", 404, r#"{"code":"unknown_queue"}"#),
        ("GET q/forecast", "", 404, r#"{"code":"unknown_queue"}"#),
        ("PATCH q", r#"{"paused":true,"rate":5,"dead_keep":"1d"}"#, 200,
            r#"{"queue":"q","paused":true,"settings":{"rate":5,"concurrency":null,"dead_keep":"1d"}}"#),
        ("PATCH q", r#"{"rate":null,"concurrency":3,"remember":"0s"}"#, 200,
            r#"{"paused":true,"settings":{"rate":null,"concurrency":3,"remember":"0s"}}"#),
        ("PATCH q", r#"{"retry":{"attempts":2}}"#, 200,
            r#"{"settings":{"retry":{"attempts":2,"first":"1s"}}}"#),
        ("PATCH q", r#"{"retry":{"first":"5s"}}"#, 200,
            r#"{"settings":{"retry":{"attempts":2,"first":"5s"}}}"#),
        ("PATCH q", "{}", 200, r#"{"paused":true}"#),
        ("PATCH q", r#"{"rate":0}"#, 400, r#"{"field":"rate"}"#),
        ("PATCH q", r#"{"paused":null}"#, 400, r#"{"field":"paused"}"#),
        ("PATCH q", r#"{"retry":{"jitter":2}}"#, 400, r#"{"field":"retry.jitter"}"#),
        // A timer has its queue's retry, except for the fields that it sets itself.
        ("POST q/timers", r#"{"in":"1h","key":"a"}"#, 201,
            r#"{"retry":{"attempts":2,"first":"5s"},"remember":"0s"}"#),
        ("POST q/timers", r#"{"in":"1h","key":"b","retry":{"attempts":7}}"#, 201,
            r#"{"retry":{"attempts":7,"first":"5s"}}"#),
        ("GET /v1/queues", "", 200, r#"{"queues":[{"queue":"q","counts":{"scheduled":2}}]}"#),
    ]);
}

#[test]
fn a_forecast_counts_what_is_to_come() {
    let world = World::new();
    world.steps(&[
        (
            "POST q/timers",
            r#"{"timers":[{"in":"90s"},{"in":"100s"},{"in":"50m"},{"in":"3h"}]}"#,
            201,
            "{}",
        ),
        ("GET q/forecast?buckets=0", "", 400, r#"{"field":"buckets"}"#),
        (
            "GET q/forecast?from=2001-01-01T00:00:00Z&to=2000-01-01T00:00:00Z",
            "",
            400,
            r#"{"field":"to"}"#,
        ),
    ]);
    let hour = world.ask("GET q/forecast", "");
    let buckets = hour.json["buckets"].as_array().unwrap();
    assert_eq!(buckets.len(), 60);
    let counts: Vec<u64> = buckets.iter().map(|bucket| bucket["count"].as_u64().unwrap()).collect();
    assert_eq!((counts[1], counts.iter().sum::<u64>()), (2, 3), "{}", hour.text);
    world.steps(&[(
        "GET q/forecast?from=2000-01-01T00:00:00Z&to=2000-01-01T04:00:00Z&buckets=2", "", 200,
        r#"{"buckets":[{"from":"2000-01-01T00:00:00.000Z","to":"2000-01-01T02:00:00.000Z","count":3},
                       {"from":"2000-01-01T02:00:00.000Z","to":"2000-01-01T04:00:00.000Z","count":1}]}"#,
    )]);
}

#[test]
fn a_queue_says_what_is_next_and_how_late_it_is() {
    let world = World::new();
    world.steps(&[
        ("POST q/timers", r#"{"timers":[{"in":"10s","key":"a"},{"in":"1h"}]}"#, 201, "{}"),
        (
            "GET q",
            "",
            200,
            r#"{"next":"2000-01-01T00:00:10.000Z","oldest_due":null,"per_second":0.0,
                "lateness":{"p50":"0s","p99":"0s","max":"0s"}}"#,
        ),
    ]);
    world.advance(13);
    world.steps(&[
        (
            "GET q",
            "",
            200,
            r#"{"next":"2000-01-01T01:00:00.000Z","oldest_due":"2000-01-01T00:00:10.000Z"}"#,
        ),
        ("POST q/receive", "", 200, r#"{"deliveries":[{"key":"a"}]}"#),
        ("GET q", "", 200, r#"{"oldest_due":null,"lateness":{"max":"3s"}}"#),
    ]);
    assert_ne!(world.ask("GET q", "").json["per_second"], json!(0.0));
}

#[test]
fn the_process_runs_and_is_ready() {
    let world = World::new();
    world.steps(&[
        ("GET /healthz", "", 200, r#"{"status":"ok"}"#),
        ("GET /readyz", "", 200, r#"{"status":"ready"}"#),
        ("GET /openapi.json", "", 200, r#"{"openapi":"3.1.0"}"#),
        (
            "POST /v1/test/clock",
            r#"{"now":"2030-01-01T00:00:00Z"}"#,
            404,
            r#"{"code":"unknown_path"}"#,
        ),
    ]);
    world.durable.clone().close();
    world.steps(&[
        ("GET /healthz", "", 200, r#"{"status":"ok"}"#),
        ("GET /readyz", "", 503, r#"{"code":"unavailable"}"#),
        ("POST q/timers", r#"{"in":"1s"}"#, 503, r#"{"code":"unavailable"}"#),
    ]);
    assert_eq!(world.ask("GET /readyz", "").headers["retry-after"], "1");
}

#[test]
fn the_test_clock_is_set_forward_and_back() {
    let clock = VirtualClock::new();
    let world = World::with(Settings { test_clock: Some(clock), ..Settings::default() });
    world.steps(&[
        (
            "POST q/timers",
            r#"{"at":"2030-01-01T00:00:00Z","key":"a"}"#,
            201,
            r#"{"state":"scheduled"}"#,
        ),
        (
            "POST /v1/test/clock",
            r#"{"now":"2030-01-01T00:00:01Z"}"#,
            200,
            r#"{"now":"2030-01-01T00:00:01.000Z"}"#,
        ),
        ("GET q/timers/a", "", 200, r#"{"state":"due"}"#),
        ("POST /v1/test/clock", r#"{"now":"2029-01-01T00:00:00Z"}"#, 200, "{}"),
        ("GET q/timers/a", "", 200, r#"{"state":"scheduled"}"#),
        ("POST /v1/test/clock", r#"{}"#, 400, r#"{"field":"now"}"#),
    ]);
    let now = world.ask("GET /healthz", "").headers["tourbillon-now"].clone();
    assert_eq!(now, json!("2029-01-01T00:00:00.000Z").as_str().unwrap());
}
