//! A server at rest: ten million far timers, and one an hour away.

use std::thread;
use std::time::{Duration, Instant};

use super::Run;
use super::client::{PAYLOAD, moment, wall_micros};
use super::server::Server;
use crate::durable::line::Lines;

pub(super) fn pending(run: &Run<'_>) -> Result<Lines, String> {
    let mut lines = Lines::new("10 M pending far timers");
    let count: i64 = if run.quick { 100_000 } else { 10_000_000 };
    let server = run.server(&[])?;
    let mut client = server.client()?;
    let (begin, now) = (Instant::now(), wall_micros() / 1000);
    for first in (0..count).step_by(10_000) {
        // Spread over a month, the first an hour ahead.
        let due = |nth: i64| now + 3_600_000 + nth * 7_919 % 2_592_000 * 1000;
        let timer = |nth| format!(r#"{{"at":"{}","payload":{PAYLOAD}}}"#, moment(due(nth)));
        let timers: Vec<String> = (first..first + 10_000).map(timer).collect();
        client.post("timers", &format!(r#"{{"timers":[{}]}}"#, timers.join(",")))?;
    }
    let rate = count as f64 / begin.elapsed().as_secs_f64();
    let full = server.memory();
    let store = server.kill()?;
    let server = Server::start(&run.program, store, &[])?;
    let shown = server.client()?.ask("GET", "/v1/queues/q", "")?;
    if !shown.contains(&format!(r#""scheduled":{count}"#)) {
        return Err(format!("after kill -9 there are not {count}: {shown}"));
    }
    thread::sleep(Duration::from_secs(1));
    lines.say("timers", count as f64, "");
    lines.say("scheduled by one client, batches of 10 k", rate, "/s");
    lines.at_most("memory when all are scheduled", full, "MiB", 300.0);
    lines.at_most("memory after kill -9 and a start", server.memory(), "MiB", 300.0);
    lines.at_most("ready after kill -9", server.ready.as_secs_f64(), "s", 5.0);
    Ok(lines)
}

pub(super) fn idle(run: &Run<'_>) -> Result<Lines, String> {
    let mut lines = Lines::new("idle, one timer an hour away, no connection");
    let server = run.server(&[])?;
    server.client()?.post("timers", r#"{"in":"1h"}"#)?;
    // Lets the work left over from the start finish.
    thread::sleep(Duration::from_secs(2));
    let length = Duration::from_secs(if run.quick { 5 } else { 30 });
    let before = server.used()?;
    thread::sleep(length);
    let after = server.used()?;
    lines.say("watched for", length.as_secs_f64(), "s");
    lines.at_most("wake-ups", (after.switches - before.switches) as f64, "", 0.0);
    lines.at_most("CPU time", (after.cpu - before.cpu).as_secs_f64() * 1e6, "µs", 0.0);
    Ok(lines)
}
