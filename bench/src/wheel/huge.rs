//! A hundred million timers in one pre-sized hierarchical wheel: its memory, and the cost of each operation.

use std::hint::black_box;
use std::time::Instant;

use tourbillon_wheel::{HierarchicalWheel, Key, Progress, Time};

use crate::counting;
use crate::league::{Figure, Readings, Unit};
use crate::rng::Rng;
use crate::wheel::load::STEPPED;

/// The only contestant.
const HIERARCHICAL: &str = "tourbillon hierarchical";
const TIMERS: u32 = 100_000_000;
/// The number of operations of each churn.
const OPERATIONS: usize = 10_000_000;
/// The number of timers made ready before they are popped.
const BATCH: usize = 1024;

pub const FIGURES: &[Figure] = &[
    Figure::new("huge-filled", Unit::Bytes, "100 M timers: bytes a timer when filled"),
    Figure::new("huge-churned", Unit::Bytes, "100 M timers: bytes a timer after the churns"),
    Figure::new("huge-peak", Unit::Bytes, "100 M timers: bytes a timer at the peak"),
    Figure::new("huge-start", Unit::Nanoseconds, "100 M timers: start one: ns"),
    Figure::new("huge-in-order", Unit::Nanoseconds, "100 M timers: cancel + start in order: ns"),
    Figure::new("huge-random", Unit::Nanoseconds, "100 M timers: cancel + start at random: ns"),
    Figure::new("huge-reschedule", Unit::Nanoseconds, "100 M timers: reschedule later: ns"),
    Figure::new("huge-cancel", Unit::Nanoseconds, "100 M timers: cancel at random: ns"),
    Figure::new("huge-fire", Unit::Nanoseconds, "100 M timers: fire, ms by ms: ns"),
];

/// Runs with delays uniform over 60 s, as in the other tables.
pub fn run(contestant: &str) -> Result<Readings, String> {
    if contestant != HIERARCHICAL {
        return Err(format!("for {HIERARCHICAL} alone"));
    }
    let mut rng = Rng::new(100);
    let mut delay = || Time::new(1 + rng.below(STEPPED));
    let delays: Vec<Time> = (0..OPERATIONS).map(|_| delay()).collect();
    let mut rng = Rng::new(101);
    let picks: Vec<u32> = (0..OPERATIONS).map(|_| rng.below(TIMERS.into()) as u32).collect();
    let mut keys: Vec<Key> = Vec::with_capacity(TIMERS as usize);
    let mut later: Vec<(Key, Time)> = Vec::with_capacity(OPERATIONS);

    // The harness has allocated its own memory: the rest is the wheel's.
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
    let each = |bytes: usize| bytes as f64 / f64::from(TIMERS);
    Ok(vec![
        ("huge-filled", each(filled_bytes)),
        ("huge-churned", each(churned_bytes)),
        ("huge-peak", each(peak_bytes)),
        ("huge-start", start),
        ("huge-in-order", cancel_start_in_order),
        ("huge-random", cancel_start_random),
        ("huge-reschedule", reschedule_later),
        ("huge-cancel", cancel_random),
        ("huge-fire", fire),
    ])
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

/// Nanoseconds per operation.
fn timed(operations: usize, work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_nanos() as f64 / operations as f64
}
