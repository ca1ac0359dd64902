//! A shard: one wheel under one lock.
//!
//! Threads keep to their own shard when they arm, so the lock is nearly always free; whoever cancels goes to the
//! shard that the timer is in. The lock is held for nanoseconds: no user code and no drop of a user's value runs under
//! it. What leaves the wheel is returned to the caller, who drops it or runs it.
//!
//! Taking a timer out of the wheel is the claim: the one atomic step that decides between fire, cancel and hand back
//! is the shard's lock. An `advance` only makes timers *ready*; they stay in the wheel, and can be cancelled and
//! moved, until someone claims them to run them there and then.
//!
//! Invariant, under the lock: `armed = fired + cancelled + handed back + wheel.len()`, and `next` is what the
//! signal says of this shard.

mod drive;
mod look;
#[cfg(feature = "tasks")]
mod told;

use std::sync::Arc;

use tourbillon_wheel::{Expired, Full, GeometryError, Key, RescheduleError, Time};

use super::counts::{Counts, Lateness};
use super::hub::Hub;
use super::leases::{Lease, Leases, State as Became};
use super::signal::NEVER;
#[cfg(feature = "tasks")]
use super::signal::Padded;
use super::wheels::{AnyWheel, Geometry};
use crate::clock::BEGIN;
#[cfg(feature = "tasks")]
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::AtomicUsize;
use crate::sync::{Mutex, MutexGuard, lock};
#[cfg(feature = "tasks")]
pub(crate) use told::{Gone, Told};

/// When to try again what failed for want of memory, in nanoseconds.
pub(crate) const AGAIN: u64 = 10_000_000;

/// So many ready timers are touched at once.
const AHEAD: usize = 16;

#[repr(align(128))]
pub(crate) struct Shard<T> {
    pub(crate) index: usize,
    pub(crate) hub: Arc<Hub>,
    state: Mutex<State<T>>,
    /// How many are ready, for those who look for work without the lock.
    ready: AtomicUsize,
    /// Everything that was filed due by then has been claimed, for those who ask without the lock. `NEVER` while that
    /// is not so, and after a stop.
    #[cfg(feature = "tasks")]
    claimed: Padded<AtomicU64>,
    /// Nanoseconds.
    #[cfg(feature = "tasks")]
    pub(crate) tick: u64,
}

struct State<T> {
    wheel: AnyWheel<Entry<T>>,
    phase: Phase,
    /// What the signal says of this shard: nothing is due before.
    next: u64,
    counts: Counts,
    lateness: Lateness,
    /// What handles know of their timers. Only a `Timer` has handles.
    leases: Leases,
    /// How many of the ready ones were shown to who claims them.
    shown: usize,
    /// Whether a timer that is ready may have to wait still, by another clock: who claims is asked.
    asks: bool,
    /// Whether the last pass has made ready all that was due.
    #[cfg(feature = "tasks")]
    all_due: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nobody drives the engine yet.
    New,
    Open,
    Stopped,
}

/// What is in the wheel: the value, and the deadline as it was given (the wheel knows only its tick). In this order the
/// value is copied as it will be read: who reads it next need not wait for two writes.
#[repr(C)]
pub(crate) struct Entry<T> {
    pub(crate) value: T,
    pub(crate) deadline: Time,
}

/// A timer that was taken out of the wheel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken<T> {
    pub(crate) key: Key,
    pub(crate) deadline: Time,
    pub(crate) value: T,
}

/// Why a value was not armed.
pub(crate) enum Refused<T> {
    New(T),
    Stopped(T),
    Full(T),
}

impl<T> Shard<T> {
    // Never inlined: it has a wheel on the stack, and those of loom's threads are small.
    #[inline(never)]
    pub(crate) fn new(
        index: usize,
        hub: Arc<Hub>,
        geometry: &Geometry,
        tick: u64,
    ) -> Result<Self, GeometryError> {
        let wheel = AnyWheel::new(geometry, BEGIN, tick)?;
        let state = State {
            wheel,
            phase: Phase::New,
            next: NEVER,
            counts: Counts::default(),
            lateness: Lateness::new(),
            leases: Leases::new(),
            shown: 0,
            asks: false,
            #[cfg(feature = "tasks")]
            all_due: true,
        };
        Ok(Shard {
            index,
            hub,
            state: Mutex::new(state),
            ready: AtomicUsize::new(0),
            #[cfg(feature = "tasks")]
            claimed: Padded(AtomicU64::new(0)),
            #[cfg(feature = "tasks")]
            tick,
        })
    }

