//! Any duration, for every verb that takes one: zero and a nanosecond fire with the first advance and not before; a
//! timer that is centuries away does not fire, can be cancelled, and delays no stop. None panics.
//!
//! The rows on the system's clocks take real time, a millisecond each.
//!
//! The rows are in `callbacks.rs`, `futures.rs` and `limits.rs`. A verb of `api.txt` that mentions time and has no row
//! fails here.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use crate::bench::{AtOnce, Bench, CENTURY, NS, Row, Span, Whose};
use crate::common::{MS, accounted, case, eventually};
use crate::{callbacks, futures, limits};

/// One tick longer than the shortest duration, and one equal to it.
const VIRTUAL: &[(Whose, Duration)] = &[(Whose::Virtual, MS), (Whose::Virtual, NS)];
const REAL: &[(Whose, Duration)] = &[(Whose::System, MS), (Whose::Boot, MS)];

fn rows() -> impl Iterator<Item = &'static Row> {
    callbacks::ROWS.iter().chain(futures::ROWS)
}

/// Runs the body for every row and duration, each on an engine of its own, which is checked at the end.
fn for_all(engines: &[(Whose, Duration)], far: &[bool], body: fn(&Row, &Bench, &Span)) {
    for row in rows() {
        for &(whose, tick) in engines {
            for length in 0..Span::real().len() {
                let bench = Bench::new(whose, tick);
                let span = bench.spans()[length];
                if !far.contains(&span.far) {
                    continue;
                }
                let name = format!("{}, {}, {whose:?}, a tick of {tick:?}", row.verb, span.name);
                case(name, move || {
                    body(row, &bench, &span);
                    accounted(&bench.timer);
                    assert_eq!(bench.timer.counts().panicked, 0);
                });
            }
        }
    }
}

#[test]
fn nothing_and_a_nanosecond_fire_with_the_first_advance_and_not_before() {
    for_all(VIRTUAL, &[false], |row, bench, span| {
        let mut armed = (row.arm)(bench, span);
        let fired = (armed.fired)();
        let may = match row.at_once {
            AtOnce::No => !fired,
            AtOnce::Yes => fired == span.is_over(),
            AtOnce::OnATick => !fired || span.is_over(),
        };
        assert!(may, "before time has passed: {fired}");
        if !fired && !span.is_over() {
            bench.clock.advance(Duration::ZERO).unwrap();
            assert!(!(armed.fired)(), "an advance by nothing is not a nanosecond");
        }
        if !fired {
            bench.clock.advance(bench.tick * row.ticks).unwrap();
            assert!((armed.fired)(), "less than a tick late");
        }
        (armed.cancel)();
        assert!((armed.stop)());
    });
}

#[test]
fn what_is_centuries_away_does_not_fire_and_can_be_taken_back() {
    for_all(VIRTUAL, &[true], |row, bench, span| {
        let mut armed = (row.arm)(bench, span);
        assert!(!(armed.fired)(), "at once");
        bench.clock.advance(CENTURY).unwrap();
        assert!(!(armed.fired)(), "within a century");
        let now = bench.clock.now();
        assert!(bench.timer.pending().iter().all(|timer| timer.deadline > now), "{span:?}");
        assert!((armed.cancel)(), "it was pending");
        assert!(!(armed.fired)(), "taken back");
        assert!(bench.timer.is_empty());
    });
}

#[test]
fn what_is_centuries_away_holds_up_no_stop() {
    for_all(VIRTUAL, &[true], |row, bench, span| {
        let mut armed = (row.arm)(bench, span);
        assert!(!(armed.fired)(), "at once");
        bench.clock.advance(CENTURY).unwrap();
        assert!((armed.stop)(), "it was handed back");
        bench.clock.advance(CENTURY).unwrap();
        assert!(!(armed.fired)(), "after the stop");
    });
}

/// On the system's clocks the test can only tell what must have fired, not what must not have fired yet.
#[test]
fn by_the_clocks_of_the_system_too() {
    for_all(REAL, &[false, true], |row, bench, span| {
        let mut armed = (row.arm)(bench, span);
        if span.far {
            assert!(!(armed.fired)(), "at once");
            thread::sleep(MS);
            assert!(!(armed.fired)() && (armed.cancel)(), "it was pending");
            armed = (row.arm)(bench, span);
            (armed.fired)();
        } else {
            eventually(|| (armed.fired)());
            (armed.cancel)();
        }
        assert!((armed.stop)());
    });
}

/// Items of the API that mention time and need no row, because they do not take one.
const GIVE: &[&str] = &[
    "Context::deadline",
    "Context::lateness",
    "Context::wall_deadline",
    "DelayQueue::deadline",
    "DelayQueue::next_deadline",
    "DelayQueue::now",
    "Driver::timeout",
    "Engine::deadline",
    "Engine::now",
    "Expired::deadline",
    "Fired::deadline",
    "Instant::checked_duration_since",
    "Instant::duration_since",
    "Instant::elapsed",
    "Instant::from_std",
    "Instant::into_std",
    "Instant::now",
    "Instant::saturating_duration_since",
    "Interval::period",
    "Interval::poll_tick",
    "Interval::tick",
    "KeyedTimer::deadline",
    "Lateness::buckets",
    "Lateness::max",
    "Lateness::quantile",
    "Pending::deadline",
    "ShardView::hand",
    "Sleep::deadline",
    "Timeout::deadline",
    "Timeout::remaining",
    "Timeout::wall_deadline",
    "Timer::deadline",
    "Timer::now",
    "Timer::wall_now",
    "Turn::next",
    "Unfired::deadline",
    "VirtualClock::elapsed",
    "VirtualClock::now",
    "VirtualClock::wall_now",
];

#[test]
fn every_verb_of_the_listing_that_takes_a_time_has_a_row() {
    let (mut takes, mut gives) = (BTreeSet::new(), BTreeSet::new());
    for line in include_str!("../api.txt").lines().filter(|line| speaks_of_time(line)) {
        // A type or an implementation is not a verb.
        if line.starts_with("impl") || line.starts_with("#[") || line.contains(": pub use ") {
            continue;
        }
        let parameters = line.split_once('(').map_or("", |(_, rest)| rest);
        let parameters = parameters.split(" -> ").next().unwrap_or_default();
        let all = if speaks_of_time(parameters) { &mut takes } else { &mut gives };
        all.insert(name(line));
    }
    // The user's own clock returns a time to the engine, so the engine takes one.
    gives.remove("Clock::now");
    takes.insert("Clock::now".to_owned());
    let rows = rows().map(|row| row.verb).chain(limits::ROWS.iter().map(|(verb, _)| *verb));
    let rows: BTreeSet<String> =
        rows.map(|verb| verb.split(' ').next().unwrap_or_default().to_owned()).collect();
    assert_eq!(rows, takes, "the rows on the left, the verbs of api.txt on the right");
    let listed: BTreeSet<String> = GIVE.iter().map(|&verb| verb.to_owned()).collect();
    assert_eq!(listed, gives, "those that only give a time");
}

fn speaks_of_time(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|word| ["Duration", "Instant", "SystemTime"].contains(&word))
}

/// The verb of a line, such as `Timer::schedule`. A free function belongs to `tasks`.
fn name(line: &str) -> String {
    let (owner, part) = match line.split_once(": ") {
        Some((owner, part)) if !owner.contains(' ') => (owner, part),
        _ => ("tasks", line),
    };
    let words = ["pub ", "async ", "fn "];
    let part = words.iter().fold(part, |part, word| part.strip_prefix(word).unwrap_or(part));
    let end = part.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(part.len());
    format!("{owner}::{}", &part[..end])
}
