//! Taking from the queue. The threads that take also drive it: one leads, the others follow.
//!
//! A thread that finds no due value and no leader becomes the *leader*: it sleeps until the next value is due. A thread
//! that finds a leader becomes a *follower*: it sleeps until it is woken. All decisions are made under the queue's
//! lock, which no thread holds while it sleeps. All times are the clock's, in nanoseconds.
//!
//! ```text
//!   leader         leader = until, unlock, sleep until then or a wake, lock, leader = none, look again
//!   follower       followers += 1, wait to be woken (unlocked), followers -= 1, look again
//!   put, move      due earlier than `until`: leader = awake, unlock, wake the leader
//!   remove         wakes no thread: at worst, the leader wakes once for nothing
//!   limit          except with the system clock: the leader sleeps no longer than any limit, then wakes the followers
//!   leave          with or without a value: if there are followers but no leader, wake one follower
//! ```
//!
//! **Whenever there is a follower, there is a leader or a thread that is about to look.** The leader stops leading only
//! to look for a value. If it then leaves, it wakes a follower, which looks in turn, and takes the due value or leads.
//! So no due value stays while a thread waits, and a value wakes one thread, not all of them.
//!
//! A follower with a limit may time out at the moment at which it is woken. It leaves like any other thread, and wakes
//! the next.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tourbillon_wheel::{Key, Time};

use super::error::TakeError;
use super::state::{Look, QueueState};
use crate::clock::{Driven, EngineClock};
use crate::contain::drop_quietly;
use crate::engine::settings::Settings;
use crate::engine::shard::{AGAIN, Taken};
use crate::sleeper::Sleeper;
use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait};

pub(super) struct Shared<T> {
    pub(super) clock: EngineClock,
    pub(super) state: Mutex<QueueState<T>>,
    /// Where the leader sleeps.
    sleeper: Sleeper,
    /// Where the followers sleep.
    called: Condvar,
    /// Where a virtual clock waits for the threads that it woke, and for takers that process a value.
    left: Condvar,
}

