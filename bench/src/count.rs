//! Instructions an operation, without noise: the same program under callgrind, once for n and once for 2 n
//! operations, all else alike. The difference divided by n is what one operation takes.

use std::process::Command;

use clap::ValueEnum;
use tourbillon_wheel::{HierarchicalWheel, Key, Progress, Time};

use crate::rng::Rng;
use crate::table::Table;

/// The population: everything stays in the cache.
const TIMERS: usize = 1000;
/// Delays are uniform over so many ms, one timer a ms in the mean.
const SPAN: u64 = 1000;

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
}

/// A wheel with its keys, and what will be done to it, in the order of doing.
struct Bench {
    wheel: HierarchicalWheel<u32>,
    keys: Vec<Key>,
    delays: Vec<u64>,
}

impl Bench {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut wheel = HierarchicalWheel::new(Time::ZERO);
        let mut delay = || 1 + rng.below(SPAN);
        let mut keys: Vec<Key> = (0..TIMERS)
            .map(|payload| wheel.insert(Time::new(delay()), payload as u32).expect("memory"))
            .collect();
        let delays = (0..TIMERS).map(|_| delay()).collect();
        rng.shuffle(&mut keys);
        Bench { wheel, keys, delays }
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
            Counted::Fire => {
                for now in 1..=SPAN {
                    while self.wheel.advance(Time::new(now), usize::MAX) != Progress::Done {}
                    while self.wheel.pop().is_some() {}
                }
            }
        }
    }
}

/// Does the operation so many times, having prepared for more, and leaves without tidying up.
pub fn count(counted: Counted, iterations: usize, prepared: usize) -> ! {
    let mut benches: Vec<Bench> =
        (0..prepared.max(iterations) / TIMERS).map(|seed| Bench::new(seed as u64)).collect();
    for bench in &mut benches[..iterations / TIMERS] {
        bench.run(counted);
    }
    std::process::exit(0)
}

/// Runs [`count`] under callgrind and prints instructions an operation.
pub fn instructions(iterations: usize) -> Result<(), String> {
    let iterations = iterations.max(TIMERS) / TIMERS * TIMERS;
    let header = ["operation at 1 k timers", "instructions"].map(str::to_owned).to_vec();
    let mut table =
        Table::new("instructions an operation of the hierarchical wheel, by callgrind", header);
    for counted in Counted::value_variants() {
        let once = collected(*counted, iterations, 2 * iterations)?;
        let twice = collected(*counted, 2 * iterations, 2 * iterations)?;
        let each = (twice as f64 - once as f64) / iterations as f64;
        table.row(vec![format!("{counted:?}").to_lowercase(), format!("{each:.1}")], "");
    }
    table.print();
    Ok(())
}

fn collected(counted: Counted, iterations: usize, prepared: usize) -> Result<u64, String> {
    let program = std::env::current_exe()
        .map_err(|error| format!("this program cannot find itself: {error}"))?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["count", &format!("{counted:?}").to_lowercase()])
        .args(["--iterations", &iterations.to_string(), "--prepared", &prepared.to_string()])
        .output()
        .map_err(|error| {
            format!(
                "valgrind does not start ({error}): install it, on Debian `apt install valgrind`"
            )
        })?;
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find_map(|line| line.split_once("Collected :"));
    line.and_then(|(_, count)| count.trim().parse().ok())
        .ok_or_else(|| format!("callgrind told no count; it said:\n{text}"))
}
