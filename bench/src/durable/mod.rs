//! `bench durable`: the store on disk alone, beside redb used directly in the same layout and SQLite as a job table.
//! Every commit is synced before the next begins.
//!
//! A contestant commits timers in batches and one at a time, and cancels batches by key; here they take turns, a
//! different one first each round. A row of `fdatasync` says what the disk itself takes.

mod disk;
mod raw;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cli::Durable;
use crate::figure::Figure;
use crate::machine::{self, Machine};
use crate::results::Summary;
use crate::rng::Rng;
use crate::{counting, create, suite, write};

/// The wall clock of the bench: an hour of the year 2027.
const NOW: u64 = 1_800_000_000_000;
const DAY: u64 = 86_400_000;
/// Timers of a batch.
const BATCH: usize = 1000;

/// A timer to be stored: 100 bytes of payload.
#[derive(Clone)]
struct Timer {
    generation: u64,
    due: u64,
    key: Option<String>,
}

const PAYLOAD: [u8; 100] = [7; 100];

/// A store that is open in a directory.
trait Contestant {
    /// Stores timers in one durable commit. What a caller would do before that is not measured.
    fn store(&mut self, timers: &[Timer]) -> Result<Duration, String>;

    /// Cancels timers by key in one durable commit, their lookup included.
    fn cancel(&mut self, timers: &[Timer]) -> Result<Duration, String>;
}

type Open = fn(&Path) -> Result<Box<dyn Contestant>, String>;

