//! `tourbillon serve` as a process: its start, its output, its end.
//!
//! In real time: the server is a separate process, observed from outside.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::served::{Scratch, Server, command};
use serde_json::{Value, json};

/// Runs the `curl` lines of the README in order: a timer fires, and a pending one survives kill -9.
#[test]
fn the_story_of_the_readme() {
    let readme = include_str!("../../../../README.md");
    let lines: Vec<&str> = readme.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    let begin = lines.iter().position(|line| line.starts_with("q=http://localhost:7420")).unwrap();
    let scratch = Scratch::new("story");
    let mut server = Server::start(scratch.path(), &[]);
    let mut answers = Vec::new();
    for line in &lines[begin + 1..begin + 6] {
        if line.starts_with("pkill -9") {
            server.kill();
            server = Server::start(scratch.path(), &[]);
            continue;
        }
        let path = line.split("$q").nth(1).unwrap().split(' ').next().unwrap();
        let body = line.split('\'').nth(1).unwrap_or_default();
        let method = if body.is_empty() { "GET" } else { "POST" };
        answers.push(server.ask(method, &format!("/v1/queues/mails{path}"), body));
    }
    let states: Vec<u16> = answers.iter().map(|answer| answer.0).collect();
    assert_eq!(states, [201, 201, 200, 200], "{answers:?}");
    let delivery = &answers[2].1["deliveries"][0];
    assert_eq!(
        (&delivery["key"], &delivery["payload"]),
        (&json!("welcome"), &json!({"to": "ann"}))
    );
    assert!(delivery["handed"].as_str() >= delivery["due"].as_str(), "{delivery}");
    let (made, shown) = (&answers[1].1, &answers[3].1);
    for field in ["generation", "due", "created", "state"] {
        assert_eq!(shown[field], made[field], "{field}");
    }
}

#[test]
fn a_directory_has_one_server() {
    let scratch = Scratch::new("lock");
    let server = Server::start(scratch.path(), &[]);
    let second = command(scratch.path(), &[]).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(said.contains(&format!("process {}", server.id())), "{said}");
    assert!(second.stdout.is_empty());
}

#[test]
fn it_ends_when_it_is_told_to() {
    for signal in ["TERM", "INT"] {
        let scratch = Scratch::new(signal);
        let mut server = Server::start(scratch.path(), &[]);
        assert_eq!(server.ask("GET", "/readyz", "").0, 200);
        let began = Instant::now();
        assert_eq!(server.signal(signal).code(), Some(0), "{signal}");
        assert!(began.elapsed() < Duration::from_secs(5), "{signal}");
    }
}

#[test]
fn settings_are_checked() {
    for (arguments, code, word) in [
        (&["--listen", "0.0.0.0:0"][..], 2, "--insecure"),
        (&["--listen", "localhost"], 2, "--listen"),
        (&["--listen", "0.0.0.0:0", "--insecure", "--test-clock"], 2, "--test-clock"),
        (&["--test-clock=yesterday"], 2, "--test-clock"),
        (&["--max-payload", "0"], 2, "--max-payload"),
        (&["--tls-cert", "cert.pem"], 2, "--tls-key"),
        (&["--tls-cert", "no.pem", "--tls-key", "no.pem"], 2, "no.pem"),
        (&["--store", "postgres://localhost"], 2, "--store"),
        (&["--listen", "192.0.2.1:1", "--insecure"], 1, "192.0.2.1:1"),
    ] {
        let scratch = Scratch::new("settings");
        let output = command(scratch.path(), arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?} {said}");
        assert!(said.contains(word) && output.stdout.is_empty(), "{arguments:?} {said}");
    }
}

#[test]
fn tokens_are_read_again_on_sighup() {
    let scratch = Scratch::new("tokens");
    let data = scratch.path().join("data");
    std::fs::create_dir_all(scratch.path()).unwrap();
    let file = scratch.path().join("tokens");
    let arguments = ["--token-file", file.to_str().unwrap(), "--listen", "0.0.0.0:0"];
    for wrong in [None, Some("ann:secret-1:root"), Some("")] {
        if let Some(wrong) = wrong {
            std::fs::write(&file, wrong).unwrap();
        }
        let output = command(&data, &arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("--token-file") && !said.contains("secret"), "{said}");
    }
    std::fs::write(&file, "ann:secret-1:read").unwrap();
    let mut server = Server::start(&data, &arguments);
    server.address = server.address.replace("0.0.0.0", "127.0.0.1");
    let status = |server: &Server, token: &str| {
        let path = format!("/v1/queues HTTP/1.1\r\nAuthorization: Bearer {token}\r\nX:");
        server.ask("GET", &path, "").0
    };
    assert_eq!((status(&server, "secret-1"), status(&server, "secret-2")), (200, 401));
    let reads = |server: &Server, token: &str| {
        let began = Instant::now();
        while status(server, token) != 200 && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        status(server, token)
    };
    std::fs::write(&file, "ann:secret-2:read").unwrap();
    server.send("HUP");
    assert_eq!(reads(&server, "secret-2"), 200);
    assert_eq!(status(&server, "secret-1"), 401);
    // A reload of an invalid file changes nothing.
    std::fs::write(&file, "nonsense").unwrap();
    server.send("HUP");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(status(&server, "secret-2"), 200);
}

#[test]
fn a_clock_that_is_far_off_is_logged() {
    let scratch = Scratch::new("clock");
    let logged = |first: &str| {
        let mut server = Server::of(command(scratch.path(), &[first]));
        assert_eq!(server.ask("POST", "/v1/queues/q/timers", r#"{"in":"1h"}"#).0, 201);
        std::thread::sleep(Duration::from_millis(100));
        server.end_and_read_log()
    };
    assert!(!logged("--test-clock=2030-01-01T00:00:00Z").contains("Clock("));
    let log = logged("--test-clock=2029-12-01T00:00:00Z");
    assert!(log.contains("WARN") && log.contains("Clock("), "{log}");
}

#[test]
fn flags_are_also_variables() {
    let scratch = Scratch::new("variables");
    let mut command = command(scratch.path(), &[]);
    command.env("TOURBILLON_MAX_PAYLOAD", "4").env("TOURBILLON_TEST_CLOCK", "2030-01-01T00:00:00Z");
    command.env("TOURBILLON_LOG_JSON", "true").stderr(Stdio::piped());
    let mut server = Server::of(command);
    assert_eq!(server.ask("POST", "/v1/queues/q/timers", r#"{"in":"1s","payload":12345}"#).0, 413);
    let (_, made) = server.ask("POST", "/v1/queues/q/timers", r#"{"in":"1h","key":"a"}"#);
    assert!(made["due"].as_str().unwrap().starts_with("2030-01-01T01:00:0"), "{made}");
    // The clock runs and can be set.
    let (status, _) = server.ask("POST", "/v1/test/clock", r#"{"now":"2031-01-01T00:00:00Z"}"#);
    assert_eq!(status, 200);
    assert_eq!(server.ask("GET", "/v1/queues/q/timers/a", "").1["state"], "due");
    let log = server.end_and_read_log();
    for line in log.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
    }
    assert!(log.contains("opening the store"), "{log}");
}
