//! Advancing time: whole lives, steps without due timers, and the longest step.

use std::hint::black_box;
use std::time::Instant;

use super::{close, nanos};
use crate::league::Readings;
use crate::wheel::contestant::{Contestant, Next};
use crate::wheel::load::{Load, QUIET};

/// Counts fired timers, so that nothing is optimised away and no timer is lost unnoticed.
#[derive(Default)]
struct Tally {
    fired: usize,
    sum: u64,
}

impl Tally {
    #[inline]
    fn add(&mut self, payload: u32) {
        self.fired += 1;
        self.sum += u64::from(black_box(payload));
    }

    /// # Panics
    ///
    /// If not every timer of the load has fired exactly once.
    fn check(&self, load: &Load, name: &str) {
        let all = load.population;
        assert_eq!(
            (self.fired, self.sum),
            (all, (all as u64 - 1) * all as u64 / 2),
            "{name} lost timers"
        );
    }
}

fn forgotten<C: Contestant>(load: &Load) -> C {
    let mut timers = C::new(load.population);
    for (payload, &due) in load.dues.iter().enumerate() {
        timers.start_forgotten(due.into(), payload as u32);
    }
    timers
}

pub fn whole<C: Contestant>(load: &Load) -> Readings {
    let steps = load.steps();
    let repeats = load.repeats().min(2);
    let mut spent = 0.0;
    for _ in 0..repeats {
        let mut tally = Tally::default();
        let begin = Instant::now();
        let mut timers = forgotten::<C>(load);
        timers.advance_through(steps, &mut |payload| tally.add(payload));
        spent += nanos(begin);
        tally.check(load, C::NAME);
    }
    vec![("life", spent / (repeats * load.population) as f64)]
}

pub fn longest<C: Contestant>(load: &Load) -> Readings {
    let mut tally = Tally::default();
    let mut timers = forgotten::<C>(load);
    let mut longest = 0.0_f64;
    for &now in load.steps() {
        let begin = Instant::now();
        timers.advance(now, &mut |payload| tally.add(payload));
        longest = longest.max(nanos(begin));
    }
    tally.check(load, C::NAME);
    vec![("longest", longest / 1000.0)]
}

pub fn poll<C: Contestant>(load: &Load) -> Readings {
    let mut timers = C::new(load.population);
    let mut keys = Vec::with_capacity(load.population);
    for (payload, &due) in load.dues.iter().enumerate() {
        keys.push(Some(timers.start(QUIET + u64::from(due), payload as u32)));
    }
    let mut tally = Tally::default();
    // Half of the quiet range, so that no contestant is near its end. The first steps only warm up.
    let moments: Vec<u64> = (1..QUIET / 2).collect();
    let (warm, counted) = moments.split_at(moments.len() / 4);
    timers.advance_through(warm, &mut |payload| tally.add(payload));
    let begin = Instant::now();
    timers.advance_through(black_box(counted), &mut |payload| tally.add(payload));
    let spent = nanos(begin);
    assert_eq!(tally.fired, 0, "{} fired early", C::NAME);
    let mut readings = vec![("poll", spent / counted.len() as f64)];
    if timers.next_bound() != Next::Cannot {
        let begin = Instant::now();
        for _ in counted {
            black_box(black_box(&mut timers).next_bound());
        }
        readings.push(("bound", nanos(begin) / counted.len() as f64));
    }
    close(timers, keys);
    readings
}
