//! The timers that a stop hands back.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Instant;

use tourbillon_wheel::Time;

use super::context::{Context, Held};
use super::payload::Task;
use super::{Timeout, TimerCore};
use crate::contain::contain;
use crate::key::Key;
use crate::leases::{Lease, State};

/// A timer that was pending when the engine stopped, with its callback.
///
/// Dropping it drops the callback.
///
/// The next attempt of a [retry](crate::Timer::retry) is handed back too, but running it does nothing: the retry's
/// outcome was already delivered.
pub struct Unfired {
    pub(super) core: Arc<TimerCore>,
    pub(super) key: Key,
    pub(super) deadline: Time,
    /// `Some` until it is run or dropped.
    pub(super) task: Option<Task>,
}

impl Unfired {
    /// The timer's key.
    pub fn key(&self) -> Key {
        self.key
    }

    /// Whether it is the timer of this handle: the same key on the same engine.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::Timer;
    ///
    /// let timer = Timer::new();
    /// let one = timer.schedule(Duration::from_secs(1), |_| ())?;
    /// let other = timer.schedule(Duration::from_secs(2), |_| ())?;
    /// one.cancel();
    /// let unfired = timer.stop();
    /// assert!(unfired[0].is_of(&other) && !unfired[0].is_of(&one));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_of(&self, timeout: &Timeout) -> bool {
        // Timers of different engines never have equal keys.
        timeout.key() == self.key
    }

    /// The timer's deadline.
    pub fn deadline(&self) -> Instant {
        self.core.context.clock.instant(self.deadline)
    }

    /// Runs the callback on this thread now. If the callback arms itself again, this has no effect.
    ///
    /// A panic propagates to the caller, unless the timer [survives panics](crate::Repeat::survive_panics): in that
    /// case the panic is reported and counted as usual.
    pub fn run(mut self) {
        let Some(task) = self.task.take() else { return };
        let shard = &self.core.shards[self.key.shard()];
        let context = |held, plan| Context {
            core: &self.core,
            shard,
            key: self.key.inner(),
            held,
            deadline: self.deadline,
            started: planted!(
                "fifth.handed-back-run-is-never-late",
                self.deadline,
                self.core.context.clock.now()
            ),
            again: Cell::new(None),
            may_repeat: planted!("timer.unfired-says-that-it-repeats", true, false),
            plan,
        };
        match task {
            Task::Once(callback, lease) => {
                let by_key = planted!(
                    "sixth.handed-back-by-key-has-a-handle",
                    false,
                    lease == Lease::BY_KEY
                );
                callback.run(&context(if by_key { Held::ByKey } else { Held::HandedBack }, None));
            }
            Task::Boxed(mut callback, _) => {
                let plan = callback.plan().cloned();
                let context = context(Held::HandedBack, plan.as_ref());
                let ran = catch_unwind(AssertUnwindSafe(|| callback.call(&context)));
                // After a panic, captured values are dropped here, not during the unwinding, where a second panic would
                // abort.
                planted!("timer.unfired-keeps-its-callback", std::mem::forget(callback), {
                    contain(shard, || drop(callback));
                });
                planted!(
                    "sixth.panic-of-a-handed-back-repetition-is-swallowed",
                    ran.unwrap_or_default(),
                    ran.unwrap_or_else(|payload| resume_unwind(payload))
                );
            }
            Task::Alarm(alarm) => alarm.notify(),
            Task::Running(_) => {}
        }
    }
}

impl Drop for Unfired {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.discard(State::HandedBack, &self.core.shards[self.key.shard()]);
        }
    }
}

impl fmt::Debug for Unfired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unfired").field("key", &self.key).finish_non_exhaustive()
    }
}
