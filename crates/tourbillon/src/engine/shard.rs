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

mod look;
#[cfg(feature = "tasks")]
mod told;

use std::collections::VecDeque;
use std::sync::Arc;

use tourbillon_wheel::{Expired, Full, GeometryError, Key, Progress, RescheduleError, Time};

use super::counts::{Counts, Lateness};
use super::hub::Hub;
use super::signal::NEVER;
#[cfg(feature = "tasks")]
use super::signal::Padded;
use super::wheels::{AnyWheel, Geometry};
use crate::contain::contain;
#[cfg(feature = "tasks")]
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::{AtomicUsize, Ordering};
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

/// What is in the wheel: the deadline as it was given (the wheel knows only its tick), and the value.
pub(crate) struct Entry<T> {
    pub(crate) deadline: Time,
    pub(crate) value: T,
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
    pub(crate) fn new(
        index: usize,
        hub: Arc<Hub>,
        geometry: &Geometry,
        tick: u64,
    ) -> Result<Self, GeometryError> {
        let wheel = AnyWheel::new(geometry, Time::ZERO, tick)?;
        let state = State {
            wheel,
            phase: Phase::New,
            next: NEVER,
            counts: Counts::default(),
            lateness: Lateness::new(),
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
        if self.hub.limit.as_ref().is_some_and(|limit| !limit.take()) {
            return Err(Refused::Full(value));
        }
        let armed = self.insert(&mut lock(&self.state), deadline, value);
        self.tell_loop();
        if armed.is_err() {
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
            self.lower(state, state.wheel.due(key).map_or(NEVER, Time::units));
        }
    }

    #[cold]
    fn lower(&self, state: &mut State<T>, due: u64) {
        if due < state.next {
            state.next = due;
            self.hub.signal.lower(self.index, due);
        }
    }

    /// Takes a pending timer out. `mark` sees its value under the lock.
    #[inline]
    pub(crate) fn cancel(&self, key: Key, mark: impl FnOnce(&T)) -> Option<T> {
        let mut state = lock(&self.state);
        let ready = state.wheel.ready();
        let entry = state.wheel.cancel(key)?;
        state.counts.cancelled += 1;
        mark(&entry.value);
        state.wheel.release_when_empty();
        self.leave(state, ready);
        self.hub.give_back(1);
        Some(entry.value)
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
            self.hub.quiet.changed();
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
        self.tell_loop();
        Ok(())
    }

    /// Moves a pending timer to where `deadline` says under the lock, if it does. If there is no memory, it stays.
    pub(crate) fn reschedule_if(&self, key: Key, deadline: impl FnOnce() -> Option<Time>) {
        let mut state = lock(&self.state);
        let ready = state.wheel.ready();
        let Some(deadline) = deadline() else { return };
        if self.move_to(&mut state, key, deadline, |_| ()).is_ok() {
            self.leave(state, ready);
            self.tell_loop();
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
        if let Some(entry) = state.wheel.get_mut(key) {
            entry.deadline = deadline;
            mark(&entry.value);
        }
        self.settle_next(state, key, deadline);
        Ok(())
    }

    /// The deadline of a pending timer, as it was given.
    pub(crate) fn deadline(&self, key: Key) -> Option<Time> {
        lock(&self.state).wheel.get(key).map(|entry| entry.deadline)
    }

    /// Something that must be decided together with the wheel.
    pub(crate) fn under_lock<R>(&self, decide: impl FnOnce() -> R) -> R {
        let _state = lock(&self.state);
        decide()
    }
}

/// What the driver and those who run callbacks do.
impl<T> Shard<T> {
    /// Makes ready what is due, at most `budget` at a time, and says when to come back.
    pub(crate) fn advance(&self, now: Time, budget: usize) {
        let mut state = lock(&self.state);
        let progress = state.wheel.advance(now, budget);
        #[cfg(feature = "tasks")]
        {
            state.all_due = progress == Progress::Done;
            self.tell_all(&state);
        }
        let next = match progress {
            Progress::Done => state.wheel.upcoming().map_or(NEVER, Time::units),
            Progress::More => now.units(),
            Progress::OutOfMemory => (now + AGAIN).units(),
        };
        state.next = next;
        self.hub.signal.raise(self.index, next);
        self.publish_ready(&state);
    }

    /// Has the driver come back at that moment, whether or not something is due.
    pub(crate) fn remind(&self, at: Time) {
        self.lower(&mut lock(&self.state), at.units());
        self.tell_loop();
    }

    /// If the caller drives the engine and must be woken, wakes it. No lock is held.
    #[inline]
    pub(crate) fn tell_loop(&self) {
        if self.hub.signal.has_hook() {
            self.tell_loop_now();
        }
    }

    /// Does what arms timers under a lock of ours, and gives that up at its end: the loop is woken after it.
    pub(crate) fn tell_loop_after<R>(&self, locked: impl FnOnce() -> R) -> R {
        if !self.hub.signal.has_hook() {
            return locked();
        }
        let done = self.hub.signal.tell_later(locked);
        self.tell_loop_now();
        done
    }

    #[cold]
    fn tell_loop_now(&self) {
        if let Some(wake) = self.hub.signal.owed() {
            contain(self, || wake());
        }
    }

    /// From now on, who claims a timer is asked whether it has to wait still.
    pub(crate) fn ask(&self) {
        lock(&self.state).asks = true;
    }

    /// Sends those that have to wait still, by the clock that they follow, back to wait: they were never claimed, and
    /// their keys stay good. `None` if nothing is left to be claimed; nor is what cannot be moved for want of memory.
    #[cold]
    fn send_back<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<T>>,
        not_yet: impl Fn(&T) -> Option<Time>,
    ) -> Option<MutexGuard<'a, State<T>>> {
        loop {
            // A few at a time: there may be many, and others want the lock.
            for _ in 0..AHEAD {
                let (key, entry) = state.wheel.peek()?;
                let Some(later) = not_yet(&entry.value) else { return Some(state) };
                self.move_to(&mut state, key, later, |_| ()).ok()?;
                self.publish_ready(&state);
            }
            drop(state);
            state = lock(&self.state);
        }
    }

