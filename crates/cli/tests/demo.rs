//! The server of the live page: starting, stopping, and its answers to hostile clients.
//!
//! In real time: the server is a separate process, observed from outside.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tourbillon_cli::demo::{MOST_CONNECTIONS, MOST_SESSIONS};

const PATIENCE: Duration = Duration::from_secs(20);

/// A running `tourbillon demo`, killed on drop.
struct Demo {
    child: Child,
    address: String,
    out: BufReader<std::process::ChildStdout>,
}

impl Demo {
    fn start(arguments: &[&str]) -> Demo {
        let mut child = command(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let address = line.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/\n"));
        let address = address.unwrap_or_else(|| panic!("{line:?} is no address")).to_owned();
        Demo { child, address, out }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request and reads the answer. The server may close the connection early.
    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        let _ = stream.write_all(request.as_bytes());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn get(&self, path: &str) -> String {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address))
    }

    /// Opens a session. Returns its socket and the head of the answer.
    fn session(&self) -> (Socket, String) {
        let request = format!(
            "GET /live HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            self.address
        );
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
            head.push(byte[0]);
        }
        (Socket(stream), String::from_utf8_lossy(&head).into_owned())
    }

    fn memory(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
    }

    /// Sends a signal and waits for the end. Returns the exit status and the rest of the output.
    fn end(mut self, signal: &str) -> (ExitStatus, String) {
        let kill = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap(), rest)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tourbillon"));
    command.arg("demo").args(arguments).stdin(Stdio::null());
    command
}

/// A minimal WebSocket client: masks with zeros and never fragments.
struct Socket(TcpStream);

impl Socket {
    fn send(&mut self, text: &str) -> std::io::Result<()> {
        let mut frame = vec![0x81, 0xff];
        frame.extend((text.len() as u64).to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.0.write_all(&frame)
    }

    /// The next text message; `None` if the session has ended.
    fn receive(&mut self) -> Option<String> {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).ok()?;
        if head[0] != 0x81 {
            return None;
        }
        let mut long = [0; 8];
        let length = match head[1] {
            127 => self.0.read_exact(&mut long).map(|()| u64::from_be_bytes(long)),
            126 => self.0.read_exact(&mut long[6..]).map(|()| u64::from_be_bytes(long)),
            short => Ok(short.into()),
        };
        let mut text = vec![0; usize::try_from(length.ok()?).ok()?];
        self.0.read_exact(&mut text).ok()?;
        String::from_utf8(text).ok()
    }

    fn ask(&mut self, text: &str) -> Option<String> {
        self.send(text).ok()?;
        self.receive()
    }
}

