//! kill -9 loses nothing that was answered. This process keeps the ledger of the answers.
//!
//! In real time: the server is a separate process, observed from outside.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::served::{self, Scratch, Server};

/// A restart neither ends a lease nor hands the timer to another worker while the lease runs.
#[test]
fn leases_survive_kill_9() {
    let scratch = Scratch::new("leases");
    let mut server = Server::start(scratch.path(), &[]);
    let post = |server: &Server, path: &str, body: &str| {
        let (status, answer) = server.ask("POST", &format!("/v1/queues/q/{path}"), body);
        assert!(status < 300, "{answer}");
        answer
    };
    post(&server, "timers", r#"{"timers":[{"in":"0s","key":"short"},{"in":"0s","key":"long"}]}"#);
    let short = post(&server, "receive", r#"{"lease":"3s"}"#);
    let long = post(&server, "receive", r#"{"lease":"1h"}"#);
    server.kill();
    let server = Server::start(scratch.path(), &[]);
    assert_eq!(post(&server, "receive", r#"{"max":9}"#), json!({"deliveries": []}));
    let again = post(&server, "receive", r#"{"max":9,"wait":"10s"}"#);
    let (again, short) = (&again["deliveries"][0], &short["deliveries"][0]);
    assert_eq!((&again["key"], &again["attempt"]), (&short["key"], &json!(2)));
    assert!(again["handed"].as_str() >= short["lease_until"].as_str(), "{again} after {short}");
    let token = &long["deliveries"][0]["token"];
    assert_eq!(post(&server, "ack", &format!(r#"{{"tokens":[{token}]}}"#))["acked"], 1);
}

/// What the server has answered about its timers.
#[derive(Default)]
struct Ledger {
    /// Scheduled or cancelled timers: generation and state.
    kept: HashMap<String, (Value, &'static str)>,
    /// Timers that were handed out: the attempt, and whether it was acknowledged.
    handed: HashMap<String, (u64, bool)>,
    /// Requests without an answer: each may have been carried out.
    open: usize,
}

impl Ledger {
    /// Compares the server with the ledger: all timers of the latest rounds, and a sample of the earlier ones.
    fn check(&self, server: &Server, round: u64) {
        let recent = |key: &String| {
            let of = key[1..].split('-').next().and_then(|of| of.parse::<u64>().ok());
            of.is_some_and(|of| of + 3 > round || (of * 31 + round).is_multiple_of(50))
        };
        let show = |queue: &str, key: &str| {
            let (status, shown) =
                server.ask("GET", &format!("/v1/queues/{queue}/timers/{key}"), "");
            assert_eq!(status, 200, "{key} is lost in round {round}");
            shown
        };
        for (key, (generation, state)) in self.kept.iter().filter(|(key, _)| recent(key)) {
            let shown = show("q", key);
            assert_eq!(
                (&shown["generation"], &shown["state"]),
                (generation, &json!(state)),
                "{key}"
            );
        }
        for (key, (attempt, acked)) in self.handed.iter().filter(|(key, _)| recent(key)) {
            // Its lease of an hour keeps running; an acknowledged timer is never handed out again.
            let (shown, state) = (show("w", key), if *acked { "done" } else { "delivering" });
            assert_eq!(
                (&shown["attempt"], &shown["state"]),
                (&json!(attempt), &json!(state)),
                "{key}"
            );
        }
        let living = self.kept.values().filter(|(_, state)| *state == "scheduled").count();
        let count = |queue: &str, of: &str| {
            let counts = server.ask("GET", &format!("/v1/queues/{queue}"), "").1["counts"].clone();
            counts[of].as_u64().unwrap_or(0) as usize
        };
        let counted = count("q", "scheduled");
        assert!(
            (living - self.open.min(living)..=living + self.open).contains(&counted),
            "{counted} of {living}"
        );
        let out = self.handed.values().filter(|(_, acked)| !acked).count();
        let counted = count("w", "delivering");
        assert!(counted <= out + self.open && counted + self.open >= out, "{counted} of {out}");
    }

    fn add(&mut self, other: Ledger) {
        self.kept.extend(other.kept);
        self.handed.extend(other.handed);
        self.open += other.open;
    }
}

/// Schedules and cancels timers until the server is gone.
fn schedules(address: &str, round: u64) -> Ledger {
    let mut ledger = Ledger { open: 1, ..Ledger::default() };
    for nth in 0.. {
        let key = format!("r{round}-{nth}");
        let body = format!(r#"{{"in":"1h","key":"{key}","remember":"1h"}}"#);
        let Some((201, made)) = served::try_ask(address, "POST", "/v1/queues/q/timers", &body)
        else {
            break;
        };
        let mut state = "scheduled";
        if nth % 3 == 0 {
            let path = format!("/v1/queues/q/timers/{key}");
            let Some((200, _)) = served::try_ask(address, "DELETE", &path, "") else { break };
            state = "cancelled";
        }
        ledger.kept.insert(key, (made["generation"].clone(), state));
    }
    ledger
}

/// Schedules due timers, receives them and acknowledges every other one, until the server is gone.
fn takes(address: &str, round: u64) -> Ledger {
    // One batch of hand-outs and acknowledgements may be unanswered.
    let mut ledger = Ledger { open: 8, ..Ledger::default() };
    let post = |path: &str, body: &str| match served::try_ask(
        address,
        "POST",
        &format!("/v1/queues/w/{path}"),
        body,
    ) {
        Some((200 | 201, answer)) => Some(answer),
        _ => None,
    };
    for nth in 0.. {
        let timers: Vec<String> = (0..4)
            .map(|one| format!(r#"{{"in":"0s","key":"w{round}-{nth}-{one}","remember":"1h"}}"#))
            .collect();
        if post("timers", &format!(r#"{{"timers":[{}]}}"#, timers.join(","))).is_none() {
            break;
        }
        let Some(taken) = post("receive", r#"{"max":4,"lease":"1h"}"#) else { break };
        let deliveries = taken["deliveries"].as_array().unwrap();
        let tokens: Vec<String> =
            deliveries.iter().step_by(2).map(|one| one["token"].to_string()).collect();
        let acked = post("ack", &format!(r#"{{"tokens":[{}]}}"#, tokens.join(","))).is_some();
        for (index, one) in deliveries.iter().enumerate() {
            let (key, attempt) = (one["key"].as_str().unwrap(), one["attempt"].as_u64().unwrap());
            if acked || index % 2 == 1 {
                ledger.handed.insert(key.to_owned(), (attempt, index % 2 == 0));
            }
        }
        if !acked {
            break;
        }
    }
    ledger
}

/// Acknowledged is durable: everything answered with 2xx survives a kill unchanged, and leases keep running.
#[test]
fn nothing_that_was_answered_is_lost_by_kill_9() {
    let rounds = std::env::var("TOURBILLON_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let rounds: u64 = rounds.unwrap_or(10);
    let scratch = Scratch::new("kill");
    let mut ledger = Ledger::default();
    for round in 0..rounds {
        let mut server = Server::start(scratch.path(), &[]);
        assert!(server.started < Duration::from_secs(10), "{:?}", server.started);
        ledger.check(&server, round);
        let address = server.address.clone();
        std::thread::scope(|scope| {
            let clients = [schedules, takes].map(|client| {
                let address = &address;
                scope.spawn(move || client(address, round))
            });
            std::thread::sleep(Duration::from_millis(40 + 17 * (round % 7)));
            server.kill();
            clients.into_iter().for_each(|client| ledger.add(client.join().unwrap()));
        });
    }
    ledger.check(&Server::start(scratch.path(), &[]), rounds);
    println!(
        "{rounds} kills, {} timers, {} deliveries: none lost",
        ledger.kept.len(),
        ledger.handed.len()
    );
    assert!(ledger.kept.len() as u64 >= rounds && ledger.handed.len() as u64 >= rounds);
}

/// A post whose outcome is unknown is retried at once, and its attempt does not count.
#[test]
fn webhooks_under_way_survive_kill_9() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let hook = listener.local_addr().unwrap();
    let scratch = Scratch::new("webhooks");
    let mut server = Server::start(scratch.path(), &["--webhook-allow", "127.0.0.1"]);
    let timer = format!(
        r#"{{"in":"0s","key":"a","webhook":{{"url":"http://{hook}/"}},"payload":1,"retry":{{"attempts":1}}}}"#
    );
    assert_eq!(server.ask("POST", "/v1/queues/q/timers", &timer).0, 201);
    // The receiver reads the post and does not answer.
    let first = served::read_head(&mut listener.accept().unwrap().0);
    server.kill();
    let server = Server::start(scratch.path(), &["--webhook-allow", "127.0.0.1"]);
    let (mut stream, _) = listener.accept().unwrap();
    let second = served::read_head(&mut stream);
    std::io::Write::write_all(&mut stream, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .unwrap();
    let value = |head: &str, name: &str| {
        let found = head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        found.unwrap_or_default().to_owned()
    };
    assert_eq!(value(&first, "webhook-id"), value(&second, "webhook-id"));
    assert_eq!(
        ["1", "2"],
        [&first, &second].map(|head| value(head, "tourbillon-attempt")).each_ref().map(|it| &**it)
    );
    let began = Instant::now();
    while server.ask("GET", "/v1/queues/q/timers/a", "").1["state"] != "done" {
        assert!(began.elapsed() < Duration::from_secs(10));
    }
}
