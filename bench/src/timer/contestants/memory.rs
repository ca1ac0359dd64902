//! No timer: only the work that no implementation with shared access and keys can avoid.
//!
//! To move a timer, it takes a lock, reads the clock, and finds and changes a record as large as a wheel's. To fire
//! timers, its thread wakes when some are due and reads the record of each. There is no wheel: the timers are sorted by
//! deadline beforehand, at no measured cost.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::super::contestant::{Contestant, Seat};
use super::super::sink;
use crate::league::Kind;

pub struct Memory {
    shared: Arc<Shared>,
}

pub struct Shared {
    start: Instant,
    records: Mutex<Vec<Record>>,
    /// The records of each millisecond. `None` ends the thread, when the contestant is dropped.
    due: Mutex<Option<BTreeMap<u64, Vec<u32>>>>,
}

struct Record {
    deadline: u64,
    generation: u64,
    payload: u64,
    _rest: u64,
}

/// Like a real key: a position, and the generation of the record there.
pub struct Key {
    place: u64,
    generation: u64,
}

impl Contestant for Memory {
    type Seat<'a> = &'a Shared;
    type Handle = Key;
    const NAME: &'static str = "the memory alone";
    const KIND: Kind = Kind::Floor;
    const SETTINGS: &'static str = "no timer: a lock, the clock, a record each; sorted beforehand";

    fn new() -> Self {
        let (records, due) = (Mutex::default(), Mutex::new(Some(BTreeMap::new())));
        let shared = Arc::new(Shared { start: Instant::now(), records, due });
        let wakes = shared.clone();
        thread::spawn(move || wakes.fire());
        Memory { shared }
    }

    fn sit(&self, _: usize) -> &Shared {
        &self.shared
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        *lock(&self.shared.due) = None;
    }
}

impl Shared {
    /// The tick of a deadline, rounded up.
    fn tick(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.start).as_nanos().div_ceil(1_000_000) as u64
    }

    fn fire(&self) {
        loop {
            let next = match &*lock(&self.due) {
                Some(due) => due.keys().next().copied(),
                None => return,
            };
            let rest = match next {
                Some(tick) => self.start + Duration::from_millis(tick),
                None => Instant::now() + Duration::from_millis(50),
            };
            thread::sleep(rest.saturating_duration_since(Instant::now()));
            let due = next.and_then(|tick| lock(&self.due).as_mut()?.remove(&tick));
            let records = lock(&self.records);
            due.iter().flatten().for_each(|&place| sink::fired(records[place as usize].payload));
        }
    }
}

impl Seat for &Shared {
    type Handle = Key;

    fn schedule(&mut self, after: Duration, payload: u64) -> Key {
        let deadline = self.tick(Instant::now() + after);
        let mut records = lock(&self.records);
        records.push(Record { deadline, generation: payload, payload, _rest: 0 });
        Key { place: records.len() as u64 - 1, generation: payload }
    }

    fn cancel(&mut self, _: Key) -> bool {
        unreachable!("it has no part in such rows")
    }

    #[inline]
    fn reschedule(&mut self, key: &mut Key, after: Duration) {
        let deadline = self.tick(Instant::now() + after);
        let mut records = lock(&self.records);
        if let Some(record) = records.get_mut(key.place as usize)
            && record.generation == key.generation
        {
            record.deadline = deadline;
        }
    }

    fn fire_at(&mut self, at: Instant, payload: u64) {
        let key = self.schedule(at.saturating_duration_since(Instant::now()), payload);
        if let Some(due) = &mut *lock(&self.due) {
            due.entry(self.tick(at)).or_default().push(key.place as u32);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
