//! `bench durable`: durable timers through the public API, on a real disk. Every change is synced before it is
//! acknowledged. Payloads have 100 bytes.
//!
//! Comparable stores are measured in the same run and alternate with ours: redb used directly with the same layout
//! (`raw`), SQLite as a job table (`sqlite`), and our own store without shard and runtime (`disk`). A row prints its
//! target beside the measured figure.
//!
//! | file | rows |
//! |---|---|
//! | `compare` | batches, single, threads: compared with other stores |
//! | `pending` | pending, counts, pages, cancel: one store of ten million |
//! | `flow` | steady, late, hour: a flow of timers |
//! | `reclaim` | reclaim |
//! | `crowd` | crowd |
//! | `idle` | idle |

mod child;
pub(crate) mod compare;
mod crowd;
mod disk;
mod face;
mod flow;
mod idle;
pub(crate) mod line;
mod pending;
pub(crate) mod place;
pub(crate) mod raw;
mod reclaim;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

use clap::ValueEnum;
use serde::Serialize;

use crate::cli::{Durable, asked};
use crate::machine::{self, Machine};
use crate::{counting, create, write};
pub use child::{Child, run as run_child};
use line::{Line, Lines};
use place::Place;

const DAY: u64 = 86_400_000;
/// The number of timers in a batch.
const BATCH: usize = 1000;
const PAYLOAD: [u8; 100] = [7; 100];
/// How each open store is configured.
const SETTINGS: [&str; 4] = [
    "tourbillon: defaults: 64 MiB of redb's cache, a window of 1 M timers and 256 MiB, a CRC32C of each row",
    "its store alone: the same file, without shard and runtime",
    "redb, by bucket: 4.4, a table a day, rows appended by number, an index of keys, quick-repair, 64 MiB of cache",
    "SQLite: WAL, synchronous FULL, indexes on the due time and on the keys, 64 MiB of cache",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Row {
    /// Batches of 1000, without keys and one in ten with a key
    Batches,
    /// One timer after the other
    Single,
    /// 64 threads, one timer at a time each
    Threads,
    /// 10 M pending: memory, bytes on disk, first delivery after kill -9
    Pending,
    /// Counts and a forecast at 10 M
    Counts,
    /// Pages of a list at 10 M
    Pages,
    /// Cancels at 10 M
    Cancel,
    /// 20 k a second scheduled, delivered and acknowledged, 3 M others pending
    Steady,
    /// Lateness when nothing else goes on
    Late,
    /// 20 k a second with 1 M pending, for the minutes of `--minutes`
    Hour,
    /// 10 M a month away, 9 M cancelled, 1 M more
    Reclaim,
    /// 500 k due in the same second
    Crowd,
    /// One timer an hour away: wake-ups, CPU time, writes
    Idle,
}

/// The parameters of a row.
struct Run<'a> {
    place: &'a Place,
    quick: bool,
    rounds: usize,
    /// The number of timers in a store that is compared with others.
    timers: usize,
    minutes: f64,
}

impl Run<'_> {
    /// Returns `count`, or with `--quick` a hundredth of it, but at least 10 000.
    fn scaled(&self, count: usize) -> usize {
        if self.quick { (count / 100).max(10_000) } else { count }
    }
}

/// A timer to be stored.
#[derive(Clone)]
pub(crate) struct Timer {
    pub(crate) generation: u64,
    pub(crate) due: u64,
    pub(crate) key: Option<String>,
}

/// An open store in a directory.
pub(crate) trait Contestant: Send {
    /// Stores timers in one durable commit. A caller's preparation is not measured.
    fn store(&mut self, timers: &[Timer]) -> Result<Duration, String>;
}

/// The wall clock at the start of the bench, in milliseconds.
fn now() -> u64 {
    static NOW: LazyLock<u64> = LazyLock::new(|| {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.map_or(0, |since| since.as_millis() as u64)
    });
    *NOW
}

/// Runs the requested rows, prints the results, and writes them to a file if requested.
///
/// # Errors
///
/// The file, the directory or a contestant has failed.
pub fn run(options: &Durable) -> Result<(), String> {
    let file = create(options.json.as_deref())?;
    counting::stop();
    let rows = asked(&options.rows);
    let rounds = usize::from(options.rounds.unwrap_or(if options.quick { 1 } else { 3 }));
    let timers = options.timers.unwrap_or(if options.quick { 100_000 } else { 1_000_000 });
    let minutes = options.minutes.unwrap_or(if options.quick { 0.1 } else { 10.0 });
    let machine = machine::describe();
    let place = Place::new(options.directory.as_deref())?;
    let run = Run { place: &place, quick: options.quick, rounds, timers, minutes };
    let Machine { cpu, cores, memory_gib, .. } = &machine;
    println!("{cpu}, {cores} cores, {memory_gib:.1} GiB; medians of {rounds} rounds");
    SETTINGS.iter().for_each(|settings| println!("  {settings}"));
    let begin = Instant::now();
    let mut lines = Vec::new();
    let mut show = |row: Lines| {
        row.print();
        lines.extend(row.lines);
    };
    let has = |row| rows.contains(&row);
    compare::run(&run, &rows, &mut show)?;
    pending::run(&run, &rows, &mut show)?;
    if has(Row::Steady) {
        show(flow::steady(&run)?);
    }
    if has(Row::Late) {
        show(flow::late(&run)?);
    }
    if has(Row::Hour) {
        show(flow::hour(&run)?);
    }
    if has(Row::Reclaim) {
        show(reclaim::run(&run)?);
    }
    if has(Row::Crowd) {
        show(crowd::run(&run)?);
    }
    if has(Row::Idle) {
        show(idle::run(&run)?);
    }
    let missed = lines.iter().filter(|line| line.is_missed()).count();
    println!("\n{missed} targets missed; {:.0} s", begin.elapsed().as_secs_f64());
    drop(place);
    let settings = SETTINGS;
    write(file, &Report { machine, quick: options.quick, rounds, timers, settings, lines })
}

#[derive(Serialize)]
struct Report {
    machine: Machine,
    quick: bool,
    rounds: usize,
    timers: usize,
    settings: [&'static str; 4],
    lines: Vec<Line>,
}

type Open = fn(&Path) -> Result<Box<dyn Contestant>, String>;
