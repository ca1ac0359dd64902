//! Operations that wait under keys, compared with a plain map of lists with tokio's sleeps.
//!
//! A contestant is an adapter (`ours`, `plain`), a workload a function in `rows`. Time is virtual if operations expire,
//! because work is measured and not waiting. Every run counts completed and expired operations.

mod contestant;
mod ours;
mod plain;
mod rows;

use crate::league::{self, Aim, Column, Family, Figure, Kind, Row, Unit};
use contestant::Contestant;

const fn ns(name: &'static str, title: &'static str) -> Figure {
    Figure::new(name, Unit::Nanoseconds, title)
}

const fn rate(name: &'static str, title: &'static str) -> Figure {
    Figure::new(name, Unit::Rate, title)
}

const fn bytes(name: &'static str, title: &'static str) -> Figure {
    Figure::new(name, Unit::Bytes, title)
}

/// The limit on bytes left: a few buffers that every thread or engine keeps.
fn few(_: &str, _: &Column) -> Option<Aim> {
    Some(Aim::AtMost(65_536.0))
}

const STREAM: &[Figure] = &[rate(
    "stream-rate",
    "watch one on three keys, complete the oldest of 10 k, one thread: operations a second",
)
.aim(|_, _| Some(Aim::AtLeast(1e6)))];
const MILLION: &[Figure] = &[
    rate("rate", "1 M on three keys each, half completed, half expiring: operations a second"),
    ns("watch", "of these, to watch one: ns"),
    ns("complete", "of these, to complete one by a check: ns"),
    ns("expire", "of these, to expire one: ns"),
    bytes("peak", "bytes an operation, at the peak"),
    bytes("left", "bytes that are left in all, after the last").aim(few),
];
const CHECK: &[Figure] = &[
    ns("check", "check a key under which operations wait, none ready: ns a check"),
    ns("complete-all", "check a key under which operations wait, all ready: ns for each"),
];
const THREADS: &[Figure] =
    &[rate("threads-rate", "two threads add, two check: operations a second, of wall time")];
const GROWTH: &[Figure] = &[
    Figure::new(
        "growth",
        Unit::Times,
        "watch + complete after 2 M completions, beside one that stays: times that of the first 100 k",
    )
    .aim(|_, _| Some(Aim::AtMost(1.25))),
    bytes("growth-left", "bytes that are left beside the one that stays").aim(few),
];

const ROWS: &[Row] = &[
    Row::new("stream", STREAM),
    Row::new("million", MILLION).rounds(3, 0).variants(&["in order", "random"]),
    Row::new("check", CHECK).timers(&[1, 100, 10_000], &[1, 100, 10_000]),
    Row::new("threads", THREADS),
    Row::new("growth", GROWTH).rounds(3, 0),
];

pub fn family() -> Family {
    Family {
        name: "purgatory",
        about: "operations that wait under keys; virtual time, but for the row with threads",
        reference: None,
        rows: ROWS,
        contestants: vec![of::<ours::Ours>(Kind::Ours), of::<plain::Plain>(Kind::Peer)],
    }
}

fn of<C: Contestant>(kind: Kind) -> league::Contestant {
    league::Contestant {
        name: C::NAME,
        kind,
        settings: C::SETTINGS,
        run: |turn| Ok(rows::run::<C>(turn)),
        absent: |_, _| None,
        missing: |_| None,
    }
}
