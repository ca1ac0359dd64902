//! `KeyedTimer`: one timer for each key.
//!
//! ```text
//!   keys                                            the timer's wheel
//!   ┌──────────────────────────────────────┐
//!   │ "session-7" ─► number 41, callback    │ ◄───── at its deadline: number 41
//!   │ "session-9" ─► number 44, callback    │ ◄───── number 44
//!   └──────────────────────────────────────┘
//! ```
//!
//! The callback is stored under its key; the wheel holds only a number, which is used once. A timer that fires and
//! finds its number takes the callback out and runs it. A timer that was replaced before finds another number, or none,
//! and runs nothing. So the lock of the key decides between run, replace and cancel.
//!
//! A retry keeps its key until its outcome. The timer holds its closures, and the key only the timer's handle. Each
//! attempt first looks up its number. An attempt that has found it counts as running, even if the key is cancelled
//! before the job begins.
//!
//! Lock order: a shard of keys, then a shard of the engine. The engine runs no user code while it holds a lock. The
//! clock, which may be the user's, is read before locking, and an event loop that drives the engine is woken after
//! unlocking.

mod alarm;
mod armed_keys;
mod retry;

use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backoff::Backoff;
use crate::clock::nanoseconds;
use crate::engine::StartError;
use crate::error::ScheduleError;
use crate::key_table::{choose, hash, tables};
use crate::retry::{Attempt, Retried};
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use crate::timer::{Context, Timer};
use crate::wheel::RescheduleError;
use alarm::{Alarm, KeyRef};
use armed_keys::{Armed, ArmedKey, ArmedKeys, Put};
use retry::Trying;

/// Timers identified by your own keys, one timer per key.
///
/// Clones share the same timers, and any thread may use them.
///
/// - **One timer per key**: scheduling under a key replaces its timer. A timer that was replaced or cancelled does not
///   run, even if it is already due, as long as its callback has not begun.
/// - **A finished key costs nothing**: a key is removed before its callback runs, and the callback may schedule under
///   it again.
/// - It has no thread of its own: any number of keyed timers share one [`Timer`] and its clock.
///
/// Keys are compared under a lock, so `Eq` must not use the timer. No other user code runs under it. Dropping the last
/// clone cancels all pending timers.
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use tourbillon::{KeyedTimer, Timer, VirtualClock};
///
/// let clock = VirtualClock::new();
/// let sessions = KeyedTimer::new(&Timer::builder().clock(&clock).build()?);
/// let (closed, expired) = mpsc::channel();
/// for name in ["ann", "bob"] {
///     let closed = closed.clone();
///     sessions.schedule(name.to_owned(), Duration::from_secs(30), move |_| closed.send(name).unwrap())?;
/// }
/// clock.advance(Duration::from_secs(20))?;
/// sessions.reschedule("ann", Duration::from_secs(30))?;
/// clock.advance(Duration::from_secs(10))?;
/// assert_eq!(expired.try_recv(), Ok("bob"));
/// assert!(sessions.cancel("ann") && sessions.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct KeyedTimer<K, S = RandomState>
where
    K: Eq + Send + 'static,
{
    owner: Arc<KeyedOwner<K, S>>,
}

/// State shared by the clones. Dropping the last clone cancels everything.
struct KeyedOwner<K: Eq + Send + 'static, S> {
    core: Arc<KeyedCore<K>>,
    hasher: S,
}

impl<K: Eq + Send + 'static, S> Drop for KeyedOwner<K, S> {
    fn drop(&mut self) {
        planted!("keyed.dropped-keys-fire", 0, self.core.clear());
    }
}

struct KeyedCore<K> {
    timer: Timer,
    key_shards: Box<[ArmedKeys<K>]>,
    /// Whether the driver was started. Starting it may call user code, so it must not happen under a lock.
    started: AtomicBool,
}

impl<K: Eq + Send + 'static> KeyedTimer<K> {
    /// Creates keyed timers that run on `timer`.
    pub fn new(timer: &Timer) -> Self {
        KeyedTimer::with_hasher(timer, RandomState::new())
    }
}

