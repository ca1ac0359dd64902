//! The handle of one timer.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tourbillon_wheel::{self as wheel, RescheduleError};

use super::run::discard;
use super::task::{Shared, State, Task};
use crate::clock::nanoseconds;
use crate::engine::shard::Shard;
use crate::key::Key;
use crate::wall::Plan;

/// The handle of one timer. Dropping it changes nothing; clones are the same handle.
///
/// Its answers are exact as long as it lives: it shares an allocation with the callback.
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
#[derive(Clone)]
pub struct Timeout {
    shared: Arc<dyn Shared>,
    shard: Arc<Shard<Task>>,
    /// The key it was first armed with.
    first: wheel::Key,
}

impl Timeout {
    pub(crate) fn new(shared: Arc<dyn Shared>, shard: Arc<Shard<Task>>, first: wheel::Key) -> Self {
        Timeout { shared, shard, first }
    }

    /// Cancels the timer. True means that it will never start (again); false that it has started, was cancelled
    /// before, or was handed back.
    ///
    /// A [repeating](crate::Timer::schedule_repeating) timer that runs at this moment finishes that run.
    pub fn cancel(&self) -> bool {
        let key = self.shared.key(self.first);
        if let Some(task) = self.shard.cancel(key, |task| task.mark(State::Cancelled)) {
            discard(&self.shard, task);
            return true;
        }
        self.shared.can_repeat() && self.cancel_repeating(key)
    }

    /// It was not pending under that key: it runs, or has been armed again since, or is over.
    #[cold]
    fn cancel_repeating(&self, mut key: wheel::Key) -> bool {
        let cell = self.shared.cell();
        loop {
            // Under the lock it cannot be armed again between the look and the mark.
            let current = self.shard.under_lock(|| {
                if cell.get() == State::Running {
                    cell.set(State::Cancelled);
                    return None;
                }
                Some(self.shared.key(self.first))
            });
            match current {
                None => return true,
                Some(current) if current == key => return false,
                Some(current) => key = current,
            }
            if let Some(task) = self.shard.cancel(key, |task| task.mark(State::Cancelled)) {
                discard(&self.shard, task);
                return true;
            }
        }
    }

    /// Moves the timer to so long after now.
    ///
    /// Moving it to later, as a keep-alive does, is the cheapest operation of all.
    ///
    /// # Errors
    /// It is not pending, or there was no memory to move it; it is as it was.
    pub fn reschedule(&self, after: Duration) -> Result<(), RescheduleError> {
        self.move_to(self.shard.hub.clock.now() + nanoseconds(after))
    }

    /// Moves the timer to that moment.
    ///
    /// # Errors
    /// As [`reschedule`](Timeout::reschedule).
    pub fn reschedule_at(&self, at: Instant) -> Result<(), RescheduleError> {
        self.move_to(self.shard.hub.clock.time(at))
    }

    pub(crate) fn move_to(&self, deadline: tourbillon_wheel::Time) -> Result<(), RescheduleError> {
        self.shard.reschedule(self.shared.key(self.first), deadline, Task::moved)
    }

    /// When it is to run, if it is pending.
    pub fn deadline(&self) -> Option<Instant> {
        let time = self.shard.deadline(self.shared.key(self.first))?;
        Some(self.shard.hub.clock.instant(time))
    }

    /// When it is to run by the wall clock, if it is pending and [waits for that](crate::Timer::schedule_wall).
    pub fn wall_deadline(&self) -> Option<SystemTime> {
        self.shared.wall().and_then(Plan::waits_for).filter(|_| self.is_pending())
    }

    /// How long it has to wait, if it is pending: zero if it is due.
    pub fn remaining(&self) -> Option<Duration> {
        let time = self.shard.deadline(self.shared.key(self.first))?;
        let now = self.shard.hub.clock.now();
        Some(Duration::from_nanos(time.units().saturating_sub(now.units())))
    }

    /// What has become of it.
    pub fn state(&self) -> State {
        self.shared.cell().get()
    }

    /// Whether it waits for its deadline, or for a thread to run on.
    pub fn is_pending(&self) -> bool {
        self.state() == State::Pending
    }

    /// Its key, for those who keep that instead.
    pub fn key(&self) -> Key {
        Key::new(self.shard.index, self.shared.key(self.first))
    }

    /// A guard that cancels it when it is dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::Timer;
    ///
    /// let timer = Timer::new();
    /// {
    ///     let _limit = timer.schedule(Duration::from_secs(5), |_| ())?.cancel_on_drop();
    ///     // What must not take longer.
    /// }
    /// assert_eq!(timer.len(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_on_drop(self) -> CancelOnDrop {
        CancelOnDrop(Some(self))
    }
}

impl fmt::Debug for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout").field("key", &self.key()).field("state", &self.state()).finish()
    }
}

/// Cancels its timer when it is dropped.
#[derive(Debug)]
#[must_use = "dropped at once, it cancels at once"]
pub struct CancelOnDrop(Option<Timeout>);

impl CancelOnDrop {
    /// The handle, which no longer cancels when it is dropped.
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
        self.0.take().expect("it is there until it is dropped")
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
            timeout.cancel();
        }
    }
}
