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

use std::sync::Arc;

use tourbillon_wheel::{Expired, Full, GeometryError, Key, Progress, RescheduleError, Time};

use super::counts::{Counts, Lateness};
use super::face::Face;
use super::hub::Hub;
use super::signal::NEVER;
use super::wheels::{AnyWheel, Geometry};
use crate::clock::BEGIN;
use crate::sync::atomic::AtomicUsize;
use crate::sync::{Mutex, MutexGuard, lock};

/// When to try again what failed for want of memory, in nanoseconds.
pub(crate) const AGAIN: u64 = 10_000_000;

/// So many ready timers are touched at once.
const AHEAD: usize = 16;

#[repr(align(128))]
pub(crate) struct Shard<F: Face> {
    pub(crate) index: usize,
    pub(crate) hub: Arc<Hub>,
    geometry: Geometry,
    state: Mutex<State<F>>,
    /// How many are ready, for those who look for work without the lock.
    ready: AtomicUsize,
    /// What the face shows to those who look without the lock.
    pub(crate) shown: F::Shown,
}

type Wheel<F> = AnyWheel<Entry<<F as Face>::Value>>;

struct State<F: Face> {
    wheel: Wheel<F>,
    phase: Phase,
    /// What the signal says of this shard: nothing is due before.
    next: u64,
    counts: Counts,
    lateness: Lateness,
    /// What the face keeps.
    kept: F::Kept,
    /// How many of the ready ones were prefetched.
    touched: usize,
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

/// Why a timer that nobody has cancelled is not pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    Fired,
    /// It was handed back, or it had fired before the engine was stopped.
    Stopped,
}

/// What a timer is given when it is armed, under the lock.
pub(crate) trait ArmWith<F: Face> {
    type Given;
    /// `None` if there is no more of it: the timer is not armed.
    fn give(self, value: &mut F::Value, kept: &mut F::Kept) -> Option<Self::Given>;
    /// The timer was not armed after all.
    fn take_back(given: Self::Given, value: &mut F::Value, kept: &mut F::Kept);
}

/// Nothing.
struct NoMore;

impl<F: Face> ArmWith<F> for NoMore {
    type Given = ();

    #[inline]
    fn give(self, _value: &mut F::Value, _kept: &mut F::Kept) -> Option<()> {
        Some(())
    }

    fn take_back((): (), _value: &mut F::Value, _kept: &mut F::Kept) {}
}

/// Why a value was not armed.
pub(crate) enum Refused<T> {
    New(T),
    Stopped(T),
    Full(T),
}

impl<F: Face> Shard<F> {
    pub(crate) fn new(
        index: usize,
        hub: Arc<Hub>,
        geometry: &Geometry,
        tick: u64,
    ) -> Result<Arc<Self>, GeometryError> {
        Ok(Self::with(Self::make_wheel(geometry, tick)?, index, hub, geometry))
    }

    // Never inlined, nor is the next: each has wheels on the stack, and those of loom's threads are small. In a box it
    // is on one of them at a time.
    #[inline(never)]
    fn make_wheel(geometry: &Geometry, tick: u64) -> Result<Box<Wheel<F>>, GeometryError> {
        AnyWheel::new(geometry, BEGIN, tick).map(Box::new)
    }

    #[inline(never)]
    fn with(wheel: Box<Wheel<F>>, index: usize, hub: Arc<Hub>, geometry: &Geometry) -> Arc<Self> {
        let state = State {
            wheel: *wheel,
            phase: Phase::New,
            next: NEVER,
            counts: Counts::default(),
            lateness: Lateness::new(),
            kept: F::Kept::default(),
            touched: 0,
        };
        Arc::new(Shard {
            index,
            hub,
            geometry: geometry.clone(),
            state: Mutex::new(state),
            ready: AtomicUsize::new(0),
            shown: F::Shown::default(),
        })
    }

    /// Arms a timer, if the limit leaves a place for it.
    // Always inlined, also where it is called a second time: a call and the copies for it are a tenth of the whole.
    #[inline(always)]
    pub(crate) fn arm(&self, deadline: Time, value: F::Value) -> Result<Key, Refused<F::Value>> {
        self.arm_with(deadline, value, NoMore).map(|(key, ())| key)
    }

