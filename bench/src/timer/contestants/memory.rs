//! No timer: what moving one cannot do without, where threads share the engine and a key names a timer. A random key, a
//! lock, a reading of the clock, and one record of the size of a wheel's.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::super::contestant::{Contestant, Seat};
use super::super::figure::Kind;

const ONE_ROW: &str = "it has a part in one row: moving";

pub struct Memory {
    records: Mutex<Vec<Record>>,
    start: Instant,
}

struct Record {
    deadline: u64,
    generation: u64,
    _rest: [u64; 2],
}

/// As a key is: where, and which of those that were there.
pub struct Key {
    place: u64,
    generation: u64,
}

impl Contestant for Memory {
    type Seat<'a> = &'a Memory;
    type Handle = Key;
    const NAME: &'static str = "the memory alone";
    const KIND: Kind = Kind::Floor;
    const SETTINGS: &'static str = "no timer: a lock, a reading of the clock, one record";

    fn new() -> Self {
        Memory { records: Mutex::default(), start: Instant::now() }
    }

    fn sit(&self, _: usize) -> &Memory {
        self
    }
}

impl Memory {
    fn at(&self, after: Duration) -> u64 {
        (self.start.elapsed() + after).as_millis() as u64
    }
}

impl Seat for &Memory {
    type Handle = Key;

    fn schedule(&mut self, after: Duration, payload: u64) -> Key {
        let record = Record { deadline: self.at(after), generation: payload, _rest: [0; 2] };
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.push(record);
        Key { place: records.len() as u64 - 1, generation: payload }
    }

    fn cancel(&mut self, _: Key) -> bool {
        unreachable!("{ONE_ROW}")
    }

    #[inline]
    fn reschedule(&mut self, key: &mut Key, after: Duration) {
        let deadline = self.at(after);
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(record) = records.get_mut(key.place as usize)
            && record.generation == key.generation
        {
            record.deadline = deadline;
        }
    }

    fn fire_at(&mut self, _: Instant, _: u64) {
        unreachable!("{ONE_ROW}")
    }
}
