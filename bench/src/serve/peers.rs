//! The peers, each as a separate server at its durable settings: fsync before every acknowledgement.
//!
//! | peer | how |
//! |---|---|
//! | beanstalkd | `-f 0`; all in memory, with a log |
//! | Redis | a sorted set with `appendfsync always`, the usual home-made delay queue; all in memory, with a log |
//! | PostgreSQL | graphile-worker's functions called by pgbench, and its own worker; settings as installed |

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::postgres::{Database, graphile};
use super::{Run, hammer, text};
use crate::durable::place::Store;

/// A peer, and our target relative to it.
pub(super) struct Peer {
    pub(super) name: &'static str,
    /// The required ratio of our speed to the peer's.
    ///
    /// `None` for peers that keep all data in memory: their figures are only printed.
    pub(super) target: Option<f64>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Beanstalkd,
    Redis,
    Postgres,
}

pub(super) const ALL: &[Peer] = &[
    Peer { name: "beanstalkd", target: None, kind: Kind::Beanstalkd },
    Peer { name: "Redis", target: None, kind: Kind::Redis },
    Peer { name: "graphile-worker", target: Some(2.0), kind: Kind::Postgres },
];

/// A running peer.
pub(super) struct Running {
    kind: Kind,
    process: Option<Child>,
    address: String,
    /// The folder of graphile-worker, and the database.
    postgres: Option<(PathBuf, Database)>,
    _store: Store,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

const PAYLOAD: [u8; 100] = [b'x'; 100];

impl Peer {
    pub(super) fn start(&self, run: &Run<'_>) -> Result<Running, String> {
        let store = run.place.next()?;
        let port = free_port()?;
        let address = format!("127.0.0.1:{port}");
        let (kind, path) = (self.kind, store.path().to_owned());
        let mut command = match kind {
            Kind::Postgres => {
                let tool = graphile(run.install)?;
                let database = Database::start(&path, port)?;
                let schema = Command::new(tool.join("node_modules/.bin/graphile-worker"))
                    .args(["--schema-only", "-c", &database.url])
                    .output()
                    .map_err(text)?;
                if !schema.status.success() {
                    return Err(String::from_utf8_lossy(&schema.stderr).trim().to_owned());
                }
                let postgres = Some((tool, database));
                return Ok(Running { kind, process: None, address, postgres, _store: store });
            }
            Kind::Beanstalkd => {
                let mut command = Command::new(found("beanstalkd", "beanstalkd", run.install)?);
                let port = port.to_string();
                command.args(["-l", "127.0.0.1", "-p", &port, "-f", "0", "-b"]).arg(&path);
                command
            }
            Kind::Redis => {
                let mut command = Command::new(found("redis-server", "redis-server", run.install)?);
                command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
                command
                    .args(["--appendonly", "yes", "--appendfsync", "always", "--dir"])
                    .arg(&path);
                command
            }
        };
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(text)?;
        let running =
            Running { kind, process: Some(process), address, postgres: None, _store: store };
        let begin = Instant::now();
        while TcpStream::connect(&running.address).is_err() {
            if begin.elapsed() > Duration::from_secs(10) {
                return Err("it does not start".to_owned());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(running)
    }
}

impl Running {
    /// The rate at which the connections schedule timers in batches, an hour ahead.
    pub(super) fn schedule(
        &self,
        connections: usize,
        length: Duration,
        batch: usize,
    ) -> Result<f64, String> {
        if let Some((_, database)) = &self.postgres {
            let job = "select count(graphile_worker.add_job('nothing', \
                json_build_object('p', repeat('x', 88)), run_at := now() + interval '1 hour'))";
            let script = format!("{job} from generate_series(1, {batch});");
            let transactions = database.pgbench(connections, length, &script)?;
            return Ok(transactions * batch as f64);
        }
        hammer(
            connections,
            length,
            || Wire::open(self.kind, &self.address),
            |wire| {
                wire.put(batch, 3600)?;
                Ok(batch)
            },
        )
    }

    /// Timers per second that one client receives and acknowledges in batches of 100.
    pub(super) fn receive(&self, count: usize) -> Result<f64, String> {
        if let Some((tool, database)) = &self.postgres {
            return database.work(tool, count);
        }
        let mut wire = Wire::open(self.kind, &self.address)?;
        for _ in 0..count / 100 {
            wire.put(100, 0)?;
        }
        let begin = Instant::now();
        for _ in 0..count / 100 {
            wire.take(100)?;
        }
        Ok(count as f64 / begin.elapsed().as_secs_f64())
    }
}

/// A connection to a peer with a line-based protocol.
struct Wire {
    kind: Kind,
    stream: BufReader<TcpStream>,
    next: u64,
}

impl Wire {
    fn open(kind: Kind, address: &str) -> Result<Self, String> {
        let stream = TcpStream::connect(address).map_err(text)?;
        stream.set_nodelay(true).map_err(text)?;
        stream.set_read_timeout(Some(Duration::from_secs(30))).map_err(text)?;
        let port = stream.local_addr().map_err(text)?.port();
        Ok(Wire { kind, stream: BufReader::new(stream), next: u64::from(port) << 40 })
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream.get_mut().write_all(bytes).map_err(text)
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).map_err(text)?;
        if line.is_empty() || line.starts_with('-') {
            return Err(format!("it answered {line:?}"));
        }
        Ok(line.trim_end().to_owned())
    }

    /// Schedules `batch` timers in one request, due after `seconds`.
    fn put(&mut self, batch: usize, seconds: u64) -> Result<(), String> {
        let mut bytes = Vec::new();
        let score = (super::client::wall_micros() / 1_000_000) as u64 + seconds;
        for _ in 0..batch {
            match self.kind {
                Kind::Beanstalkd => {
                    bytes.extend(format!("put 0 {seconds} 60 100\r\n").bytes());
                    bytes.extend(PAYLOAD);
                    bytes.extend(b"\r\n");
                }
                _ => {
                    self.next += 1;
                    let member = format!("{:020}{}", self.next, "x".repeat(80));
                    bytes.extend(resp(&["ZADD", "timers", &score.to_string(), &member]));
                }
            }
        }
        self.send(&bytes)?;
        for _ in 0..batch {
            let answer = self.line()?;
            if self.kind == Kind::Beanstalkd && !answer.starts_with("INSERTED") {
                return Err(format!("it answered {answer}"));
            }
        }
        Ok(())
    }

    /// Receives up to `batch` due timers and acknowledges them.
    fn take(&mut self, batch: usize) -> Result<(), String> {
        match self.kind {
            Kind::Beanstalkd => {
                self.send("reserve-with-timeout 5\r\n".repeat(batch).as_bytes())?;
                let mut deletes = String::new();
                for _ in 0..batch {
                    let answer = self.line()?;
                    let id =
                        answer.strip_prefix("RESERVED ").and_then(|rest| rest.split(' ').next());
                    let id = id.ok_or_else(|| format!("it answered {answer}"))?;
                    deletes.push_str(&format!("delete {id}\r\n"));
                    self.stream.read_exact(&mut [0; 102]).map_err(text)?;
                }
                self.send(deletes.as_bytes())?;
                (0..batch).try_for_each(|_| self.line().map(drop))
            }
            _ => {
                let limit = batch.to_string();
                let range = ["ZRANGEBYSCORE", "timers", "-inf", "+inf", "LIMIT", "0", &limit];
                self.send(&resp(&range))?;
                let count: usize = self.line()?.trim_start_matches('*').parse().map_err(text)?;
                let mut remove = vec!["ZREM".to_owned(), "timers".to_owned()];
                for _ in 0..count {
                    self.line()?;
                    remove.push(self.line()?);
                }
                let remove: Vec<&str> = remove.iter().map(String::as_str).collect();
                self.send(&resp(&remove))?;
                self.line().map(drop)
            }
        }
    }
}

/// A command in the protocol of Redis.
fn resp(words: &[&str]) -> Vec<u8> {
    let words: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    let count = words.matches('$').count();
    format!("*{count}\r\n{words}").into_bytes()
}

fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(text)?;
    Ok(listener.local_addr().map_err(text)?.port())
}

/// The path of a program, which is installed from its Debian package if requested.
fn found(program: &str, package: &str, install: bool) -> Result<PathBuf, String> {
    let find = || {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let mut folders: Vec<PathBuf> = std::env::split_paths(&paths).collect();
        folders.push(PathBuf::from("/usr/sbin"));
        folders.into_iter().map(|folder| folder.join(program)).find(|path| path.is_file())
    };
    if find().is_none() && install {
        let mut apt = Command::new("apt-get");
        apt.args(["-qq", "install", "--yes", "--no-install-recommends", package]);
        // Keeps the package's own service from starting: it would take the port and the processor.
        let policy = apt.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
        let _ = policy.stdout(Stdio::null()).status();
    }
    find().ok_or_else(|| format!("{program} is not installed (--install-peers)"))
}
