//! Counts instructions per operation, without noise: runs the same program under callgrind, once for n and once for 2 n
//! operations, with everything else equal. The difference divided by n is the cost of one operation.
//!
//! The rows at 1 k are single operations on many small wheels. The rows at 10 k are the loops of `bench wheel`, on one
//! wheel and inlined in the same way. They include reading the index, the key and the delay of each timer. The rows of
//! the engine are in `engine.rs`.

mod engine;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;

use clap::ValueEnum;
use tourbillon_wheel::{HierarchicalWheel, Key, Progress, Time};

use crate::rng::Rng;
use crate::table::Table;
use crate::wheel::load::{Load, Spread};

/// The population for single operations. Everything stays in the cache.
const TIMERS: usize = 1000;
/// The delays of single operations are uniform over this many ms: on average, one timer per ms.
const SPAN: u64 = 1000;
/// The population for the loops.
const LOOPED: usize = 10_000;
/// The environment variable that names a row which also allocates once per operation. The gate must then fail.
const SLOWER: &str = "TOURBILLON_SLOWER";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Counted {
    /// A timer into a wheel that holds 1 k to 2 k
    Insert,
    /// A random timer of at most 1 k
    Cancel,
    /// A random timer of 1 k to later
    Reschedule,
    /// Stepping ms by ms until 1 k have fired: one step and one timer
    Fire,
    /// Cancel and start a random timer of 10 k
    Pair,
    PairLog,
    /// Cancel and start the oldest timer of 10 k
    InOrder,
    InOrderLog,
    /// Move a random timer of 10 k to later
    Later,
    LaterLog,
    /// Start 10 k and step until all have fired, a timer
    Life,
    LifeLog,
    /// Schedule a timer and cancel it by its handle, 10 k pending
    Handle,
    /// The same by its key
    Key,
    /// The same in an engine of values
    Typed,
    /// Create, poll and drop a sleep of the default engine, 10 k pending
    Sleep,
    /// Fire one of 10 k timers on the driver
    FireOnDriver,
}

impl Counted {
    /// Its name in the table.
    fn title(self) -> &'static str {
        match self {
            Counted::Insert => "insert, 1 k",
            Counted::Cancel => "cancel, 1 k",
            Counted::Reschedule => "reschedule, 1 k",
            Counted::Fire => "fire, 1 k",
            Counted::Pair => "cancel + start, random, 10 k",
            Counted::PairLog => "the same, log",
            Counted::InOrder => "cancel + start, in order, 10 k",
            Counted::InOrderLog => "the same, log",
            Counted::Later => "reschedule later, random, 10 k",
            Counted::LaterLog => "the same, log",
            Counted::Life => "whole life, 10 k",
            Counted::LifeLog => "the same, log",
            Counted::Handle => "engine: schedule + cancel by handle",
            Counted::Key => "engine: schedule + cancel by key",
            Counted::Typed => "engine of values: schedule + cancel",
            Counted::Sleep => "sleep: create + poll + drop",
            Counted::FireOnDriver => "engine: fire one timer on the driver",
        }
    }

    fn spread(self) -> Spread {
        match self {
            Counted::PairLog | Counted::InOrderLog | Counted::LaterLog | Counted::LifeLog => {
                Spread::Log
            }
            _ => Spread::Uniform,
        }
    }
}