impl<T: Send + 'static> Shared<T> {
    pub(super) fn new(settings: Settings) -> Arc<Self> {
        let Settings { geometry, tick, context, .. } = settings;
        let shared = Arc::new(Shared {
            clock: context.clock,
            state: Mutex::new(QueueState::new(
                &geometry,
                tick,
                context.limit.map(|limit| limit.most()),
            )),
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

    /// Takes a due value; waits for one until `end`, or without a limit.
    pub(super) fn take(&self, end: Option<Time>) -> Result<Taken<T>, TakeError> {
        self.take_as(end, false)
    }

    /// As [`take`](Shared::take). `taker` says whether the caller is a [`Taker`](super::Taker).
    pub(super) fn take_as(&self, end: Option<Time>, taker: bool) -> Result<Taken<T>, TakeError> {
        let mut here = Here { shared: self, end, counted: false, taker };
        let mut leads = false;
        loop {
            // The clock is read before the lock is taken, because it may be a user's clock. A virtual clock is read
            // again under the lock, so that either this thread sees an advance, or the advance sees this thread
            // waiting. With an older reading, this thread could become a follower after the advance has woken the
            // followers.
            let mut now = planted!(
                "third.clock-read-under-the-queues-lock",
                {
                    let _state = lock(&self.state);
                    self.clock.now()
                },
                self.clock.now()
            );
            let mut state = lock(&self.state);
            if let Some(clock) = self.clock.as_virtual() {
                let time = clock.time();
                now = planted!("queue.who-waits-trusts-an-older-reading", now.min(time), time);
            }
            if leads {
                state.waiting.leader = None;
                leads = false;
            }
            if state.is_closed() {
                return here.leave(state, Err(TakeError::Closed));
            }
            let later = match state.look(now) {
                Look::Due(taken) => return here.leave(state, Ok(taken)),
                // The look was cut short to release the lock for a moment. It goes on at once.
                Look::Unknown => continue,
                Look::Nothing => None,
                Look::Later(at) => Some(at),
            };
            let late =
                |end| planted!("queue.a-limit-of-this-moment-is-not-over", end < now, end <= now);
            if end.is_some_and(late) {
                return here.leave(state, Err(TakeError::NothingDue));
            }
            planted!(
                "later.who-leads-is-not-counted",
                if state.waiting.leader.is_some() {
                    here.stay(&mut state);
                },
                here.stay(&mut state)
            );
            if state.waiting.leader.is_some() {
                self.follow(state, end, now);
                continue;
            }
            let next = later.or_else(|| state.upcoming(now)).unwrap_or(u64::MAX);
            let limit = self.call_late(&state, now);
            let until = planted!(
                "sixth.limit-ends-a-take-only-if-the-queue-is-empty",
                if next == u64::MAX { end.map_or(next, Time::units) } else { next },
                end.map_or(next, |end| end.units().min(next))
            )
            .min(limit);
            state.waiting.leader = Some(until);
            drop(state);
            let no_memory = later.is_some() && self.clock.as_virtual().is_some();
            if planted!("queue.virtual-clock-does-not-get-past-missing-memory", false, no_memory) {
                // A virtual clock stands still until the value that is due was taken. So this retries in real time.
                self.sleeper.sleep(Some(Duration::from_nanos(AGAIN)));
            } else {
                self.clock.wait(Time::new(until), &self.sleeper);
            }
            leads = true;
        }
    }

    fn follow(&self, mut state: MutexGuard<'_, QueueState<T>>, end: Option<Time>, now: Time) {
        let mut limit = None;
        if self.clock.is_system() {
            let left = end.map(|end| Duration::from_nanos(end.units() - now.units()));
            limit = planted!("more.who-follows-outstays-its-limit", None, left);
        } else if planted!(
            "queue.who-leads-does-not-hear-of-a-limit",
            false,
            end.is_some_and(|end| state.wakes_leader(end.units()))
        ) {
            // Any other clock may run at a different speed than the condition variable's timeout. So the leader sleeps
            // by that clock, and wakes the followers.
            self.sleeper.wake();
        }
        state.waiting.followers += 1;
        let mut state = wait(&self.called, state, limit);
        state.waiting.followers -= 1;
    }

    /// Wakes the followers if a limit has passed, and returns when the next one passes. Called by the leader.
    fn call_late(&self, state: &QueueState<T>, now: Time) -> u64 {
        let limits = state.waiting.limits.iter().copied();
        let now = now.units();
        let late = |limit| {
            planted!("queue.who-leads-passes-over-a-limit-of-now", limit < now, limit <= now)
        };
        if limits.clone().any(late) {
            self.called.notify_all();
        }
        let limits = limits.filter(|&limit| limit > now);
        planted!("later.who-leads-minds-the-last-limit", limits.max(), limits.min())
            .unwrap_or(u64::MAX)
    }

    /// Releases the lock, then wakes the leader if the value that was put or moved is due while the leader would sleep.
    pub(super) fn leave_earlier(&self, mut state: MutexGuard<'_, QueueState<T>>, key: Key) {
        let due = state.due(key);
        let wake = state.wakes_leader(due);
        drop(state);
        if planted!("queue.an-earlier-value-wakes-nobody", false, wake) {
            self.sleeper.wake();
        }
    }

    pub(super) fn close(&self) -> Vec<Taken<T>> {
        let all = lock(&self.state).close();
        planted!("queue.close-does-not-wake-who-leads", (), self.sleeper.wake());
        self.called.notify_all();
        self.gone();
        all
    }

    /// Notifies a virtual clock, which may wait until no value is due or no thread waits.
    pub(super) fn gone(&self) {
        if self.clock.as_virtual().is_some() {
            self.left.notify_all();
        }
    }

    /// Adds or removes one taker that does not wait.
    pub(super) fn count_taker(&self, more: bool) {
        let busy = &mut lock(&self.state).waiting.busy;
        *busy = if more { *busy + 1 } else { *busy - 1 };
        planted!("fifth.dropped-taker-holds-up-the-clock", (), self.gone());
    }

    #[cfg(all(loom, test))]
    pub(super) fn pass_time(&self) {
        self.sleeper.wake();
    }
}

/// A panic in one value's drop must not prevent the drops of the others, nor abort the process.
impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let all = lock(&self.state).close();
        let all = all.into_iter();
        planted!(
            "queue.a-panicking-value-escapes-the-drop",
            all.for_each(drop),
            all.for_each(drop_quietly)
        );
    }
}

