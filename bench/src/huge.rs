//! One hundred million timers in one hierarchical wheel, pre-sized: what it holds and what each verb costs.

use std::hint::black_box;
use std::time::Instant;

use tourbillon_wheel::{HierarchicalWheel, Key, Progress, Time};

use crate::counting;
use crate::load::STEPPED;
use crate::rng::Rng;
use crate::table::Table;

const TIMERS: u32 = 100_000_000;
/// Operations of each churn.
const OPERATIONS: usize = 10_000_000;
/// Timers made ready before they are popped.
const BATCH: usize = 1024;

#[derive(Clone, Debug, serde::Serialize)]
pub struct Huge {
    pub timers: u32,
    /// Bytes once pre-sized and filled, after the churns, and the most at any time.
    pub filled_bytes: usize,
    pub churned_bytes: usize,
    pub peak_bytes: usize,
    /// ns each.
    pub start: f64,
    pub cancel_start_in_order: f64,
    pub cancel_start_random: f64,
    pub reschedule_later: f64,
    pub cancel_random: f64,
    pub fire: f64,
}

/// Delays uniform over 60 s, as in the other tables.
pub fn run() -> Huge {
    let mut rng = Rng::new(100);
    let mut delay = || Time::new(1 + rng.below(STEPPED));
    let delays: Vec<Time> = (0..OPERATIONS).map(|_| delay()).collect();
    let mut rng = Rng::new(101);
    let picks: Vec<u32> = (0..OPERATIONS).map(|_| rng.below(TIMERS.into()) as u32).collect();
    let mut keys: Vec<Key> = Vec::with_capacity(TIMERS as usize);
    let mut later: Vec<(Key, Time)> = Vec::with_capacity(OPERATIONS);

    // What the harness needs it has by now: the rest is the wheel's.
    let before = counting::mark();
    let mut wheel = HierarchicalWheel::new(Time::ZERO);
    wheel.reserve(TIMERS as usize).expect("memory for a hundred million timers");
    let start = timed(TIMERS as usize, || {
        keys.extend(
            (0..TIMERS)
                .zip(delays.iter().cycle())
                .map(|(payload, &due)| insert(&mut wheel, due, payload)),
        );
    });
    let filled_bytes = counting::live() - before;

    let cancel_start_in_order = timed(OPERATIONS, || {
        for (timer, &due) in delays.iter().rev().enumerate() {
            black_box(wheel.cancel(keys[timer]));
            keys[timer] = insert(&mut wheel, due, timer as u32);
        }
    });
    let cancel_start_random = timed(OPERATIONS, || {
        for (&timer, &due) in picks.iter().zip(&delays) {
            let key = &mut keys[timer as usize];
            black_box(wheel.cancel(*key));
            *key = insert(&mut wheel, due, timer);
        }
    });
    let churned_bytes = counting::live() - before;
    later.extend(picks.iter().map(|&timer| (keys[timer as usize], Time::new(2 * STEPPED))));
    let reschedule_later = timed(OPERATIONS, || {
        for &(key, due) in &later {
            wheel.reschedule(key, due).expect("a pending timer");
        }
    });
    let cancel_random = timed(OPERATIONS, || {
        for &(key, _) in &later {
            black_box(wheel.cancel(key));
        }
    });
    let pending = wheel.len();
    let fire = timed(pending, || (1..=2 * STEPPED).for_each(|now| advance(&mut wheel, now)));
    assert!(wheel.is_empty(), "a timer was lost");
    let peak_bytes = counting::peak() - before;
    Huge {
        timers: TIMERS,
        filled_bytes,
        churned_bytes,
        peak_bytes,
        start,
        cancel_start_in_order,
        cancel_start_random,
        reschedule_later,
        cancel_random,
        fire,
    }
}

fn insert(wheel: &mut HierarchicalWheel<u32>, due: Time, payload: u32) -> Key {
    wheel.insert(due, payload).expect("memory")
}

fn advance(wheel: &mut HierarchicalWheel<u32>, now: u64) {
    loop {
        let progress = wheel.advance(Time::new(now), BATCH);
        while let Some(expired) = wheel.pop() {
            black_box(expired.value);
        }
        if progress == Progress::Done {
            return;
        }
    }
}

/// Nanoseconds an operation.
fn timed(operations: usize, work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_nanos() as f64 / operations as f64
}

impl Huge {
    pub fn print(&self) {
        let gib = |bytes: usize| format!("{:.2} GiB", bytes as f64 / f64::from(1 << 30));
        let ns = |ns: f64| format!("{ns:.0} ns");
        let title =
            "one hundred million timers in one hierarchical wheel, pre-sized, uniform over 60 s";
        let mut table = Table::new(title, vec![String::new(), String::new()]);
        let rows = [
            ("memory when filled", gib(self.filled_bytes)),
            ("memory after the churns", gib(self.churned_bytes)),
            ("memory at the peak", gib(self.peak_bytes)),
            ("start", ns(self.start)),
            ("cancel+start in arrival order", ns(self.cancel_start_in_order)),
            ("cancel+start of a random timer", ns(self.cancel_start_random)),
            ("reschedule a random timer later, keys streamed", ns(self.reschedule_later)),
            ("cancel a random timer, keys streamed", ns(self.cancel_random)),
            ("fire, ms by ms, what was moved included", ns(self.fire)),
        ];
        for (name, figure) in rows {
            table.row(vec![name.to_owned(), figure], "");
        }
        table.print();
    }
}