/// Repeats the operation `iterations` times, prepared for `prepared`, then exits without dropping anything.
pub fn count(counted: Counted, iterations: usize, prepared: usize) -> ! {
    if std::env::var_os(SLOWER).is_some_and(|row| row.to_str() == Some(&counted.name())) {
        (0..iterations).for_each(|nth| drop(black_box(vec![nth])));
    }
    match counted {
        Counted::Insert | Counted::Cancel | Counted::Reschedule | Counted::Fire => {
            let seeds = 0..(prepared.max(iterations) / TIMERS) as u64;
            let mut verbs: Vec<Verbs> = seeds.map(Verbs::new).collect();
            for verbs in &mut verbs[..iterations / TIMERS] {
                verbs.run(counted);
            }
        }
        Counted::Pair | Counted::PairLog => {
            let load = Load::new(counted.spread(), LOOPED);
            Loop::new(&load).replace(&load.picks, &load.delays, iterations);
        }
        Counted::InOrder | Counted::InOrderLog => {
            let load = Load::new(counted.spread(), LOOPED);
            let oldest: Vec<u32> = (0..LOOPED as u32).cycle().take(load.delays.len()).collect();
            Loop::new(&load).replace(&oldest, &load.delays, iterations);
        }
        Counted::Later | Counted::LaterLog => {
            let load = Load::new(counted.spread(), LOOPED);
            for _ in 0..iterations / LOOPED {
                Loop::new(&load).put_off(&load);
            }
            // The shorter run fills as many wheels as the longer one.
            (iterations..prepared).step_by(LOOPED).for_each(|_| drop(Loop::new(&load)));
        }
        Counted::Life | Counted::LifeLog => {
            let load = Load::new(counted.spread(), LOOPED);
            let steps = load.steps();
            (0..iterations / LOOPED).for_each(|_| Loop::new(&load).live(steps));
        }
        Counted::Handle => engine::by_handle(iterations),
        Counted::Key => engine::by_key(iterations),
        Counted::Typed => engine::typed(iterations),
        Counted::Sleep => engine::sleep(iterations),
        Counted::FireOnDriver => engine::fire(iterations, prepared),
    }
    std::process::exit(0)
}

/// A wheel with its keys and the delays of its operations, in the order of use.
struct Verbs {
    wheel: HierarchicalWheel<u32>,
    keys: Vec<Key>,
    delays: Vec<u64>,
}

impl Verbs {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut wheel = HierarchicalWheel::new(Time::ZERO);
        let mut delay = || 1 + rng.below(SPAN);
        let mut keys: Vec<Key> = (0..TIMERS)
            .map(|payload| wheel.insert(Time::new(delay()), payload as u32).expect("memory"))
            .collect();
        let delays = (0..TIMERS).map(|_| delay()).collect();
        rng.shuffle(&mut keys);
        Verbs { wheel, keys, delays }
    }

    /// A thousand operations.
    fn run(&mut self, counted: Counted) {
        match counted {
            Counted::Insert => {
                for &delay in &self.delays {
                    self.wheel.insert(Time::new(delay), 0).expect("memory");
                }
            }
            Counted::Cancel => {
                for &key in &self.keys {
                    self.wheel.cancel(key);
                }
            }
            Counted::Reschedule => {
                for (&key, &delay) in self.keys.iter().zip(&self.delays) {
                    self.wheel.reschedule(key, Time::new(SPAN + delay)).expect("a pending timer");
                }
            }
            _ => {
                for now in 1..=SPAN {
                    while self.wheel.advance(Time::new(now), usize::MAX) != Progress::Done {}
                    while self.wheel.pop().is_some() {}
                }
            }
        }
    }
}

/// A wheel filled by a load, and its keys.
struct Loop {
    wheel: HierarchicalWheel<u32>,
    keys: Vec<Key>,
}

impl Loop {
    fn new(load: &Load) -> Self {
        let mut wheel = HierarchicalWheel::new(Time::ZERO);
        let dues = load.dues.iter().zip(0..);
        let keys = dues
            .map(|(&due, payload)| wheel.insert(Time::new(due.into()), payload).expect("memory"))
            .collect();
        Loop { wheel, keys }
    }

    /// Cancels and restarts one timer after the other.
    fn replace(mut self, timers: &[u32], delays: &[u32], iterations: usize) {
        let mut left = iterations;
        while left > 0 {
            let count = left.min(timers.len());
            for (&timer, &delay) in timers[..count].iter().zip(&delays[..count]) {
                let key = &mut self.keys[timer as usize];
                black_box(self.wheel.cancel(*key));
                *key = self.wheel.insert(Time::new(delay.into()), timer).expect("memory");
            }
            left -= count;
        }
    }

