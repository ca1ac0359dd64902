//! A shard: one wheel under one lock.
//!
//! Each thread arms on its own shard, so the lock is nearly always free; a cancel goes to the shard of its timer. The
//! lock is held for nanoseconds: no user code runs under it, not even the drop of a user's value. A value that leaves
//! the wheel is returned to the caller, which runs or drops it.
//!
//! Taking a timer out of the wheel is the claim: the shard's lock is the single point that decides between fire, cancel
//! and hand back. `advance` only makes timers *ready*: they stay in the wheel, and can be cancelled and rescheduled,
//! until a thread claims them to run them at once.
//!
//! Invariants, under the lock: `armed = fired + cancelled + handed back + pending`, where the pending timers are those
//! in the wheel that do not run; and `next` equals the shard's value in the signal.

mod drive;
mod inspect;

use std::mem::ManuallyDrop;
use std::sync::Arc;

use tourbillon_wheel::{Expired, Full, GeometryError, Key, Progress, RescheduleError, Time};

use super::context::EngineContext;
use super::counts::{Counts, Lateness};
use super::face::{Face, Kept};
use super::signal::NEVER;
use super::wheels::{AnyWheel, Geometry};
use crate::clock::BEGIN;
use crate::error::ScheduleError;
use crate::sync::atomic::AtomicUsize;
use crate::sync::{Mutex, MutexGuard, lock};

/// Delay before retrying an operation that failed for lack of memory, in nanoseconds.
pub(crate) const AGAIN: u64 = 10_000_000;

/// The number of ready timers prefetched together.
const AHEAD: usize = 16;

#[repr(align(128))]
pub(crate) struct Shard<F: Face> {
    pub(crate) index: usize,
    pub(crate) context: Arc<EngineContext>,
    geometry: Geometry,
    state: Mutex<ShardState<F>>,
    /// The number of ready timers, readable without the lock.
    ready: AtomicUsize,
    /// The state of the face that is readable without the lock.
    pub(crate) shown: F::Shown,
}

type Wheel<F> = AnyWheel<Filed<F>>;

struct ShardState<F: Face> {
    wheel: Wheel<F>,
    phase: Phase,
    /// The shard's value in the signal: nothing is due before it.
    next: u64,
    counts: Counts,
    lateness: Lateness,
    /// The state of the face.
    kept: F::Kept,
    /// The number of ready timers that are prefetched and not yet claimed.
    touched: usize,
    /// The number of timers that run and may be armed again. They are in the wheel, but not pending.
    running: usize,
}

impl<F: Face> ShardState<F> {
    /// The entry of a timer, if it is pending.
    #[inline]
    fn pending(&self, key: Key) -> Option<&Filed<F>> {
        self.wheel.get(key).filter(|entry| !F::is_running(&entry.value))
    }

    /// Records that a timer with this deadline has started.
    #[inline]
    fn fire(&mut self, now: Time, deadline: Time) {
        self.counts.fired += 1;
        self.lateness.record(now.units().saturating_sub(deadline.units()), 1);
    }

    fn counts(&self) -> Counts {
        self.counts.with_pending(self.wheel.len() - self.running)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The engine was not started yet.
    New,
    Open,
    /// Pending timers stay, but no new timer is armed.
    Closing,
    Stopped,
}

/// A timer in the wheel: its value, and the deadline as given (the wheel stores only the tick). With this field order
/// the value is copied in the layout in which it is read, so a read right after the copy does not wait for two separate
/// writes.
#[repr(C)]
pub(crate) struct Entry<T> {
    pub(crate) value: T,
    pub(crate) deadline: Time,
}

/// A shard's wheel never drops a value, because a stop takes all of them out. Without `ManuallyDrop`, the code that
/// drops the value on a panic would cause five copies of each value on its way into the wheel.
type Filed<F> = Entry<ManuallyDrop<<F as Face>::Value>>;

/// A timer that was taken out of the wheel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken<T> {
    pub(crate) key: Key,
    pub(crate) deadline: Time,
    pub(crate) value: T,
}

