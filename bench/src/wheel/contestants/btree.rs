//! `BTreeMap` from (due, sequence) to payload.

use std::collections::BTreeMap;

use crate::league::Kind;
use crate::wheel::contestant::{Contestant, Next};

#[derive(Default)]
pub struct Tree {
    timers: BTreeMap<(u64, u64), u32>,
    started: u64,
}

impl Contestant for Tree {
    type Key = (u64, u64);
    const NAME: &'static str = "BTreeMap";
    const KIND: Kind = Kind::Baseline;
    const SETTINGS: &'static str = "keyed by (due, sequence); reschedule: remove and insert";
    const MOST: (usize, &'static str) = (1_000_000, "two minutes a round");

    fn new(_expected: usize) -> Self {
        Tree::default()
    }

    #[inline]
    fn start(&mut self, due: u64, payload: u32) -> Self::Key {
        self.started += 1;
        self.timers.insert((due, self.started), payload);
        (due, self.started)
    }

    #[inline]
    fn cancel(&mut self, key: Self::Key) -> Option<u32> {
        self.timers.remove(&key)
    }

    #[inline]
    fn reschedule(&mut self, key: Self::Key, due: u64) -> Self::Key {
        let payload = self.timers.remove(&key).expect("a pending timer");
        self.timers.insert((due, key.1), payload);
        (due, key.1)
    }

    #[inline]
    fn advance(&mut self, now: u64, fire: &mut impl FnMut(u32)) {
        while let Some(first) = self.timers.first_entry() {
            if first.key().0 > now {
                return;
            }
            fire(first.remove());
        }
    }

    #[inline]
    fn next_exact(&mut self) -> Next {
        self.timers.first_key_value().map(|(key, _)| key.0).into()
    }
}
