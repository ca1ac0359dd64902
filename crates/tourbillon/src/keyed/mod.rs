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
//! The callback lies under its key, and the wheel knows nothing but a number, which is used once. Whoever comes with
//! the number that is there takes the callback out and runs it; a timer that fired but was replaced before it ran finds
//! another number, or none, and runs nothing. So the lock of the key decides between run, replace and cancel.
//!
//! Lock order: a shard of keys, then a shard of the engine. The engine calls nobody while it holds a lock; the clock,
//! which may be the user's, is read before, and who drives the engine is woken after.

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

/// Timers that are named by keys of your own, one for each key. Clones are the same, and any thread may use it.
///
/// - **One a key**: scheduling under a key replaces what was there. A timer that is due, and even one that has fired
///   but whose callback has not begun, does not run once it was replaced or cancelled.
/// - **A key costs nothing when its timer is over**: it leaves before its callback runs, which may schedule under the
///   same key again.
/// - It has no thread of its own: any number of them share one [`Timer`], and its clock.
///
/// Under a lock keys are compared, and nothing else: `Eq` must not use the timer. Dropping the last clone cancels all
/// that is pending.
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use tourbillon::{KeyedTimer, Timer, VirtualClock};
///
/// let clock = VirtualClock::new();
/// let sessions = KeyedTimer::new(&Timer::builder().clock(&clock).build()?);
/// let (closed, told) = mpsc::channel();
/// for name in ["ann", "bob"] {
///     let closed = closed.clone();
///     sessions.schedule(name.to_owned(), Duration::from_secs(30), move |_| closed.send(name).unwrap())?;
/// }
/// clock.advance(Duration::from_secs(20))?;
/// sessions.reschedule("ann", Duration::from_secs(30))?;
/// clock.advance(Duration::from_secs(10))?;
/// assert_eq!(told.try_recv(), Ok("bob"));
/// assert!(sessions.cancel("ann") && sessions.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct KeyedTimer<K, S = RandomState>
where
    K: Eq + Send + 'static,
{
    owner: Arc<KeyedOwner<K, S>>,
}

/// What the clones share: the last of them cancels all.
struct KeyedOwner<K: Eq + Send + 'static, S> {
    core: Arc<Core<K>>,
    hasher: S,
}

impl<K: Eq + Send + 'static, S> Drop for KeyedOwner<K, S> {
    fn drop(&mut self) {
        planted!("keyed.dropped-keys-fire", 0, self.core.clear());
    }
}

struct Core<K> {
    timer: Timer,
    key_shards: Box<[ArmedKeys<K>]>,
    /// Whether the driver was started: its start may call foreign code, and must not happen under a lock.
    started: AtomicBool,
}

impl<K: Eq + Send + 'static> KeyedTimer<K> {
    /// Keyed timers that run by that timer.
    pub fn new(timer: &Timer) -> Self {
        KeyedTimer::with_hasher(timer, RandomState::new())
    }
}

impl<K: Eq + Send + 'static, S> KeyedTimer<K, S> {
    /// Hashes the keys with another hasher. The default withstands keys that were chosen to collide.
    pub fn with_hasher(timer: &Timer, hasher: S) -> Self {
        let key_shards = (0..tables()).map(|_| ArmedKeys::new()).collect();
        let core = Core { timer: timer.clone(), key_shards, started: AtomicBool::new(false) };
        KeyedTimer { owner: Arc::new(KeyedOwner { core: Arc::new(core), hasher }) }
    }

    /// How many keys have a timer.
    pub fn len(&self) -> usize {
        self.owner.core.key_shards.iter().map(ArmedKeys::len).sum()
    }

    /// Whether no key has a timer.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Cancels all of them, and returns how many.
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
    /// Runs `callback` once, after so long, unless the key is scheduled anew or cancelled before. Answers whether it
    /// replaced another, which will never run.
    ///
    /// # Errors
    /// As [`Timer::schedule`]. The callback comes back, and what was there stays.
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

    /// [`schedule`](KeyedTimer::schedule), if the key has no timer. If it has, the callback comes back, and nothing
    /// changes.
    ///
    /// # Errors
    /// As there.
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

    /// Runs `job` now, where callbacks run, and again after each failure, as often and as late as `backoff` says;
    /// `then` is called once, with the outcome, as that of [`Timer::retry_then`]. Replaces what was there, and answers
    /// whether there was something.
    ///
    /// The key is taken until the outcome: to schedule under it, or to cancel it, ends the retry, whose outcome is then
    /// [`Cancelled`](Retried::Cancelled). A try that runs at that moment finishes, and if it succeeds that is the
    /// outcome.
    ///
    /// # Errors
    /// As [`Timer::schedule`]. Both closures come back, and what was there stays.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use tourbillon::{Backoff, KeyedTimer, Retried, Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let peers = KeyedTimer::new(&timer);
    /// let (told, outcomes) = mpsc::channel();
    /// for peer in ["a", "b"] {
    ///     let told = told.clone();
    ///     let connect = move |attempt: &tourbillon::Attempt| match attempt.number() {
    ///         3 => Ok(peer),
    ///         _ => Err("refused"),
    ///     };
    ///     let backoff = Backoff::new(Duration::from_secs(1));
    ///     peers.retry(peer, backoff, connect, move |outcome| told.send(outcome).unwrap())?;
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

    /// Whether another was replaced; and the callback, if none was to be.
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

