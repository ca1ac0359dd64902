//! One timer an hour away, and nothing to do.

use std::thread;
use std::time::Duration;

use super::Run;
use super::face::Face;
use super::line::Lines;
use super::{Timer, now};
use crate::system::Threads;

pub(super) fn run(run: &Run<'_>) -> Result<Lines, String> {
    let mut lines = Lines::new("idle, one timer an hour away");
    let store = run.place.next()?;
    let before = Threads::all();
    let face = Face::open(store.path())?;
    face.schedule(vec![Timer { generation: 0, due: now() + 3_600_000, key: None }.timer()])?;
    // Lets the work left over from the start finish.
    thread::sleep(Duration::from_secs(1));
    let threads = before.started_since();
    let used = || threads.used().ok_or("this system does not tell what threads use");
    let (began, wrote) = (used()?, written());
    let length = Duration::from_secs(if run.quick { 2 } else { 30 });
    thread::sleep(length);
    let (ended, written) = (used()?, written());
    lines.say("watched for", length.as_secs_f64(), "s");
    lines.at_most("wake-ups", (ended.switches - began.switches) as f64, "", 0.0);
    lines.at_most("CPU time", (ended.cpu - began.cpu).as_secs_f64() * 1e6, "µs", 0.0);
    lines.at_most("bytes written", (written - wrote) as f64, "B", 0.0);
    drop(face);
    Ok(lines)
}

/// Bytes that this process has written, to any file.
fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let field = |name: &str| {
        let line = io.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    field("wchar:").unwrap_or(0) + field("write_bytes:").unwrap_or(0)
}