fn contestants() -> Vec<(&'static str, Open)> {
    #[allow(unused_mut)]
    let mut all: Vec<(&'static str, Open)> =
        vec![("redb, by bucket", raw::open), ("tourbillon", disk::open)];
    #[cfg(feature = "sqlite")]
    all.push(("SQLite, WAL, FULL", sqlite::open));
    all
}

const TITLES: [&str; 6] = [
    "schedule, batches of 1000, timers a second",
    "the same, one in ten with a key",
    "one timer a commit, microseconds at p50",
    "bytes on disk a timer",
    "cancel, batches of 1000, timers a second",
    "the same, all with a key",
];

/// Runs everything, prints it, and writes it if wanted.
///
/// # Errors
///
/// What is wrong with the file, the directory, or a contestant.
pub fn run(options: &Durable) -> Result<(), String> {
    let file = create(options.json.as_deref())?;
    counting::stop();
    let rounds = usize::from(options.rounds.unwrap_or(if options.quick { 1 } else { 3 }));
    let timers = options.timers.unwrap_or(if options.quick { 100_000 } else { 1_000_000 });
    let machine = machine::describe();
    let directory = options.directory.clone().unwrap_or_else(std::env::temp_dir);
    let directory = directory.join(format!("tourbillon-bench-{}", std::process::id()));
    let Machine { cpu, cores, memory_gib, .. } = &machine;
    println!(
        "{cpu}, {cores} cores, {memory_gib:.1} GiB; {timers} timers; medians of {rounds} rounds"
    );
    let contestants = contestants();
    let bar = suite::bar(contestants.len() * rounds);
    let mut samples = vec![vec![Vec::new(); TITLES.len()]; contestants.len()];
    let mut syncs = Vec::new();
    let mut ran = Ok(());
    'rounds: for round in 0..rounds {
        for place in 0..contestants.len() {
            let index = (place + round) % contestants.len();
            let (name, open) = contestants[index];
            bar.set_message(name);
            let once = fdatasync(&directory).and_then(|sync| {
                syncs.push(sync);
                one(open, &directory, timers)
            });
            let _ = fs::remove_dir_all(&directory);
            match once {
                Ok(values) => {
                    samples[index].iter_mut().zip(values).for_each(|(all, value)| all.push(value));
                }
                Err(problem) => {
                    ran = Err(format!("{name}: {problem}"));
                    break 'rounds;
                }
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    ran?;
    let mut figures = Vec::new();
    for (number, title) in TITLES.iter().enumerate() {
        let cells = contestants.iter().zip(&samples);
        let mut cells: Vec<_> = cells.map(|((name, _), all)| (*name, &all[number])).collect();
        if number == 2 {
            cells.push(("fdatasync", &syncs));
        }
        let figure = Figure::new(title, cells.into_iter());
        figure.print();
        figures.push(figure);
    }
    write(file, &Report { machine, timers, figures })
}

/// One run of one contestant: a value for each title.
fn one(open: Open, directory: &Path, count: usize) -> Result<Vec<f64>, String> {
    let plain = Made::new(open, directory, count, |_| false)?;
    let tenth = Made::new(open, directory, count, |generation| generation % 10 == 0)?;
    let size = plain.bytes()? as f64 / (count + 300) as f64;
    let rate = |spent: Duration| count as f64 / spent.as_secs_f64();
    let (plain_rate, tenth_rate) = (rate(plain.spent), rate(tenth.spent));
    let single = plain.single;
    drop(tenth);
    let cancelled = plain.cancel()?;
    let all = Made::new(open, directory, count, |_| true)?;
    Ok(vec![plain_rate, tenth_rate, single, size, cancelled, all.cancel()?])
}

/// A store with timers in it.
struct Made {
    store: Box<dyn Contestant>,
    path: PathBuf,
    timers: Vec<Timer>,
    spent: Duration,
    /// Microseconds.
    single: f64,
}

impl Made {
    fn new(open: Open, under: &Path, count: usize, keyed: fn(u64) -> bool) -> Result<Self, String> {
        let path = under.join(format!("store-{}", fs::read_dir(under).map_or(0, Iterator::count)));
        fs::create_dir_all(&path).map_err(|error| error.to_string())?;
        let mut rng = Rng::new(1);
        let mut timer = |generation: u64| Timer {
            generation,
            // From four days to thirty: buckets of a day.
            due: NOW + 4 * DAY + rng.below(26 * DAY),
            key: keyed(generation).then(|| format!("order-{:016x}", rng.next())),
        };
        let mut store = open(&path)?;
        let mut singles = Vec::new();
        for generation in 0..300 {
            singles.push(store.store(&[timer(generation)])?.as_secs_f64() * 1e6);
        }
        let (mut timers, mut spent) = (Vec::with_capacity(count), Duration::ZERO);
        while timers.len() < count {
            let next = 300 + timers.len() as u64;
            let batch: Vec<Timer> = (next..next + BATCH as u64).map(&mut timer).collect();
            spent += store.store(&batch)?;
            timers.extend(batch);
        }
        Ok(Made { store, path, timers, spent, single: Summary::of(&singles).median })
    }

    /// Cancels a tenth of the timers, here and there; timers a second.
    fn cancel(mut self) -> Result<f64, String> {
        let mut rng = Rng::new(2);
        let (count, mut spent) = (self.timers.len() / 10, Duration::ZERO);
        for nth in 0..count {
            let other = nth + rng.below((self.timers.len() - nth) as u64) as usize;
            self.timers.swap(nth, other);
        }
        for batch in self.timers[..count].chunks(BATCH) {
            spent += self.store.cancel(batch)?;
        }
        Ok(count as f64 / spent.as_secs_f64())
    }

    /// What the directory takes on the disk.
    fn bytes(&self) -> Result<u64, String> {
        use std::os::unix::fs::MetadataExt;
        let failed = |error: std::io::Error| error.to_string();
        let mut sum = 0;
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            sum += entry.and_then(|entry| entry.metadata()).map_err(failed)?.blocks() * 512;
        }
        Ok(sum)
    }
}

/// What the disk takes to make a page durable, in microseconds at p50.
fn fdatasync(directory: &Path) -> Result<f64, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    fs::create_dir_all(directory).map_err(failed)?;
    let path = directory.join("fdatasync");
    let mut file = File::create(&path).map_err(failed)?;
    let mut samples = Vec::new();
    for _ in 0..200 {
        let begin = Instant::now();
        file.write_all(&[1; 4096]).and_then(|()| file.sync_data()).map_err(failed)?;
        samples.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    fs::remove_file(path).map_err(failed)?;
    Ok(Summary::of(&samples).median)
}

#[derive(Serialize)]
struct Report {
    machine: Machine,
    timers: usize,
    figures: Vec<Figure>,
}
