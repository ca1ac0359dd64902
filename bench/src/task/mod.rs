//! Sleeps and timeouts of tasks, compared with other timers for async code, in real time.
//!
//! A contestant is an adapter in `contestants`, a workload a function in `rows`.
//!
//! tokio's alternative timer is not a contestant: it requires `--cfg tokio_unstable` for the whole build.

mod contestant;
mod contestants;
mod memory;
#[cfg(feature = "peers")]
mod peers;
mod rows;

use crate::counting;
use crate::league::{Aim, Column, Contestant, Family, Figure, Kind, Readings, Row, Turn, Unit};

const fn ns(name: &'static str, title: &'static str) -> Figure {
    Figure::new(name, Unit::Nanoseconds, title)
}

fn with_floor(kind: Kind, _: &Column) -> bool {
    kind != Kind::Baseline
}

fn half(_: &str, _: &Column) -> Option<Aim> {
    Some(Aim::Share(0.5))
}

const TRACE: &[Figure] = &[
    Figure::new("early", Unit::Count, "ended before their deadline"),
    Figure::new("late", Unit::Count, "ended more than 60 ms after their deadline"),
    Figure::new("lost", Unit::Count, "never ended"),
    Figure::new("ghosts", Unit::Count, "ended twice, or after being dropped"),
];
const CHURN: &[Figure] = &[ns(
    "churn",
    "create a sleep, poll it once, drop the oldest of 1 M: ns of wall time for all three",
)
.aim(|_, column| Some(Aim::Share(if column.threads == 1 { 0.5 } else { 0.2 })))];
const READY: &[Figure] = &[
    ns("ready", "a timeout around a future that is ready at once, polled: ns"),
    // One reading of the clock, and the time to store it.
    Figure::new(
        "ready-clocks",
        Unit::Times,
        "the same, in readings of the clock above a bare poll",
    )
    .aim(|_, _| Some(Aim::AtMost(1.25))),
];
const RESET: &[Figure] = &[
    ns("reset", "reset a random one of 1 M to later, its task waits on: ns").aim(half),
    ns("reset-polled", "reset a random one of 1 M to later, and poll it: ns").aim(half),
];
const ON_TOKIO: &[Figure] = &[ns(
    "fire-on-tokio",
    "1 M tasks sleep over 4 s, tokio's executor: CPU ns of the process a task, from armed to ended",
)
.aim(|_, _| Some(Aim::Share(0.7)))];
const ON_SMOL: &[Figure] = &[ns(
    "fire-on-smol",
    "1 M tasks sleep over 4 s, smol's executor on two threads: CPU ns of the process a task",
)
.aim(|_, _| Some(Aim::Share(0.7)))];
const LATER: &[Figure] =
    &[Figure::new("later-switches", Unit::Count, "1 M later sleeps armed: wake-ups")
        .aim(|_, _| Some(Aim::AtMost(0.0)))];

const ROWS: &[Row] = &[
    Row::new("trace", TRACE).rounds(1, 1),
    Row::new("churn", CHURN).timers(&[1_000_000], &[1_000_000]).threads(&[1, 2]),
    Row::new("ready", READY).rounds(3, 0),
    Row::new("reset", RESET).admits(with_floor),
    Row::new("fire-on-tokio", ON_TOKIO).rounds(2, 0).admits(with_floor),
    Row::new("fire-on-smol", ON_SMOL).admits(with_floor).optional(),
    Row::new("later", LATER).rounds(1, 0),
];

pub fn family() -> Family {
    Family {
        name: "task",
        about: "sleeps and timeouts; real time; threads that measure are pinned, all others are not",
        reference: Some("tokio"),
        rows: ROWS,
        contestants: contestants::all(),
    }
}

fn of<C: contestant::Contestant>() -> Contestant {
    Contestant {
        name: C::NAME,
        kind: C::KIND,
        settings: C::SETTINGS,
        run: run::<C>,
        absent: |row, _| C::absent(row),
        missing: |_| None,
    }
}

fn run<C: contestant::Contestant>(turn: &Turn) -> Result<Readings, String> {
    counting::stop();
    let times = if turn.quick { 500_000 } else { 1_000_000 };
    match turn.row.as_str() {
        "trace" => Ok(rows::trace::<C>()),
        "churn" => Ok(rows::churn::<C>(turn.column.threads, times)),
        "ready" => Ok(rows::at_once::<C>(5 * times)),
        "reset" => Ok(rows::reset::<C>(times)),
        "fire-on-tokio" => rows::fire_on_tokio::<C>(),
        "fire-on-smol" => rows::fire_on_smol::<C>(),
        "later" => rows::later::<C>(),
        other => Err(format!("there is no row {other}")),
    }
}
