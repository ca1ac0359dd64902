//! The engine compared with other timer services, in real time, on threads.
//!
//! A contestant is an adapter in `contestants` or a class in `jvm`, a workload a function in `rows`.

mod contestant;
mod contestants;
pub mod rows;
pub mod sink;

use crate::league::{Aim, Column, Contestant, Family, Figure, Kind, Readings, Row, Turn, Unit};
use crate::{counting, jvm};
use rows::{churn, elsewhere, fire, idle, longest, trace, whole};

const fn ns(name: &'static str, title: &'static str) -> Figure {
    Figure::new(name, Unit::Nanoseconds, title)
}

const fn count(name: &'static str, title: &'static str) -> Figure {
    Figure::new(name, Unit::Count, title)
}

const fn longest_of(name: &'static str, title: &'static str) -> Figure {
    Figure::new(name, Unit::Longest, title).aim(|_, _| Some(Aim::AtMost(1000.0)))
}

fn never(_: &str, _: &Column) -> Option<Aim> {
    Some(Aim::AtMost(0.0))
}

fn pair(name: &str, column: &Column) -> Option<Aim> {
    let by_handle = name.contains("handle");
    Some(Aim::Share(match (by_handle, column.threads) {
        (true, 1) => 0.6,
        (true, _) => 0.25,
        (false, 1) => 0.45,
        (false, _) => 0.15,
    }))
}

fn with_floor(kind: Kind, _: &Column) -> bool {
    kind != Kind::Baseline
}

const TRACE: &[Figure] = &[
    count("early", "fired before their deadline"),
    count("late", "fired more than 60 ms after their deadline"),
    count("lost", "never fired"),
    count("ghosts", "fired twice, or after being cancelled"),
];
const PAIR: &[Figure] = &[ns(
    "pair",
    "schedule one, cancel the oldest, nothing fires: ns of wall time for a pair of any thread",
)
.aim(pair)];
const ELSEWHERE: &[Figure] = &[
    ns("elsewhere", "cancel what another thread scheduled, which rests meanwhile, of 1 M: ns")
        .aim(|_, _| Some(Aim::Share(0.5))),
    ns("passed-on", "schedule here, cancel the oldest of 100 k there, at once: ns of wall time")
        .aim(|_, _| Some(Aim::Share(0.5))),
];
const RESCHEDULE: &[Figure] = &[
    ns("moved-later", "move a random one of 1 M later, as a keep-alive does: ns")
        .aim(|_, _| Some(Aim::Share(0.2))),
    ns("moved", "move a random one of 1 M to a random delay, earlier or later: ns")
        .aim(|_, _| Some(Aim::Share(0.2))),
];
const ASLEEP: &[Figure] = &[
    ns("awake", "schedule and cancel timers of 10 ms, the driver awake every 2 ms: ns"),
    ns("asleep", "schedule and cancel timers of 10 ms, the only other timer an hour away: ns"),
    Figure::new("asleep-share", Unit::Times, "the latter divided by the former")
        .aim(|_, _| Some(Aim::AtMost(1.2))),
];
const FIRE: &[Figure] =
    &[ns("fire-cpu", "1 M callbacks over 4 s: CPU ns of the whole process a fired timer")
        .aim(|_, _| Some(Aim::Share(0.3)))];
const IDLE: &[Figure] = &[
    count("idle-switches", "one timer an hour away: wake-ups of all its threads a second")
        .aim(never),
    count("idle-cpu", "one timer an hour away: CPU µs of all its threads a second").aim(never),
];
const LATER: &[Figure] =
    &[count("later-switches", "1 M later timers scheduled while it sleeps: wake-ups").aim(never)];
const LATENESS: &[Figure] = &[
    // The targets: a tick, and a tick plus the time that the system takes to wake a thread.
    Figure::new("late-p50", Unit::Microseconds, "lateness at 100 k a second, half: µs at most")
        .aim(|_, _| Some(Aim::AtMost(1000.0))),
    Figure::new("late-p99", Unit::Microseconds, "lateness at 100 k a second, 99 of 100: µs")
        .aim(|_, _| Some(Aim::AtMost(1300.0))),
    Figure::new("late-max", Unit::Microseconds, "lateness at 100 k a second, the latest: µs"),
    count("early-fired", "of these, fired before their deadline").aim(never),
];
const LONGEST: &[Figure] = &[
    longest_of("longest-schedule", "the longest single schedule while filling: µs"),
    longest_of("longest-cancel", "the longest single cancel of a random timer: µs"),
];
const WHOLE: &[Figure] = &[
    ns("whole-snapshot", "a snapshot of the whole population: ns a timer"),
    ns("whole-pending", "a list of all pending timers: ns a timer"),
    ns("whole-shrink", "shrink: ns a timer"),
    ns("whole-stop", "stop, and hand back all pending timers: ns a timer"),
    longest_of("whole-wait", "the longest schedule + cancel of another thread meanwhile: µs"),
    longest_of("longest-turn", "the longest pass of a driver while all are due: µs"),
];

const ROWS: &[Row] = &[
    Row::new("trace", TRACE).rounds(1, 1),
    Row::new("pair", PAIR).timers(&[100_000, 1_000_000], &[1_000_000]).threads(&[1, 2]),
    Row::new("elsewhere", ELSEWHERE).rounds(3, 0),
    Row::new("reschedule", RESCHEDULE).admits(with_floor),
    Row::new("asleep", ASLEEP).rounds(3, 0),
    Row::new("fire", FIRE).rounds(2, 1).admits(with_floor),
    // All contestants at once: the counts do not vary, and sleeping threads do not disturb each other.
    Row::new("idle", IDLE).rounds(1, 1).at_once(),
    Row::new("later", LATER).rounds(1, 0),
    Row::new("lateness", LATENESS).rounds(2, 1),
    Row::new("longest", LONGEST).timers(&[1_000_000, 10_000_000], &[1_000_000]),
    Row::new("whole", WHOLE)
        .timers(&[1_000_000, 10_000_000], &[1_000_000])
        .admits(|kind, _| kind == Kind::Ours),
];

pub fn family() -> Family {
    let mut contestants = contestants::all();
    contestants.extend(jvm::contestants());
    Family {
        name: "timer",
        about: "real time, payload u64; threads that measure are pinned, the contestants' own are not",
        reference: Some("tokio"),
        rows: ROWS,
        contestants,
    }
}

fn of<C: contestant::Contestant>() -> Contestant {
    Contestant {
        name: C::NAME,
        kind: C::KIND,
        settings: C::SETTINGS,
        run: run::<C>,
        absent: |row, _| match row {
            "whole" => (C::NAME != "tourbillon key").then_some(""),
            _ => C::absent(row),
        },
        missing: |_| None,
    }
}

fn run<C: contestant::Contestant>(turn: &Turn) -> Result<Readings, String> {
    counting::stop();
    match turn.row.as_str() {
        "trace" => Ok(trace::replay::<C>(turn)),
        "pair" => Ok(churn::pair::<C>(turn)),
        "elsewhere" => Ok(elsewhere::both::<C>(turn)),
        "reschedule" => Ok(churn::reschedule::<C>(turn)),
        "asleep" => Ok(churn::short::<C>(turn)),
        "fire" => fire::cpu::<C>(turn),
        "idle" => idle::rest::<C>(turn),
        "later" => idle::later::<C>(turn),
        "lateness" => fire::lateness::<C>(turn),
        "longest" => Ok(longest::calls::<C>(turn)),
        "whole" => whole::verbs(turn),
        other => Err(format!("there is no row {other}")),
    }
}
