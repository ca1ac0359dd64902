//! Two tables that explain the family: what each way of driving a wheel costs while little happens, and what
//! a crowd in one slot costs a hashed wheel that a hierarchical one does not pay.

use std::hint::black_box;
use std::time::Instant;

use tourbillon_wheel::{HashedWheel, HierarchicalWheel, Kind, Progress, Time, Wheel};

use crate::table::Table;

/// An hour of ticks.
const HOUR: u64 = 3_600_000;
/// The slots of the crowded ring, and the turns that are made.
const RING: u32 = 512;
const TURNS: u64 = 20;

#[derive(Clone, Debug, serde::Serialize)]
pub struct Driven {
    pub wheel: &'static str,
    pub timers: usize,
    pub drive: &'static str,
    pub wakes: u64,
    pub ns: f64,
}

#[derive(Clone, Debug, serde::Serialize)]
pub struct Crowded {
    pub wheel: &'static str,
    pub timers: usize,
    pub ns_a_tick: f64,
    pub longest_tick_ns: f64,
}

/// Both tables.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Family {
    pub idle_hour: Vec<Driven>,
    pub one_slot: Vec<Crowded>,
}

pub fn run() -> Family {
    let mut family = Family { idle_hour: Vec::new(), one_slot: Vec::new() };
    for timers in [1, 100] {
        idle(&mut family.idle_hour, "hierarchical", timers, || HierarchicalWheel::new(Time::ZERO));
        idle(&mut family.idle_hour, "hashed, 512 slots", timers, || HashedWheel::new(Time::ZERO));
    }
    for timers in [1000, 10_000, 100_000] {
        family.one_slot.push(crowd("hierarchical", timers, || HierarchicalWheel::new(Time::ZERO)));
        family.one_slot.push(crowd("hashed, 512 slots", timers, ring));
    }
    family
}

fn ring() -> HashedWheel<u32> {
    HashedWheel::with_slots(Time::ZERO, 1, RING).expect("a valid number of slots")
}

/// When to wake next.
type Drive<K> = fn(&mut Wheel<u32, K>) -> Option<Time>;

/// An hour with its timers evenly spread, the last at its end, driven in the three ways.
fn idle<K: Kind>(
    rows: &mut Vec<Driven>,
    wheel: &'static str,
    timers: usize,
    new: impl Fn() -> Wheel<u32, K>,
) {
    let by_tick = |wheel: &mut Wheel<u32, K>| Some(wheel.now() + 1);
    let drives: [(&'static str, Drive<K>); 3] =
        [("tick", by_tick), ("slot", |wheel| wheel.next_slot()), ("due", |wheel| wheel.next_due())];
    for (drive, next) in drives {
        let mut timed = new();
        for payload in 0..timers as u64 {
            let due = Time::new(HOUR / timers as u64 * (payload + 1));
            timed.insert(due, payload as u32).expect("memory");
        }
        let mut wakes = 0;
        let begin = Instant::now();
        while !timed.is_empty() {
            let Some(now) = next(&mut timed) else { break };
            advance(&mut timed, now);
            wakes += 1;
        }
        rows.push(Driven { wheel, timers, drive, wakes, ns: begin.elapsed().as_nanos() as f64 });
    }
}

/// Timers that share a slot of the ring, one due in each turn.
fn crowd<K: Kind>(name: &'static str, timers: usize, new: impl Fn() -> Wheel<u32, K>) -> Crowded {
    let filled = || {
        let mut wheel = new();
        for round in 0..timers as u64 {
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
    // Again for the longest, because reading the clock at each tick costs more than most ticks.
    let mut wheel = filled();
    let mut longest = 0.0_f64;
    for now in 1..=ticks {
        let begin = Instant::now();
        advance(&mut wheel, Time::new(now));
        longest = longest.max(begin.elapsed().as_nanos() as f64);
    }
    Crowded { wheel: name, timers, ns_a_tick: spent / ticks as f64, longest_tick_ns: longest }
}

fn advance<K: Kind>(wheel: &mut Wheel<u32, K>, now: Time) {
    while wheel.advance(now, usize::MAX) != Progress::Done {}
    while let Some(expired) = wheel.pop() {
        black_box(expired.value);
    }
}

impl Family {
    pub fn print(&self) {
        let header = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let title = "an hour with few timers, driven by tick, by slot and by due time";
        let mut table =
            Table::new(title, header(&["wheel", "timers", "drive", "wakes", "ns for the hour"]));
        for row in &self.idle_hour {
            let Driven { wheel, timers, drive, wakes, ns } = row;
            let figures =
                [timers.to_string(), (*drive).to_owned(), wakes.to_string(), format!("{ns:.0}")];
            table.row([(*wheel).to_owned()].into_iter().chain(figures).collect(), "");
        }
        table.print();
        let title =
            "timers that share one slot of a ring of 512, one due in each turn: cost over 20 turns";
        let mut table = Table::new(title, header(&["wheel", "timers", "ns a tick", "longest, µs"]));
        for row in &self.one_slot {
            let figures = [
                row.timers.to_string(),
                format!("{:.1}", row.ns_a_tick),
                format!("{:.1}", row.longest_tick_ns / 1000.0),
            ];
            table.row([row.wheel.to_owned()].into_iter().chain(figures).collect(), "");
        }
        table.print();
    }
}
