//! A purgatory with the defaults, on a timer that runs callbacks on its driver.

use std::time::Duration;

use tourbillon::{Operation, Outcome, Purgatory, Timer, VirtualClock};

use super::contestant::{Contestant, Flags, Time};

pub struct Ours {
    purgatory: Purgatory<u64, Waiting>,
    clock: VirtualClock,
    flags: &'static Flags,
}

struct Waiting {
    number: u32,
    flags: &'static Flags,
}

impl Operation for Waiting {
    fn try_complete(&mut self) -> bool {
        self.flags.is_set(self.number)
    }

    fn on_complete(self) {}

    fn on_expire(self) {
        self.flags.count_expired();
    }
}

impl Contestant for Ours {
    const NAME: &'static str = "tourbillon";
    const SETTINGS: &'static str = "Purgatory, defaults, std's hasher; callbacks on the driver";

    fn new(flags: &'static Flags, time: Time) -> Self {
        let clock = VirtualClock::new();
        let builder = Timer::builder().on_driver();
        let builder = if time == Time::Virtual { builder.clock(&clock) } else { builder };
        let timer = builder.build().expect("the settings are in range");
        Ours { purgatory: Purgatory::new(&timer), clock, flags }
    }

    fn add(&self, number: u32, keys: [u64; 3], timeout: Duration) {
        let waiting = Waiting { number, flags: self.flags };
        let outcome = self.purgatory.try_complete_else_watch(waiting, keys, timeout);
        debug_assert!(matches!(outcome, Ok(Outcome::Watched)));
    }

    fn check(&self, key: u64) -> usize {
        self.purgatory.check(&key)
    }

    fn pass(&self, by: Duration) {
        self.clock.advance(by).expect("outside of callbacks");
    }
}
