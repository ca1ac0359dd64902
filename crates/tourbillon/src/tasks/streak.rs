//! Cooperative yielding: a task with a long backlog returns to its runtime now and then.

use std::task::{Poll, Waker};

/// The most results in a row before a task yields.
const MOST: u32 = 128;

/// How many results a task was given in a row, without waiting once.
#[derive(Default)]
pub(super) struct Streak(u32);

impl Streak {
    /// Polls. After [`MOST`] results in a row it wakes the task and returns `Pending` once instead.
    pub(super) fn poll<T>(&mut self, waker: &Waker, poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
        if self.0 == MOST {
            self.0 = planted!("blind.streak-never-begins-anew", self.0, 0);
            planted!("tasks.a-task-that-yields-is-not-woken", (), waker.wake_by_ref());
            return Poll::Pending;
        }
        let polled = poll();
        self.0 = if polled.is_ready() { self.0 + 1 } else { 0 };
        polled
    }
}
