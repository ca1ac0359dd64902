//! Timers that fire: their cost and their lateness.

use std::thread;
use std::time::{Duration, Instant};

use super::MILLION;
use crate::league::{Readings, Turn};
use crate::rng::Rng;
use crate::system;
use crate::timer::contestant::{Contestant, Seat};
use crate::timer::sink::{self, Tally};

/// The range of the million deadlines.
const SPREAD: Duration = Duration::from_secs(4);
/// A contestant that is later than this has failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// The CPU time of the process per timer, while a million timers fire. The harness sleeps meanwhile.
pub fn cpu<C: Contestant>(_turn: &Turn) -> Result<Readings, String> {
    let contestant = C::new();
    let before = Tally::now();
    let first = Instant::now() + C::LEAD;
    let mut rng = Rng::new(1);
    let mut seat = contestant.sit(0);
    for payload in 0..MILLION as u64 {
        let after = Duration::from_nanos(rng.below(SPREAD.as_nanos() as u64));
        seat.fire_at(first + after, payload);
    }
    seat.settle();
    let begin = system::process_cpu().ok_or("this system does not tell the CPU time")?;
    let early = Tally::now().count - before.count;
    if early > MILLION as u64 / 10 {
        return Err("it took too long to arm".to_owned());
    }
    thread::sleep((first + SPREAD).saturating_duration_since(Instant::now()));
    before.wait(MILLION as u64, PATIENCE)?;
    let end = system::process_cpu().ok_or("this system does not tell the CPU time")?;
    let fired = MILLION as u64 - early;
    Ok(vec![("fire-cpu", (end - begin).as_nanos() as f64 / fired as f64)])
}

/// A deadline every 10 µs; each callback reads the clock.
pub fn lateness<C: Contestant>(turn: &Turn) -> Result<Readings, String> {
    let contestant = C::new();
    let before = Tally::now();
    let timers: u64 = if turn.quick { 100_000 } else { 200_000 };
    let first = Instant::now() + C::LEAD / 2;
    sink::watch_from(first);
    let mut seat = contestant.sit(0);
    for payload in 0..timers {
        seat.fire_at(first + sink::APART * payload as u32, payload);
    }
    thread::sleep((first + sink::APART * timers as u32).saturating_duration_since(Instant::now()));
    let complete = before.wait(timers, PATIENCE);
    let late = sink::watched();
    complete?;
    let early = late.iter().take_while(|&&late| late < 0).count();
    let at = |share: f64| {
        let place = ((late.len() as f64 * share).ceil() as usize).clamp(1, late.len()) - 1;
        late[place] as f64 / 1000.0
    };
    Ok(vec![
        ("late-p50", at(0.5)),
        ("late-p99", at(0.99)),
        ("late-max", at(1.0)),
        ("early-fired", early as f64),
    ])
}
