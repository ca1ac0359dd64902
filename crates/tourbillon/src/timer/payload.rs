//! What a `Timer` keeps in the wheel.
//!
//! A callback that runs once lies in the wheel itself, if it is [small](super::inline). One that may run again, or
//! waits for the wall clock, lies in a box. While it runs it is out of the wheel, and a mark keeps its place, its key
//! and its lease. What its handles need to know of a timer is in its [lease](super::leases):
//!
//! | state | written | by |
//! |---|---|---|
//! | pending | under the shard's lock | who arms it, again too |
//! | running | under the shard's lock, with the claim | who runs it |
//! | fired | under the shard's lock, when the callback has returned or panicked | who runs it |
//! | cancelled | under the shard's lock, with the removal; also during a run, of the mark | who cancels |
//! | handed back | under the shard's lock, with the removal | who stops the engine, or runs it during the stop |

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use super::TimerShard;
use super::callback::Callback;
use super::context::Context;
use super::inline::Inline;
use super::leases::{Lease, Leases, State};
use crate::clock::EngineClock;
use crate::contain::contain;

pub(crate) enum Task {
    /// A callback that runs once.
    Once(Inline, Lease),
    /// A callback that may run again, or waits for the wall clock.
    Boxed(Box<dyn Callback>, Lease),
    /// The mark of a timer that runs and may run again: whoever runs it has the callback.
    Running(Lease),
    Alarm(Arc<dyn Alarm>),
}

impl Task {
    /// A callback that runs once. The lease says how the caller names the timer: `BY_KEY`, or else by a handle.
    #[inline(always)]
    pub(crate) fn once<F: FnOnce(&Context<'_>) + Send + 'static>(
        callback: F,
        lease: Lease,
    ) -> Self {
        Task::Once(Inline::new(callback), lease)
    }

    /// The lease that it holds together with its handles.
    #[inline]
    pub(crate) fn lease(&mut self) -> Option<&mut Lease> {
        match self {
            Task::Once(_, lease) | Task::Boxed(_, lease) | Task::Running(lease) => Some(lease),
            Task::Alarm(_) => None,
        }
    }

    /// It has ended so. The shard's lock is held.
    #[inline]
    pub(crate) fn mark_ended(&mut self, state: State, leases: &mut Leases) {
        if let Some(lease) = self.lease() {
            leases.end(std::mem::replace(lease, Lease::NONE), state);
        }
    }

    /// The last of its handles is gone: it needs no lease. The shard's lock is held.
    #[inline]
    pub(crate) fn forget_lease(&mut self, leases: &mut Leases) {
        if let Some(lease) = self.lease() {
            leases.release(std::mem::replace(lease, Lease::NONE));
        }
    }

    /// The callback, which was not armed: it runs once, and is of that type.
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

    /// It was moved: it no longer waits for the wall clock. The shard's lock is held.
    #[inline]
    pub(crate) fn moved(&self) {
        if let Task::Boxed(callback, _) = self {
            if let Some(plan) = callback.plan() {
                planted!("timer.moved-wall-timer-waits-for-the-wall", (), plan.moved());
            }
        }
    }

    /// If the timer waits for the wall clock, and that is not there yet: how long it has to wait still. If not, it
    /// starts. The shard's lock is held.
    pub(crate) fn not_yet(&self, clock: &EngineClock) -> Option<Duration> {
        let Task::Boxed(callback, _) = self else { return None };
        callback.plan()?.start(clock)
    }

    /// Drops what is left of a callback that will not run any more, with no lock held; `state` says why.
    #[inline]
    pub(super) fn discard(self, state: State, shard: &TimerShard) {
        match self {
            // Most callbacks own nothing: then there is nothing to do.
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

    /// Tells a callback that listens that it will not run any more. No lock is held, and the caller contains it.
    pub(super) fn will_not_run(&mut self, state: State, shard: &TimerShard) {
        match self {
            Task::Boxed(callback, _) => callback.will_not_run(state, shard),
            Task::Alarm(alarm) => alarm.forget(),
            Task::Once(..) | Task::Running(_) => {}
        }
    }
}

/// What another face keeps in the wheel: something of ours, which sees to the user's code itself.
pub(crate) trait Alarm: Send + Sync {
    /// The deadline has come. Where callbacks run, with no lock held.
    fn notify(&self);
    /// It will not ring any more; told at least once, with no lock held.
    fn forget(&self);
    /// Reads a byte of it.
    fn touch(&self) -> u8;
}