    /// Claims the next timer that is ready: from now on it has started. `touch` is shown a few of them beforehand.
    /// Under the lock, `not_yet` may say that the timer has to wait until later, if it is [asked](Shard::ask); if not,
    /// `mark` sees it, and says whether it keeps its place among the pending. Whoever claims is
    /// [at work](super::hub::Hub::work).
    #[inline]
    pub(crate) fn claim(
        &self,
        now: Time,
        touch: impl Fn(&T),
        not_yet: impl Fn(&T) -> Option<Time>,
        mark: impl FnOnce(&T) -> bool,
    ) -> Option<Taken<T>> {
        if !self.has_ready() {
            return None;
        }
        let mut state = lock(&self.state);
        let asks = state.asks;
        if asks {
            let Some(waiting) = self.send_back(state, not_yet) else {
                self.tell_loop();
                return None;
            };
            state = waiting;
        }
        if state.shown == 0 {
            // Callbacks lie about in memory. To wait for sixteen at once takes little longer than for one.
            state.wheel.show_ready(AHEAD, |entry| touch(&entry.value));
            state.shown = AHEAD;
        }
        state.shown -= 1;
        let taken = state.wheel.pop().map(Taken::from)?;
        state.counts.fired += 1;
        state.lateness.record(now.units().saturating_sub(taken.deadline.units()), 1);
        let keeps = mark(&taken.value);
        self.publish_ready(&state);
        state.wheel.release_when_empty();
        drop(state);
        if asks {
            self.tell_loop();
        }
        // One that may be armed again keeps its place among the pending.
        self.hub.give_back(usize::from(!keeps));
        Some(taken)
    }

    /// Claims all that is ready, at most `most`, as one batch, which runs as one.
    pub(crate) fn claim_batch(&self, now: Time, most: usize, batch: &mut VecDeque<Taken<T>>) {
        let mut state = lock(&self.state);
        while batch.len() < most {
            let Some(taken) = state.wheel.pop().map(Taken::from) else { break };
            state.counts.fired += 1;
            state.lateness.record(now.units().saturating_sub(taken.deadline.units()), 1);
            batch.push_back(taken);
        }
        #[cfg(feature = "tasks")]
        self.tell_all(&state);
        self.publish_ready(&state);
        state.wheel.release_when_empty();
        drop(state);
        self.hub.give_back(batch.len());
    }

    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        self.seen_ready() > 0
    }

    /// How many timers are ready, as far as can be seen without the lock.
    #[inline]
    pub(crate) fn seen_ready(&self) -> usize {
        self.ready.load(Ordering::Acquire)
    }

    /// How many timers are ready.
    pub(crate) fn count_ready(&self) -> usize {
        lock(&self.state).wheel.ready()
    }

    #[inline]
    fn publish_ready(&self, state: &State<T>) {
        // Release pairs with the look in `seen_ready`. The lock is held, and it is true whenever the lock is free.
        self.ready.store(state.wheel.ready(), Ordering::Release);
    }

    pub(crate) fn next_due(&self) -> Option<Time> {
        lock(&self.state).wheel.next_due()
    }

    pub(crate) fn open(&self) {
        let mut state = lock(&self.state);
        if state.phase == Phase::New {
            state.phase = Phase::Open;
        }
    }

    /// Refuses what comes from now on and takes out all that is pending. `mark` sees each under the lock.
    pub(crate) fn stop(&self, mut mark: impl FnMut(&T)) -> Vec<Taken<T>> {
        let mut state = lock(&self.state);
        state.phase = Phase::Stopped;
        let mut taken = Vec::with_capacity(state.wheel.len());
        for key in state.wheel.keys() {
            let Some(Entry { deadline, value }) = state.wheel.cancel(key) else { continue };
            state.counts.handed_back += 1;
            mark(&value);
            taken.push(Taken { key, deadline, value });
        }
        state.wheel.shrink();
        self.publish_ready(&state);
        #[cfg(feature = "tasks")]
        self.claimed.0.store(NEVER, Ordering::Release);
        drop(state);
        self.hub.give_back(taken.len());
        taken
    }
}

impl<T> From<Expired<Entry<T>>> for Taken<T> {
    #[inline]
    fn from(expired: Expired<Entry<T>>) -> Self {
        let Entry { deadline, value } = expired.value;
        Taken { key: expired.key, deadline, value }
    }
}