    /// Arms a timer, if the limit leaves a place for it and `with` has what it needs.
    #[inline(always)]
    pub(crate) fn arm_with<W: ArmWith<F>>(
        &self,
        deadline: Time,
        value: F::Value,
        with: W,
    ) -> Result<(Key, W::Given), Refused<F::Value>> {
        if self.hub.limit.as_ref().is_some_and(|limit| !limit.take()) {
            return Err(Refused::Full(value));
        }
        let armed = self.insert(&mut lock(&self.state), deadline, value, with);
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
        value: F::Value,
        allowed: impl FnOnce() -> bool,
        mark: impl FnOnce(Key),
    ) -> Result<(), Refused<F::Value>> {
        let mut state = lock(&self.state);
        if !allowed() {
            return Err(Refused::Stopped(value));
        }
        mark(self.insert(&mut state, deadline, value, NoMore)?.0);
        drop(state);
        self.tell_loop();
        Ok(())
    }

    #[inline(always)]
    fn insert<W: ArmWith<F>>(
        &self,
        state: &mut State<F>,
        deadline: Time,
        mut value: F::Value,
        with: W,
    ) -> Result<(Key, W::Given), Refused<F::Value>> {
        match state.phase {
            Phase::Open => {}
            Phase::New => return Err(Refused::New(value)),
            Phase::Stopped => return Err(Refused::Stopped(value)),
        }
        let Some(given) = with.give(&mut value, &mut state.kept) else {
            return Err(Refused::Full(value));
        };
        match state.wheel.insert(deadline, Entry { deadline, value }) {
            Ok(key) => {
                state.counts.armed += 1;
                self.settle_next(state, key, deadline);
                Ok((key, given))
            }
            Err(Full(mut entry)) => {
                planted!(
                    "more.refused-handle-keeps-its-record",
                    _ = given,
                    W::take_back(given, &mut entry.value, &mut state.kept)
                );
                Err(Refused::Full(entry.value))
            }
        }
    }

