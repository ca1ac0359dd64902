//! Driving a shard: make ready, claim, rearm, and stop.

use std::collections::VecDeque;
use std::mem::ManuallyDrop;

use tourbillon_wheel::{Key, Progress, Time};

use super::{AGAIN, AHEAD, Claimed, Entry, Phase, Shard, ShardState, Taken};
use crate::contain::contain;
use crate::engine::face::Face;
use crate::engine::signal::NEVER;
use crate::sync::atomic::Ordering;
use crate::sync::{MutexGuard, lock};

impl<F: Face> Shard<F> {
    /// Makes due timers ready, at most `budget` of them, and publishes the time of the shard's next work.
    pub(crate) fn advance(&self, now: Time, budget: usize) {
        let mut state = lock(&self.state);
        let progress = state.wheel.advance(now, budget);
        self.show(&mut state, Some(progress == Progress::Done));
        let next = match progress {
            Progress::Done => state.wheel.upcoming().map_or(NEVER, Time::units),
            Progress::More => {
                planted!("engine.rest-over-the-budget-waits", (now + AGAIN).units(), now.units())
            }
            Progress::OutOfMemory => (now + AGAIN).units(),
        };
        state.next = next;
        self.context.signal.raise(self.index, next);
        self.publish_ready(&state);
    }

    /// Makes the driver return to this shard at `at`, whether or not a timer is due then.
    pub(crate) fn remind(&self, at: Time) {
        let mut state = lock(&self.state);
        planted!(
            "later.reminder-puts-off-the-next",
            {
                state.next = at.units();
                self.context.signal.lower(self.index, at.units());
            },
            self.lower(&mut state, at.units())
        );
        drop(state);
        self.tell_loop();
    }

    /// Wakes the event loop if it drives the engine and a wake is owed. The caller holds no lock.
    #[inline]
    pub(crate) fn tell_loop(&self) {
        if self.context.signal.has_hook() {
            self.tell_loop_now();
        }
    }

    /// Runs `locked`, which arms timers under a lock and releases it; the event loop is woken only afterwards.
    pub(crate) fn tell_loop_after<R>(&self, locked: impl FnOnce() -> R) -> R {
        if !self.context.signal.has_hook() {
            return locked();
        }
        let done = self.context.signal.tell_later(locked);
        self.tell_loop_now();
        done
    }

    #[cold]
    fn tell_loop_now(&self) {
        if let Some(wake) = self.context.signal.owed() {
            // This may be the last reference to the hook, whose drop is user code too.
            planted!("more.panicking-wake-reaches-who-schedules", wake(), {
                contain(self, move || wake());
            });
        }
    }

