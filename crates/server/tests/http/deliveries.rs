//! Receiving due timers, and settling deliveries.

use serde_json::{Value, json};

use crate::world::{World, has, request};

/// Receives one delivery.
fn receive(world: &World) -> Value {
    let answer = world.ask("POST q/receive", "");
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json["deliveries"][0].clone()
}

fn tokens(deliveries: &[&Value]) -> String {
    let tokens: Vec<&Value> = deliveries.iter().map(|delivery| &delivery["token"]).collect();
    json!({ "tokens": tokens }).to_string()
}

/// Settles one delivery and checks the answer.
fn settle(world: &World, verb: &str, delivery: &Value, more: &str, expected: &Value) {
    let token = &delivery["token"];
    let answer = world.ask(&format!("POST q/{verb}"), &format!(r#"{{"tokens":[{token}]{more}}}"#));
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(has(&answer.json, expected), "{verb} {token}: {}\n  expected {expected}", answer.text);
}

fn stale(reason: &str) -> Value {
    json!({"stale": [{"reason": reason}]})
}

#[test]
fn a_timer_is_due_received_and_acknowledged() {
    let world = World::new();
    world.steps(&[
        ("POST q/timers", r#"{"in":"10s","key":"a","payload":{"id":17}}"#, 201, "{}"),
        ("POST q/receive", r#"{"max":10}"#, 200, r#"{"deliveries":[]}"#),
    ]);
    world.advance(9);
    assert_eq!(receive(&world), Value::Null);
    world.advance(1);
    let delivery = receive(&world);
    let expected = json!({
        "queue": "q", "key": "a", "payload": {"id": 17}, "due": "2000-01-01T00:00:10.000Z", "occurrence": 1,
        "attempt": 1, "handed": "2000-01-01T00:00:10.000Z", "lease_until": "2000-01-01T00:00:40.000Z",
    });
    assert!(has(&delivery, &expected), "{delivery}");
    assert_eq!(receive(&world), Value::Null);
    world.steps(&[
        ("GET q/timers/a", "", 200, r#"{"state":"delivering","attempt":1}"#),
        (
            "PATCH q/timers/a",
            r#"{"in":"1s"}"#,
            409,
            r#"{"code":"delivering","state":"delivering"}"#,
        ),
        ("POST q/timers/a/run", "", 409, r#"{"code":"delivering"}"#),
    ]);
    settle(&world, "ack", &delivery, "", &json!({"acked": 1, "stale": []}));
    settle(&world, "ack", &delivery, "", &json!({"acked": 0, "stale": [{"reason": "acked"}]}));
    settle(&world, "nack", &delivery, "", &stale("acked"));
    world.steps(&[
        ("GET q/timers/a", "", 200, r#"{"state":"done"}"#),
        ("DELETE q/timers/a", "", 409, r#"{"code":"done"}"#),
        ("PATCH q/timers/a", r#"{"in":"1s"}"#, 409, r#"{"code":"done"}"#),
        (
            "POST q/timers",
            r#"{"in":"1s","key":"a"}"#,
            409,
            r#"{"code":"key_taken","state":"done"}"#,
        ),
        ("POST q/cancel", r#"{"keys":["a"]}"#, 200, r#"{"cancelled":0,"done":["a"]}"#),
    ]);
    assert_eq!(receive(&world), Value::Null);
}

#[test]
fn a_refused_delivery_is_tried_again_and_given_up() {
    let world = World::new();
    let retry = r#""retry":{"attempts":3,"first":"10s","jitter":0}"#;
    world.ask("POST q/timers", &format!(r#"{{"in":"0s","key":"a",{retry}}}"#));
    let first = receive(&world);
    settle(&world, "nack", &first, r#","error":"no route""#, &json!({"nacked": 1, "stale": []}));
    settle(&world, "nack", &first, "", &json!({"nacked": 0, "stale": [{"reason": "nacked"}]}));
    world.steps(&[(
        "GET q/timers/a", "", 200,
        r#"{"state":"scheduled","last_error":"no route","attempt":1,"due":"2000-01-01T00:00:00.000Z",
            "next_attempt":"2000-01-01T00:00:10.000Z"}"#,
    )]);
    world.advance(10);
    let second = receive(&world);
    assert_eq!(second["attempt"], 2);
    settle(&world, "ack", &first, "", &stale("handed_again"));
    settle(&world, "nack", &second, r#","in":"5s""#, &json!({"nacked": 1}));
    world.advance(5);
    let third = receive(&world);
    settle(&world, "nack", &third, "", &json!({"nacked": 1}));
    world.steps(&[
        ("GET q/timers/a", "", 200, r#"{"state":"dead","attempt":3,"last_error":"no route"}"#),
        ("GET q", "", 200, r#"{"counts":{"dead":1,"due":0}}"#),
        ("POST q/timers", r#"{"in":"1s","key":"a"}"#, 409, r#"{"state":"dead"}"#),
    ]);
    settle(&world, "ack", &third, "", &stale("given_up"));
    // A redrive revives it, and its attempt number keeps rising.
    world.steps(&[
        ("POST q/redrive", r#"{"prefix":"b"}"#, 200, r#"{"revived":0}"#),
        ("POST q/redrive", "", 200, r#"{"revived":1,"more":false}"#),
        ("GET q/timers/a", "", 200, r#"{"state":"due","due":"2000-01-01T00:00:15.000Z"}"#),
    ]);
    assert_eq!(receive(&world)["attempt"], 4);
}

#[test]
fn a_lease_lapses_and_is_extended() {
    let world = World::new();
    world.ask("POST q/timers", r#"{"in":"0s","key":"a"}"#);
    let first = receive(&world);
    world.advance(20);
    let until = json!({"extended": 1, "lease_until": "2000-01-01T00:01:20.000Z", "stale": []});
    settle(&world, "extend", &first, r#","lease":"1m""#, &until);
    world.advance(59);
    assert_eq!(receive(&world), Value::Null);
    world.advance(2);
    settle(&world, "nack", &first, "", &stale("lapsed"));
    settle(
        &world,
        "extend",
        &first,
        "",
        &json!({"extended": 0, "lease_until": null, "stale": [{"reason": "lapsed"}]}),
    );
    // An ack is valid after the lease has ended, until the timer is handed out again.
    settle(&world, "ack", &first, "", &json!({"acked": 1}));
    world.ask("POST q/timers", r#"{"in":"0s","key":"b"}"#);
    let first = receive(&world);
    world.advance(31);
    assert_eq!(receive(&world)["attempt"], 2);
    settle(&world, "ack", &first, "", &stale("handed_again"));
}

#[test]
fn stale_tokens_say_why() {
    let world = World::new();
    for (key, line, body, reason) in [
        ("c", "DELETE q/timers/c", "", "cancelled"),
        ("r", "PUT q/timers/r", r#"{"in":"1h"}"#, "replaced"),
    ] {
        world.ask("POST q/timers", &format!(r#"{{"in":"0s","key":"{key}"}}"#));
        let delivery = receive(&world);
        world.ask(line, body);
        settle(&world, "ack", &delivery, "", &stale(reason));
    }
    world.ask("POST q/timers", r#"{"in":"0s","key":"m","retry":{"first":"1h"}}"#);
    let moved = receive(&world);
    settle(&world, "nack", &moved, "", &json!({"nacked": 1}));
    world.ask("PATCH q/timers/m", r#"{"in":"1h"}"#);
    settle(&world, "ack", &moved, "", &stale("moved"));
    for token in ["", "x", "1.1.1.nobody", "99999999999999999999.1.1.a"] {
        settle(&world, "ack", &json!({"token": token}), "", &stale("unknown"));
    }
    world.steps(&[
        ("POST q/ack", "{}", 400, r#"{"code":"missing_field","field":"tokens"}"#),
        ("POST q/ack", r#"{"tokens":[1]}"#, 400, r#"{"field":"tokens","index":0}"#),
        (
            "POST q/ack",
            r#"{"tokens":[],"lease":"1s"}"#,
            400,
            r#"{"code":"unknown_field","field":"lease"}"#,
        ),
        ("POST q/extend", r#"{"tokens":[],"lease":"999ms"}"#, 400, r#"{"field":"lease"}"#),
        ("POST q/ack", r#"{"tokens":[]}"#, 200, r#"{"acked":0,"stale":[]}"#),
        (
            "POST none/ack",
            r#"{"tokens":["1.1.1.a"]}"#,
            200,
            r#"{"acked":0,"stale":[{"reason":"unknown"}]}"#,
        ),
    ]);
}

#[test]
fn a_cancel_of_what_is_out_is_202() {
    let world = World::new();
    world.ask("POST q/timers", r#"{"in":"0s","key":"a"}"#);
    let delivery = receive(&world);
    world.steps(&[
        ("DELETE q/timers/a", "", 202, r#"{"state":"delivering"}"#),
        ("DELETE q/timers/a", "", 202, r#"{"state":"delivering"}"#),
        ("GET q/timers/a", "", 200, r#"{"state":"cancelled"}"#),
    ]);
    settle(&world, "ack", &delivery, "", &stale("cancelled"));
    world.advance(60);
    assert_eq!(receive(&world), Value::Null);
    world.ask("POST q/timers", r#"{"in":"0s","key":"b"}"#);
    receive(&world);
    world.steps(&[(
        "PUT q/timers/b",
        r#"{"in":"1h"}"#,
        200,
        r#"{"replaced":{"state":"delivering"}}"#,
    )]);
}

#[test]
fn the_longest_due_is_first_and_at_most_max() {
    let world = World::new();
    let timer = |nth: u64| json!({"in": format!("{}s", 30 - nth), "key": nth.to_string()});
    world.ask(
        "POST q/timers",
        &json!({"timers": (0..20).map(timer).collect::<Vec<_>>()}).to_string(),
    );
    world.advance(60);
    let answer = world.ask("POST q/receive", r#"{"max":15,"lease":"12h"}"#);
    let keys: Vec<&str> = answer.json["deliveries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["key"].as_str().unwrap())
        .collect();
    let expected: Vec<String> = (5..20).rev().map(|nth| nth.to_string()).collect();
    assert_eq!(keys, expected);
    let rest = world.ask("POST q/receive", r#"{"max":1000}"#);
    let all: Vec<&Value> = rest.json["deliveries"].as_array().unwrap().iter().collect();
    world.steps(&[("POST q/ack", &tokens(&all), 200, r#"{"acked":5,"stale":[]}"#)]);
    for (body, field) in [
        (r#"{"max":0}"#, "max"),
        (r#"{"max":1001}"#, "max"),
        (r#"{"wait":"61s"}"#, "wait"),
        (r#"{"wait":20}"#, "wait"),
        (r#"{"lease":"12h1ms"}"#, "lease"),
        (r#"{"lease":"0s"}"#, "lease"),
    ] {
        world.steps(&[("POST q/receive", body, 400, &json!({"field": field}).to_string())]);
    }
}

#[test]
fn a_poll_waits_and_is_answered_when_a_timer_is_due() {
    let world = World::new();
    let poll = world.begin(request("POST q/receive", r#"{"wait":"20s"}"#));
    // A poll creates no queue, and receives a timer that is scheduled meanwhile.
    world.steps(&[
        ("GET q", "", 404, r#"{"code":"unknown_queue"}"#),
        ("POST q/timers", r#"{"in":"5s","key":"a"}"#, 201, "{}"),
    ]);
    world.advance(5);
    let answer = world.finish(poll);
    assert_eq!(answer.json["deliveries"][0]["handed"], "2000-01-01T00:00:05.000Z");
    let poll = world.begin(request("POST q/receive", r#"{"wait":"20s"}"#));
    world.advance(20);
    assert_eq!(world.finish(poll).text, r#"{"deliveries":[]}"#);
    let poll = world.begin(request("POST q/receive", r#"{"wait":"20s"}"#));
    world.stop_polls();
    assert_eq!(world.finish(poll).text, r#"{"deliveries":[]}"#);
}

#[test]
fn a_client_that_has_gone_leaves_no_attempt_behind() {
    let world = World::new();
    // One client disconnects while it waits; another one after its answer was made, but before it is sent.
    drop(world.begin(request("POST q/receive", r#"{"wait":"20s"}"#)));
    world.ask("POST q/timers", r#"{"in":"0s","key":"a","retry":{"attempts":1}}"#);
    drop(world.response(request("POST q/receive", "")));
    world.steps(&[("GET q/timers/a", "", 200, r#"{"state":"due","attempt":1}"#)]);
    let delivery = receive(&world);
    assert_eq!(delivery["attempt"], 2);
    settle(&world, "ack", &delivery, "", &json!({"acked": 1}));
}

#[test]
fn an_answer_with_deliveries_stops_at_16_mib() {
    let world = World::new();
    let payload = "x".repeat((256 << 10) - 2);
    for _ in 0..2 {
        let timers = vec![json!({"in": "0s", "payload": payload, "retry": {"attempts": 1}}); 40];
        assert_eq!(world.ask("POST q/timers", &json!({"timers": timers}).to_string()).status, 201);
    }
    let first = world.ask("POST q/receive", r#"{"max":1000}"#);
    let second = world.ask("POST q/receive", r#"{"max":1000}"#);
    let count = |answer: &Value| answer["deliveries"].as_array().unwrap().len();
    assert_eq!((count(&first.json), count(&second.json)), (64, 16));
}

#[test]
fn a_recurring_timer_goes_on_when_it_is_acknowledged() {
    let world = World::new();
    world.ask("POST q/timers", r#"{"every":"10s","key":"a","times":2}"#);
    world.advance(10);
    let first = receive(&world);
    world.steps(&[("GET q/timers/a", "", 200, r#"{"state":"delivering","occurrence":1}"#)]);
    settle(&world, "ack", &first, "", &json!({"acked": 1}));
    settle(&world, "ack", &first, "", &stale("acked"));
    world.steps(&[(
        "GET q/timers/a",
        "",
        200,
        r#"{"state":"scheduled","occurrence":2,"attempt":0,"due":"2000-01-01T00:00:20.000Z"}"#,
    )]);
    world.advance(10);
    settle(&world, "ack", &receive(&world), "", &json!({"acked": 1}));
    world.steps(&[("GET q/timers/a", "", 200, r#"{"state":"done","occurrence":2}"#)]);
}

#[test]
fn a_paused_queue_hands_out_nothing_and_limits_hold() {
    let world = World::new();
    world.steps(&[
        ("POST q/timers", r#"{"timers":[{"in":"0s"},{"in":"0s"},{"in":"0s"}]}"#, 201, "{}"),
        ("PATCH q", r#"{"paused":true}"#, 200, r#"{"paused":true}"#),
        ("POST q/receive", r#"{"max":9}"#, 200, r#"{"deliveries":[]}"#),
        ("PATCH q", r#"{"paused":false,"concurrency":2}"#, 200, r#"{"paused":false}"#),
        ("POST q/receive", r#"{"max":9}"#, 200, r#"{"deliveries":[{},{}]}"#),
        ("POST q/receive", r#"{"max":9}"#, 200, r#"{"deliveries":[]}"#),
        ("GET q", "", 200, r#"{"counts":{"scheduled":0,"due":1,"delivering":2,"dead":0}}"#),
    ]);
}
