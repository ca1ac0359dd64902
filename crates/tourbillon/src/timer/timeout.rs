//! The handle of one timer.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tourbillon_wheel::{self as wheel, RescheduleError};

use super::TimerShard;
use super::payload::Task;
use crate::clock::nanoseconds;
use crate::key::Key;
use crate::leases::{Lease, State};
use crate::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The handle of one timer.
///
/// Dropping it does not affect the timer. Clones refer to the same timer. What it reports stays exact as long as it
/// lives.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{State, Timer};
///
/// let timer = Timer::new();
/// let timeout = timer.schedule(Duration::from_secs(30), |_| ())?;
/// timeout.reschedule(Duration::from_secs(60))?;
/// assert!(timeout.remaining().unwrap() > Duration::from_secs(30));
/// assert!(timeout.cancel(), "it will never start");
/// assert_eq!(timeout.state(), State::Cancelled);
/// assert!(!timeout.cancel(), "it was cancelled before");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Timeout {
    shard: Arc<TimerShard>,
    key: wheel::Key,
    /// The timer's lease in the shard, unless `over` is set.
    lease: Lease,
    /// How the timer ended, if its [lease](crate::leases) was freed before the handle was dropped; otherwise `Pending`.
    ///
    /// Relaxed: it is read and written under the shard's lock, or by the thread that drops the handle.
    over: AtomicU8,
}

impl Timeout {
    #[inline]
    pub(super) fn new(
        shard: Arc<TimerShard>,
        key: wheel::Key,
        lease: Lease,
        over: Option<State>,
    ) -> Self {
        Timeout { shard, key, lease, over: AtomicU8::new(over.unwrap_or(State::Pending) as u8) }
    }

    /// How the timer ended, if the lease was freed.
    #[inline]
    fn over(&self) -> Option<State> {
        let over = self.over.load(Relaxed);
        (over != State::Pending as u8).then(|| State::ALL[usize::from(over)])
    }

    /// Cancels the timer. `true` means that it never starts (again).
    ///
    /// `false` means that it has started, was already cancelled, or was handed back.
    ///
    /// A [repeating](crate::Timer::schedule_repeating) timer that is running finishes its current run.
    pub fn cancel(&self) -> bool {
        if planted!("timer.cancel-in-a-run-forgotten", self.state() == State::Running, false) {
            return true;
        }
        let cancelled = self.shard.cancel(self.key, |_task, kept| {
            if kept.leases.cancel(self.lease) {
                let over =
                    planted!("timer.handle-forgets-its-cancel", State::Pending, State::Cancelled);
                let over = planted!(
                    "timer.cancelled-in-run-says-fired",
                    if matches!(_task, Task::Running(_)) { State::Fired } else { over },
                    over
                );
                self.over.store(over as u8, Relaxed);
            }
        });
        let Some(task) = cancelled else { return false };
        task.discard(State::Cancelled, &self.shard);
        true
    }

    /// Moves the deadline to the given delay from now.
    ///
    /// Moving it to later, as a keep-alive does, is the cheapest operation of all.
    ///
    /// # Errors
    /// If the timer is not pending, or memory is exhausted. It then keeps its deadline.
    pub fn reschedule(&self, after: Duration) -> Result<(), RescheduleError> {
        self.move_to(self.shard.context.clock.now() + nanoseconds(after))
    }

    /// Moves the deadline to the given instant.
    ///
    /// # Errors
    /// As [`reschedule`](Timeout::reschedule).
    pub fn reschedule_at(&self, at: Instant) -> Result<(), RescheduleError> {
        self.move_to(self.shard.context.clock.time(at))
    }

    pub(crate) fn move_to(&self, deadline: tourbillon_wheel::Time) -> Result<(), RescheduleError> {
        self.shard.reschedule(self.key, deadline)
    }

    /// The deadline, if the timer is pending.
    pub fn deadline(&self) -> Option<Instant> {
        let time = self.shard.deadline(self.key)?;
        Some(self.shard.context.clock.instant(time))
    }

    /// The wall-clock deadline, if it is pending and [waits for the wall clock](crate::Timer::schedule_wall).
    pub fn wall_deadline(&self) -> Option<SystemTime> {
        self.shard.visit(self.key, |_, pending| match pending {
            Ok(Task::Boxed(callback, _)) => callback.plan().and_then(|plan| plan.waits_for()),
            _ => None,
        })
    }