impl<K: Eq + Send + 'static, S> KeyedTimer<K, S> {
    /// As [`new`](KeyedTimer::new), with another hasher. The default hasher resists keys chosen to collide.
    pub fn with_hasher(timer: &Timer, hasher: S) -> Self {
        let key_shards = (0..tables()).map(|_| ArmedKeys::new()).collect();
        let core = KeyedCore { timer: timer.clone(), key_shards, started: AtomicBool::new(false) };
        KeyedTimer { owner: Arc::new(KeyedOwner { core: Arc::new(core), hasher }) }
    }

    /// The number of keys that have a timer.
    pub fn len(&self) -> usize {
        self.owner.core.key_shards.iter().map(ArmedKeys::len).sum()
    }

    /// Whether no key has a timer.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Cancels all timers; returns their number.
    pub fn clear(&self) -> usize {
        self.owner.core.clear()
    }
}

/// Scheduling.
impl<K, S> KeyedTimer<K, S>
where
    K: Eq + Hash + Send + 'static,
    S: BuildHasher,
{
    /// Runs `callback` once after `after`, unless the key is scheduled again or cancelled before.
    ///
    /// Returns whether this replaced another timer, which will never run.
    ///
    /// # Errors
    /// As [`Timer::schedule`]. The error holds the callback; the key's previous timer stays.
    pub fn schedule<F>(
        &self,
        key: K,
        after: Duration,
        callback: F,
    ) -> Result<bool, ScheduleError<F>>
    where
        F: FnOnce(&Context<'_>) + Send + 'static,
    {
        let (replaced, _) = self.put_once(key, after, callback, true)?;
        Ok(replaced)
    }

    /// As [`schedule`](KeyedTimer::schedule), but only if the key has no timer.
    ///
    /// If the key has a timer, returns the callback and changes nothing.
    ///
    /// # Errors
    /// As [`schedule`](KeyedTimer::schedule).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{KeyedTimer, Timer};
    ///
    /// let flushes = KeyedTimer::new(&Timer::new());
    /// let flush = |_: &tourbillon::Context<'_>| println!("flushed");
    /// assert!(flushes.schedule_if_absent("table", Duration::from_secs(1), flush)?.is_none());
    /// assert!(flushes.schedule_if_absent("table", Duration::from_secs(1), flush)?.is_some());
    /// assert_eq!(flushes.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schedule_if_absent<F>(
        &self,
        key: K,
        after: Duration,
        callback: F,
    ) -> Result<Option<F>, ScheduleError<F>>
    where
        F: FnOnce(&Context<'_>) + Send + 'static,
    {
        let (_, back) = self.put_once(key, after, callback, false)?;
        Ok(back)
    }

    /// Runs `job` as soon as possible, and again after each failure, as `backoff` allows.
    ///
    /// `then` is called once with the outcome, as in [`Timer::retry_then`]. Replaces the timer of the key; returns
    /// whether there was one.
    ///
    /// The key is in use until `then` is called. Scheduling another timer under the key, or cancelling the key, ends
    /// the retry with [`Cancelled`](Retried::Cancelled). An attempt that is running at that moment finishes; if it
    /// succeeds, the outcome is success.
    ///
    /// # Errors
    /// As [`Timer::schedule`]. The error holds both closures; the key's previous timer stays.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use tourbillon::{Backoff, KeyedTimer, Retried, Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let peers = KeyedTimer::new(&timer);
    /// let (report, outcomes) = mpsc::channel();
    /// for peer in ["a", "b"] {
    ///     let report = report.clone();
    ///     let connect = move |attempt: &tourbillon::Attempt| match attempt.number() {
    ///         3 => Ok(peer),
    ///         _ => Err("refused"),
    ///     };
    ///     let backoff = Backoff::new(Duration::from_secs(1));
    ///     peers.retry(peer, backoff, connect, move |outcome| report.send(outcome).unwrap())?;
    /// }
    /// clock.advance(Duration::from_secs(1))?;
    /// assert!(peers.cancel("b"));
    /// assert_eq!(outcomes.try_recv(), Ok(Retried::Cancelled));
    /// clock.advance(Duration::from_secs(2))?;
    /// assert_eq!(outcomes.try_recv(), Ok(Retried::Success("a")));
    /// assert!(peers.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn retry<T, E, J, L>(
        &self,
        key: K,
        backoff: Backoff,
        job: J,
        then: L,
    ) -> Result<bool, ScheduleError<(J, L)>>
    where
        T: 'static,
        E: 'static,
        J: FnMut(&Attempt) -> Result<T, E> + Send + 'static,
        L: FnOnce(Retried<T, E>) + Send + 'static,
    {
        let core = &self.owner.core;
        if let Err(error) = core.start() {
            core.timer.contain(|| drop(key));
            return Err(refused(error, (job, then)));
        }
        let hash = hash(&self.owner.hasher, &key);
        let now = core.timer.time();
        let (trying, held) = Trying::new(job, then);
        let arm = |number| {
            let place = Arc::new(KeyRef { core: core.clone(), hash, number });
            let (job, then) = held.closures(place);
            core.timer.retry_from(now, backoff, job, then).map(Armed::Retry)
        };
        match core.with_keys(hash, |keys| keys.put(hash, key, true, arm)) {
            Ok(put) => Ok(core.put_away(put)),
            Err((error, key)) => {
                core.timer.contain(|| drop(key));
                Err(error.map(|closures| {
                    let inner = trying.into_inner();
                    drop(closures);
                    inner
                }))
            }
        }
    }

    /// Returns whether a timer was replaced, and the callback if the key was in use and `replace` is false.
    fn put_once<F>(
        &self,
        key: K,
        after: Duration,
        callback: F,
        replace: bool,
    ) -> Result<(bool, Option<F>), ScheduleError<F>>
    where
        F: FnOnce(&Context<'_>) + Send + 'static,
    {
        let core = &self.owner.core;
        if let Err(error) = core.start() {
            core.timer.contain(|| drop(key));
            return Err(refused(error, callback));
        }
        let hash = hash(&self.owner.hasher, &key);
        let at = core.timer.time() + nanoseconds(after);
        let mut callback = Some(callback);
        let arm = |number| {
            let alarm = Alarm(Some(KeyRef { core: core.clone(), hash, number }));
            let armed = core.timer.arm_time(at, move |context| alarm.ring(context));
            armed.map(|timer| {
                let callback = callback.take().expect("it is armed once");
                Armed::Once(timer, Box::new(callback))
            })
        };
        match core.with_keys(hash, |keys| keys.put(hash, key, replace, arm)) {
            Ok(put) => Ok((core.put_away(put), callback)),
            Err((error, key)) => {
                planted!("third.key-of-a-refusal-panics-out", drop(key), {
                    core.timer.contain(|| drop(key));
                });
                Err(error.map(|_| callback.take().expect("it was not armed")))
            }
        }
    }
}

/// Operations on a key.
impl<K, S> KeyedTimer<K, S>
where
    K: Eq + Hash + Send + 'static,
    S: BuildHasher,
{
    /// Cancels the timer of the key: its callback never starts.
    ///
    /// Returns `false` if the key has no timer, because the timer has started or was cancelled before. A
    /// [retry](KeyedTimer::retry) can be cancelled until its outcome: no further attempt starts. An attempt that is
    /// running, or starts at this moment, finishes.
    pub fn cancel<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let hash = hash(&self.owner.hasher, key);
        let taken = self.owner.core.keys(hash).take(hash, key);
        taken.map(|(key, slot)| self.owner.core.end(Some(key), slot)).is_some()
    }

    /// Reschedules the timer of the key to `after` from now. For a [retry](KeyedTimer::retry), moves the next attempt.
    ///
    /// # Errors
    /// The key has no pending timer, or there is no memory to move it. Nothing has changed.
    pub fn reschedule<Q>(&self, key: &Q, after: Duration) -> Result<(), RescheduleError>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let timer = &self.owner.core.timer;
        let at = timer.time() + nanoseconds(after);
        let moved = self.look(key, |armed| match armed {
            Armed::Once(key, _) => timer.move_to(*key, at),
            Armed::Retry(handle) => planted!(
                "fifth.keyed-retry-cannot-be-moved",
                Err(RescheduleError::NotPending),
                handle.move_to(at)
            ),
        });
        moved.unwrap_or(Err(RescheduleError::NotPending))
    }

    /// Whether the key has a timer that has not started, or a [retry](KeyedTimer::retry) without an outcome.
    pub fn is_pending<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.look(key, |_| ()).is_some()
    }

    /// The deadline of the key's timer. For a [retry](KeyedTimer::retry), the deadline of its next attempt.
    ///
    /// `None` if the key has no timer, or if the timer is about to run or was stopped.
    pub fn deadline<Q>(&self, key: &Q) -> Option<Instant>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let timer = &self.owner.core.timer;
        self.look(key, |armed| match armed {
            Armed::Once(key, _) => timer.deadline(*key),
            Armed::Retry(handle) => {
                planted!("blind.keyed-retry-has-no-deadline", None, handle.deadline())
            }
        })?
    }

    fn look<Q, R>(&self, key: &Q, look: impl FnOnce(&Armed) -> R) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let hash = hash(&self.owner.hasher, key);
        self.owner.core.with_keys(hash, |keys| keys.with(hash, key, look))
    }
}