/// A timer that was claimed.
pub(crate) struct Claimed<T> {
    pub(crate) taken: Taken<T>,
    /// Whether the caller must [release](Shard::release) the memory of a past peak after the timer has run.
    pub(crate) spent: bool,
    /// Whether it stayed in the wheel. If so, the caller must [rearm](Shard::rearm) or [end](Shard::end) it.
    pub(crate) stays: bool,
}

/// Why a timer that was not cancelled is no longer in the wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    Fired,
    /// It was handed back, or had fired before the engine was stopped.
    Stopped,
}

impl<F: Face> Shard<F> {
    pub(crate) fn new(
        index: usize,
        context: Arc<EngineContext>,
        geometry: &Geometry,
        tick: u64,
    ) -> Result<Arc<Self>, GeometryError> {
        Ok(Self::with(Self::make_wheel(geometry, tick)?, index, context, geometry))
    }

    // Neither this nor `with` is inlined, because each has a wheel on its stack frame, and the stacks of loom's threads
    // are small. The box ensures that only one frame at a time holds a wheel.
    #[inline(never)]
    fn make_wheel(geometry: &Geometry, tick: u64) -> Result<Box<Wheel<F>>, GeometryError> {
        AnyWheel::new(geometry, BEGIN, tick).map(Box::new)
    }

    #[inline(never)]
    fn with(
        wheel: Box<Wheel<F>>,
        index: usize,
        context: Arc<EngineContext>,
        geometry: &Geometry,
    ) -> Arc<Self> {
        let state = ShardState {
            wheel: *wheel,
            phase: Phase::New,
            next: NEVER,
            counts: Counts::default(),
            lateness: Lateness::new(),
            kept: F::Kept::default(),
            touched: 0,
            running: 0,
        };
        Arc::new(Shard {
            index,
            context,
            geometry: geometry.clone(),
            state: Mutex::new(state),
            ready: AtomicUsize::new(0),
            shown: F::Shown::default(),
        })
    }

    /// Arms a timer, if the limit leaves a place for it. `Stopped` if the shard was stopped or is not open yet.
    // Inlined at every call: the call and its copies would be a tenth of the cost.
    #[inline(always)]
    pub(crate) fn arm(
        &self,
        deadline: Time,
        value: F::Value,
    ) -> Result<(Key, F::Given), ScheduleError<F::Value>> {
        if self.context.limit.as_ref().is_some_and(|limit| !limit.take()) {
            return Err(planted!(
                "engine.full-is-called-stopped",
                ScheduleError::Stopped(value),
                ScheduleError::Full(value)
            ));
        }
        let mut value = ManuallyDrop::new(value);
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        if state.phase != Phase::Open {
            drop(guard);
            planted!("later.first-timer-takes-two-places", (), self.refused());
            return Err(ScheduleError::Stopped(ManuallyDrop::into_inner(value)));
        }
        let Some(given) = F::arm(&mut value, &mut state.kept) else {
            drop(guard);
            self.refused();
            return Err(ScheduleError::Full(ManuallyDrop::into_inner(value)));
        };
        match state.wheel.insert(deadline, Entry { value, deadline }) {
            Ok(key) => {
                state.counts.armed += 1;
                self.settle_next(state, key, deadline);
                drop(guard);
                self.tell_loop();
                Ok((key, given))
            }
            Err(Full(Entry { mut value, .. })) => {
                planted!(
                    "more.refused-handle-keeps-its-record",
                    (),
                    F::disarm(given, &mut value, &mut state.kept)
                );
                drop(guard);
                self.refused();
                Err(ScheduleError::Full(ManuallyDrop::into_inner(value)))
            }
        }
    }

    /// Frees the place of a timer that was not armed.
    #[cold]
    fn refused(&self) {
        planted!("engine.refused-timer-keeps-its-place", (), self.context.give_back(1));
    }