/// A scenario with this wheel and these steps.
fn scenario(slots: &str, steps: &str) -> String {
    format!(r#"{{"name":"x","wheel":{{"kind":"hierarchical","slots":{slots}}},"steps":{steps}}}"#)
}

#[test]
fn it_prints_one_address_and_stops_when_asked() {
    for signal in ["-INT", "-TERM"] {
        let demo = Demo::start(&["--port", "0"]);
        assert!(demo.address.starts_with("127.0.0.1:"), "{}", demo.address);
        let page = demo.get("/");
        assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
        assert!(
            page.contains("<!doctype html>")
                && page.contains("content-security-policy: default-src 'none'")
        );
        let (mut session, _) = demo.session();
        assert!(session.ask(&scenario("[20]", "[]")).is_some());
        let (status, rest) = demo.end(signal);
        assert_eq!((status.code(), rest.as_str()), (Some(0), ""), "{signal}");
    }
}

#[test]
fn another_port_is_taken_if_nobody_asked_for_this_one() {
    // At most one of the two can have the default port.
    let (one, two) = (Demo::start(&[]), Demo::start(&[]));
    assert_ne!(one.address, two.address);
    assert!(two.get("/").starts_with("HTTP/1.1 200 OK"));

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (arguments, says) in [
        (vec!["--port", port.as_str()], "cannot listen on 127.0.0.1, port"),
        (vec!["--listen", "192.0.2.1"], "cannot listen on 192.0.2.1, port 7420"),
        (vec!["--port", "70000"], "invalid value '70000'"),
        (vec!["--listen", "nowhere"], "invalid value 'nowhere'"),
    ] {
        let output = command(&arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
        assert!(error.contains(says), "{arguments:?}: {error}");
    }
}

#[test]
fn only_the_page_is_served_and_only_to_its_own() {
    let demo = Demo::start(&["--port", "0"]);
    let with = |line: &str| demo.ask(&format!("GET / HTTP/1.1\r\n{line}\r\n\r\n"));
    assert!(with("Host: localhost").starts_with("HTTP/1.1 200"));
    for (request, code) in [
        (with("Host: example.org"), 403),
        (with("Host: 127.0.0.1.example.org"), 403),
        (with("X: no host"), 403),
        (with("Host: localhost\r\nOrigin: http://example.org"), 403),
        (with("Host: localhost\r\nOrigin: null"), 403),
        (demo.get("/../Cargo.toml"), 404),
        (demo.get("/etc/passwd"), 404),
        (demo.get("/live"), 400),
        (demo.ask("DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n"), 405),
        (demo.ask("nonsense\r\n\r\n"), 400),
        (
            demo.ask(&format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(70_000))),
            431,
        ),
        (
            demo.ask(&format!(
                "GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
                "a".repeat(70_000)
            )),
            431,
        ),
    ] {
        assert!(request.starts_with(&format!("HTTP/1.1 {code}")), "{code}: {request:?}");
    }
    // The body is huge, and the server does not read it.
    let body = "x".repeat(1 << 20);
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1099511627776\r\n\r\n";
    let answer = demo.ask(&format!("{head}{body}"));
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 405"), "{answer}");
    assert!(demo.get("/").starts_with("HTTP/1.1 200 OK"), "still there");
}

#[test]
fn what_is_no_run_is_refused_in_words() {
    let demo = Demo::start(&["--port", "0"]);
    let hashed = r#"{"name":"x","wheel":{"kind":"hashed","slots":[4000000000]},"steps":[]}"#;
    let deep = "[".repeat(500_000);
    let every = scenario(
        "[20]",
        r#"[{"schedule":"A","delay":1,"every":1},{"advance":18446744073709551615}]"#,
    );
    let crowd: Vec<_> = (0..20_001).map(|i| format!(r#"{{"schedule":"{i}","delay":9}}"#)).collect();
    for (text, says) in [
        ("", "the file is empty"),
        ("{", "the text ends in the middle"),
        ("null", "must be an object"),
        (deep.as_str(), "nested too deep"),
        (hashed, "wheel.slots[0]: must be an integer 1 to 1048576"),
        (&scenario("[0]", "[]"), "wheel.slots[0]: must be an integer 2 to"),
        (&scenario("[1048576]", "[]"), "1048576 slots are too many for a page"),
        (&scenario(&format!("{:?}", [2; 100]), "[]"), "100 levels are too many for a page"),
        (&scenario("[20]", r#"[{"expect":{}}]"#), "expectations are for replay"),
        (&every, "more than 100000 events in one go"),
        (&scenario("[20]", &format!("[{}]", crowd.join(","))), "more than 20000 timers"),
    ] {
        let (mut session, _) = demo.session();
        let answer = session.ask(text).unwrap_or_else(|| panic!("no answer to {text:.80}"));
        assert!(answer.contains(says), "{text:.80}: {answer:.400}");
        assert!(answer.contains(r#""over":true"#) && session.receive().is_none(), "and it is over");
    }
    // In a session, an invalid step is refused and the run continues; a jump to the end of time is instant.
    let (mut session, _) = demo.session();
    assert!(session.ask(&scenario("[20]", "[]")).is_some());
    let answer = session.ask(r#"[{"advance":"soon"}]"#).unwrap();
    assert!(answer.contains("steps[0].advance") && answer.contains(r#""over":false"#), "{answer}");
    for drive in [
        r#"[{"schedule":"A","delay":18446744073709551615}]"#,
        r#"[{"advance":18446744073709551615}]"#,
    ] {
        assert!(session.ask(drive).is_some_and(|answer| answer.contains("clock")));
    }
    // A message over the limit ends the session.
    assert!(session.ask(&"x".repeat(2 << 20)).is_none());
    assert!(demo.get("/").starts_with("HTTP/1.1 200 OK"), "still there");
}

#[test]
fn crowds_and_the_slow_are_bounded() {
    let demo = Demo::start(&["--port", "0"]);
    // Thousands of idle connections: the server accepts a limited number.
    let idle: Vec<_> = (0..2_000).filter_map(|_| TcpStream::connect(&demo.address).ok()).collect();
    assert!(idle.len() > MOST_CONNECTIONS);
    let mut last = idle.last().unwrap();
    last.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut text = String::new();
    let _ = last.read_to_string(&mut text);
    assert!(text.is_empty() || text.contains("too many connections"), "{text}");
    drop(idle);
    let began = Instant::now();
    while !demo.get("/").starts_with("HTTP/1.1 200 OK") {
        assert!(began.elapsed() < PATIENCE, "it does not recover");
        std::thread::sleep(Duration::from_millis(100));
    }
    // Fills every session with the largest wheel and the most timers allowed, without reading the answers.
    let steps: Vec<_> =
        (0..20_000).map(|i| format!(r#"{{"schedule":"{i}","delay":{i}}}"#)).collect();
    let large = scenario("[86400,86400,86400]", &format!("[{}]", steps.join(",")));
    let mut sessions = Vec::new();
    for _ in 0..MOST_SESSIONS {
        let (mut session, head) = demo.session();
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        session.send(&large).unwrap();
        sessions.push(session);
    }
    let (_, head) = demo.session();
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    for session in &mut sessions {
        assert!(session.receive().is_some_and(|answer| answer.contains(r#""pending":20000"#)));
    }
    // A client that keeps sending and never reads is disconnected.
    let (first, rest) = sessions.split_first_mut().unwrap();
    first.0.set_write_timeout(Some(Duration::from_secs(15))).unwrap();
    let flood = format!("[{}]", vec![r#"{"cancel":"0"}"#; 30_000].join(","));
    let ended = (0..200).any(|_| first.send(&flood).is_err());
    assert!(ended, "it read 90 MB and was never read");
    assert!(rest[0].ask("[]").is_some(), "the others go on");
    let memory = demo.memory();
    println!("at its peak the server held {memory} MiB");
    assert!(memory < 600, "{memory} MiB");
}