    /// Arms a timer, if the limit leaves a place for it.
    #[inline]
    pub(crate) fn arm(&self, deadline: Time, value: T) -> Result<Key, Refused<T>> {
        self.arm_by(value, |state, value| self.insert(state, deadline, value))
    }

    /// Arms a timer that has a handle: `lend` is given the lease that both of them hold, under the lock.
    #[inline]
    pub(crate) fn arm_leased(
        &self,
        deadline: Time,
        value: T,
        lend: impl FnOnce(&mut T, Lease),
    ) -> Result<(Key, Lease), Refused<T>> {
        self.arm_by(value, |state, value| {
            if !state.leases.has_room() {
                return Err(Refused::Full(value));
            }
            let key = planted!(
                "more.refused-handle-keeps-its-record",
                match self.insert(state, deadline, value) {
                    Ok(key) => key,
                    Err(refused) => {
                        state.leases.open(Became::Pending);
                        return Err(refused);
                    }
                },
                self.insert(state, deadline, value)?
            );
            let lease = state.leases.open(Became::Pending);
            if let Some(entry) = state.wheel.get_mut(key) {
                lend(&mut entry.value, lease);
            }
            Ok((key, lease))
        })
    }

    /// Arms a timer under the lock, if the limit leaves a place for it.
    #[inline]
    fn arm_by<R>(
        &self,
        value: T,
        arm: impl FnOnce(&mut State<T>, T) -> Result<R, Refused<T>>,
    ) -> Result<R, Refused<T>> {
        if self.hub.limit.as_ref().is_some_and(|limit| !limit.take()) {
            return Err(Refused::Full(value));
        }
        let armed = arm(&mut lock(&self.state), value);
        self.tell_loop();
        let refused = planted!(
            "later.first-timer-takes-two-places",
            matches!(armed, Err(Refused::Stopped(_) | Refused::Full(_))),
            armed.is_err()
        );
        if planted!("engine.refused-timer-keeps-its-place", false, refused) {
            self.hub.give_back(1);
        }
        armed
    }

    /// Arms a timer that has just run again, if `allowed`; `mark` is given its new key. Both are called under the lock.
    pub(crate) fn rearm(
        &self,
        deadline: Time,
        value: T,
        allowed: impl FnOnce() -> bool,
        mark: impl FnOnce(Key),
    ) -> Result<(), Refused<T>> {
        let mut state = lock(&self.state);
        if !allowed() {
            return Err(Refused::Stopped(value));
        }
        mark(self.insert(&mut state, deadline, value)?);
        drop(state);
        self.tell_loop();
        Ok(())
    }

    #[inline(always)]
    fn insert(&self, state: &mut State<T>, deadline: Time, value: T) -> Result<Key, Refused<T>> {
        match state.phase {
            Phase::Open => {}
            Phase::New => return Err(Refused::New(value)),
            Phase::Stopped => return Err(Refused::Stopped(value)),
        }
        match state.wheel.insert(deadline, Entry { deadline, value }) {
            Ok(key) => {
                state.counts.armed += 1;
                self.settle_next(state, key, deadline);
                Ok(key)
            }
            Err(Full(entry)) => Err(Refused::Full(entry.value)),
        }
    }

    /// Wakes the driver if this timer is now the earliest.
    #[inline]
    fn settle_next(&self, state: &mut State<T>, key: Key, deadline: Time) {
        // A deadline is never after its tick: if it is not earlier, its tick is not.
        if deadline.units() < state.next {
            let due = planted!(
                "later.driver-wakes-before-the-tick",
                Some(deadline),
                state.wheel.due(key)
            );
            self.lower(state, due.map_or(NEVER, Time::units));
        }
    }

    #[cold]
    fn lower(&self, state: &mut State<T>, due: u64) {
        if due < state.next {
            planted!("engine.later-timer-puts-off-the-next", (), state.next = due);
            self.hub.signal.lower(self.index, due);
        }
    }

