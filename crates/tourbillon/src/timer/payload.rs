//! The payload that a `Timer` stores in the wheel.
//!
//! A callback that runs once is stored in the wheel itself, if it is [small](super::inline). A callback that may run
//! again, or waits for the wall clock, is boxed. While a callback that may run again runs, it is out of the wheel, and
//! a *mark* in the wheel keeps its place, its key and its lease. The state that a timer's handles read is in its
//! [lease](crate::leases):
//!
//! | state | written | by the thread that |
//! |---|---|---|
//! | pending | under the shard's lock | arms it, or arms it again |
//! | running | under the shard's lock, with the claim | runs it |
//! | fired | under the shard's lock, when the callback has returned or panicked | runs it |
//! | cancelled | under the shard's lock, with the removal of the timer, or of its mark during a run | cancels it |
//! | handed back | under the shard's lock, with the removal | stops the engine, or runs it during the stop |

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use super::TimerShard;
use super::callback::Callback;
use super::context::Context;
use super::inline::Inline;
use crate::clock::EngineClock;
use crate::contain::contain;
use crate::leases::{Lease, Leases, State};

pub(crate) enum Task {
    /// A callback that runs once.
    Once(Inline, Lease),
    /// A callback that may run again, or waits for the wall clock.
    Boxed(Box<dyn Callback>, Lease),
    /// The mark of a repeating timer that is running: the running thread has the callback.
    Running(Lease),
    Alarm(Arc<dyn Alarm>),
}

impl Task {
    /// Wraps a callback that runs once. `lease` says how the caller refers to the timer: `BY_KEY`, or by a handle.
    #[inline(always)]
    pub(crate) fn once<F: FnOnce(&Context<'_>) + Send + 'static>(
        callback: F,
        lease: Lease,
    ) -> Self {
        Task::Once(Inline::new(callback), lease)
    }

    /// The lease that the timer shares with its handles.
    #[inline]
    pub(crate) fn lease(&mut self) -> Option<&mut Lease> {
        match self {
            Task::Once(_, lease) | Task::Boxed(_, lease) | Task::Running(lease) => Some(lease),
            Task::Alarm(_) => None,
        }
    }

    /// Records how the timer ended. The shard's lock is held.
    #[inline]
    pub(crate) fn mark_ended(&mut self, state: State, leases: &mut Leases) {
        if let Some(lease) = self.lease().filter(|lease| lease.is_held()) {
            leases.end(std::mem::replace(lease, Lease::NONE), state);
        }
    }

    /// Drops the lease after the last handle is gone. The shard's lock is held.
    #[inline]
    pub(crate) fn forget_lease(&mut self, leases: &mut Leases) {
        if let Some(lease) = self.lease().filter(|lease| lease.is_held()) {
            leases.release(std::mem::replace(lease, Lease::NONE));
        }
    }

    /// Returns the callback, of type `F`, if the task was not armed.
    pub(crate) fn give_back<F: 'static>(self) -> F {
        let callback = match self {
            Task::Once(callback, _) => callback.take(),
            Task::Boxed(callback, _) => {
                callback.into_any().downcast().ok().map(|callback| *callback)
            }
            Task::Running(_) | Task::Alarm(_) => None,
        };
        callback.expect("it is what was to be armed")
    }

    /// Prefetches the callback.
    #[inline]
    pub(crate) fn touch(&self, leases: &Leases) {
        match self {
            Task::Once(callback, lease) => {
                callback.touch();
                if lease.is_held() {
                    black_box(leases.state(*lease));
                }
            }
            Task::Boxed(callback, _) => {
                black_box(callback.can_repeat());
            }
            Task::Running(_) => {}
            Task::Alarm(alarm) => {
                black_box(alarm.touch());
            }
        }
    }

    /// Whether it can be armed again.
    pub(crate) fn can_repeat(&self) -> bool {
        matches!(self, Task::Boxed(callback, _) if callback.can_repeat())
    }

    /// Records that the timer was moved and no longer waits for the wall clock. The shard's lock is held.
    #[inline]
    pub(crate) fn moved(&self) {
        if let Task::Boxed(callback, _) = self {
            if let Some(plan) = callback.plan() {
                planted!("timer.moved-wall-timer-waits-for-the-wall", (), plan.moved());
            }
        }
    }

    /// Starts the timer. If it waits for the wall clock and must wait longer, returns the time left instead.
    ///
    /// The shard's lock is held.
    pub(crate) fn not_yet(&self, clock: &EngineClock) -> Option<Duration> {
        let Task::Boxed(callback, _) = self else { return None };
        callback.plan()?.start(clock)
    }

    /// Drops a callback that will not run again; `state` says why. No lock is held.
    #[inline]
    pub(super) fn discard(self, state: State, shard: &TimerShard) {
        match self {
            // Most callbacks own nothing that needs a drop.
            Task::Once(callback, _) if !callback.needs_drop() => std::mem::forget(callback),
            Task::Running(_) => {}
            task => task.discard_owned(state, shard),
        }
    }

    #[cold]
    #[inline(never)]
    fn discard_owned(mut self, state: State, shard: &TimerShard) {
        let discard = || {
            let told = !planted!(
                "third.wait-not-told-that-its-driver-is-gone",
                matches!(self, Task::Alarm(_)),
                false
            );
            if told {
                self.will_not_run(state, shard);
            }
            drop(self);
        };
        planted!("timer.drop-of-a-callback-not-contained", discard(), {
            contain(shard, discard);
        });
    }

    /// Notifies the callback that it will not run again. No lock is held, and the caller contains panics.
    pub(super) fn will_not_run(&mut self, state: State, shard: &TimerShard) {
        match self {
            Task::Boxed(callback, _) => callback.will_not_run(state, shard),
            Task::Alarm(alarm) => alarm.forget(),
            Task::Once(..) | Task::Running(_) => {}
        }
    }
}

/// The payload of another front-end of this crate. It contains panics of user code itself.
pub(crate) trait Alarm: Send + Sync {
    /// Called at the deadline, where callbacks run, with no lock held.
    fn notify(&self);
    /// Called, at least once, when it will not be notified again, with no lock held.
    fn forget(&self);
    /// Prefetches it.
    fn touch(&self) -> u8;
}
