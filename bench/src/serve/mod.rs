//! `bench serve`: the server over HTTP on loopback, on a real disk. The server is a separate process and the clients
//! are in this one. Every change is synced before it is acknowledged. Payloads have 100 bytes.
//!
//! | file | owns |
//! |---|---|
//! | `server.rs` | the process of the server, and its use of resources |
//! | `client.rs` | a connection to it |
//! | `rows.rs` | scheduling and receiving |
//! | `flow.rs` | timers that become due: steady, a crowd, webhooks |
//! | `rest.rs` | ten million pending, and an idle server |
//! | `peers.rs`, `postgres.rs` | the peers, at their durable settings |

mod client;
mod flow;
mod peers;
mod postgres;
mod rest;
mod rows;
mod server;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde::Serialize;

use crate::cli::{Serve, asked};
use crate::durable::line::{Line, Lines};
use crate::durable::place::Place;
use crate::machine::{self, Machine};
use crate::{counting, create, write};
use server::Server;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Row {
    /// 64 connections, one timer a request
    Schedule,
    /// 64 connections, batches of 100
    Batches,
    /// One timer after the other on an idle server
    Single,
    /// Receive and acknowledge, batches of 100
    Receive,
    /// 5 k a second scheduled, due and acknowledged
    Steady,
    /// 100 k due in the same second, 8 consumers
    Crowd,
    /// Webhooks to a fast receiver
    Webhooks,
    /// 10 M far timers: memory, ready after kill -9
    Pending,
    /// One timer an hour away: wake-ups and CPU time
    Idle,
}

/// The parameters of a row.
struct Run<'a> {
    place: &'a Place,
    quick: bool,
    program: PathBuf,
    install: bool,
}

impl Run<'_> {
    /// How long to measure a rate.
    fn length(&self) -> Duration {
        Duration::from_secs(if self.quick { 3 } else { 10 })
    }

    fn server(&self, arguments: &[&str]) -> Result<Server, String> {
        Server::start(&self.program, self.place.next()?, arguments)
    }
}

/// Runs the requested rows, prints the results, and writes them to a file if requested.
///
/// # Errors
///
/// The file, the directory or the server has failed.
pub fn run(options: &Serve) -> Result<(), String> {
    let file = create(options.json.as_deref())?;
    counting::stop();
    let beside = std::env::current_exe().ok().map(|path| path.with_file_name("tourbillon"));
    let program = options.server.clone().or(beside).filter(|path| path.is_file());
    let program =
        program.ok_or("there is no server: cargo build --release -p tourbillon-cli makes it")?;
    let machine = machine::describe();
    let place = Place::new(options.directory.as_deref())?;
    let (quick, install) = (options.quick, options.install_peers);
    let run = Run { place: &place, quick, program, install };
    let Machine { cpu, cores, memory_gib, .. } = &machine;
    println!("{cpu}, {cores} cores, {memory_gib:.1} GiB; server and clients share them");
    println!("  fdatasync of a page, p50: {:.0} µs", place.fdatasync()?);
    let begin = Instant::now();
    let mut lines = Vec::new();
    for row in asked(&options.rows) {
        let measured = match row {
            Row::Schedule => rows::schedule(&run, 1)?,
            Row::Batches => rows::schedule(&run, 100)?,
            Row::Single => rows::single(&run)?,
            Row::Receive => rows::receive(&run)?,
            Row::Steady => flow::steady(&run)?,
            Row::Crowd => flow::crowd(&run)?,
            Row::Webhooks => flow::webhooks(&run)?,
            Row::Pending => rest::pending(&run)?,
            Row::Idle => rest::idle(&run)?,
        };
        measured.print();
        lines.extend(measured.lines);
    }
    let missed = lines.iter().filter(|line| line.is_missed()).count();
    println!("\n{missed} targets missed; {:.0} s", begin.elapsed().as_secs_f64());
    drop(place);
    write(file, &Report { machine, quick, lines })
}

#[derive(Serialize)]
struct Report {
    machine: Machine,
    quick: bool,
    lines: Vec<Line>,
}

/// The work that `threads` threads do per second, each with a connection of its own.
///
/// `open` makes a connection; `work` does some work and returns how much.
fn hammer<C>(
    threads: usize,
    length: Duration,
    open: impl Fn() -> Result<C, String> + Sync,
    work: impl Fn(&mut C) -> Result<usize, String> + Sync,
) -> Result<f64, String> {
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let one = || {
        let mut connection = open()?;
        while !stop.load(Relaxed) {
            done.fetch_add(work(&mut connection)? as u64, Relaxed);
        }
        Ok::<(), String>(())
    };
    let begin = Instant::now();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        while begin.elapsed() < length && !threads.iter().any(|thread| thread.is_finished()) {
            thread::sleep(Duration::from_millis(5));
        }
        stop.store(true, Relaxed);
        let joined = threads.into_iter().map(|thread| thread.join().map_err(|_| "a panic")?);
        joined.collect::<Result<(), String>>()
    })?;
    Ok(done.load(Relaxed) as f64 / begin.elapsed().as_secs_f64())
}

/// Adds our speed relative to a peer's to the lines, or why the peer was not measured.
fn beside(
    lines: &mut Lines,
    peer: &str,
    ours: f64,
    theirs: Result<f64, String>,
    target: Option<f64>,
) {
    match (theirs, target) {
        (Err(why), _) => lines.remark(format!("{peer}: not measured: {why}")),
        (Ok(theirs), None) => lines.say(peer, theirs, "/s"),
        (Ok(theirs), Some(target)) => {
            lines.say(peer, theirs, "/s");
            lines.at_least(format!("tourbillon / {peer}"), ours / theirs, "", target);
        }
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
