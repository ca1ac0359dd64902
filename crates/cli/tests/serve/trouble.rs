//! `tourbillon serve` in trouble: a full disk, a damaged file, a crowd of clients.
//!
//! In real time: the server is a separate process, observed from outside.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::served::{Scratch, Server, command};

const TIMERS: &str = "/v1/queues/q/timers";

/// Waits until a condition holds.
fn until(what: &str, limit: Duration, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < limit, "{what} has taken {:?}", began.elapsed());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A file system in memory with a size limit. `None`: this user may not mount one.
struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    fn new(at: &'a Path, bytes: u64) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let size = format!("size={bytes}");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tourbillon-test"]).arg(at);
        let fine = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        if !fine {
            eprintln!("skipped: a file system cannot be mounted: run it as root");
        }
        fine.then_some(Mounted(at))
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_refuses_changes_loses_nothing_and_is_left_by_itself() {
    let scratch = Scratch::new("full");
    let Some(_mounted) = Mounted::new(scratch.path(), 12 << 20) else { return };
    let ballast = scratch.path().join("ballast");
    fs::write(&ballast, vec![1; 5 << 20]).unwrap();
    let server = Server::start(&scratch.path().join("data"), &[]);
    server.ask("POST", "/v1/queues/w/timers", r#"{"in":"0s","key":"due"}"#);
    let payload = "x".repeat(100_000);
    let (mut made, mut unknown) = (Vec::new(), 0);
    let refused = loop {
        let key = format!("k{}", made.len());
        let body = format!(r#"{{"in":"1h","key":"{key}","payload":"{payload}"}}"#);
        let (status, answer) = server.ask("POST", TIMERS, &body);
        if status != 201 {
            break (status, answer);
        }
        made.push(key);
        assert!(made.len() < 200, "12 MiB hold no such number");
    };
    assert!(made.len() > 5, "{}", made.len());
    let mut seen = vec![refused];
    // While the disk is full: 503, with a code that tells whether the request may have been carried out. Nothing is
    // handed out.
    for nth in 0..10 {
        let body = format!(r#"{{"in":"1h","key":"no{nth}","payload":"{payload}"}}"#);
        seen.push(server.ask("POST", TIMERS, &body));
        std::thread::sleep(Duration::from_millis(20));
    }
    for (status, answer) in &seen {
        assert_eq!(*status, 503, "{answer}");
        unknown += u64::from(answer["code"] == "unknown");
        assert!(answer["code"] == "unknown" || answer["code"] == "unavailable", "{answer}");
    }
    let (status, why) = server.ask("GET", "/readyz", "");
    if status == 503 {
        assert!(why["detail"].as_str().unwrap().contains("space"), "{why}");
    }
    fs::remove_file(&ballast).unwrap();
    until("it goes on", Duration::from_secs(5), || {
        server.ask("POST", TIMERS, r#"{"in":"1h","key":"after"}"#).0 == 201
    });
    assert_eq!(server.ask("GET", "/readyz", "").0, 200);
    for key in &made {
        assert_eq!(server.ask("GET", &format!("{TIMERS}/{key}"), "").0, 200, "{key}");
    }
    let count = server.ask("GET", "/v1/queues/q", "").1["counts"]["scheduled"].as_u64().unwrap();
    let least = made.len() as u64 + 1;
    assert!((least..=least + unknown).contains(&count), "{count} of {least} and {unknown}");
    let (_, received) = server.ask("POST", "/v1/queues/w/receive", r#"{"wait":"5s"}"#);
    assert_eq!(received["deliveries"][0]["key"], "due", "{received}");
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let scratch = Scratch::new("readonly");
    let Some(_mounted) = Mounted::new(scratch.path(), 12 << 20) else { return };
    let data = scratch.path().join("data");
    Server::start(&data, &[]).signal("TERM");
    let remount = Command::new("mount").args(["-o", "remount,ro"]).arg(scratch.path()).status();
    assert!(remount.unwrap().success());
    let output = command(&data, &[]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(1), true), "{said}");
    assert!(said.contains(data.to_str().unwrap()) && !said.contains("panicked"), "{said}");
}

/// An unreadable row is reported; the other timers are served.
#[test]
fn damage_is_shown_and_harms_no_other_timer() {
    let scratch = Scratch::new("damage");
    let mut server = Server::start(scratch.path(), &[]);
    for nth in 0..50 {
        let body = format!(r#"{{"in":"5m","key":"k{nth}","payload":"marker-{nth:03}"}}"#);
        assert_eq!(server.ask("POST", TIMERS, &body).0, 201);
    }
    assert_eq!(server.ask("GET", "/v1/queues", "").1["damaged"], false);
    server.signal("TERM");
    let file = scratch.path().join("timers.redb");
    let mut bytes = fs::read(&file).unwrap();
    let marker = b"marker-017";
    let places: Vec<usize> =
        (0..bytes.len() - marker.len()).filter(|&at| bytes[at..].starts_with(marker)).collect();
    assert!(!places.is_empty());
    places.iter().for_each(|&at| bytes[at + 3] ^= 1);
    fs::write(&file, bytes).unwrap();

    let mut server = Server::of(command(scratch.path(), &[]));
    until("damage is shown", Duration::from_secs(5), || {
        server.ask("GET", "/v1/queues", "").1["damaged"] == true
    });
    assert_eq!(server.ask("GET", "/readyz", ""), (200, json!({"status":"ready","damaged":true})));
    let (status, refused) = server.ask("GET", &format!("{TIMERS}/k17"), "");
    assert_eq!((status, &refused["code"]), (500, &json!("damaged")), "{refused}");
    for nth in (0..50).filter(|nth| *nth != 17) {
        let (status, shown) = server.ask("GET", &format!("{TIMERS}/k{nth}"), "");
        assert_eq!((status, &shown["payload"]), (200, &json!(format!("marker-{nth:03}"))));
    }
    assert_eq!(server.ask("POST", TIMERS, r#"{"in":"5m","key":"new"}"#).0, 201);
    let log = server.end_and_read_log();
    assert!(log.contains("Damaged("), "{log}");
}

/// The memory of a process, in MiB.
fn memory(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().split(' ').next().unwrap().parse::<u64>().unwrap() / 1024
}

/// The number of files that this process may open.
fn files() -> usize {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find(|line| line.starts_with("Max open files"));
    line.and_then(|line| line.split_whitespace().nth(3)?.parse().ok()).unwrap_or(1024)
}

#[test]
fn ten_thousand_polls_wait_in_little_memory() {
    let count = 10_000.min(files().saturating_sub(200));
    let scratch = Scratch::new("crowd");
    let mut server = Server::start(scratch.path(), &[]);
    let before = memory(server.id());
    let body = r#"{"wait":"60s"}"#;
    let length = body.len();
    let poll = format!(
        "POST /v1/queues/q/receive HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}",
        server.address
    );
    let mut polls: Vec<TcpStream> = (0..count)
        .map(|_| {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            stream.write_all(poll.as_bytes()).unwrap();
            stream
        })
        .collect();
    // Other requests are still served, and one timer answers one poll.
    let began = Instant::now();
    assert_eq!(server.ask("GET", "/healthz", "").0, 200);
    assert_eq!(server.ask("POST", TIMERS, r#"{"in":"0s","key":"a"}"#).0, 201);
    until("a poll is answered", Duration::from_secs(10), || {
        server.ask("GET", "/v1/queues/q", "").1["counts"]["delivering"] == 1
    });
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let used = memory(server.id()).saturating_sub(before);
    assert!(used < 400, "{used} MiB for {count} polls");
    let began = Instant::now();
    assert_eq!(server.signal("TERM").code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    let mut handed = 0;
    for stream in &mut polls {
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        handed += usize::from(answer.contains(r#""key":"a""#));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(handed, 1);
}

/// The receiver is another server, which schedules the payload as a timer.
#[test]
fn webhooks_are_posted_over_https() {
    let scratch = Scratch::new("https");
    let tls = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/http/tls");
    let (certificate, key) = (tls.join("cert.pem"), tls.join("key.pem"));
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let inbox = scratch.path().join("inbox");
    let mut receiver = Server::of(command(&inbox, &["--tls-cert", certificate, "--tls-key", key]));
    let port = receiver.address.rsplit(':').next().unwrap().to_owned();
    let timer = |key: &str| {
        format!(
            r#"{{"in":"0s","key":"{key}","retry":{{"first":"1h"}},"payload":{{"in":"1h","key":"{key}"}},
            "webhook":{{"url":"https://localhost:{port}/v1/queues/inbox/timers"}}}}"#
        )
    };
    for (trusted, key) in [(true, "trusted"), (false, "foreign")] {
        let data = scratch.path().join(key);
        let mut sender = command(&data, &["--webhook-allow", "localhost"]);
        if trusted {
            sender.env("SSL_CERT_FILE", certificate);
        }
        let sender = Server::of(sender);
        assert_eq!(sender.ask("POST", TIMERS, &timer(key)).0, 201);
        let shown = || sender.ask("GET", &format!("{TIMERS}/{key}"), "").1;
        until(key, Duration::from_secs(10), || {
            shown()["attempt"] == 1 && shown()["state"] != "delivering"
        });
        let state = if trusted { "done" } else { "scheduled" };
        assert_eq!(shown()["state"], state, "{}", shown());
        let error = shown()["last_error"].to_string();
        assert_eq!(error.contains("certificate"), !trusted, "{error}");
    }
    receiver.signal("TERM");
    let dump = Command::new(env!("CARGO_BIN_EXE_tourbillon")).arg("dump").arg(&inbox).output();
    let dump = String::from_utf8(dump.unwrap().stdout).unwrap();
    assert!(dump.contains(r#""key":"trusted""#) && !dump.contains("foreign"), "{dump}");
}
