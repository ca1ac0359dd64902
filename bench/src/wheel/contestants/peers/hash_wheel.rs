//! `hierarchical_hash_wheel_timer`: its cancellable four-level wheel, without its threads and closures.

use std::rc::Rc;
use std::time::Duration;

use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::cancellable::{
    CancellableTimerEntry, QuadWheelWithOverflow,
};

use crate::league::Kind;
use crate::wheel::contestant::{Contestant, Next};

/// The payload is its own identifier: the smallest entry the wheel can have.
#[derive(Debug)]
struct Entry(u32);

impl CancellableTimerEntry for Entry {
    type Id = u32;
    fn id(&self) -> &u32 {
        &self.0
    }
}

pub struct HashWheel {
    wheel: QuadWheelWithOverflow<Entry>,
    now: u64,
}

impl Contestant for HashWheel {
    type Key = u32;
    const NAME: &'static str = "hierarchical_hash_wheel_timer 1.4";
    const KIND: Kind = Kind::Peer;
    const SETTINGS: &'static str =
        "cancellable quad wheel, fx-hash; reschedule: insert again under the same id";
    const LAZY: bool = true;
    const MOST: (usize, &'static str) = (1_000_000, "minutes a round");
    const DELAYS: (u64, u64) = (1, u32::MAX as u64 - 1);

    fn new(_expected: usize) -> Self {
        HashWheel { wheel: QuadWheelWithOverflow::new(), now: 0 }
    }

    #[inline]
    fn start(&mut self, due: u64, payload: u32) -> u32 {
        let delay = Duration::from_millis(due - self.now);
        self.wheel
            .insert_ref_with_delay(Rc::new(Entry(payload)), delay)
            .expect("a delay of at least 1");
        payload
    }

    #[inline]
    fn cancel(&mut self, key: u32) -> Option<u32> {
        self.wheel.cancel(&key).ok().map(|()| key)
    }

    #[inline]
    fn reschedule(&mut self, key: u32, due: u64) -> u32 {
        self.start(due, key)
    }

    #[inline]
    fn advance(&mut self, now: u64, fire: &mut impl FnMut(u32)) {
        while self.now < now {
            let left = (now - self.now).min(u64::from(u32::MAX)) as u32;
            let skip = match self.wheel.can_skip() {
                Skip::Empty => left,
                Skip::Millis(most) => most.min(left),
                Skip::None => 0,
            };
            if skip > 0 {
                self.wheel.skip(skip);
                self.now += u64::from(skip);
                continue;
            }
            for entry in self.wheel.tick() {
                fire(entry.0);
            }
            self.now += 1;
        }
    }

    #[inline]
    fn next_bound(&mut self) -> Next {
        match self.wheel.can_skip() {
            Skip::Empty => Next::Never,
            Skip::Millis(ms) => Next::At(self.now + u64::from(ms) + 1),
            Skip::None => Next::At(self.now + 1),
        }
    }
}
