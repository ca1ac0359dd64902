//! `timer-queue`: six bits a level, a slab, lists linked by index.

use crate::league::Kind;
use crate::wheel::contestant::{Contestant, Next};

pub struct TimerQueue(timer_queue::TimerQueue<u32>);

impl Contestant for TimerQueue {
    type Key = timer_queue::Timer;
    const NAME: &'static str = "timer-queue 0.1";
    const KIND: Kind = Kind::Peer;
    const SETTINGS: &'static str = "no settings; exact next: a walk over iter()";

    fn new(_expected: usize) -> Self {
        TimerQueue(timer_queue::TimerQueue::new())
    }

    #[inline]
    fn start(&mut self, due: u64, payload: u32) -> Self::Key {
        self.0.insert(due, payload)
    }

    #[inline]
    fn cancel(&mut self, key: Self::Key) -> Option<u32> {
        Some(self.0.remove(key))
    }

    #[inline]
    fn reschedule(&mut self, key: Self::Key, due: u64) -> Self::Key {
        self.0.reset(key, due);
        key
    }

    #[inline]
    fn advance(&mut self, now: u64, fire: &mut impl FnMut(u32)) {
        while let Some(payload) = self.0.poll(now) {
            fire(payload);
        }
    }

    fn next_exact(&mut self) -> Next {
        self.0.iter().map(|(due, _)| due).min().into()
    }

    #[inline]
    fn next_bound(&mut self) -> Next {
        self.0.next_timeout().into()
    }
}