    /// Moves timers to later, once per timer of the population.
    fn put_off(mut self, load: &Load) {
        for (&timer, &due) in load.picks.iter().zip(load.later()) {
            let moved = self.wheel.reschedule(self.keys[timer as usize], Time::new(due.into()));
            moved.expect("a pending timer");
        }
    }

    /// Steps until every timer has fired.
    fn live(mut self, steps: &[u64]) {
        for &now in steps {
            while self.wheel.advance(Time::new(now), 1024) != Progress::Done {
                while self.wheel.pop().is_some() {}
            }
            while self.wheel.pop().is_some() {}
        }
        assert!(self.wheel.is_empty(), "every timer has fired");
    }
}

/// The arguments of `bench instructions`.
#[derive(clap::Args)]
pub struct Instructions {
    /// Rows, by a part of their name
    #[arg(long, value_delimiter = ',', value_name = "ROW")]
    rows: Vec<String>,
    /// Rows, by their whole name
    #[arg(long)]
    exact: bool,
    /// Operations of the shorter of the two runs
    #[arg(long, default_value_t = 100_000)]
    iterations: usize,
    /// Another build of this program, which is counted instead
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Runs [`count`] under callgrind, a row on each core, and prints instructions per operation.
///
/// # Errors
///
/// Valgrind is missing, or printed no count.
pub fn instructions(asked: &Instructions) -> Result<(), String> {
    let iterations = asked.iterations.max(LOOPED) / LOOPED * LOOPED;
    let this = || std::env::current_exe().map_err(|error| format!("no path to itself: {error}"));
    let program = asked.program.clone().map_or_else(this, Ok)?;
    let is_asked = |row: &&Counted| {
        let fits = |part: &String| {
            row.name() == *part || !asked.exact && row.title().contains(part.as_str())
        };
        asked.rows.is_empty() || asked.rows.iter().any(fits)
    };
    let rows: Vec<Counted> = Counted::value_variants().iter().filter(is_asked).copied().collect();
    let (next, counts) = (AtomicUsize::new(0), Mutex::new(vec![None; rows.len()]));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                // Relaxed: the counter only assigns row numbers; the counts go through the mutex.
                while let Some(row) = rows.get(next.fetch_add(1, Relaxed)).copied() {
                    let counted = row.collected(&program, iterations);
                    let at = rows.iter().position(|&other| other == row).unwrap_or(0);
                    counts.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(counted);
                }
            });
        }
    });
    let title = "instructions an operation of the wheel and of the engine, by callgrind";
    let mut table = Table::new(title, ["row", "instructions"].map(str::to_owned).to_vec());
    for (row, count) in rows.iter().zip(counts.into_inner().unwrap_or_default()) {
        let count = count.ok_or("a row was not counted")??;
        table.row(vec![row.name(), format!("{count:.1}")], row.title());
    }
    table.print();
    Ok(())
}

impl Counted {
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Instructions per operation.
    fn collected(self, program: &Path, iterations: usize) -> Result<f64, String> {
        let run = |times: usize| {
            let mut command = Command::new("valgrind");
            command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
            command.args(["count", &self.name(), "--iterations", &times.to_string()]);
            command.args(["--prepared", &(2 * iterations).to_string()]);
            let output = command.output().map_err(|error| {
                format!("valgrind does not start ({error}): on Debian `apt install valgrind`")
            })?;
            let text = String::from_utf8_lossy(&output.stderr);
            let line = text.lines().find_map(|line| line.split_once("Collected :"));
            line.and_then(|(_, count)| count.trim().parse::<f64>().ok())
                .ok_or_else(|| format!("callgrind printed no count, but:\n{text}"))
        };
        Ok((run(2 * iterations)? - run(iterations)?) / iterations as f64)
    }
}
