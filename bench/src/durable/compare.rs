//! Rows compared with the other stores: batches, one timer after the other, and 64 threads.
//!
//! In each round every contestant runs once. A different one goes first each time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::face::{FAR, Face, Spread, text};
use super::line::Lines;
use super::{BATCH, Contestant, Open, Row, Run, Timer, disk, face, now, raw};
use crate::results::Summary;

const RAW: usize = 0;
const OURS: usize = 1;
const SQLITE: usize = 3;
/// The number of timers that one submitter stores one after the other.
const SINGLES: u64 = 500;
const THREADS: usize = 64;

fn contestants() -> Vec<(&'static str, Open)> {
    #[allow(unused_mut)]
    let mut all: Vec<(&'static str, Open)> = vec![
        ("redb, by bucket", raw::open),
        ("tourbillon", face::open),
        ("its store alone", disk::open),
    ];
    #[cfg(feature = "sqlite")]
    all.push(("SQLite", super::sqlite::open));
    all
}

/// The median of each contestant.
struct Medians(Vec<(&'static str, f64)>);

impl Medians {
    fn of(
        run: &Run<'_>,
        all: &[(&'static str, Open)],
        mut one: impl FnMut(&'static str, Open) -> Result<f64, String>,
    ) -> Result<Self, String> {
        let mut samples = vec![Vec::new(); all.len()];
        for round in 0..run.rounds {
            for turn in 0..all.len() {
                let index = (round + turn) % all.len();
                let (name, open) = all[index];
                samples[index].push(one(name, open).map_err(|why| format!("{name}: {why}"))?);
            }
        }
        let median = |((name, _), samples): (&(&'static str, Open), &Vec<f64>)| {
            (*name, Summary::of(samples).median)
        };
        Ok(Medians(all.iter().zip(&samples).map(median).collect()))
    }

    fn say(&self, lines: &mut Lines, what: &str, unit: &'static str) {
        for (name, value) in &self.0 {
            lines.say(format!("{what}: {name}"), *value, unit);
        }
    }

    fn ratio(&self, one: usize, other: usize) -> Option<f64> {
        Some(self.0.get(one)?.1 / self.0.get(other)?.1)
    }
}

pub(super) fn run(run: &Run<'_>, rows: &[Row], show: &mut impl FnMut(Lines)) -> Result<(), String> {
    if rows.contains(&Row::Batches) {
        show(batches(run)?);
    }
    if rows.contains(&Row::Single) {
        show(single(run)?);
    }
    if rows.contains(&Row::Threads) {
        show(threads(run)?);
    }
    Ok(())
}

fn batches(run: &Run<'_>) -> Result<Lines, String> {
    let mut lines = Lines::new("batches of 1000");
    let kinds = [("without keys", 0, 0.6), ("one in ten keyed", 10, 0.3)];
    for (what, keyed, target) in kinds {
        let medians = Medians::of(run, &contestants(), |_, open| {
            let place = run.place.next()?;
            let mut store = open(place.path())?;
            let mut spread = Spread::new(now(), FAR, keyed);
            let (mut spent, mut done) = (Duration::ZERO, 0);
            while done < run.timers {
                let batch: Vec<Timer> = (0..BATCH).map(|_| spread.next()).collect();
                spent += store.store(&batch)?;
                done += batch.len();
            }
            Ok(done as f64 / spent.as_secs_f64())
        })?;
        medians.say(&mut lines, what, "/s");
        let ratio = |one, other| medians.ratio(one, other).unwrap_or(f64::NAN);
        lines.at_least(format!("{what}: / redb"), ratio(OURS, RAW), "", target);
        if let Some(ratio) = medians.ratio(OURS, SQLITE) {
            lines.at_least(format!("{what}: / SQLite"), ratio, "", 2.0);
        }
    }
    Ok(lines)
}

fn single(run: &Run<'_>) -> Result<Lines, String> {
    let mut lines = Lines::new("one synchronous schedule, p50");
    let mut syncs = Vec::new();
    let medians = Medians::of(run, &contestants(), |_, open| {
        syncs.push(run.place.fdatasync()?);
        let place = run.place.next()?;
        let mut store = open(place.path())?;
        let mut spread = Spread::new(now(), FAR, 0);
        let mut samples = Vec::new();
        for _ in 0..SINGLES {
            samples.push(store.store(&[spread.next()])?.as_secs_f64() * 1e6);
        }
        Ok(Summary::of(&samples).median)
    })?;
    let sync = Summary::of(&syncs).median;
    medians.say(&mut lines, "p50", "µs");
    lines.say("p50: fdatasync of a page", sync, "µs");
    let ratio = medians.ratio(OURS, RAW).unwrap_or(f64::NAN);
    lines.at_most("tourbillon / redb", ratio, "", 1.2);
    // A slow baseline would be a defect of this bench.
    lines.at_most("the baseline: redb / fdatasync", medians.0[RAW].1 / sync, "", 4.5);
    if let Some((_, sqlite)) = medians.0.get(SQLITE) {
        lines.at_most("the baseline: SQLite / fdatasync", sqlite / sync, "", 3.5);
    }
    Ok(lines)
}

fn threads(run: &Run<'_>) -> Result<Lines, String> {
    let mut lines = Lines::new("64 threads, one timer at a time");
    let length = Duration::from_secs(if run.quick { 1 } else { 5 });
    let all: Vec<(&'static str, Open)> = contestants();
    let medians = Medians::of(run, &all, |name, open| {
        let place = run.place.next()?;
        if name != all[OURS].0 {
            return grouped(open(place.path())?, length, 1);
        }
        let face = Face::open(place.path())?;
        hammer(length, 1, |timers| {
            let queue = face.queue.clone();
            let one = |timer: &Timer| queue.schedule(timer.timer()).wait().map(drop).map_err(text);
            timers.iter().try_for_each(one)
        })
    })?;
    medians.say(&mut lines, "timers", "/s");
    let ratio = medians.ratio(OURS, RAW).unwrap_or(f64::NAN);
    lines.at_least("tourbillon / redb with the same group commit", ratio, "", 0.8);
    Ok(lines)
}

/// Timers per second of 64 threads that each store one `batch` after the other.
fn hammer(
    length: Duration,
    batch: usize,
    store: impl Fn(Vec<Timer>) -> Result<(), String> + Sync,
) -> Result<f64, String> {
    let (done, stop, next) = (AtomicU64::new(0), AtomicBool::new(false), AtomicU64::new(0));
    let begin = Instant::now();
    let one = |seed: usize| {
        let mut spread = Spread::new(now() + seed as u64, FAR, 0);
        while !stop.load(Relaxed) {
            let first = next.fetch_add(batch as u64, Relaxed);
            let one = |nth: usize| Timer { generation: first + nth as u64, ..spread.next() };
            store((0..batch).map(one).collect())?;
            done.fetch_add(batch as u64, Relaxed);
        }
        Ok(())
    };
    let one = &one;
    let outcome = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|seed| scope.spawn(move || one(seed))).collect();
        thread::sleep(length);
        stop.store(true, Relaxed);
        let joined = threads.into_iter().map(|thread| thread.join().map_err(|_| "a panic")?);
        joined.collect::<Result<(), String>>()
    });
    outcome?;
    Ok(done.load(Relaxed) as f64 / begin.elapsed().as_secs_f64())
}

/// The same on a store that has no group commit: one thread commits everything that is queued.
pub(crate) fn grouped(
    mut store: Box<dyn Contestant>,
    length: Duration,
    batch: usize,
) -> Result<f64, String> {
    type Letter = (Vec<Timer>, mpsc::SyncSender<()>);
    let (post, letters) = mpsc::channel::<Letter>();
    let committer = thread::spawn(move || {
        while let Ok(first) = letters.recv() {
            let (timers, answers): (Vec<Vec<Timer>>, Vec<_>) =
                std::iter::once(first).chain(letters.try_iter()).unzip();
            store.store(&timers.concat())?;
            for answer in answers {
                // The receiver is gone if it failed itself.
                let _ = answer.send(());
            }
        }
        Ok::<(), String>(())
    });
    let rate = hammer(length, batch, |timers| {
        let (answer, answered) = mpsc::sync_channel(1);
        post.clone().send((timers, answer)).map_err(text)?;
        answered.recv().map_err(text)
    });
    drop(post);
    committer.join().map_err(|_| "a panic")??;
    rate
}
