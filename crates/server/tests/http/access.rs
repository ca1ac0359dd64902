//! Tokens: rights, queues and rates, and the limit on concurrent polls.

use axum::http::HeaderValue;
use axum::http::header::AUTHORIZATION;
use serde_json::json;
use tourbillon_server::{Settings, Tokens};

use crate::world::{Answer, World, request};

const TOKENS: &str = "reader:reader-1:read\nwriter:writer-1:write\nadmin:admin-01:admin\n\
     shop:shopshop:write:shop.\none:only-one:admin:one";

fn world(settings: Settings) -> World {
    World::with(Settings { tokens: Some(Tokens::parse(TOKENS).unwrap()), ..settings })
}

fn ask(world: &World, token: &str, line: &str, body: &str) -> Answer {
    let mut request = request(line, body);
    if !token.is_empty() {
        let value = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
        request.headers_mut().insert(AUTHORIZATION, value);
    }
    world.send(request)
}

#[test]
fn a_token_grants_its_right_and_those_before_it() {
    let world = world(Settings::default());
    let timer = r#"{"in":"1h","key":"a"}"#;
    // A request, and its status for a token with the right `read`, `write` and `admin`.
    for (line, body, statuses) in [
        ("GET /v1/queues", "", [200, 200, 200]),
        ("GET /openapi.json", "", [200, 200, 200]),
        ("GET q/timers", "", [200, 200, 200]),
        ("PUT q/timers/a", timer, [403, 201, 200]),
        ("GET q", "", [200, 200, 200]),
        ("GET q/timers/a", "", [200, 200, 200]),
        ("POST q/receive", "", [403, 200, 200]),
        ("POST q/ack", r#"{"tokens":[]}"#, [403, 200, 200]),
        ("POST q/redrive", "", [403, 200, 200]),
        ("POST q/cancel", r#"{"keys":[]}"#, [403, 200, 200]),
        ("PATCH q", "{}", [403, 403, 200]),
        ("DELETE q/timers/a", "", [403, 200, 200]),
        ("DELETE q/timers?prefix=a", "", [403, 200, 200]),
        ("DELETE q/timers?all=true", "", [403, 403, 200]),
        ("DELETE q", "", [403, 403, 200]),
    ] {
        for (token, status) in ["reader-1", "writer-1", "admin-01"].into_iter().zip(statuses) {
            let answer = ask(&world, token, line, body);
            assert_eq!(answer.status, status, "{token} {line} {}", answer.text);
        }
        let answer = ask(&world, "", line, body);
        assert_eq!((answer.status, &answer.json["code"]), (401, &json!("unauthorized")), "{line}");
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
    }
    for line in ["GET /healthz", "GET /readyz"] {
        assert_eq!(ask(&world, "", line, "").status, 200, "{line}");
    }
}

#[test]
fn only_a_bearer_token_in_its_header_counts() {
    let world = world(Settings::default());
    for (value, status) in [
        ("Bearer reader-1", 200),
        ("bearer reader-1", 200),
        ("Bearer reader-2", 401),
        ("Bearer reader-", 401),
        ("Bearer reader-11", 401),
        ("Bearer  reader-1", 401),
        ("Bearer", 401),
        ("Bearer ", 401),
        ("Basic cmVhZGVyLTE6", 401),
        ("reader-1", 401),
        ("", 401),
    ] {
        let mut request = request("GET /v1/queues", "");
        request.headers_mut().insert(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        assert_eq!(world.send(request).status, status, "{value:?}");
    }
    let mut twice = request("GET /v1/queues", "");
    for _ in 0..2 {
        twice.headers_mut().append(AUTHORIZATION, HeaderValue::from_static("Bearer reader-1"));
    }
    assert_eq!(world.send(twice).status, 401);
    assert_eq!(world.ask("GET /v1/queues?token=reader-1", "").status, 401);
}

#[test]
fn a_token_with_a_scope_sees_its_queues_alone() {
    let world = world(Settings::default());
    let timer = r#"{"in":"1h"}"#;
    for (token, queue, status) in [
        ("shopshop", "shop.eu", 201),
        ("shopshop", "shop", 403),
        ("shopshop", "shops", 403),
        ("shopshop", "other", 403),
        ("shopshop", "sho%70.us", 201),
        ("shopshop", "%6fther", 403),
        ("only-one", "one", 201),
        ("only-one", "one.more", 403),
        ("writer-1", "other", 201),
    ] {
        let answer = ask(&world, token, &format!("POST {queue}/timers"), timer);
        assert_eq!(answer.status, status, "{token} {queue} {}", answer.text);
    }
    let seen = |token: &str| {
        let queues = ask(&world, token, "GET /v1/queues", "").json["queues"].clone();
        let mut names: Vec<String> =
            queues.as_array().unwrap().iter().map(|queue| queue["queue"].to_string()).collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(seen("shopshop"), r#""shop.eu" "shop.us""#);
    assert_eq!(seen("only-one"), r#""one""#);
    assert_eq!(seen("reader-1"), r#""one" "other" "shop.eu" "shop.us""#);
    assert_eq!(ask(&world, "only-one", "PATCH one", "{}").status, 200);
    assert_eq!(ask(&world, "only-one", "PATCH other", "{}").status, 403);
}

#[test]
fn tokens_are_replaced() {
    let world = world(Settings::default());
    world.api.set_tokens(Tokens::parse("new:new-token:read").unwrap());
    assert_eq!(ask(&world, "reader-1", "GET /v1/queues", "").status, 401);
    assert_eq!(ask(&world, "new-token", "GET /v1/queues", "").status, 200);
}

#[test]
fn a_token_has_a_rate() {
    let world = world(Settings { token_rate: Some(3), ..Settings::default() });
    let answers: Vec<Answer> =
        (0..6).map(|_| ask(&world, "reader-1", "GET /v1/queues", "")).collect();
    let refused = answers.last().unwrap();
    assert_eq!((refused.status, &refused.json["code"]), (429, &json!("too_many")));
    assert_eq!(refused.headers["retry-after"], "1");
    assert!(answers[..3].iter().all(|answer| answer.status == 200));
    assert_eq!(ask(&world, "writer-1", "GET /v1/queues", "").status, 200);
}

#[test]
fn polls_have_a_limit() {
    let world = World::with(Settings { max_polls: 2, ..Settings::default() });
    let poll = || world.begin(request("POST q/receive", r#"{"wait":"20s"}"#));
    let (first, second) = (poll(), poll());
    world.steps(&[("POST q/receive", r#"{"wait":"20s"}"#, 429, r#"{"code":"too_many"}"#)]);
    drop(first);
    drop((poll(), second));
    world.steps(&[("POST q/receive", "", 200, r#"{"deliveries":[]}"#)]);
}
