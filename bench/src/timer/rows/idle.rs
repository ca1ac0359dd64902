//! Idle contestants: how often their threads wake up nevertheless.

use std::thread;
use std::time::{Duration, Instant};

use super::{Delays, MILLION};
use crate::league::{Readings, Turn};
use crate::system::{Threads, Used};
use crate::timer::contestant::{Contestant, Seat};

/// The time after which a contestant is at rest.
const CALM: Duration = Duration::from_millis(200);
const UNTOLD: &str = "this system does not tell the switches of threads";

/// One timer, due in an hour.
pub fn rest<C: Contestant>(turn: &Turn) -> Result<Readings, String> {
    let watched = Duration::from_secs(if turn.quick { 2 } else { 10 });
    let others = Threads::all();
    let contestant = C::new();
    let mut seat = contestant.sit(0);
    seat.fire_at(Instant::now() + Duration::from_secs(3600), 0);
    seat.settle();
    let (before, after) = watch(&others, || thread::sleep(watched)).ok_or(UNTOLD)?;
    Ok(vec![
        ("idle-switches", (after.switches - before.switches) as f64 / watched.as_secs_f64()),
        ("idle-cpu", (after.cpu - before.cpu).as_nanos() as f64 / 1000.0 / watched.as_secs_f64()),
    ])
}

/// The first timer is the earliest, so later timers need not wake the contestant's threads.
pub fn later<C: Contestant>(_turn: &Turn) -> Result<Readings, String> {
    let others = Threads::all();
    let contestant = C::new();
    let mut seat = contestant.sit(0);
    let first = seat.schedule(Duration::from_secs(59), 0);
    seat.settle();
    let mut delays = Delays::new(0);
    let mut pending = Vec::with_capacity(MILLION + 1);
    pending.push(first);
    let arm_all =
        || pending.extend((0..MILLION).map(|timer| seat.schedule(delays.next(), timer as u64)));
    let (before, after) = watch(&others, arm_all).ok_or(UNTOLD)?;
    Ok(vec![("later-switches", (after.switches - before.switches) as f64)])
}

/// The usage of the contestant's threads (all except `others`) before and after `happens`.
fn watch(others: &Threads, happens: impl FnOnce()) -> Option<(Used, Used)> {
    thread::sleep(CALM);
    let threads = others.started_since();
    let before = threads.used()?;
    happens();
    Some((before, threads.used()?))
}
