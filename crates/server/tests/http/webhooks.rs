//! Webhooks: the posts, and the effects of their answers. In real time, because the receiver is a socket.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tourbillon_server::{Secrets, Settings, Webhooks};

use crate::world::World;

/// A received post.
#[derive(Debug)]
pub(crate) struct Post {
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Post {
    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(of, _)| of == name);
        found.map_or("", |(_, value)| value)
    }

    pub(crate) fn read(reader: &mut impl BufRead) -> Option<Post> {
        let mut next = || {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
            Some(line.trim_end().to_owned())
        };
        let line = next()?;
        let mut headers = Vec::new();
        while let Some((name, value)) = next()?.split_once(": ") {
            headers.push((name.to_owned(), value.to_owned()));
        }
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let mut body = vec![0; length.map_or(Some(0), |(_, length)| length.parse().ok())?];
        reader.read_exact(&mut body).ok()?;
        Some(Post { line, headers, body })
    }
}

/// A webhook receiver. It answers with these statuses in turn, then repeats the last one. If a status is empty, it does
/// not answer; if a status ends with "and stalls", it sends no body.
struct Hook {
    address: String,
    posts: Receiver<Post>,
}

impl Hook {
    fn start(answers: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (send, posts) = channel();
        std::thread::spawn(move || {
            let mut nth = 0;
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream);
                while let Some(post) = Post::read(&mut reader) {
                    let answer = answers[nth.min(answers.len() - 1)];
                    nth += 1;
                    let _ = send.send(post);
                    let stream: &mut TcpStream = reader.get_mut();
                    let begun = answer.strip_suffix(" and stalls");
                    if answer.is_empty() || begun.is_some() {
                        // The connection stays open without an answer, or with an incomplete one.
                        if let Some(begun) = begun {
                            let _ = write!(stream, "HTTP/1.1 {begun}\r\nContent-Length: 2\r\n\r\n");
                        }
                        std::mem::forget(stream.try_clone());
                        break;
                    }
                    let _ = write!(stream, "HTTP/1.1 {answer}\r\nContent-Length: 2\r\n\r\nok");
                }
            }
        });
        Hook { address, posts }
    }

    fn post(&self) -> Post {
        self.posts.recv_timeout(Duration::from_secs(10)).unwrap()
    }

    /// The body of a timer that is due now and posted here.
    fn timer(&self, more: &str) -> String {
        let address = &self.address;
        format!(r#"{{"in":"0s","webhook":{{"url":"http://{address}/path?a=1"}},{more}}}"#)
    }
}

/// A world under the system's clock that posts webhooks.
pub(crate) fn posting(webhooks: Webhooks) -> (World, tokio::runtime::Runtime) {
    let settings = Settings { webhooks: Arc::new(webhooks), ..Settings::default() };
    let world = World::real(settings);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_io().build().unwrap();
    runtime.spawn(world.api.post_webhooks());
    (world, runtime)
}

fn allowed() -> Webhooks {
    Webhooks { allow: vec!["127.0.0.1".parse().unwrap()], ..Webhooks::default() }
}