/// A thread that takes.
struct Here<'a, T> {
    shared: &'a Shared<T>,
    end: Option<Time>,
    /// Whether it is counted among the waiting threads.
    counted: bool,
    /// Whether it is a [`Taker`](super::Taker). If so, a virtual clock waits until it waits in `take` again.
    taker: bool,
}

impl<T: Send + 'static> Here<'_, T> {
    /// Counts the thread as waiting.
    fn stay(&mut self, state: &mut QueueState<T>) {
        if planted!("blind.who-waits-twice-counts-twice", false, self.counted) {
            return;
        }
        self.counted = true;
        state.waiting.all += 1;
        if self.taker {
            state.waiting.busy -= 1;
            // A virtual clock that waits for this taker gets the lock as soon as this thread sleeps.
            self.shared.gone();
        }
        if !self.shared.clock.is_system() {
            state.waiting.limits.extend(self.end.map(Time::units));
        }
    }

    /// Ends the take, and wakes a follower if there is no leader to look in its place.
    fn leave<R>(self, mut state: MutexGuard<'_, QueueState<T>>, with: R) -> R {
        let waiting = &mut state.waiting;
        if self.counted {
            waiting.busy += usize::from(self.taker);
            waiting.all -= planted!("more.who-has-left-is-awaited", 0, 1);
            let end = self.end.map(Time::units);
            if let Some(own) = waiting.limits.iter().position(|&limit| Some(limit) == end) {
                planted!("queue.keeps-the-limit-of-who-has-left", (), {
                    planted!(
                        "fourth.who-leaves-takes-equal-limits-along",
                        waiting.limits.retain(|&limit| Some(limit) != end),
                        {
                            waiting.limits.swap_remove(own);
                        }
                    );
                });
            }
        }
        let call = waiting.leader.is_none() && waiting.followers > 0;
        let call = planted!("queue.who-leaves-calls-nobody", false, call);
        drop(state);
        if call {
            self.shared.called.notify_one();
        }
        planted!(
            "queue.who-takes-at-once-does-not-notify-advance",
            if self.counted {
                self.shared.gone();
            },
            self.shared.gone()
        );
        with
    }
}

/// A virtual clock steps through the moments at which a thread must wake, and waits at each until all these threads
/// have woken.
impl<T: Send + 'static> Driven for Shared<T> {
    fn next_due(&self) -> Option<Time> {
        let now = self.clock.now();
        let mut state = lock(&self.state);
        let limit = state.waiting.limits.iter().copied().min();
        let limit = planted!("queue.an-advance-does-not-stop-at-a-limit", None, limit);
        let next = planted!(
            "sixth.advance-passes-values-while-someone-waits-with-a-limit",
            limit.or_else(|| state.upcoming(now)),
            state.upcoming(now).into_iter().chain(limit).min()
        );
        next.map(Time::new)
    }

    fn turn(self: Arc<Self>) {
        let now = self.clock.now();
        let mut state = lock(&self.state);
        let nothing = !state.make_ready(now);
        let late =
            |state: &QueueState<T>| state.waiting.limits.iter().any(|&end| end <= now.units());
        let busy = |state: &QueueState<T>| {
            planted!("queue.advance-does-not-wait-for-takers", false, state.waiting.busy > 0)
        };
        // A taker may have taken the due value before this call acquired the lock, and may still be processing it.
        let taken = planted!("queue.advance-passes-who-took-first", false, busy(&state));
        if nothing && !late(&state) && !taken {
            return;
        }
        self.sleeper.wake();
        self.called.notify_all();
        // Each woken thread takes a value or leaves without one, so in the end no thread waits or no value is due. The
        // loop also waits until all takers wait again.
        while busy(&state) || (state.waiting.all > 0 && state.is_due(now)) || late(&state) {
            state = wait(&self.left, state, None);
        }
    }
}