/// What the keys are for.
impl<K, S> KeyedTimer<K, S>
where
    K: Eq + Hash + Send + 'static,
    S: BuildHasher,
{
    /// Cancels the timer of the key. True means that its callback will never start (again, if it is a
    /// [retry](KeyedTimer::retry)); false that the key has none: it has started, or was cancelled before.
    pub fn cancel<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let hash = hash(&self.owner.hasher, key);
        let taken = self.owner.core.keys(hash).take(hash, key);
        taken.map(|(key, slot)| self.owner.core.end(Some(key), slot)).is_some()
    }

    /// Moves the timer of the key to so long after now; of a [retry](KeyedTimer::retry), its next try.
    ///
    /// # Errors
    /// The key has none that is pending, or there was no memory to move it; it is as it was.
    pub fn reschedule<Q>(&self, key: &Q, after: Duration) -> Result<(), RescheduleError>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let timer = &self.owner.core.timer;
        let at = timer.time() + nanoseconds(after);
        let moved = self.look(key, |armed| match armed {
            Armed::Once(key, _) => timer.move_to(*key, at),
            Armed::Retry(handle) => handle.move_to(at),
        });
        moved.unwrap_or(Err(RescheduleError::NotPending))
    }

    /// Whether the key has a timer whose callback has not started, or a [retry](KeyedTimer::retry) without an outcome.
    pub fn is_pending<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.look(key, |_| ()).is_some()
    }

    /// When the timer of the key is to run; of a [retry](KeyedTimer::retry), its next try. `None` if it has none, or it
    /// is about to run.
    pub fn deadline<Q>(&self, key: &Q) -> Option<Instant>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let timer = &self.owner.core.timer;
        self.look(key, |armed| match armed {
            Armed::Once(key, _) => timer.deadline(*key),
            Armed::Retry(handle) => handle.deadline(),
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

impl<K: Eq + Send + 'static> Core<K> {
    fn keys(&self, hash: u64) -> &ArmedKeys<K> {
        choose(&self.key_shards, hash)
    }

    /// Arms or moves a timer under the lock of a shard of keys. Wakes the driver afterwards, because a waker is foreign
    /// code.
    fn with_keys<R>(&self, hash: u64, locked: impl FnOnce(&ArmedKeys<K>) -> R) -> R {
        self.timer.core().shards[0].tell_loop_after(|| locked(self.keys(hash)))
    }

    /// Starts the driver, if it was not.
    fn start(&self) -> Result<(), StartError> {
        // Relaxed: to start it twice does no harm, and whoever finds it started was told by the timer itself.
        if !self.started.load(Relaxed) {
            let started = self.timer.start();
            if planted!("later.failed-start-counts-as-started", true, started.is_ok()) {
                self.started.store(true, Relaxed);
            }
            started?;
        }
        Ok(())
    }

    /// Ends what was replaced, if anything was, and drops what is not needed. Whether anything was.
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

    /// What was taken from its key will not run.
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