impl<K: Eq + Send + 'static> KeyedCore<K> {
    fn keys(&self, hash: u64) -> &ArmedKeys<K> {
        choose(&self.key_shards, hash)
    }

    /// Arms or reschedules a timer under the lock of a shard of keys, and wakes the event loop only afterwards.
    /// The wake hook is user code and must not run under the lock. Any shard of the engine can wake its one loop.
    fn with_keys<R>(&self, hash: u64, locked: impl FnOnce(&ArmedKeys<K>) -> R) -> R {
        self.timer.core().shards[0].tell_loop_after(|| locked(self.keys(hash)))
    }

    /// Starts the driver if this was not done yet.
    fn start(&self) -> Result<(), StartError> {
        // Relaxed: starting twice is harmless, and a thread that reads `true` synchronizes by the timer's own locks.
        if !self.started.load(Relaxed) {
            let started = self.timer.start();
            if planted!("later.failed-start-counts-as-started", true, started.is_ok()) {
                self.started.store(true, Relaxed);
            }
            started?;
        }
        Ok(())
    }

    /// Ends the timer that was replaced, if any, and drops the spare key. Returns whether one was replaced.
    fn put_away(&self, put: Put<K>) -> bool {
        match put {
            Put::Done(Some(old), key) => {
                self.end(key, old);
                true
            }
            Put::Done(None, key) => {
                self.timer.contain(|| drop(key));
                false
            }
            Put::Taken(key) => {
                self.timer.contain(|| drop(key));
                false
            }
        }
    }

    /// Cancels a timer that was taken from its key.
    fn end(&self, key: Option<K>, slot: ArmedKey) {
        match slot.armed {
            Armed::Once(timer, callback) => {
                planted!(
                    "keyed.replaced-timer-stays-in-the-wheel",
                    false,
                    self.timer.cancel(timer)
                );
                planted!("keyed.callback-drop-not-contained", drop(callback), {
                    self.timer.contain(|| drop(callback));
                });
            }
            Armed::Retry(handle) => {
                planted!("later.retry-of-a-cancelled-key-is-told-late", false, handle.cancel());
            }
        }
        self.timer.contain(|| drop(key));
    }

    fn clear(&self) -> usize {
        let all = self.key_shards.iter().flat_map(ArmedKeys::take_all);
        all.map(|(key, slot)| self.end(Some(key), slot)).count()
    }
}

fn refused<F>(error: StartError, value: F) -> ScheduleError<F> {
    match error {
        StartError::Stopped => ScheduleError::Stopped(value),
        StartError::Thread(wrong) => {
            planted!(
                "keyed.no-thread-says-stopped",
                ScheduleError::Stopped(value),
                ScheduleError::Thread(value, wrong)
            )
        }
    }
}

impl<K: Eq + Send + 'static, S> Clone for KeyedTimer<K, S> {
    fn clone(&self) -> Self {
        KeyedTimer { owner: self.owner.clone() }
    }
}

impl<K: Eq + Send + 'static, S> fmt::Debug for KeyedTimer<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedTimer").field("len", &self.len()).finish_non_exhaustive()
    }
}
