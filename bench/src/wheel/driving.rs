//! The cost of each way of driving a wheel with few timers, and the extra cost of a crowded slot in a hashed wheel
//! compared with a hierarchical one.

use std::hint::black_box;
use std::time::Instant;

use tourbillon_wheel::{
    Hashed, HashedWheel, Hierarchical, HierarchicalWheel, Kind as Rings, Progress, Time, Wheel,
};

use crate::league::{Column, Contestant, Family, Figure, Kind, Readings, Row, Turn, Unit};
use crate::{counting, machine};

/// An hour in ticks.
const HOUR: u64 = 3_600_000;
/// The number of slots of the crowded ring, and of its turns.
const RING: u32 = 512;
const TURNS: u64 = 20;

const ROWS: &[Row] = &[
    Row::new(
        "idle-hour",
        &[
            Figure::new("wakes", Unit::Count, "an hour with few timers: wake-ups"),
            Figure::new("hour", Unit::Nanoseconds, "an hour with few timers: ns for the hour"),
        ],
    )
    .timers(&[1, 100], &[1, 100]),
    Row::new(
        "one-slot",
        &[
            Figure::new(
                "tick",
                Unit::Nanoseconds,
                "timers that share one slot of a ring of 512, one due in each turn: ns a tick",
            ),
            Figure::new(
                "longest-tick",
                Unit::Longest,
                "timers that share one slot of a ring of 512: the longest tick, µs",
            ),
        ],
    )
    .timers(&[1000, 10_000, 100_000], &[1000, 10_000]),
];

/// The drives, by the moment at which the driver wakes next.
const TICK: u8 = 0;
const SLOT: u8 = 1;
const DUE: u8 = 2;

pub fn family() -> Family {
    Family {
        name: "driving",
        about: "how a wheel is driven: by tick, by slot, by due time; virtual time, tick 1 ms",
        reference: None,
        rows: ROWS,
        contestants: vec![
            of("hierarchical, by tick", run::<Hierarchical, TICK>, |_, _| None),
            of("hierarchical, by slot", run::<Hierarchical, SLOT>, only_idle),
            of("hierarchical, by due time", run::<Hierarchical, DUE>, only_idle),
            of("hashed 512, by tick", run::<Hashed, TICK>, |_, _| None),
            of("hashed 512, by slot", run::<Hashed, SLOT>, only_idle),
            of("hashed 512, by due time", run::<Hashed, DUE>, only_idle),
        ],
    }
}

type Absent = fn(&str, &Column) -> Option<&'static str>;

fn only_idle(row: &str, _: &Column) -> Option<&'static str> {
    (row == "one-slot").then_some("")
}

fn of(
    name: &'static str,
    run: fn(&Turn) -> Result<Readings, String>,
    absent: Absent,
) -> Contestant {
    let settings = "the wheel of this repository";
    Contestant { name, kind: Kind::Ours, settings, run, absent, missing: |_| None }
}

trait Build: Rings + Sized {
    fn build() -> Wheel<u32, Self>;
}

impl Build for Hierarchical {
    fn build() -> Wheel<u32, Self> {
        HierarchicalWheel::new(Time::ZERO)
    }
}

impl Build for Hashed {
    fn build() -> Wheel<u32, Self> {
        HashedWheel::with_slots(Time::ZERO, 1, RING).expect("a valid number of slots")
    }
}

fn run<K: Build, const DRIVE: u8>(turn: &Turn) -> Result<Readings, String> {
    counting::stop();
    machine::pin_thread(0);
    let timers = turn.column.timers as u64;
    Ok(if turn.row == "idle-hour" { idle::<K, DRIVE>(timers) } else { crowd::<K>(timers) })
}

/// Runs an hour with evenly spread timers, the last one at its end.
fn idle<K: Build, const DRIVE: u8>(timers: u64) -> Readings {
    let mut wheel = K::build();
    for payload in 0..timers {
        let due = Time::new(HOUR / timers * (payload + 1));
        wheel.insert(due, payload as u32).expect("memory");
    }
    let mut wakes = 0.0;
    let begin = Instant::now();
    while !wheel.is_empty() {
        let next = match DRIVE {
            TICK => Some(wheel.now() + 1),
            SLOT => wheel.next_slot(),
            _ => wheel.next_due(),
        };
        let Some(now) = next else { break };
        advance(&mut wheel, now);
        wakes += 1.0;
    }
    vec![("wakes", wakes), ("hour", begin.elapsed().as_nanos() as f64)]
}

/// Runs with timers that share a slot of the ring, one due in each turn.
fn crowd<K: Build>(timers: u64) -> Readings {
    let filled = || {
        let mut wheel = K::build();
        for round in 0..timers {
            let due = u64::from(RING) * (1 + round) + 7;
            wheel.insert(Time::new(due), round as u32).expect("memory");
        }
        wheel
    };
    let ticks = u64::from(RING) * TURNS;
    let mut wheel = filled();
    let begin = Instant::now();
    (1..=ticks).for_each(|now| advance(&mut wheel, Time::new(now)));
    let spent = begin.elapsed().as_nanos() as f64;
    // The longest tick is measured in a second run, because reading the clock costs more than most ticks.
    let mut wheel = filled();
    let mut longest = 0.0_f64;
    for now in 1..=ticks {
        let begin = Instant::now();
        advance(&mut wheel, Time::new(now));
        longest = longest.max(begin.elapsed().as_nanos() as f64);
    }
    vec![("tick", spent / ticks as f64), ("longest-tick", longest / 1000.0)]
}

fn advance<K: Rings>(wheel: &mut Wheel<u32, K>, now: Time) {
    while wheel.advance(now, usize::MAX) != Progress::Done {}
    while let Some(expired) = wheel.pop() {
        black_box(expired.value);
    }
}
