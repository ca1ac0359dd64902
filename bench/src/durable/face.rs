//! Our timers through the public API, with the duration of every commit recorded.

use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tourbillon_durable::disk::DiskStore;
use tourbillon_durable::store::{Damage, Head, Loaded, Op, Query, Snapshot, Store, StoreError};
use tourbillon_durable::values::{Moment, Payload, Span};
use tourbillon_durable::{Cancelled, Conflict, Durable, Limits, NewTimer, Queue};

use super::{BATCH, Contestant, DAY, PAYLOAD, Timer, now};
use crate::results::Summary;
use crate::rng::Rng;

/// Open durable timers, one of their queues, and the durations of their commits.
pub(super) struct Face {
    pub(super) durable: Durable,
    pub(super) queue: Queue,
    commits: Commits,
}

type Commits = Arc<Mutex<Vec<f64>>>;

impl Face {
    pub(super) fn open(directory: &Path) -> Result<Self, String> {
        Face::with(directory, Limits::default())
    }

    pub(super) fn with(directory: &Path, limits: Limits) -> Result<Self, String> {
        let commits = Commits::default();
        let store = Timed { store: DiskStore::new(directory), commits: commits.clone() };
        let durable = Durable::builder().limits(limits).with_store(store).map_err(text)?;
        let queue = durable.queue("orders").map_err(text)?;
        Ok(Face { durable, queue, commits })
    }

    pub(super) fn schedule(&self, timers: Vec<NewTimer>) -> Result<(), String> {
        self.queue.schedule_all(timers, Conflict::Refuse).wait().map(drop).map_err(text)
    }

    /// Cancels timers. Fails if one does not exist.
    pub(super) fn cancel(&self, keys: &[String]) -> Result<(), String> {
        let cancelled = self.queue.cancel_all(keys).wait().map_err(text)?;
        match cancelled.iter().all(|one| *one == Cancelled::Cancelled) {
            true => Ok(()),
            false => Err("a timer is not there".to_owned()),
        }
    }

    /// The median commit since the last call, in milliseconds.
    pub(super) fn commit(&self) -> f64 {
        let samples =
            std::mem::take(&mut *self.commits.lock().unwrap_or_else(PoisonError::into_inner));
        if samples.is_empty() { f64::NAN } else { Summary::of(&samples).median }
    }

    /// Fills the store, in batches, with timers due in this range of milliseconds from now; one in `keyed` has a key.
    pub(super) fn fill(
        &self,
        count: usize,
        (from, to): (u64, u64),
        keyed: u64,
    ) -> Result<Duration, String> {
        let begin = Instant::now();
        let mut sources = Spread::new(now(), (from, to), keyed);
        let mut left = count;
        // Two batches are in flight, so that the next one is prepared while one is written.
        let mut before = None;
        while left > 0 {
            let batch: Vec<NewTimer> =
                (0..left.min(BATCH)).map(|_| sources.next().timer()).collect();
            left -= batch.len();
            let receipt = self.queue.schedule_all(batch, Conflict::Refuse);
            if let Some(before) = Option::replace(&mut before, receipt) {
                before.wait().map_err(text)?;
            }
        }
        before.map_or(Ok(()), |last| last.wait().map(drop)).map_err(text)?;
        Ok(begin.elapsed())
    }
}

/// Timers whose due moments are spread over a range. Every run has the same ones relative to its clock.
pub(super) struct Spread {
    rng: Rng,
    begin: u64,
    length: u64,
    keyed: u64,
    generation: u64,
}

impl Spread {
    /// Spreads them over a range of milliseconds after `now`.
    pub(super) fn new(now: u64, (from, to): (u64, u64), keyed: u64) -> Self {
        let (begin, length) = (now + from, to - from);
        Spread { rng: Rng::new(1), begin, length, keyed, generation: 0 }
    }

    pub(super) fn next(&mut self) -> Timer {
        let generation = self.generation;
        self.generation += 1;
        let due = self.begin + self.rng.below(self.length);
        let key = self.rng.next();
        let has = self.keyed > 0 && generation.is_multiple_of(self.keyed);
        Timer { generation, due, key: has.then(|| format!("order-{key:016x}")) }
    }
}

/// From 4 to 30 days ahead, where a bucket covers a day.
pub(super) const FAR: (u64, u64) = (4 * DAY, 30 * DAY);

impl Timer {
    pub(super) fn timer(&self) -> NewTimer {
        static PAYLOADS: LazyLock<Payload> = LazyLock::new(|| Payload::bytes(PAYLOAD));
        let mut timer = NewTimer::at(Moment::from_millis(self.due));
        timer.payload = PAYLOADS.clone();
        // Cancelled timers are not remembered: their rows would be part of every later figure.
        timer.remember = Some(Span::ZERO);
        match &self.key {
            Some(key) => timer.key(key).expect("a key"),
            None => timer,
        }
    }

    /// The chosen or assigned key.
    pub(super) fn name(&self) -> String {
        let key = self.key.clone();
        key.unwrap_or_else(|| format!("~{:x}-{:x}", self.generation, self.due))
    }
}

pub(super) fn open(directory: &Path) -> Result<Box<dyn Contestant>, String> {
    Ok(Box::new(Face::open(directory)?))
}

impl Contestant for Face {
    fn store(&mut self, timers: &[Timer]) -> Result<Duration, String> {
        let timers = timers.iter().map(Timer::timer).collect();
        let begin = Instant::now();
        self.schedule(timers)?;
        Ok(begin.elapsed())
    }
}

/// A store that times its commits.
struct Timed {
    store: DiskStore,
    commits: Commits,
}

impl Store for Timed {
    fn open(&mut self) -> Result<Head, StoreError> {
        self.store.open()
    }

    fn commit(&mut self, epoch: u64, ops: &[Op]) -> Result<(), StoreError> {
        let begin = Instant::now();
        self.store.commit(epoch, ops)?;
        let spent = begin.elapsed().as_secs_f64() * 1e3;
        self.commits.lock().unwrap_or_else(PoisonError::into_inner).push(spent);
        Ok(())
    }

    fn load(&mut self, query: &Query) -> Result<Loaded, StoreError> {
        self.store.load(query)
    }

    fn snapshot(&mut self) -> Result<Snapshot, StoreError> {
        self.store.snapshot()
    }

    fn tidy(&mut self) -> Result<bool, StoreError> {
        self.store.tidy()
    }

    fn damage(&self) -> Vec<Damage> {
        self.store.damage()
    }
}

/// Microseconds of the wall clock.
pub(super) fn wall_micros() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as i64)
}

pub(super) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