    /// Takes a pending timer out. `then` is given its value under the lock, and must not drop what is the user's.
    #[inline]
    pub(crate) fn cancel<R>(&self, key: Key, then: impl FnOnce(T, &mut Leases) -> R) -> Option<R> {
        let mut state = lock(&self.state);
        let ready = state.wheel.ready();
        let State { wheel, leases, .. } = &mut *state;
        let done = wheel.cancel_then(key, |entry| then(entry.value, leases));
        let done = planted!(
            "engine.late-cancel-is-counted",
            {
                state.counts.cancelled += u64::from(done.is_none());
                done?
            },
            done?
        );
        state.counts.cancelled += 1;
        planted!("later.cancelled-crowd-keeps-its-memory", (), state.wheel.release_when_empty());
        self.hub.give_back(1);
        self.leave(state, ready);
        Some(done)
    }

    /// Gives up the lock. If a timer that was ready is so no more, says so: a virtual clock may wait for the last of
    /// them to go.
    #[inline]
    fn leave(&self, state: MutexGuard<'_, State<T>>, ready_before: usize) {
        if state.wheel.ready() == ready_before {
            return;
        }
        self.publish_ready(&state);
        drop(state);
        if self.hub.clock.as_virtual().is_some() {
            planted!("third.step-not-told-that-a-ready-timer-left", (), self.hub.quiet.changed());
        }
    }

    /// Moves a pending timer. `mark` sees its value under the lock.
    #[inline]
    pub(crate) fn reschedule(
        &self,
        key: Key,
        deadline: Time,
        mark: impl FnOnce(&T),
    ) -> Result<(), RescheduleError> {
        let mut state = lock(&self.state);
        let ready = state.wheel.ready();
        self.move_to(&mut state, key, deadline, mark)?;
        self.leave(state, ready);
        planted!("engine.moved-earlier-does-not-wake-the-loop", (), self.tell_loop());
        Ok(())
    }

    /// Moves a pending timer to where `deadline` says under the lock, if it does. If there is no memory, it stays.
    pub(crate) fn reschedule_if(&self, key: Key, deadline: impl FnOnce() -> Option<Time>) {
        let mut state = lock(&self.state);
        let ready = state.wheel.ready();
        let Some(deadline) = deadline() else { return };
        if self.move_to(&mut state, key, deadline, |_| ()).is_ok() {
            self.leave(state, ready);
            planted!("more.a-clock-that-is-set-does-not-wake-the-loop", (), self.tell_loop());
        }
    }

    #[inline]
    fn move_to(
        &self,
        state: &mut State<T>,
        key: Key,
        deadline: Time,
        mark: impl FnOnce(&T),
    ) -> Result<(), RescheduleError> {
        state.wheel.reschedule(key, deadline)?;
        let entry = state.wheel.get_mut(key);
        if let Some(entry) = planted!("engine.moved-timer-shows-the-old-deadline", None, entry) {
            entry.deadline = deadline;
            mark(&entry.value);
        }
        planted!("engine.moved-earlier-wakes-nobody", (), self.settle_next(state, key, deadline));
        Ok(())
    }

    /// The deadline of a pending timer, as it was given.
    pub(crate) fn deadline(&self, key: Key) -> Option<Time> {
        lock(&self.state).wheel.get(key).map(|entry| entry.deadline)
    }

    /// Looks at the leases, and at a timer if it is pending.
    #[inline]
    pub(crate) fn with_leases(&self, key: Key, look: impl FnOnce(&mut Leases, Option<&mut T>)) {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let entry = state.wheel.get_mut(key);
        look(&mut state.leases, entry.map(|entry| &mut entry.value));
    }

    /// Counts a timer as armed and handed back if `mark`, called under the lock, returns `true`. Returns the same.
    pub(crate) fn hand_back(&self, mark: impl FnOnce() -> bool) -> bool {
        let mut state = lock(&self.state);
        let marked = mark();
        if marked {
            state.counts.armed += 1;
            state.counts.handed_back += 1;
            self.hub.give_back(1);
        }
        marked
    }

    /// Something that must be decided together with the wheel.
    #[inline]
    pub(crate) fn under_lock<R>(&self, decide: impl FnOnce(&mut Leases) -> R) -> R {
        decide(&mut lock(&self.state).leases)
    }
}

impl<T> From<Expired<Entry<T>>> for Taken<T> {
    #[inline]
    fn from(expired: Expired<Entry<T>>) -> Self {
        let Entry { deadline, value } = expired.value;
        Taken { key: expired.key, deadline, value }
    }
}
