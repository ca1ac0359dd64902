//! scheduled-thread-pool: a heap behind one lock, and threads that wait for due jobs.

use std::time::{Duration, Instant};

use scheduled_thread_pool::{JobHandle, OnPoolDropBehavior, ScheduledThreadPool};

use crate::league::Kind;
use crate::timer::contestant::{Contestant, Seat};
use crate::timer::sink;

pub struct Pool(ScheduledThreadPool);

impl Contestant for Pool {
    type Seat<'a> = &'a Self;
    type Handle = JobHandle;
    const NAME: &'static str = "scheduled-thread-pool";
    const KIND: Kind = Kind::Peer;
    const SETTINGS: &'static str = "a thread a core; what is cancelled stays until it is due";

    fn new() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let builder = ScheduledThreadPool::builder().num_threads(threads);
        Pool(builder.on_drop_behavior(OnPoolDropBehavior::DiscardPendingScheduled).build())
    }

    fn sit(&self, _number: usize) -> &Self {
        self
    }

    fn absent(row: &str) -> Option<&'static str> {
        (row == "reschedule").then_some("has no verb that moves a timer")
    }
}

impl Seat for &Pool {
    type Handle = JobHandle;

    #[inline]
    fn schedule(&mut self, after: Duration, payload: u64) -> JobHandle {
        self.0.execute_after(after, move || sink::fired(payload))
    }

    #[inline]
    fn cancel(&mut self, handle: JobHandle) -> bool {
        handle.cancel();
        true
    }

    fn fire_at(&mut self, at: Instant, payload: u64) {
        let after = at.saturating_duration_since(Instant::now());
        self.0.execute_after(after, move || sink::fired(payload));
    }
}