    /// Wakes the driver if this timer is now the earliest.
    #[inline]
    fn settle_next(&self, state: &mut ShardState<F>, key: Key, deadline: Time) {
        // A deadline is never after its tick. So if the deadline is not earlier than `next`, the tick is not either.
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
    fn lower(&self, state: &mut ShardState<F>, due: u64) {
        if due < state.next {
            planted!("engine.later-timer-puts-off-the-next", (), state.next = due);
            self.context.signal.lower(self.index, due);
        }
    }

    /// Takes out a timer that is pending, or that runs and may be armed again. Calls `settle` with its value under the
    /// lock.
    #[inline(always)]
    pub(crate) fn cancel(
        &self,
        key: Key,
        settle: impl FnOnce(&mut F::Value, &mut F::Kept),
    ) -> Option<F::Value> {
        let mut state = lock(&self.state);
        let entry = state.wheel.cancel(key);
        let Entry { mut value, .. } = planted!(
            "engine.late-cancel-is-counted",
            {
                state.counts.cancelled += u64::from(entry.is_none());
                entry?
            },
            entry?
        );
        settle(&mut value, &mut state.kept);
        let running = F::is_running(&value);
        if running {
            state.running -= 1;
            planted!("fifth.cancel-in-a-run-is-counted", state.counts.cancelled += 1, ());
        } else {
            state.counts.cancelled += 1;
        }
        self.context.give_back(planted!(
            "timer.cancelled-in-run-keeps-its-place",
            usize::from(!running),
            1
        ));
        // The published count is exact whenever the lock is free: if it differs, the timer was ready.
        let gone = state.wheel.len() == 0
            || planted!("blind.cancelled-crowd-keeps-its-leases", false, state.kept.is_spent());
        if gone || state.wheel.ready() != self.seen_ready() {
            self.leave(state);
        } else {
            drop(state);
        }
        Some(ManuallyDrop::into_inner(value))
    }

    /// Unlocks after a timer was taken out or rescheduled. Publishes the number of ready timers, and frees the memory
    /// of a past peak.
    #[cold]
    #[inline(never)]
    fn leave(&self, mut state: MutexGuard<'_, ShardState<F>>) {
        let spent =
            planted!("later.cancelled-crowd-keeps-its-memory", false, state.wheel.is_spent());
        let was_ready = state.wheel.ready() != self.seen_ready();
        self.publish_ready(&state);
        let kept = state.kept.is_spent().then(|| state.kept.take_spent());
        let last = state.phase == Phase::Closing && state.wheel.len() == 0;
        drop(state);
        drop(kept);
        if planted!("engine.closing-not-told-of-the-last-cancel", false, last) {
            self.context.quiescence.changed();
        }
        // A virtual clock may be waiting until no timer is ready.
        if was_ready && self.context.clock.as_virtual().is_some() {
            planted!(
                "third.step-not-told-that-a-ready-timer-left",
                (),
                self.context.quiescence.changed()
            );
        }
        if spent {
            self.release();
        }
    }

    /// Frees the memory of a past peak, unless there are timers again. It is freed without the lock, because an
    /// allocator can take hundreds of milliseconds to coalesce the memory of a million closures.
    #[cold]
    #[inline(never)]
    pub(crate) fn release(&self) {
        let fresh = AnyWheel::new(&self.geometry, BEGIN, self.context.tick);
        let mut other = fresh.expect("there is such a wheel");
        let mut state = lock(&self.state);
        if planted!("engine.armed-before-the-release-is-lost", true, state.wheel.is_spent()) {
            // Nothing is pending, so one unit of budget suffices to reach the time.
            let progress = other.advance(state.wheel.now(), 1);
            debug_assert_eq!(progress, Progress::Done);
            std::mem::swap(&mut state.wheel, &mut other);
        }
        drop(state);
        drop(other);
    }

    /// Reschedules a pending timer.
    #[inline]
    pub(crate) fn reschedule(&self, key: Key, deadline: Time) -> Result<(), RescheduleError> {
        let mut state = lock(&self.state);
        let looks = F::looks(&state.kept);
        if looks
            && planted!("blind.move-in-a-run-reaches-the-mark", false, state.pending(key).is_none())
        {
            return Err(RescheduleError::NotPending);
        }
        self.move_to(&mut state, key, deadline)?;
        if looks {
            state.wheel.get(key).into_iter().for_each(|entry| F::moved(&entry.value));
        }
        if state.wheel.ready() != self.seen_ready() {
            self.leave(state);
        } else {
            drop(state);
        }
        planted!("engine.moved-earlier-does-not-wake-the-loop", (), self.tell_loop());
        Ok(())
    }

    /// Reschedules a pending timer to the time that `deadline` returns under the lock, if any. Without memory to move
    /// it, the timer keeps its deadline.
    pub(crate) fn reschedule_if(&self, key: Key, deadline: impl FnOnce() -> Option<Time>) {
        let mut state = lock(&self.state);
        let Some(deadline) = deadline() else { return };
        if state.pending(key).is_some() && self.move_to(&mut state, key, deadline).is_ok() {
            planted!(
                "sixth.wall-timer-follows-only-the-first-setting",
                state.wheel.get(key).into_iter().for_each(|entry| F::moved(&entry.value)),
                ()
            );
            self.leave(state);
            planted!("more.a-clock-that-is-set-does-not-wake-the-loop", (), self.tell_loop());
        }
    }

    /// Moves a timer in the wheel, stores the new deadline, and wakes the driver if the timer is now the earliest.
    #[inline]
    fn move_to(
        &self,
        state: &mut ShardState<F>,
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

    /// The deadline of a pending timer, as given.
    pub(crate) fn deadline(&self, key: Key) -> Option<Time> {
        let state = lock(&self.state);
        let entry =
            planted!("fourth.what-runs-is-still-pending", state.wheel.get(key), state.pending(key));
        entry.map(|entry| entry.deadline)
    }

    /// Visits the face's state, and a timer's value if the timer is in the wheel.
    #[inline]
    pub(crate) fn visit<R>(
        &self,
        key: Key,
        visit: impl FnOnce(&mut F::Kept, Result<&mut F::Value, Gone>) -> R,
    ) -> R {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        let stopped =
            planted!("engine.stopped-sleep-looks-over", false, state.phase == Phase::Stopped);
        let gone = if stopped { Gone::Stopped } else { Gone::Fired };
        let entry = state.wheel.get_mut(key).map(|entry| &mut *entry.value);
        let visited = visit(&mut state.kept, entry.ok_or(gone));
        if state.kept.is_spent() {
            self.leave(guard);
        }
        visited
    }

    /// Runs `decide` under the shard's lock, for a decision that must be atomic with the wheel.
    #[inline]
    pub(crate) fn under_lock<R>(&self, decide: impl FnOnce(&mut F::Kept) -> R) -> R {
        let mut state = lock(&self.state);
        let decided = decide(&mut state.kept);
        if planted!(
            "engine.crowd-that-ends-in-a-run-keeps-its-leases",
            false,
            state.kept.is_spent()
        ) {
            self.leave(state);
        }
        decided
    }

    /// Has the face publish the state of the shard. The caller holds the lock.
    #[inline]
    fn show(&self, state: &mut ShardState<F>, all_due: Option<bool>) {
        let ShardState { wheel, kept, phase, .. } = state;
        // A pass may follow the stop, and must not overwrite what the stop published.
        let open = planted!("engine.pass-after-a-stop-tells", true, *phase != Phase::Stopped);
        let hand = (open && wheel.ready() == 0).then(|| wheel.now());
        F::show(&self.shown, kept, all_due, hand);
    }
}

impl<T> From<Expired<Entry<ManuallyDrop<T>>>> for Taken<T> {
    #[inline]
    fn from(expired: Expired<Entry<ManuallyDrop<T>>>) -> Self {
        let Entry { deadline, value } = expired.value;
        Taken { key: expired.key, deadline, value: ManuallyDrop::into_inner(value) }
    }
}
