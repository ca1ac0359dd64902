//! What a `Timer` keeps in the wheel.
//!
//! A callback that runs once lies in the wheel itself, if it is [small](super::small). What its handles need to know of
//! it is in a [lease](super::leases). One that may run again, or waits for the wall clock, is
//! [shared](super::shared) with its handles. Either way they tell the truth as long as they live:
//!
//! | state | written | by |
//! |---|---|---|
//! | pending | under the shard's lock | who arms it, again too |
//! | running | under the shard's lock, with the claim | who runs it |
//! | fired | when the callback has returned or panicked, if it is running still | who runs it |
//! | cancelled | under the shard's lock, with the removal; or during a run, if it can repeat | who cancels |
//! | handed back | under the shard's lock, with the removal | who stops the engine |

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use super::context::Context;
use super::leases::{Lease, Leases, State};
use super::shared::Shared;
use super::small::Small;
use crate::clock::EngineClock;
use crate::contain::contain;
use crate::timer::TimerShard;

pub(crate) enum Task {
    /// A callback that runs once.
    Once(Once),
    Shared(Arc<dyn Shared>),
    Alarm(Arc<dyn Alarm>),
}

/// In this order, and with four bytes for `named`, where the compiler also writes which kind of task it is: then a copy
/// is made of whole words, and who reads one of them next need not wait for two writes.
#[repr(C)]
pub(crate) struct Once {
    pub(super) callback: Small,
    pub(super) named: Named,
    /// `NONE` if no handle is left.
    pub(super) lease: Lease,
}

/// How the caller names a timer.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Named {
    ByKey,
    ByHandle,
}

impl Task {
    #[inline]
    pub(crate) fn once<F: FnOnce(&Context<'_>) + Send + 'static>(
        callback: F,
        named: Named,
    ) -> Self {
        Task::Once(Once { callback: Small::new(callback), named, lease: Lease::NONE })
    }

    /// It has been armed, and holds a lease together with its first handle. The shard's lock is held.
    #[inline]
    pub(crate) fn hold(&mut self, held: Lease) {
        if let Task::Once(Once { lease, .. }) = self {
            *lease = held;
        }
    }

    /// It has ended without a start. The shard's lock is held.
    #[inline]
    pub(crate) fn mark_ended(&mut self, state: State, leases: &mut Leases) {
        match self {
            Task::Once(Once { lease, .. }) => {
                leases.end(std::mem::replace(lease, Lease::NONE), state);
            }
            Task::Shared(shared) => shared.cell().set(state),
            Task::Alarm(_) => {}
        }
    }

    /// It was cancelled. The shard's lock is held. What is left has to be dropped when it is not: nothing, mostly.
    #[inline]
    pub(crate) fn cancelled(mut self, leases: &mut Leases) -> Option<Task> {
        self.mark_ended(State::Cancelled, leases);
        self.left()
    }

    /// What has to be dropped of it with no lock held: nothing, mostly.
    #[inline]
    pub(crate) fn left(self) -> Option<Task> {
        match self {
            Task::Once(once) if !once.callback.needs_drop() => {
                std::mem::forget(once);
                None
            }
            task => Some(task),
        }
    }

    /// It starts. Says whether it can arm itself again. The shard's lock is held.
    #[inline]
    pub(crate) fn mark_started(&mut self, leases: &mut Leases) -> bool {
        match self {
            Task::Once(Once { lease, .. }) => *lease = leases.start(*lease),
            Task::Shared(shared) => shared.cell().set(State::Running),
            Task::Alarm(_) => {}
        }
        self.can_repeat()
    }

    /// The last of its handles is gone: it needs no lease. The shard's lock is held.
    #[inline]
    pub(crate) fn forget_lease(&mut self, leases: &mut Leases) {
        if let Task::Once(Once { lease, .. }) = self {
            leases.release(std::mem::replace(lease, Lease::NONE));
        }
    }

    /// The callback, which was not armed: it runs once, and is of that type.
    pub(crate) fn give_back<F: 'static>(self) -> F {
        let callback = match self {
            Task::Once(once) => once.callback.take(),
            Task::Shared(_) | Task::Alarm(_) => None,
        };
        callback.expect("it is what was to be armed")
    }

    /// Reads a byte of its memory, so that it is near when the callback runs.
    #[inline]
    pub(crate) fn touch(&self, leases: &Leases) {
        match self {
            Task::Once(Once { callback, lease, .. }) => {
                callback.touch();
                if *lease != Lease::NONE {
                    black_box(leases.state(*lease));
                }
            }
            // Both of its ends: they may lie in two cache lines.
            Task::Shared(shared) => {
                black_box(shared.cell().get() as u8 ^ Arc::strong_count(shared) as u8);
            }
            Task::Alarm(alarm) => {
                black_box(alarm.touch());
            }
        }
    }

    /// Whether it can arm itself again.
    pub(crate) fn can_repeat(&self) -> bool {
        matches!(self, Task::Shared(shared) if shared.can_repeat())
    }

    /// It was moved: it no longer waits for the wall clock. The shard's lock is held.
    #[inline]
    pub(crate) fn moved(&self) {
        if let Task::Shared(shared) = self {
            if let Some(plan) = shared.wall() {
                planted!("timer.moved-wall-timer-waits-for-the-wall", (), plan.moved());
            }
        }
    }

    /// If the timer waits for the wall clock, and that is not there yet: how long it has to wait still. If not, it
    /// starts. The shard's lock is held.
    pub(crate) fn not_yet(&self, clock: &EngineClock) -> Option<Duration> {
        let Task::Shared(shared) = self else { return None };
        shared.wall()?.start(clock)
    }

    /// Drops the callback. Foreign code: no lock is held, and the caller contains it.
    pub(crate) fn discard(self, shard: &TimerShard) {
        match self {
            Task::Once(once) => drop(once),
            Task::Shared(shared) => shared.discard(shard),
            Task::Alarm(alarm) => {
                planted!(
                    "third.wait-not-told-that-its-driver-is-gone",
                    drop(alarm),
                    alarm.forget()
                );
            }
        }
    }

    /// The engine was stopped: tells a callback that listens. No lock is held.
    pub(crate) fn handed_back(&self, shard: &TimerShard) {
        match self {
            Task::Shared(shared) if shared.listens() => shared.discard(shard),
            Task::Alarm(alarm) => {
                planted!("timer.stop-tells-no-operation", None, contain(shard, || alarm.forget()));
            }
            _ => {}
        }
    }
}

/// What another face keeps in the wheel: something of ours, which sees to the user's code itself.
pub(crate) trait Alarm: Send + Sync {
    /// The deadline has come. Where callbacks run, with no lock held.
    fn ring(&self);
    /// It will not ring any more; told at least once, with no lock held.
    fn forget(&self);
    /// Reads a byte of it.
    fn touch(&self) -> u8;
}
