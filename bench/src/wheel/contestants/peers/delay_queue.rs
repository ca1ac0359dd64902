//! `tokio_util::time::DelayQueue`, under tokio's paused clock.
//!
//! The queue reads the time through a `Sleep`, which completes only when a runtime has turned its timer driver. So a
//! step of virtual time is `tokio::time::advance`, which moves the paused clock and runs the runtime for one turn; no
//! cheaper call makes the queue notice the new time. The queue is polled by hand with a waker that does nothing. So no
//! task is scheduled, and tokio's cooperative budget, which would end a step after 128 timers, does not apply.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::task::coop::unconstrained;
use tokio::time::Instant;

use crate::league::Kind;
use crate::wheel::contestant::{Contestant, Next};

pub struct DelayQueue {
    queue: tokio_util::time::DelayQueue<u32>,
    epoch: Instant,
    now: u64,
    runtime: &'static Runtime,
    _context: EnterGuard<'static>,
}

impl DelayQueue {
    #[inline]
    fn at(&self, moment: u64) -> Instant {
        self.epoch + Duration::from_millis(moment)
    }

    #[inline]
    fn poll(&mut self, fire: &mut impl FnMut(u32)) {
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(expired)) = self.queue.poll_expired(&mut context) {
            fire(expired.into_inner());
        }
    }
}

impl Contestant for DelayQueue {
    type Key = tokio_util::time::delay_queue::Key;
    const NAME: &'static str = "tokio-util DelayQueue 0.7";
    const KIND: Kind = Kind::Peer;
    const SETTINGS: &'static str =
        "paused clock, a step is time::advance; traced to 3·2^34 ms: above, it panics or hangs";
    /// Less than its limit of 2^36 - 1 ms, for two reasons.
    ///
    /// Its hand lags behind the clock while nothing is due, and it panics if a delay is too long when counted from the
    /// hand. Near the limit, where a timer may share a slot of the top level with the current time, `poll_expired` has
    /// been observed to hang.
    const DELAYS: (u64, u64) = (0, 3 << 34);

    fn new(_expected: usize) -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        // Leaked so that its context can be entered once, not at each call: a few kilobytes for each queue.
        let runtime: &'static Runtime = Box::leak(Box::new(runtime));
        let context = runtime.enter();
        let queue = tokio_util::time::DelayQueue::new();
        DelayQueue { queue, epoch: Instant::now(), now: 0, runtime, _context: context }
    }

    #[inline]
    fn start(&mut self, due: u64, payload: u32) -> Self::Key {
        self.queue.insert_at(payload, self.at(due))
    }

    #[inline]
    fn cancel(&mut self, key: Self::Key) -> Option<u32> {
        Some(self.queue.remove(&key).into_inner())
    }

    #[inline]
    fn reschedule(&mut self, key: Self::Key, due: u64) -> Self::Key {
        self.queue.reset_at(&key, self.at(due));
        key
    }

    #[inline]
    fn advance(&mut self, now: u64, fire: &mut impl FnMut(u32)) {
        if now > self.now {
            self.runtime.block_on(tokio::time::advance(Duration::from_millis(now - self.now)));
            self.now = now;
        }
        self.poll(fire);
    }

    /// Runs all steps in one `block_on`, because entering it costs twice as much as a step.
    fn advance_through(&mut self, moments: &[u64], fire: &mut impl FnMut(u32)) {
        let runtime = self.runtime;
        runtime.block_on(unconstrained(async {
            for &now in moments {
                tokio::time::advance(Duration::from_millis(now - self.now)).await;
                self.now = now;
                self.poll(fire);
            }
        }));
    }

    fn next_exact(&mut self) -> Next {
        let due = self.queue.peek().map(|key| self.queue.deadline(&key));
        due.map(|at| at.duration_since(self.epoch).as_millis() as u64).into()
    }
}
