//! Structures built on timers: the delay queue compared with a heap behind a lock, and repeating timers compared with a
//! thread pool that supports them.

mod delay;
mod heap;
mod periodic;

use crate::league::{Column, Contestant, Family, Figure, Kind, Readings, Row, Turn, Unit};

const FLAT_OUT: &[Figure] = &[
    Figure::new(
        "flat-out-cpu",
        Unit::Nanoseconds,
        "delay queue, as many put as take, beside none or 1 M not due: CPU ns of the process a value",
    ),
    Figure::new("flat-out", Unit::Nanoseconds, "the same: ns of wall time a value"),
];
const PACED: &[Figure] = &[
    Figure::new(
        "paced-cpu",
        Unit::Nanoseconds,
        "delay queue, one value every 50 µs from each: CPU ns of the process a value",
    ),
    Figure::new("paced-late", Unit::Microseconds, "the same, half of them late by at most: µs"),
];
const REPEAT: &[Figure] = &[Figure::new(
    "repeat-cpu",
    Unit::Nanoseconds,
    "timers that repeat, 1000 every 10 ms or 10 k every second: CPU ns of the process a run",
)];

const ROWS: &[Row] = &[
    Row::new("flat-out", FLAT_OUT).threads(&[1, 2]).timers(&[0, 1_000_000], &[0]),
    Row::new("paced", PACED).threads(&[1, 2]).rounds(3, 0),
    Row::new("repeat", REPEAT).timers(&[1000, 10_000], &[1000, 10_000]),
];

pub fn family() -> Family {
    let contestants = vec![
        of("tourbillon", Kind::Ours, "DelayQueue; tick 1 ms", delay::ours, not_repeating),
        of("tourbillon, tick 100 µs", Kind::Ours, "DelayQueue", delay::finer, only_paced),
        of("Mutex<BinaryHeap>", Kind::Peer, "and a Condvar", delay::heap, not_repeating),
        of("tourbillon, pool", Kind::Ours, "repeating timers", periodic::pool, only_repeating),
        of("tourbillon, driver", Kind::Ours, "repeating timers", periodic::driver, only_repeating),
        #[cfg(feature = "peers")]
        of("scheduled-thread-pool", Kind::Peer, "a thread a core", periodic::peer, only_repeating),
    ];
    let about = "what is built on timers; real time";
    Family { name: "queue", about, reference: None, rows: ROWS, contestants }
}

type Run = fn(&Turn) -> Result<Readings, String>;
type Absent = fn(&str, &Column) -> Option<&'static str>;

fn of(
    name: &'static str,
    kind: Kind,
    settings: &'static str,
    run: Run,
    absent: Absent,
) -> Contestant {
    Contestant { name, kind, settings, run, absent, missing: |_| None }
}

fn not_repeating(row: &str, _: &Column) -> Option<&'static str> {
    (row == "repeat").then_some("")
}

fn only_paced(row: &str, _: &Column) -> Option<&'static str> {
    (row != "paced").then_some("")
}

fn only_repeating(row: &str, _: &Column) -> Option<&'static str> {
    (row != "repeat").then_some("")
}