    /// The time left until the deadline, if the timer is pending. Zero if it is due.
    pub fn remaining(&self) -> Option<Duration> {
        let time = self.shard.deadline(self.key)?;
        let now = self.shard.context.clock.now();
        let left = planted!(
            "blind.remaining-of-an-overdue-timer-panics",
            time.units() - now.units(),
            time.units().saturating_sub(now.units())
        );
        Some(Duration::from_nanos(left))
    }

    /// The timer's state. Takes the lock of its shard.
    pub fn state(&self) -> State {
        self.shard.under_lock(|kept| self.over().unwrap_or_else(|| kept.leases.state(self.lease)))
    }

    /// Whether the timer waits for its deadline, or for a thread to run on.
    pub fn is_pending(&self) -> bool {
        self.state() == State::Pending
    }

    /// The timer's key, for code that stores keys instead of handles. It is the same for all runs of a repeating timer.
    pub fn key(&self) -> Key {
        Key::new(self.shard.index, self.key)
    }

    /// Whether its callback has started: it is running or has run. False for a repeating timer between runs.
    ///
    /// Useful in a test that has received a message from the callback: the callback has certainly started, but
    /// [`state`](Timeout::state) stays [`Running`](State::Running) until it has returned, perhaps a moment later.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use tourbillon::Timer;
    ///
    /// let timer = Timer::new();
    /// let (done, heard) = mpsc::channel();
    /// let timeout = timer.schedule(Duration::from_millis(1), move |_| done.send(()).unwrap())?;
    /// heard.recv()?;
    /// assert!(timeout.has_started());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn has_started(&self) -> bool {
        planted!(
            "fourth.cancelled-timer-has-started",
            !self.is_pending(),
            matches!(self.state(), State::Running | State::Fired)
        )
    }

    /// Converts into a guard that cancels the timer when dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::Timer;
    ///
    /// let timer = Timer::new();
    /// {
    ///     let _limit = timer.schedule(Duration::from_secs(5), |_| ())?.cancel_on_drop();
    ///     // Do the work that must not take longer than 5 s.
    /// }
    /// assert_eq!(timer.len(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_on_drop(self) -> CancelOnDrop {
        CancelOnDrop(Some(self))
    }
}

impl Clone for Timeout {
    fn clone(&self) -> Self {
        let over = self.shard.under_lock(|kept| {
            let over = planted!("more.clone-of-a-cancelled-handle-panics", None, self.over());
            if over.is_none() {
                kept.leases.share(self.lease);
            }
            over
        });
        Timeout::new(self.shard.clone(), self.key, self.lease, over)
    }
}

impl Drop for Timeout {
    #[inline]
    fn drop(&mut self) {
        if self.over.load(Relaxed) == State::Pending as u8 {
            self.release();
        }
    }
}

impl Timeout {
    /// Drops the handle's hold on the lease.
    #[inline(never)]
    fn release(&self) {
        self.shard.visit(self.key, |kept, pending| {
            let held =
                planted!("timer.handle-of-a-timer-that-is-over-leaks", pending.is_ok(), true);
            if held && kept.leases.release(self.lease) {
                // Only the timer still holds the lease, and no handle can read it.
                pending.into_iter().for_each(|task| task.forget_lease(&mut kept.leases));
            }
        });
    }
}

impl fmt::Debug for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout").field("key", &self.key()).field("state", &self.state()).finish()
    }
}

/// A guard that cancels its timer when dropped.
#[derive(Debug)]
#[must_use = "dropped at once, it cancels at once"]
pub struct CancelOnDrop(Option<Timeout>);

impl CancelOnDrop {
    /// Returns the handle, so that dropping it does not cancel.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::Timer;
    ///
    /// let timer = Timer::new();
    /// let guard = timer.schedule(Duration::from_secs(5), |_| ())?.cancel_on_drop();
    /// drop(guard.keep());
    /// assert_eq!(timer.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keep(mut self) -> Timeout {
        planted!("more.kept-guard-cancels", self.0.clone(), self.0.take())
            .expect("it is there until it is dropped")
    }
}

impl std::ops::Deref for CancelOnDrop {
    type Target = Timeout;
    fn deref(&self) -> &Timeout {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(timeout) = &self.0 {
            planted!(
                "fifth.guard-dropped-by-a-panic-does-not-cancel",
                !std::thread::panicking() && timeout.cancel(),
                timeout.cancel()
            );
        }
    }
}
