//! Half a million timers that are due in the same second.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use tourbillon_durable::Limits;

use super::face::{Face, text, wall_micros};
use super::line::Lines;
use super::place::memory;
use super::{BATCH, Run, Timer};
use crate::rng::Rng;

const TAKERS: usize = 4;

/// Runs with the defaults, then without a target and with a window too small for them: half a million take 175 MiB.
pub(super) fn run(run: &Run<'_>) -> Result<Lines, String> {
    let mut lines = Lines::new("500 k due in the same second");
    let narrow = Limits { window_bytes: 64 << 20, ..Limits::default() };
    once(run, Limits::default(), "defaults", Some(2.0), &mut lines)?;
    once(run, narrow, "a window of 64 MiB", None, &mut lines)?;
    Ok(lines)
}

fn once(
    run: &Run<'_>,
    limits: Limits,
    name: &str,
    target: Option<f64>,
    lines: &mut Lines,
) -> Result<(), String> {
    let count = if run.quick { 10_000 } else { 500_000 };
    let store = run.place.next()?;
    let face = Face::with(store.path(), limits)?;
    // Late enough for all to be scheduled before, even at only 20 k per second.
    let second = (wall_micros() as u64 / 1_000_000 + 5 + count / 20_000) * 1000;
    let mut rng = Rng::new(4);
    let mut left = count;
    while left > 0 {
        let one = |_| Timer { generation: 0, due: second + rng.below(1000), key: None }.timer();
        let batch: Vec<_> = (0..left.min(BATCH as u64)).map(one).collect();
        left -= batch.len() as u64;
        face.schedule(batch)?;
    }
    let ready = second as f64 / 1e3 - wall_micros() as f64 / 1e6;
    let (delivered, last, early) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let held = Mutex::new(Vec::new());
    let take = || {
        let end = second as i64 * 1000 + 60_000_000;
        while delivered.load(Relaxed) < count && wall_micros() < end {
            let received = face.queue.receive(10_000, Duration::from_secs(1)).wait();
            let (at, received) = (wall_micros(), received.map_err(text)?);
            if received.is_empty() {
                continue;
            }
            let is_early = |one: &&_| at < due(one) * 1000;
            early.fetch_add(received.iter().filter(is_early).count() as u64, Relaxed);
            last.fetch_max(at as u64, Relaxed);
            delivered.fetch_add(received.len() as u64, Relaxed);
            held.lock().map_err(text)?.extend(received);
        }
        Ok::<(), String>(())
    };
    thread::scope(|scope| {
        let takers: Vec<_> = (0..TAKERS).map(|_| scope.spawn(take)).collect();
        let joined = takers.into_iter().map(|taker| taker.join().map_err(|_| "a panic")?);
        joined.collect::<Result<(), String>>()
    })?;
    let resident = memory().0;
    let spent = (last.into_inner() as f64 / 1e3 - second as f64) / 1e3;
    // Acknowledged after the last delivery, because acknowledging is not part of this row.
    held.into_inner().map_err(text)?.into_iter().for_each(|one| drop(one.ack()));
    lines.say(format!("{name}: scheduled before that second"), ready, "s");
    let missing = (count - delivered.into_inner().min(count)) as f64;
    lines.at_most(format!("{name}: not delivered"), missing, "", 0.0);
    lines.at_most(format!("{name}: early"), early.into_inner() as f64, "", 0.0);
    let what = format!("{name}: last delivery after the second began");
    match target {
        Some(target) => lines.at_most(what, spent, "s", target),
        None => lines.say(what, spent, "s"),
    }
    lines.say(format!("{name}: memory when all are out"), resident, "MiB");
    Ok(())
}

fn due(delivery: &tourbillon_durable::Delivery) -> i64 {
    delivery.due().millis() as i64
}
