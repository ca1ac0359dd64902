//! A server process, and a minimal client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(20);

/// A directory that is removed on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("tourbillon-serve-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Scratch(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The command to serve a directory on any port.
pub(crate) fn command(data: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tourbillon"));
    command.args(["serve", "--data"]).arg(data);
    if !arguments.contains(&"--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A running server, killed on drop.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    /// How long it took to start.
    pub(crate) started: Duration,
}

impl Server {
    pub(crate) fn start(data: &Path, arguments: &[&str]) -> Self {
        let mut command = command(data, arguments);
        command.stderr(Stdio::null());
        Server::of(command)
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let began = Instant::now();
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let line = line.replace("https://", "http://");
        let address = line.strip_prefix("tourbillon listening on http://");
        let address = address.and_then(|address| address.strip_suffix('\n'));
        let address = address.unwrap_or_else(|| panic!("{line:?} is no address")).to_owned();
        Server { child, address, started: began.elapsed() }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The status and the JSON of an answer.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        try_ask(&self.address, method, path, body).expect("an answer")
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn send(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{signal}"), &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Sends a signal and waits for the end. Returns the exit status.
    pub(crate) fn signal(&mut self, name: &str) -> ExitStatus {
        self.send(name);
        self.child.wait().unwrap()
    }

    pub(crate) fn end_and_read_log(&mut self) -> String {
        self.signal("TERM");
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        log
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// As [`Server::ask`]; `None` if the server is gone.
pub(crate) fn try_ask(address: &str, method: &str, path: &str, body: &str) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{kind}Content-Length: {length}\r\n\r\n\
         {body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, serde_json::from_str(body).ok()?))
}

/// Reads the head of a request.
pub(crate) fn read_head(stream: &mut TcpStream) -> String {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut head, mut lines) = (String::new(), BufReader::new(stream));
    while !head.ends_with("\r\n\r\n") && lines.read_line(&mut head).unwrap() > 0 {}
    head
}
