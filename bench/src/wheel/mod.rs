//! The wheels: all contestants under virtual time, in milliseconds, with a payload of a `u32`.
//!
//! A contestant is an adapter in `contestants`, a workload a function in `ops`; `load` generates the input, `trace`
//! checks correctness.

mod contestant;
mod contestants;
mod driving;
mod huge;
pub mod load;
mod ops;
mod trace;

pub use driving::family as driving;

use crate::league::{Column, Family, Figure, Kind, Readings, Row, Turn, Unit};
use crate::{counting, machine};
use contestant::Contestant;
use load::{Load, Spread};

const ALL: &[usize] = &[1000, 10_000, 100_000, 1_000_000, 10_000_000];
const SOME: &[usize] = &[10_000, 1_000_000];
/// The population that is all in one slot of an upper level.
const CROWD: &[usize] = &[1_000_000];

const fn ns(name: &'static str, title: &'static str) -> Figure {
    Figure::new(name, Unit::Nanoseconds, title)
}

const fn longest(name: &'static str, title: &'static str) -> Figure {
    Figure::new(name, Unit::Longest, title)
}

const fn bytes(name: &'static str, title: &'static str) -> Figure {
    Figure::new(name, Unit::Bytes, title)
}

/// Includes the baselines, for populations that they can finish.
fn with_baselines(kind: Kind, column: &Column) -> bool {
    match kind {
        Kind::Floor => false,
        Kind::Baseline => column.timers <= 10_000,
        Kind::Ours | Kind::Peer => true,
    }
}

fn with_floor(kind: Kind, column: &Column) -> bool {
    kind == Kind::Floor || with_baselines(kind, column)
}

const fn row(name: &'static str, figures: &'static [Figure]) -> Row {
    Row::new(name, figures)
        .timers(ALL, SOME)
        .variants(&["60 s"])
        .rounds(3, 1)
        .admits(with_baselines)
}

/// A row with delays log-uniform from 1 ms to a day.
const fn log(name: &'static str, figures: &'static [Figure]) -> Row {
    row(name, figures).variants(&["log"]).timers(SOME, SOME).rounds(2, 0)
}

const START: &[Figure] = &[ns("start", "start a timer, from empty, no capacity hint: ns")];
const RANDOM: &[Figure] = &[ns("random", "cancel + start of a random timer: ns for the pair")];
const IN_ORDER: &[Figure] =
    &[ns("in-order", "cancel + start in arrival order, the oldest first: ns for the pair")];
const RESCHEDULE: &[Figure] = &[ns("reschedule", "reschedule a random timer later: ns")];
const CANCEL: &[Figure] = &[ns("cancel", "cancel a random timer, the keys streamed: ns")];
const LIFE: &[Figure] = &[ns(
    "life",
    "whole life, start to fire: ns a timer (ms by ms for 60 s, then from deadline to deadline)",
)];
const LONGEST: &[Figure] = &[longest("longest", "longest single advance of a whole life: µs")];
const POLL: &[Figure] = &[
    ns("poll", "nothing-due poll: ns to advance by 1 ms"),
    ns("bound", "a lower bound of the next due time, asked after that: ns"),
];
const NEXT: &[Figure] = &[
    ns(
        "next-exact",
        "1 M in one upper slot: cancel the earliest, then the exact next due time: ns",
    ),
    ns("next-bound", "1 M in one upper slot: cancel the earliest, then a lower bound: ns"),
];
const PAUSE: &[Figure] = &[
    longest("pause-advance", "1 M in one upper slot: longest advance, no budget: µs"),
    longest("pause-slice", "1 M in one upper slot: longest call with a budget of 1000: µs"),
    longest("pause-cancel", "1 M in one upper slot: longest cancel of nine in ten: µs"),
];
const MEMORY: &[Figure] = &[
    bytes("filled", "memory: bytes a timer when filled"),
    bytes("filled-peak", "memory: bytes a timer at the peak while filling"),
    bytes("churned", "memory: bytes a timer after 10 operations a timer, moves both ways"),
    bytes("churned-peak", "memory: bytes a timer at the peak of that churn"),
    Figure::new("churned-dead", Unit::Times, "memory: dead entries a timer after that churn"),
];
const TRACE: &[Figure] = &[
    Figure::new("early", Unit::Count, "fired before their deadline"),
    Figure::new("late", Unit::Count, "fired more than a tick after their deadline"),
    Figure::new("lost", Unit::Count, "never fired"),
    Figure::new("ghosts", Unit::Count, "fired twice, or after being cancelled"),
    Figure::new("panics", Unit::Count, "traces that ended in a panic"),
];