    /// Wakes the driver if this timer is now the earliest.
    #[inline]
    fn settle_next(&self, state: &mut State<F>, key: Key, deadline: Time) {
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
    fn lower(&self, state: &mut State<F>, due: u64) {
        if due < state.next {
            planted!("engine.later-timer-puts-off-the-next", (), state.next = due);
            self.hub.signal.lower(self.index, due);
        }
    }

    /// Takes a pending timer out. `then` is given its value under the lock, and must not drop what is the user's.
    #[inline]
    pub(crate) fn cancel<R>(
        &self,
        key: Key,
        then: impl FnOnce(F::Value, &mut F::Kept) -> R,
    ) -> Option<R> {
        let mut state = lock(&self.state);
        let ready = state.wheel.ready();
        let State { wheel, kept, .. } = &mut *state;
        let done = wheel.cancel_then(key, |entry| then(entry.value, kept));
        let done = planted!(
            "engine.late-cancel-is-counted",
            {
                state.counts.cancelled += u64::from(done.is_none());
                done?
            },
            done?
        );
        state.counts.cancelled += 1;
        let spent =
            planted!("later.cancelled-crowd-keeps-its-memory", false, state.wheel.is_spent());
        self.hub.give_back(1);
        self.leave(state, ready);
        if spent {
            self.release();
        }
        Some(done)
    }

    /// Gives back the memory of a crowd, unless there are timers again. It is freed with no lock held: an allocator
    /// that merges what a million closures have left takes hundreds of milliseconds for that.
    #[cold]
    #[inline(never)]
    pub(crate) fn release(&self) {
        let fresh = AnyWheel::new(&self.geometry, BEGIN, self.hub.tick);
        let mut other = fresh.expect("there is such a wheel");
        let mut state = lock(&self.state);
        if state.wheel.is_spent() {
            // Nothing is pending, so it is there in one step.
            let progress = other.advance(state.wheel.now(), 1);
            debug_assert_eq!(progress, Progress::Done);
            std::mem::swap(&mut state.wheel, &mut other);
        }
        drop(state);
        drop(other);
    }

    /// Gives up the lock. If a timer that was ready is so no more, says so: a virtual clock may wait for the last of
    /// them to go.
    #[inline]
    fn leave(&self, state: MutexGuard<'_, State<F>>, ready_before: usize) {
        if state.wheel.ready() == ready_before {
            return;
        }
        self.publish_ready(&state);
        drop(state);
        if self.hub.clock.as_virtual().is_some() {
            planted!("third.step-not-told-that-a-ready-timer-left", (), self.hub.quiet.changed());
        }
    }

    /// Moves a pending timer.
    #[inline]
    pub(crate) fn reschedule(&self, key: Key, deadline: Time) -> Result<(), RescheduleError> {
        let mut state = lock(&self.state);
        let ready = state.wheel.ready();
        self.move_to(&mut state, key, deadline)?;
        state.wheel.get(key).into_iter().for_each(|entry| F::moved(&entry.value));
        self.leave(state, ready);
        planted!("engine.moved-earlier-does-not-wake-the-loop", (), self.tell_loop());
        Ok(())
    }

    /// Moves a pending timer to where `deadline` says under the lock, if it does. If there is no memory, it stays.
    pub(crate) fn reschedule_if(&self, key: Key, deadline: impl FnOnce() -> Option<Time>) {
        let mut state = lock(&self.state);
        let ready = state.wheel.ready();
        let Some(deadline) = deadline() else { return };
        if self.move_to(&mut state, key, deadline).is_ok() {
            self.leave(state, ready);
            planted!("more.a-clock-that-is-set-does-not-wake-the-loop", (), self.tell_loop());
        }
    }

    /// Moves a pending timer, and says whether its value is to be told.
    #[inline]
    fn move_to(
        &self,
        state: &mut State<F>,
        key: Key,
        deadline: Time,
    ) -> Result<(), RescheduleError> {
        state.wheel.reschedule(key, deadline)?;
        let entry = state.wheel.get_mut(key);
        if let Some(entry) = planted!("engine.moved-timer-shows-the-old-deadline", None, entry) {
            entry.deadline = deadline;
        }
        planted!("engine.moved-earlier-wakes-nobody", (), self.settle_next(state, key, deadline));
        Ok(())
    }

    /// The deadline of a pending timer, as it was given.
    pub(crate) fn deadline(&self, key: Key) -> Option<Time> {
        lock(&self.state).wheel.get(key).map(|entry| entry.deadline)
    }

    /// Looks at what the face keeps, and at a timer if it is pending.
    #[inline]
    pub(crate) fn visit<R>(
        &self,
        key: Key,
        visit: impl FnOnce(&mut F::Kept, Result<&mut F::Value, Gone>) -> R,
    ) -> R {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let stopped =
            planted!("engine.stopped-sleep-looks-over", false, state.phase == Phase::Stopped);
        let gone = if stopped { Gone::Stopped } else { Gone::Fired };
        let entry = state.wheel.get_mut(key).map(|entry| &mut entry.value);
        visit(&mut state.kept, entry.ok_or(gone))
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
    pub(crate) fn under_lock<R>(&self, decide: impl FnOnce(&mut F::Kept) -> R) -> R {
        decide(&mut lock(&self.state).kept)
    }

    /// Has the face show how the shard stands. The lock is held.
    #[inline]
    fn show(&self, state: &mut State<F>, all_due: Option<bool>) {
        let State { wheel, kept, phase, .. } = state;
        // A pass may come after the stop: what that has shown stands.
        let open = planted!("engine.pass-after-a-stop-tells", true, *phase != Phase::Stopped);
        let hand = (open && wheel.ready() == 0).then(|| wheel.now());
        F::show(&self.shown, kept, all_due, hand);
    }
}

impl<T> From<Expired<Entry<T>>> for Taken<T> {
    #[inline]
    fn from(expired: Expired<Entry<T>>) -> Self {
        let Entry { deadline, value } = expired.value;
        Taken { key: expired.key, deadline, value }
    }
}
