//! `tourbillon serve` on a system that is short of something: name servers that do not answer, few open files.
//!
//! In real time: the server is a separate process, observed from outside.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::served::{Scratch, Server, command};

const TIMERS: &str = "/v1/queues/q/timers";

/// The command, run by this shell script with the command as its arguments.
fn within(script: &str, inner: &Command, outer: &[&str]) -> Command {
    let mut command = Command::new(outer[0]);
    command.args(&outer[1..]).args(["sh", "-c", script]).arg(inner.get_program());
    command.args(inner.get_args()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Lookups of names take their time, and the server does not wait for them when it ends.
#[test]
fn it_ends_in_time_though_no_name_server_answers() {
    let scratch = Scratch::new("names");
    std::fs::create_dir_all(scratch.path()).unwrap();
    let file = scratch.path().join("resolv.conf");
    std::fs::write(&file, "nameserver 127.9.9.9\noptions timeout:30 attempts:2\n").unwrap();
    // It receives the questions and never answers.
    let name_server = UdpSocket::bind("127.9.9.9:53");
    let mount = format!("mount --bind {} /etc/resolv.conf", file.display());
    let may =
        Command::new("unshare").args(["-m", "sh", "-c", &mount]).stderr(Stdio::null()).status();
    if name_server.is_err() || !may.is_ok_and(|status| status.success()) {
        eprintln!("skipped: the system's name server cannot be replaced: run it as root");
        return;
    }
    let serve = command(&scratch.path().join("data"), &[]);
    let script = format!("{mount} && exec \"$0\" \"$@\"");
    let mut server = Server::of(within(&script, &serve, &["unshare", "-m"]));
    let timer = |nth: usize| {
        let url = format!("http://n{}.example.org/", nth % 12);
        json!({"in": "0s", "webhook": {"url": url, "timeout": "60s"}})
    };
    let timers = json!({"timers": (0..720).map(timer).collect::<Vec<_>>()}).to_string();
    assert_eq!(server.ask("POST", TIMERS, &timers).0, 201);
    std::thread::sleep(Duration::from_secs(1));
    let began = Instant::now();
    assert_eq!(server.signal("TERM").code(), Some(0));
    assert!(began.elapsed() < Duration::from_millis(5500), "{:?}", began.elapsed());
}

/// Posts are limited so that the files suffice; a shortage would use up attempts of timers, though no receiver failed.
#[test]
fn few_open_files_use_up_no_attempt() {
    let scratch = Scratch::new("files");
    let serve = command(scratch.path(), &["--webhook-allow", "127.0.0.0/8"]);
    let server = Server::of(within("ulimit -n 256; exec \"$0\" \"$@\"", &serve, &["env"]));
    let ports = [(); 2].map(|()| {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(200));
                    let _ = stream.read(&mut [0; 4096]);
                    let _ = stream.write_all(
                        b"HTTP/1.1 200 Fine\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                    );
                });
            }
        });
        port
    });
    let timer = |nth: usize| {
        let url = format!("http://127.0.0.{}:{}/", 1 + nth / 2, ports[nth % 2]);
        json!({"in": "0s", "key": nth.to_string(), "webhook": {"url": url}})
    };
    let timers = json!({"timers": (0..400).map(timer).collect::<Vec<_>>()}).to_string();
    assert_eq!(server.ask("POST", TIMERS, &timers).0, 201);
    let began = Instant::now();
    loop {
        let (_, list) = server.ask("GET", &format!("{TIMERS}?limit=1000"), "");
        let left = list["timers"].as_array().unwrap();
        assert!(left.iter().all(|timer| timer["last_error"].is_null()), "{list}");
        if left.is_empty() {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{} are left", left.len());
        std::thread::sleep(Duration::from_millis(20));
    }
    let (_, done) = server.ask("GET", &format!("{TIMERS}?state=done&limit=1000"), "");
    assert_eq!(done["timers"].as_array().unwrap().len(), 400);
}