/// Waits until a timer shows these fields.
pub(crate) fn until(world: &World, key: &str, expected: &Value) -> Value {
    let began = Instant::now();
    loop {
        let shown = world.ask(&format!("GET q/timers/{key}"), "").json;
        if crate::world::has(&shown, expected) {
            return shown;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{shown}\n  expected {expected}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_timer_is_posted_signed_and_acknowledged() {
    let secrets = Secrets::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let (world, _runtime) = posting(Webhooks { secrets, ..allowed() });
    let hook = Hook::start(&["500 Oops", "204 Fine"]);
    let body = hook.timer(r#""key":"a/b","payload":{ "id" : 17 },"retry":{"first":"1ms"}"#);
    assert_eq!(world.ask("POST q/timers", &body).status, 201);
    let (first, second) = (hook.post(), hook.post());
    assert_eq!(first.line, "POST /path?a=1 HTTP/1.1");
    assert_eq!(first.body, br#"{ "id" : 17 }"#);
    let shown = until(&world, "a%2Fb", &json!({"state": "done", "attempt": 2}));
    for (name, value) in [
        ("content-type", "application/json"),
        ("tourbillon-queue", "q"),
        ("tourbillon-key", "a%2Fb"),
        ("tourbillon-due", shown["due"].as_str().unwrap()),
        ("tourbillon-attempt", "1"),
        ("host", &hook.address),
    ] {
        assert_eq!(first.header(name), value, "{first:?}");
    }
    let id = first.header("webhook-id");
    assert!(id.starts_with("tb_") && id.ends_with(&format!("_{}_1", shown["generation"])), "{id}");
    assert_eq!((second.header("webhook-id"), second.header("tourbillon-attempt")), (id, "2"));
    assert!(first.header("webhook-signature").starts_with("v1,"), "{first:?}");
    assert!(first.header("webhook-timestamp").parse::<u64>().is_ok());
    assert_eq!(shown["last_error"], "the receiver answered 500");
}

#[test]
fn headers_are_sent_and_not_shown() {
    let (world, _runtime) = posting(allowed());
    let hook = Hook::start(&["200 OK"]);
    let timer = |headers: &str, payload: &str| {
        let address = &hook.address;
        format!(
            r#"{{"in":"0s","key":"a","webhook":{{"url":"http://{address}/","headers":{headers}}}{payload}}}"#
        )
    };
    let own =
        r#"{"Authorization":"Bearer hush","content-type":"text/csv","traceparent":"00-1-1-00"}"#;
    let made = world.ask("PUT q/timers/a", &timer(own, r#","payload_base64":"AP8=""#));
    assert_eq!(made.status, 201, "{}", made.text);
    assert!(!made.text.contains("hush"), "{}", made.text);
    assert_eq!(made.json["webhook"]["headers"].as_array().unwrap().len(), 3);
    let post = hook.post();
    assert_eq!(post.body, [0, 255]);
    for (name, value) in [
        ("authorization", "Bearer hush"),
        ("content-type", "text/csv"),
        ("traceparent", "00-1-1-00"),
    ] {
        assert_eq!(post.header(name), value);
    }
    assert_eq!(post.header("webhook-signature"), "");
    until(&world, "a", &json!({"state": "done"}));
    world.ask("PUT q/timers/a", &timer("{}", r#","payload_base64":"AP8=""#));
    assert_eq!(hook.post().header("content-type"), "application/octet-stream");
    until(&world, "a", &json!({"state": "done"}));
    // A timer without a payload is posted as `null`, with a length: some receivers refuse a body without one.
    let made = world.ask("PUT q/timers/a", &timer("{}", ""));
    assert_eq!(made.status, 200, "{}", made.text);
    let post = hook.post();
    assert_eq!((post.header("content-length"), &*post.body), ("4", &b"null"[..]));
    assert_eq!(post.header("content-type"), "application/json");
}

#[test]
fn an_answer_decides_what_becomes_of_a_timer() {
    let (world, _runtime) = posting(allowed());
    for (key, answers, expected) in [
        (
            "gone",
            &["410 Gone"][..],
            json!({"state": "dead", "attempt": 1, "last_error": "the receiver answered 410"}),
        ),
        (
            "redirect",
            &["302 Found\r\nLocation: /elsewhere"],
            json!({"last_error": "the receiver answered 302"}),
        ),
        ("busy", &["429 Slow\r\nRetry-After: 3000"], json!({"state": "scheduled", "attempt": 1})),
    ] {
        let hook = Hook::start(answers);
        let body = hook.timer(&format!(r#""key":"{key}","retry":{{"attempts":2,"first":"1h"}}"#));
        assert_eq!(world.ask("POST q/timers", &body).status, 201);
        hook.post();
        let shown = until(&world, key, &expected);
        if key == "busy" {
            let at = |field: &str| {
                shown[field].as_str().unwrap().parse::<tourbillon_durable::values::Moment>()
            };
            let after = at("next_attempt").unwrap().since(at("due").unwrap()).millis();
            assert!((3_000_000..3_060_000).contains(&after), "{shown}");
        }
        assert!(hook.posts.try_recv().is_err(), "{key}");
    }
    // 410 ends a recurring timer, too.
    let hook = Hook::start(&["410 Gone"]);
    let address = &hook.address;
    world.ask("POST q/timers", &format!(
        r#"{{"every":"1h","at":"2020-01-01T00:00:00Z","key":"r","webhook":{{"url":"http://{address}/"}}}}"#
    ));
    until(&world, "r", &json!({"state": "dead"}));
}

#[test]
fn a_receiver_that_does_not_answer_is_a_failed_attempt() {
    let (world, _runtime) = posting(allowed());
    let hook = Hook::start(&[""]);
    let address = &hook.address;
    let webhook = format!(r#""webhook":{{"url":"http://{address}/","timeout":"1s"}}"#);
    world.ask(
        "POST q/timers",
        &format!(r#"{{"in":"0s","key":"a",{webhook},"retry":{{"first":"1h"}}}}"#),
    );
    until(&world, "a", &json!({"state": "scheduled", "last_error": "no answer within 1s"}));
}

#[test]
fn only_public_addresses_are_posted_to() {
    let (world, _runtime) = posting(Webhooks::default());
    let hook = Hook::start(&["200 OK"]);
    for url in [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://169.254.169.254/",
        "http://10.0.0.1/",
        "http://100.64.0.1/",
        "http://user@example.com/",
        "ftp://example.com/",
        "example.com",
    ] {
        let body = json!({"in": "0s", "webhook": {"url": url}}).to_string();
        world.steps(&[(
            "POST q/timers",
            &body,
            400,
            r#"{"code":"bad_value","field":"webhook.url"}"#,
        )]);
        let body = json!({"webhook": {"url": url}}).to_string();
        world.steps(&[("PATCH q", &body, 400, r#"{"field":"webhook.url"}"#)]);
    }
    // A name that resolves to a private address is a failed attempt.
    let port = hook.address.rsplit(':').next().unwrap();
    let body = json!({"in": "0s", "key": "a", "webhook": {"url": format!("http://localhost:{port}/")},
        "retry": {"first": "1h"}});
    assert_eq!(world.ask("POST q/timers", &body.to_string()).status, 201);
    let shown = until(&world, "a", &json!({"state": "scheduled", "attempt": 1}));
    assert!(shown["last_error"].as_str().unwrap().contains("not public"), "{shown}");
    assert!(hook.posts.try_recv().is_err());
    for (webhook, field) in [
        (json!({}), "webhook.url"),
        (json!({"url": "http://a.example/", "x": 1}), "webhook.x"),
        (json!({"url": "http://a.example/", "timeout": "999ms"}), "webhook.timeout"),
        (json!({"url": "http://a.example/", "timeout": "61s"}), "webhook.timeout"),
        (json!({"url": "http://a.example/", "headers": {"Host": "b"}}), "webhook.headers"),
        (json!({"url": "http://a.example/", "headers": {"x": "a\r\nb: c"}}), "webhook.headers"),
        (json!({"url": "http://a.example/", "headers": {"webhook-id": "b"}}), "webhook.headers"),
        (json!({"url": "http://a.example/", "headers": {"x": 1}}), "webhook.headers"),
        (json!({"url": "http://a.example/", "headers": []}), "webhook.headers"),
        (json!({"url": "http://a.example/", "headers": {"a": "1", "A": "2"}}), "webhook.headers"),
        (json!("http://a.example/"), "webhook"),
    ] {
        let body = json!({"timers": [{"in": "1h"}, {"in": "1h", "webhook": webhook}]}).to_string();
        let part = json!({"field": field, "index": 1}).to_string();
        world.steps(&[("POST q/timers", &body, 400, &part)]);
    }
}

#[test]
fn a_queue_has_a_default_and_takers_get_the_others() {
    let world = World::new();
    world.steps(&[
        (
            "PATCH q",
            r#"{"webhook":{"url":"https://a.example/"}}"#,
            200,
            r#"{"settings":{"webhook":{"url":"https://a.example/","headers":[],"timeout":"10s"}}}"#,
        ),
        (
            "POST q/timers",
            r#"{"in":"0s","key":"a"}"#,
            201,
            r#"{"webhook":{"url":"https://a.example/"}}"#,
        ),
        ("POST q/timers", r#"{"in":"0s","key":"b","webhook":null}"#, 201, r#"{"webhook":null}"#),
        (
            "POST q/timers",
            r#"{"in":"0s","key":"c","webhook":{"url":"http://c.example/","timeout":"1s"}}"#,
            201,
            r#"{"webhook":{"url":"http://c.example/","timeout":"1s"}}"#,
        ),
        ("POST q/receive", r#"{"max":9}"#, 200, r#"{"deliveries":[{"key":"b"}]}"#),
        ("PATCH q", r#"{"webhook":null}"#, 200, r#"{"settings":{"webhook":null}}"#),
        ("POST q/timers", r#"{"in":"1h","key":"d"}"#, 201, r#"{"webhook":null}"#),
    ]);
}

#[test]
fn a_post_under_way_when_the_server_stops_is_not_counted() {
    let (world, runtime) = posting(allowed());
    let hook = Hook::start(&[""]);
    world.ask("POST q/timers", &hook.timer(r#""key":"a","retry":{"attempts":1}"#));
    hook.post();
    world.steps(&[("GET q/timers/a", "", 200, r#"{"state":"delivering","attempt":1}"#)]);
    world.stop_polls();
    until(&world, "a", &json!({"state": "due", "attempt": 1, "last_error": null}));
    drop(runtime);
}

/// The status decides, even if the rest of the answer never arrives.
#[test]
fn an_answer_that_stalls_has_a_status() {
    let (world, _runtime) = posting(allowed());
    for (answer, state) in [(&["200 OK and stalls"], "done"), (&["410 Gone and stalls"], "dead")] {
        let hook = Hook::start(answer);
        let address = &hook.address;
        let webhook = format!(r#"{{"url":"http://{address}/","timeout":"1s"}}"#);
        world
            .ask("POST q/timers", &format!(r#"{{"in":"0s","key":"{state}","webhook":{webhook}}}"#));
        hook.post();
        until(&world, state, &json!({"state": state, "attempt": 1}));
    }
}

/// A host that does not answer uses up only its own connections, however its address is spelled.
#[test]
fn a_host_that_does_not_answer_leaves_places_to_others() {
    let dead = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = dead.local_addr().unwrap().port();
    let webhooks = Webhooks { most: 8, per_host: 2, ..allowed() };
    let (world, _runtime) = posting(webhooks);
    let hosts = ["127.0.0.1", "127.1", "2130706433", "0x7f.0.0.1"];
    let timers: Vec<String> = (0..60)
        .map(|nth| {
            let host = hosts[nth % hosts.len()];
            format!(
                r#"{{"in":"0s","webhook":{{"url":"http://{host}:{port}/{nth}","timeout":"60s"}}}}"#
            )
        })
        .collect();
    let many = format!(r#"{{"timers":[{}]}}"#, timers.join(","));
    assert_eq!(world.ask("POST dead/timers", &many).status, 201);
    std::thread::sleep(Duration::from_millis(300));
    let hook = Hook::start(&["200 Fine"]);
    let began = Instant::now();
    assert_eq!(world.ask("POST q/timers", &hook.timer(r#""key":"a""#)).status, 201);
    hook.post();
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    // The other timers wait in the store, with no attempt used up.
    let counts = &world.ask("GET dead", "").json["counts"];
    assert!(counts["delivering"].as_u64() <= Some(8), "{counts}");
    assert_eq!(counts["dead"], 0, "{counts}");
    dead.set_nonblocking(true).unwrap();
    // All connections stay open while they are counted: closing one would let the next post connect.
    let connections: Vec<_> = dead.incoming().map_while(Result::ok).collect();
    assert!((1..=2).contains(&connections.len()), "{} connections", connections.len());
}