    /// Moves ready timers that must still wait for another clock back into the wheel. They were never claimed, and
    /// their keys stay valid. `None` if nothing is left to claim. A timer that cannot be moved for lack of memory is
    /// not claimed either.
    #[cold]
    fn send_back<'a>(
        &'a self,
        mut state: MutexGuard<'a, ShardState<F>>,
        now: Time,
    ) -> Option<MutexGuard<'a, ShardState<F>>> {
        loop {
            // In small groups, because there may be many such timers, and other threads need the lock.
            for _ in 0..AHEAD {
                let (key, entry) = state.wheel.peek()?;
                let later = F::waits(&entry.value, now, &self.context.clock);
                let Some(later) = later else { return Some(state) };
                self.move_to(&mut state, key, later).ok()?;
                self.publish_ready(&state);
            }
            drop(state);
            state = lock(&self.state);
        }
    }

    /// Claims the next ready timer, which counts as started. Skips timers that must still [wait](Face::waits). The
    /// caller must be counted as [busy](super::context::EngineContext::work).
    #[inline]
    pub(crate) fn claim(&self, now: Time) -> Option<Claimed<F::Value>> {
        if !self.has_ready() {
            return None;
        }
        let mut state = lock(&self.state);
        if F::looks(&state.kept) {
            let claimed =
                self.send_back(state, now).and_then(|state| self.claim_looking(state, now));
            self.tell_loop();
            return claimed;
        }
        self.prefetch(&mut state);
        self.take(&mut state, now)
    }

    /// Prefetches the callbacks of the next ready timers. They are scattered in memory, and sixteen overlapping cache
    /// misses take little longer than one.
    #[inline]
    fn prefetch(&self, state: &mut ShardState<F>) {
        if state.touched == 0 {
            state.wheel.show_ready(AHEAD, |entry| F::touch(&entry.value, &state.kept));
            state.touched = AHEAD;
        }
        state.touched -= 1;
    }

    /// Takes out the next ready timer.
    #[inline]
    fn take(&self, state: &mut ShardState<F>, now: Time) -> Option<Claimed<F::Value>> {
        let mut taken = state.wheel.pop().map(Taken::from)?;
        state.fire(now, taken.deadline);
        F::start(&mut taken.value, &mut state.kept);
        self.publish_ready(state);
        self.context.give_back(1);
        Some(Claimed { taken, spent: state.wheel.is_spent(), stays: false })
    }

    /// As `claim`, for a face that inspects timers first. A timer that can be armed again stays in the wheel, with a
    /// deadline that never comes, and so keeps its key and its place in the limit.
    #[cold]
    fn claim_looking(
        &self,
        mut state: MutexGuard<'_, ShardState<F>>,
        now: Time,
    ) -> Option<Claimed<F::Value>> {
        self.prefetch(&mut state);
        let (mut key, mut entry) = state.wheel.peek()?;
        while F::is_running(&entry.value) {
            // The mark of a running timer became ready because the clock has reached the end of time. The next pass
            // meets it again, unless the run has ended.
            state.wheel.reschedule(key, Time::MAX).ok()?;
            self.publish_ready(&state);
            (key, entry) = state.wheel.peek()?;
        }
        // Without memory to move it, the timer leaves the wheel like any other and cannot be armed again.
        if !F::stays(&entry.value) || state.wheel.reschedule(key, Time::MAX).is_err() {
            return self.take(&mut state, now);
        }
        let ShardState { wheel, kept, .. } = &mut *state;
        let entry = wheel.get_mut(key)?;
        let (deadline, value) = (entry.deadline, F::start_in_place(&mut entry.value, kept)?);
        state.running += 1;
        state.fire(now, deadline);
        self.publish_ready(&state);
        self.context.give_back(planted!("engine.repeating-gives-its-place-twice", 1, 0));
        Some(Claimed { taken: Taken { key, deadline, value }, spent: false, stays: true })
    }

    /// Arms again a timer that has just run and stayed in the wheel, with the same key. Returns the value if the timer
    /// was cancelled during its run, the engine was stopped, or there is no memory.
    pub(crate) fn rearm(
        &self,
        key: Key,
        deadline: Time,
        mut value: F::Value,
    ) -> Result<(), F::Value> {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        let open = state.phase == Phase::Open;
        let open = planted!("engine.closing-arms-again", state.phase != Phase::Stopped, open);
        let open = planted!("blind.armed-again-after-the-stop", true, open);
        if !open || state.wheel.reschedule(key, deadline).is_err() {
            return Err(value);
        }
        if let Some(entry) = state.wheel.get_mut(key) {
            F::rearm(&mut value, &entry.value, &mut state.kept);
            *entry = Entry { value: ManuallyDrop::new(value), deadline };
        }
        state.counts.armed += 1;
        state.running -= 1;
        self.settle_next(state, key, deadline);
        self.publish_ready(state);
        drop(guard);
        self.tell_loop();
        Ok(())
    }

    /// Removes a timer that stayed in the wheel after its last run. `false` if it was cancelled during the run. If
    /// `handed_back`, the engine was stopped, and the timer's next run counts as handed back.
    pub(crate) fn end(&self, key: Key, handed_back: bool) -> bool {
        let mut state = lock(&self.state);
        let Some(mut mark) = state.wheel.cancel(key) else { return false };
        F::end(&mut mark.value, handed_back, &mut state.kept);
        let again = planted!("fourth.interrupted-run-counts-nowhere", 0, u64::from(handed_back));
        state.counts.armed += again;
        state.counts.handed_back += again;
        state.running -= 1;
        self.context.give_back(planted!("blind.ended-repetition-keeps-its-place", 0, 1));
        self.leave(state);
        true
    }

    /// Claims all ready timers, at most `most`, as one batch. Returns whether the caller must [release](Shard::release)
    /// the memory of a past peak afterwards.
    #[must_use]
    pub(crate) fn claim_batch(
        &self,
        now: Time,
        most: usize,
        batch: &mut VecDeque<Taken<F::Value>>,
    ) -> bool {
        let mut state = lock(&self.state);
        while batch.len() < most {
            let Some(taken) = state.wheel.pop().map(Taken::from) else { break };
            planted!(
                "later.lateness-without-the-batches",
                state.counts.fired += 1,
                state.fire(now, taken.deadline)
            );
            batch.push_back(taken);
        }
        self.show(&mut state, None);
        self.publish_ready(&state);
        let spent =
            planted!("third.delivered-crowd-keeps-its-memory", false, state.wheel.is_spent());
        let places = planted!("engine.delivered-keep-their-places", 0, batch.len());
        planted!(
            "engine.place-given-back-without-the-lock",
            {
                drop(state);
                self.context.give_back(places);
            },
            {
                self.context.give_back(places);
                drop(state);
            }
        );
        spent
    }

    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        self.seen_ready() > 0
    }

    /// The number of ready timers as last published. Read without the lock.
    #[inline]
    pub(crate) fn seen_ready(&self) -> usize {
        self.ready.load(Ordering::Acquire)
    }

    /// The number of ready timers. Takes the lock.
    pub(crate) fn count_ready(&self) -> usize {
        lock(&self.state).wheel.ready()
    }

    #[inline]
    pub(super) fn publish_ready(&self, state: &ShardState<F>) {
        // Release pairs with the Acquire load in `seen_ready`. The lock is held, so the count is exact whenever the
        // lock is free.
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

    /// Refuses new timers from now on. Pending timers stay.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        if state.phase != Phase::Stopped {
            state.phase = Phase::Closing;
        }
    }

    /// Refuses new timers from now on and takes out all that are pending.
    pub(crate) fn stop(&self) -> Vec<Taken<F::Value>> {
        let mut state = lock(&self.state);
        planted!("engine.stop-leaves-the-shard-open", (), state.phase = Phase::Stopped);
        let mut taken = Vec::with_capacity(state.wheel.len());
        for key in state.wheel.keys() {
            // A running timer stays until its run has ended, because its handles can still cancel it.
            if state.pending(key).is_none() {
                continue;
            }
            let entry = planted!(
                "engine.stop-leaves-what-is-ready",
                if state.wheel.ready() > 0 { None } else { state.wheel.cancel(key) },
                state.wheel.cancel(key)
            );
            let Some(Entry { deadline, mut value }) = entry else { continue };
            state.counts.handed_back += 1;
            F::hand_back(&mut value, &mut state.kept);
            taken.push(Taken { key, deadline, value: ManuallyDrop::into_inner(value) });
        }
        state.wheel.shrink();
        self.publish_ready(&state);
        planted!("engine.stop-is-not-told", (), self.show(&mut state, None));
        planted!("more.stop-keeps-the-places", (), self.context.give_back(taken.len()));
        drop(state);
        taken
    }
}
