//! Who takes drives: one of them leads, the others follow.
//!
//! Who finds nothing due and nobody leading *leads*: it sleeps until the next value is due. Who finds somebody leading
//! *follows*: it sleeps until it is called. Everything is decided under the queue's lock, which nobody holds while it
//! sleeps:
//!
//! ```text
//!   leads          leader = until, unlock, sleep until then or a wake, lock, leader = none, look again
//!   follows        followers += 1, wait for a call (unlocked), followers -= 1, look again
//!   puts           earlier than `until`: leader = awake, unlock, wake who leads
//!   leaves         with a value or without: if nobody leads and somebody follows, call one
//! ```
//!
//! **Whenever somebody follows, somebody leads or is on its way to look.** Who leads stops leading only to look, and if
//! it then leaves it calls one, who looks in its turn: and takes what is due, or leads. So nothing that is due stays
//! while somebody waits, and for each value one thread is woken: not all of them, to find that one of them has it.
//!
//! A follower with a limit may wake by itself just when it is called. It leaves like any other, and calls the next.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tourbillon_wheel::{Key, Time};

use super::error::TakeError;
use super::state::{AWAKE, Look, State};
use crate::clock::{Driven, EngineClock};
use crate::engine::Sleeper;
use crate::engine::shard::Taken;
use crate::settings::Settings;
use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait};

pub(super) struct Shared<T> {
    pub(super) clock: EngineClock,
    pub(super) state: Mutex<State<T>>,
    /// Where who leads sleeps.
    sleeper: Sleeper,
    /// Where those wait who follow.
    called: Condvar,
    /// Where a virtual clock waits for those that it woke.
    left: Condvar,
}

impl<T: Send + 'static> Shared<T> {
    pub(super) fn new(settings: Settings) -> Arc<Self> {
        let Settings { geometry, tick, hub, .. } = settings;
        let shared = Arc::new(Shared {
            clock: hub.clock,
            state: Mutex::new(State::new(&geometry, tick, hub.limit)),
            sleeper: Sleeper::new(),
            called: Condvar::new(),
            left: Condvar::new(),
        });
        if let Some(clock) = shared.clock.as_virtual() {
            let driven: Weak<Self> = Arc::downgrade(&shared);
            clock.attach(driven);
        }
        shared
    }

    /// Takes what is due; waits for it until `end`, or for ever.
    pub(super) fn take(&self, end: Option<Time>) -> Result<T, TakeError> {
        let mut here = Here { shared: self, end, counted: false };
        let mut leads = false;
        loop {
            // Before the lock: it may be a clock of the user. A virtual one is read under it, so that an advance
            // either is seen here or sees who waits; with an older reading one could follow after the advance has
            // called.
            let mut now = self.clock.now();
            let mut state = lock(&self.state);
            if let Some(clock) = self.clock.as_virtual() {
                now = clock.time();
            }
            if leads {
                state.waiting.leader = None;
                leads = false;
            }
            if state.is_closed() {
                return here.leave(state, Err(TakeError::Closed));
            }
            let next = match state.look(now) {
                Look::Due(value) => return here.leave(state, Ok(value)),
                Look::Unknown => continue,
                Look::Nothing(next) => next,
            };
            if end.is_some_and(|end| end <= now) {
                return here.leave(state, Err(TakeError::NothingDue));
            }
            here.stay(&mut state);
            if state.waiting.leader.is_some() {
                self.follow(state, end, now);
                continue;
            }
            let until = end.map_or(next, |end| end.units().min(next));
            state.waiting.leader = Some(until);
            drop(state);
            self.clock.wait(Time::new(until), &self.sleeper);
            leads = true;
        }
    }

    fn follow(&self, mut state: MutexGuard<'_, State<T>>, end: Option<Time>, now: Time) {
        // A virtual clock calls. Any other may run at another pace than the system counts here: then the limit is late,
        // and never early, because the clock is looked at again.
        let limit = end.filter(|_| self.clock.as_virtual().is_none());
        let limit = limit.map(|end| Duration::from_nanos(end.units() - now.units()));
        state.waiting.followers += 1;
        let mut state = wait(&self.called, state, limit);
        state.waiting.followers -= 1;
    }

    /// Gives up the lock. If the value that was put or moved is due before who leads would wake, wakes it.
    pub(super) fn leave_earlier(&self, mut state: MutexGuard<'_, State<T>>, key: Key) {
        let Some(until) = state.waiting.leader else { return };
        if until == AWAKE || state.due(key) >= until {
            return;
        }
        state.waiting.leader = Some(AWAKE);
        drop(state);
        self.sleeper.wake();
    }

    pub(super) fn close(&self) -> Vec<Taken<T>> {
        let all = lock(&self.state).close();
        self.sleeper.wake();
        self.called.notify_all();
        self.gone();
        all
    }

    /// A value that was due, or somebody who waited, may have gone: a virtual clock may wait for that. The lock is
    /// free.
    pub(super) fn gone(&self) {
        if self.clock.as_virtual().is_some() {
            self.left.notify_all();
        }
    }

    #[cfg(all(loom, test))]
    pub(super) fn pass_time(&self) {
        self.sleeper.wake();
    }
}

/// One by one, and each contained: a second panic while the first unwinds would abort.
impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let left = lock(&self.state).close();
        for taken in left {
            // The drop of a payload may panic as well.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(taken.value))).map_err(std::mem::forget);
        }
    }
}

/// Somebody who takes.
struct Here<'a, T> {
    shared: &'a Shared<T>,
    end: Option<Time>,
    /// Whether it is among those who wait.
    counted: bool,
}

impl<T: Send + 'static> Here<'_, T> {
    /// It will wait.
    fn stay(&mut self, state: &mut State<T>) {
        if self.counted {
            return;
        }
        self.counted = true;
        state.waiting.all += 1;
        if self.shared.clock.as_virtual().is_some() {
            state.waiting.limits.extend(self.end.map(Time::units));
        }
    }

    /// It goes, and somebody else must look in its place.
    fn leave<R>(self, mut state: MutexGuard<'_, State<T>>, with: R) -> R {
        let waiting = &mut state.waiting;
        if self.counted {
            waiting.all -= 1;
            let end = self.end.map(Time::units);
            if let Some(own) = waiting.limits.iter().position(|&limit| Some(limit) == end) {
                waiting.limits.swap_remove(own);
            }
        }
        let call = waiting.leader.is_none() && waiting.followers > 0;
        drop(state);
        if call {
            self.shared.called.notify_one();
        }
        self.shared.gone();
        with
    }
}

/// A virtual clock goes from one moment at which somebody is to wake to the next, and waits there until they have.
impl<T: Send + 'static> Driven for Shared<T> {
    fn next_due(&self) -> Option<Time> {
        let mut state = lock(&self.state);
        let limit = state.waiting.limits.iter().copied().min();
        state.upcoming().into_iter().chain(limit).min().map(Time::new)
    }

    fn turn(self: Arc<Self>) {
        let now = self.clock.now();
        let mut state = lock(&self.state);
        let nothing = state.make_ready(now) == 0;
        let late = |state: &State<T>| state.waiting.limits.iter().any(|&end| end <= now.units());
        if nothing && !late(&state) {
            return;
        }
        self.sleeper.wake();
        self.called.notify_all();
        // Each of them takes a value, or leaves without one: there are no more of them then, or nothing is left.
        while (state.ready() > 0 && state.waiting.all > 0) || late(&state) {
            state = wait(&self.left, state, None);
        }
    }
}
