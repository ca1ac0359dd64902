//! Tourbillon's two wheels. One adapter: they have the same verbs.

use tourbillon_wheel::{
    Hashed, HashedWheel, Hierarchical, HierarchicalWheel, Key, Progress, Time, Wheel,
};

use crate::league::Kind;
use crate::wheel::contestant::{Contestant, Next};

/// The number of timers made ready before they are popped. Any value from 64 to millions gives the same result.
const BATCH: usize = 1024;

/// Builds one of the wheels.
pub trait Build {
    type Rings: tourbillon_wheel::Kind;
    const NAME: &'static str;
    const SETTINGS: &'static str;
    fn build() -> Wheel<u32, Self::Rings>;
}

/// The hierarchical wheel with its defaults.
pub enum Levels {}

impl Build for Levels {
    type Rings = Hierarchical;
    const NAME: &'static str = "tourbillon hierarchical";
    const SETTINGS: &'static str = "default: 256 slots a level";
    fn build() -> Wheel<u32, Hierarchical> {
        HierarchicalWheel::new(Time::ZERO)
    }
}

/// The hashed wheel, with a ring that holds the 60 s of the uniform delays in one turn.
pub enum HashedRing {}

impl Build for HashedRing {
    type Rings = Hashed;
    const NAME: &'static str = "tourbillon hashed";
    const SETTINGS: &'static str = "65536 slots: 60 s fit in one turn";
    fn build() -> Wheel<u32, Hashed> {
        HashedWheel::with_slots(Time::ZERO, 1, 65_536).expect("a valid number of slots")
    }
}

pub struct Ours<B: Build>(Wheel<u32, B::Rings>);

impl<B: Build> Contestant for Ours<B> {
    type Key = Key;
    const NAME: &'static str = B::NAME;
    const KIND: Kind = Kind::Ours;
    const SETTINGS: &'static str = B::SETTINGS;
    const LAZY: bool = true;
    const SLICES: bool = true;

    fn new(_expected: usize) -> Self {
        Ours(B::build())
    }

    #[inline]
    fn start(&mut self, due: u64, payload: u32) -> Key {
        self.0.insert(Time::new(due), payload).expect("memory")
    }

    #[inline]
    fn cancel(&mut self, key: Key) -> Option<u32> {
        self.0.cancel(key)
    }

    #[inline]
    fn reschedule(&mut self, key: Key, due: u64) -> Key {
        self.0.reschedule(key, Time::new(due)).expect("a pending timer");
        key
    }

    #[inline]
    fn advance(&mut self, now: u64, fire: &mut impl FnMut(u32)) {
        while self.advance_slice(now, BATCH, fire) {}
    }

    #[inline]
    fn advance_slice(&mut self, now: u64, budget: usize, fire: &mut impl FnMut(u32)) -> bool {
        let progress = self.0.advance(Time::new(now), budget);
        while let Some(expired) = self.0.pop() {
            fire(expired.value);
        }
        progress != Progress::Done
    }

    #[inline]
    fn next_exact(&mut self) -> Next {
        self.0.next_due().map(u64::from).into()
    }

    #[inline]
    fn next_bound(&mut self) -> Next {
        self.0.next_due_bound().map(u64::from).into()
    }
}
