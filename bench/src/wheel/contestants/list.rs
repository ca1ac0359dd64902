//! An unsorted list, scanned at each tick: a common first version.

use crate::league::Kind;
use crate::wheel::contestant::{Contestant, Next};

/// The due time of an empty entry.
const VACANT: u64 = u64::MAX;

#[derive(Default)]
pub struct List {
    dues: Vec<u64>,
    payloads: Vec<u32>,
    free: Vec<u32>,
}

impl Contestant for List {
    type Key = u32;
    const NAME: &'static str = "unsorted list";
    const KIND: Kind = Kind::Baseline;
    const SETTINGS: &'static str = "due times in an array of their own, scanned each tick";
    const MOST: (usize, &'static str) = (10_000, "every tick looks at every timer");

    fn new(_expected: usize) -> Self {
        List::default()
    }

    #[inline]
    fn start(&mut self, due: u64, payload: u32) -> u32 {
        let Some(index) = self.free.pop() else {
            self.dues.push(due);
            self.payloads.push(payload);
            return (self.dues.len() - 1) as u32;
        };
        self.dues[index as usize] = due;
        self.payloads[index as usize] = payload;
        index
    }

    #[inline]
    fn cancel(&mut self, key: u32) -> Option<u32> {
        self.dues[key as usize] = VACANT;
        self.free.push(key);
        Some(self.payloads[key as usize])
    }

    #[inline]
    fn reschedule(&mut self, key: u32, due: u64) -> u32 {
        self.dues[key as usize] = due;
        key
    }

    #[inline]
    fn advance(&mut self, now: u64, fire: &mut impl FnMut(u32)) {
        for (index, due) in self.dues.iter_mut().enumerate() {
            if *due <= now {
                *due = VACANT;
                self.free.push(index as u32);
                fire(self.payloads[index]);
            }
        }
    }

    fn next_exact(&mut self) -> Next {
        self.dues.iter().copied().min().filter(|due| *due != VACANT).into()
    }
}
