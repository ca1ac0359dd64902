//! Fuzzing: random requests made of parts of valid ones. Each answer follows the OpenAPI document, and none is a 500.

use axum::body::Body;
use axum::http::Request;

use crate::world::World;

/// xorshift: the same requests in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most as u64) as usize
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// The calls of the API, each with a valid body.
const CALLS: &[(&str, &str)] = &[
    ("POST q/timers", r#""in":"0s""#),
    ("POST q/timers", r#""in":"1h","key":"a""#),
    ("POST q/timers", r#""every":"1s","key":"b","times":3"#),
    ("POST q/timers", r#""timers":[{"in":"0s"},{"in":"1h","key":"c"}]"#),
    ("PUT q/timers/a", r#""in":"1s""#),
    ("PUT q/timers/%C3%A4%2Fb", r#""cron":"* * * * *","zone":"Europe/Berlin""#),
    ("PATCH q/timers/a", r#""in":"0s""#),
    ("PATCH q", r#""paused":false"#),
    ("PATCH q", r#""retry":{"attempts":2},"rate":null"#),
    ("POST q/receive", r#""max":3,"lease":"1s""#),
    ("POST q/receive", ""),
    ("POST q/ack", r#""tokens":["q"]"#),
    ("POST q/nack", r#""tokens":[],"in":"1s""#),
    ("POST q/extend", r#""tokens":["x"],"lease":"30s""#),
    ("POST q/cancel", r#""keys":["a","b"]"#),
    ("POST q/redrive", r#""prefix":"a""#),
    ("POST q/timers/a/run", ""),
    ("DELETE q/timers/a", ""),
    ("DELETE q/timers", ""),
    ("GET q/timers", ""),
    ("GET q/timers/a", ""),
    ("GET q/forecast", ""),
    ("GET q", ""),
    ("GET /v1/queues", ""),
];
const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];
const PATHS: &[&str] = &[
    "q//timers",
    "q/timers/",
    "q/timers/%00",
    "q/timers/%ff",
    "q/timers/..",
    "q/timers/%2e%2e",
    "q/timers/~1-1",
    "%71/timers",
    "a.b",
    "x%20y",
    "/v1/events/x",
    "/metrics",
    "/v1",
];
const QUERIES: &[&str] = &[
    "",
    "",
    "",
    "?on_conflict=replace",
    "?on_conflict=keep",
    "?limit=1",
    "?limit=0",
    "?state=done",
    "?prefix=a",
    "?all=true",
    "?force=true",
    "?cursor=AAAA",
    "?from=2000-01-01T00:00:00Z",
    "?to=1999-01-01T00:00:00Z&buckets=3",
    "?buckets=1000",
    "?a=b",
    "?%=",
    "?limit=1&limit=2",
];
const VALUES: &[&str] = &[
    "1",
    "0",
    "-1",
    "1e400",
    "null",
    "true",
    "\"\"",
    "\"0s\"",
    "\"1s\"",
    "\"1h\"",
    "\"1000000w\"",
    "\"99999999999999999999w\"",
    "\"2000-01-01T00:00:01Z\"",
    "\"9999-12-31T23:59:59.9999Z\"",
    "\"a\"",
    "\"~1-1\"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"* * * * *\"",
    "\"0 0 31 2 *\"",
    "\"Europe/Berlin\"",
    "\"UTC\"",
    "\"skip\"",
    "[]",
    "{}",
    "[\"a\"]",
    "[\"a\",\"a\"]",
    "[{\"in\":\"0s\"}]",
    "{\"url\":\"http://127.0.0.1/\"}",
    "{\"url\":\"https://example.com/\",\"timeout\":\"1s\"}",
    "{\"attempts\":1}",
    "{\"factor\":1e308,\"jitter\":1}",
    "18446744073709551615",
    "1.5",
    "\"AAAA\"",
];
const FIELDS: &[&str] = &[
    "in",
    "in",
    "in",
    "at",
    "every",
    "cron",
    "zone",
    "key",
    "key",
    "payload",
    "payload_base64",
    "until",
    "times",
    "missed",
    "expires",
    "remember",
    "webhook",
    "retry",
    "timers",
    "keys",
    "tokens",
    "max",
    "wait",
    "lease",
    "prefix",
    "error",
    "paused",
    "rate",
    "concurrency",
    "dead_keep",
    "nonsense",
];

/// A valid body plus random fields; sometimes truncated or with one byte changed.
fn body(random: &mut Random, right: &str) -> Vec<u8> {
    let mut fields: Vec<String> = Vec::new();
    fields.extend((!right.is_empty()).then(|| right.to_owned()));
    let more = [0, 0, 0, 1, 2][random.below(5)];
    // A poll with a `wait` would never be answered.
    let fits = |field: &&str| *field != "wait";
    fields.extend((0..more).map(|_| {
        Some(random.pick(FIELDS))
            .filter(fits)
            .map_or_else(String::new, |field| format!("\"{field}\":{}", random.pick(VALUES)))
    }));
    let mut body = format!("{{{}}}", fields.join(",")).into_bytes();
    match random.below(20) {
        0 => body.truncate(random.below(body.len() + 1)),
        1 => {
            let at = random.below(body.len());
            body[at] = random.below(256) as u8;
        }
        2 => body = b"[".repeat(random.below(200)),
        _ => {}
    }
    body
}

#[test]
fn requests_at_random_are_answered_and_nothing_breaks() {
    let world = World::new();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut statuses, rounds) = (std::collections::BTreeMap::new(), 4000);
    for _ in 0..rounds {
        let (line, right) = CALLS[random.below(CALLS.len())];
        let (mut method, mut path) = line.split_once(' ').unwrap();
        if random.below(10) == 0 {
            (method, path) = (random.pick(METHODS), random.pick(PATHS));
        }
        let query = if random.below(3) == 0 { random.pick(QUERIES) } else { "" };
        let path =
            if path.starts_with('/') { path.to_owned() } else { format!("/v1/queues/{path}") };
        let body = if method == "GET" { Vec::new() } else { body(&mut random, right) };
        let shown = format!("{method} {path}{query} {}", String::from_utf8_lossy(&body));
        let mut request = Request::builder().method(method).uri(format!("{path}{query}"));
        request = request.header("host", "localhost");
        if random.below(20) > 0 {
            request = request.header("content-type", "application/json");
        }
        if random.below(10) == 0 {
            request = request.header("if-match", random.pick(&["*", "\"1\"", "1", "\"1\", \"2\""]));
        }
        // Skips parts that do not make a valid request.
        let Ok(request) = request.body(Body::from(body)) else { continue };
        if method == "HEAD" {
            assert!(world.response(request).status() != 500, "{shown}");
            continue;
        }
        let answer = world.send(request);
        assert!(answer.status < 500, "{shown}\n  {}", answer.text);
        *statuses.entry(answer.status).or_insert(0) += 1;
        if random.below(100) == 0 {
            world.advance(1);
        }
    }
    // Enough requests succeeded, and enough were refused.
    assert!(statuses[&200] > 300 && statuses[&201] > 30 && statuses[&400] > 300, "{statuses:?}");
}
