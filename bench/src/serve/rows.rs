//! Scheduling and receiving, compared with writing the same records directly to redb, and with peers.

use std::time::Instant;

use super::client::{Client, PAYLOAD};
use super::peers;
use super::{Run, beside, hammer};
use crate::durable::line::Lines;
use crate::durable::{Timer, compare, raw};
use crate::results::Summary;

const CONNECTIONS: usize = 64;

/// A request body with `batch` timers, an hour ahead.
fn body(batch: usize) -> String {
    let timer = format!(r#"{{"in":"1h","payload":{PAYLOAD}}}"#);
    match batch {
        1 => timer,
        _ => format!(r#"{{"timers":[{}]}}"#, vec![timer; batch].join(",")),
    }
}

pub(super) fn schedule(run: &Run<'_>, batch: usize) -> Result<Lines, String> {
    let mut lines = Lines::new(match batch {
        1 => "schedule, 64 connections, one timer a request",
        _ => "schedule, 64 connections, batches of 100",
    });
    let server = run.server(&[])?;
    let body = body(batch);
    let post = |client: &mut Client| client.post("timers", &body).map(|_| batch);
    let ours = hammer(CONNECTIONS, run.length(), || server.client(), post)?;
    drop(server);
    let store = run.place.next()?;
    let redb = compare::grouped(raw::open(store.path())?, run.length(), batch)?;
    lines.say("tourbillon", ours, "/s");
    lines.say("redb in this process, with the same group commit", redb, "/s");
    lines.at_least("tourbillon / redb", ours / redb, "", 0.5);
    for peer in peers::ALL {
        let rate = peer.start(run).and_then(|peer| peer.schedule(CONNECTIONS, run.length(), batch));
        beside(&mut lines, peer.name, ours, rate, peer.target);
    }
    Ok(lines)
}

pub(super) fn single(run: &Run<'_>) -> Result<Lines, String> {
    let mut lines = Lines::new("one synchronous schedule on an idle server, p50");
    let count = if run.quick { 300 } else { 1000 };
    let server = run.server(&[])?;
    let (mut client, body) = (server.client()?, body(1));
    let mut samples = Vec::new();
    for _ in 0..count {
        let begin = Instant::now();
        client.post("timers", &body)?;
        samples.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    let ours = Summary::of(&samples).median;
    drop(server);
    let store = run.place.next()?;
    let mut redb = raw::open(store.path())?;
    let mut samples = Vec::new();
    for generation in 0..count {
        let spent = redb.store(&records(generation, 1))?;
        samples.push(spent.as_secs_f64() * 1e3);
    }
    let commit = Summary::of(&samples).median;
    lines.say("redb's commit", commit, "ms");
    lines.at_most("tourbillon, at most 1.2 × that + 0.3 ms", ours, "ms", 1.2 * commit + 0.3);
    Ok(lines)
}

/// The same records, for redb.
fn records(first: u64, count: u64) -> Vec<Timer> {
    let due = super::client::wall_micros() as u64 / 1000 + 3_600_000;
    (first..first + count).map(|generation| Timer { generation, due, key: None }).collect()
}

pub(super) fn receive(run: &Run<'_>) -> Result<Lines, String> {
    let mut lines = Lines::new("receive and acknowledge, batches of 100");
    let count = if run.quick { 50_000 } else { 200_000 };
    let server = run.server(&[])?;
    let mut client = server.client()?;
    let timer = format!(r#"{{"in":"0s","payload":{PAYLOAD}}}"#);
    let body = format!(r#"{{"timers":[{}]}}"#, vec![timer; 1000].join(","));
    for _ in 0..count / 1000 {
        client.post("timers", &body)?;
    }
    let begin = Instant::now();
    let mut taken = 0;
    while taken < count {
        match client.take(100, "1s")?.len() {
            0 => return Err(format!("{taken} of {count} were received")),
            more => taken += more,
        }
    }
    let ours = count as f64 / begin.elapsed().as_secs_f64();
    drop(server);
    let store = run.place.next()?;
    let mut redb = raw::open(store.path())?;
    let begin = Instant::now();
    let mut stored = 0;
    while begin.elapsed() < run.length() {
        redb.store(&records(stored, 100))?;
        stored += 100;
    }
    let redb = stored as f64 / begin.elapsed().as_secs_f64();
    lines.say("tourbillon, one client", ours, "/s");
    lines.say("redb stores them, batches of 100", redb, "/s");
    lines.at_least("tourbillon / redb", ours / redb, "", 0.4);
    for peer in peers::ALL {
        let rate = peer.start(run).and_then(|peer| peer.receive(count / 10));
        beside(&mut lines, peer.name, ours, rate, peer.target);
    }
    Ok(lines)
}
