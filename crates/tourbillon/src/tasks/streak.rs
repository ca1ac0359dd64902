//! Cooperative yielding: a task with a long backlog yields to its runtime regularly.

use std::task::{Poll, Waker};

/// The largest number of results in a row before a task yields.
const MOST: u32 = 128;

/// The number of results that a task received in a row without waiting.
#[derive(Default)]
pub(super) struct Streak(u32);

impl Streak {
    /// Polls. After [`MOST`] results in a row, wakes the task and returns `Pending` once instead.
    pub(super) fn poll<T>(&mut self, waker: &Waker, poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
        if self.0 == MOST {
            self.0 = planted!("blind.streak-never-begins-anew", self.0, 0);
            planted!("tasks.a-task-that-yields-is-not-woken", (), waker.wake_by_ref());
            return Poll::Pending;
        }
        let polled = poll();
        let waited = planted!("tasks.streak-outlives-a-wait", self.0, 0);
        self.0 = if polled.is_ready() { self.0 + 1 } else { waited };
        polled
    }
}