const ROWS: &[Row] = &[
    Row::new("trace", TRACE).rounds(1, 1),
    row("start", START),
    log("start-log", START),
    row("random", RANDOM).admits(with_floor),
    log("random-log", RANDOM),
    row("in-order", IN_ORDER).admits(with_floor),
    log("in-order-log", IN_ORDER),
    row("reschedule", RESCHEDULE).admits(with_floor),
    log("reschedule-log", RESCHEDULE),
    row("cancel", CANCEL).admits(with_floor),
    row("life", LIFE),
    log("life-log", LIFE),
    row("longest", LONGEST).timers(SOME, SOME),
    log("longest-log", LONGEST),
    row("poll", POLL).timers(SOME, SOME),
    row("next", NEXT).variants(&["one slot"]).timers(CROWD, CROWD).rounds(3, 0),
    row("pause", PAUSE).variants(&["one slot"]).timers(CROWD, CROWD).rounds(3, 0),
    row("memory", MEMORY).timers(&[10_000, 100_000, 1_000_000], SOME).rounds(1, 1),
    row("huge", huge::FIGURES)
        .timers(&[100_000_000], &[100_000_000])
        .rounds(1, 1)
        .admits(|kind, _| kind == Kind::Ours)
        .optional(),
];

pub fn family() -> Family {
    Family {
        name: "wheel",
        about: "virtual time, tick 1 ms, payload u32, one pinned thread; delays uniform over 60 s, or log-uniform \
                from 1 ms to a day",
        reference: None,
        rows: ROWS,
        contestants: contestants::all(),
    }
}

fn load(column: &Column) -> Load {
    let spread = match column.variant.as_str() {
        "log" => Spread::Log,
        "one slot" => Spread::Crowd,
        _ => Spread::Uniform,
    };
    Load::new(spread, column.timers)
}

fn run<C: Contestant>(turn: &Turn) -> Result<Readings, String> {
    if !matches!(turn.row.as_str(), "memory" | "huge") {
        counting::stop();
    }
    machine::pin_thread(0);
    let op = match turn.row.as_str() {
        "trace" => return Ok(trace::replay::<C>().readings()),
        "huge" => return huge::run(C::NAME),
        "start" | "start-log" => ops::churn::start::<C>,
        "random" | "random-log" => ops::churn::random::<C>,
        "in-order" | "in-order-log" => ops::churn::in_order::<C>,
        "reschedule" | "reschedule-log" => ops::churn::reschedule::<C>,
        "cancel" => ops::churn::cancel::<C>,
        "life" | "life-log" => ops::life::whole::<C>,
        "poll" => ops::life::poll::<C>,
        "longest" | "longest-log" => ops::life::longest::<C>,
        "next" => ops::crowd::next::<C>,
        "pause" => ops::crowd::pause::<C>,
        "memory" => ops::memory::bytes::<C>,
        other => return Err(format!("there is no row {other}")),
    };
    Ok(op(&load(&turn.column)))
}

/// One cache line per timer, read, modified and written.
fn floor(turn: &Turn) -> Result<Readings, String> {
    counting::stop();
    machine::pin_thread(0);
    let load = load(&turn.column);
    let in_order: Vec<u32> = (0..load.population as u32).collect();
    Ok(match turn.row.as_str() {
        "in-order" => vec![("in-order", machine::floor(&load, &in_order))],
        "random" => vec![("random", machine::floor(&load, load.permutation()))],
        "reschedule" => vec![("reschedule", machine::floor(&load, load.permutation()))],
        _ => vec![("cancel", machine::floor(&load, load.permutation()))],
    })
}
