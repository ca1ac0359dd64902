//! `nexus-timer`: overlapping levels, a slab of chunks, lists linked by pointer; `poll_and_rebalance`.

use std::time::{Duration, Instant};

use nexus_timer::{TimerHandle, Wheel, WheelBuilder};

use crate::league::Kind;
use crate::wheel::contestant::{Contestant, Next};

/// A slab of few large chunks is twice as fast as one of many small ones; it has no default.
const LEAST_CHUNK: usize = 4096;

pub struct Nexus {
    wheel: Wheel<u32>,
    epoch: Instant,
    fired: Vec<u32>,
}

impl Nexus {
    #[inline]
    fn at(&self, moment: u64) -> Instant {
        self.epoch + Duration::from_millis(moment)
    }
}

impl Contestant for Nexus {
    type Key = TimerHandle<u32>;
    const NAME: &'static str = "nexus-timer 1.5";
    const KIND: Kind = Kind::Peer;
    const SETTINGS: &'static str =
        "64 slots a level, 5 bits apart, 6 levels; unbounded, chunks as large as the population";

    fn new(expected: usize) -> Self {
        let epoch = Instant::now();
        let wheel = WheelBuilder::new()
            .slots_per_level(64)
            .clk_shift(5)
            .num_levels(6)
            .unbounded(expected.max(LEAST_CHUNK))
            .build(epoch)
            .expect("a valid configuration");
        Nexus { wheel, epoch, fired: Vec::new() }
    }

    #[inline]
    fn start(&mut self, due: u64, payload: u32) -> Self::Key {
        self.wheel.schedule(self.at(due), payload)
    }

    #[inline]
    fn start_forgotten(&mut self, due: u64, payload: u32) {
        self.wheel.schedule_forget(self.at(due), payload);
    }

    #[inline]
    fn cancel(&mut self, key: Self::Key) -> Option<u32> {
        self.wheel.cancel(key)
    }

    #[inline]
    fn reschedule(&mut self, key: Self::Key, due: u64) -> Self::Key {
        self.wheel.reschedule(key, self.at(due))
    }

    #[inline]
    fn release(&mut self, key: Self::Key) {
        self.wheel.free(key);
    }

    #[inline]
    fn advance(&mut self, now: u64, fire: &mut impl FnMut(u32)) {
        self.wheel.poll_and_rebalance(self.at(now), &mut self.fired);
        self.fired.drain(..).for_each(fire);
    }

    #[inline]
    fn next_bound(&mut self) -> Next {
        self.wheel.next_deadline().map(|at| at.duration_since(self.epoch).as_millis() as u64).into()
    }
}
