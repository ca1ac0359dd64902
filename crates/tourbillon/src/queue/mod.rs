//! `DelayQueue`: values that any number of threads can take once their deadline has passed.
//!
//! The queue has no thread of its own: the threads that take also drive it. `state.rs` contains the wheel and its
//! counts, all under one lock; `take.rs` contains the protocol of sleeping and waking; this file is the public
//! interface.

mod error;
mod inspect;
mod state;
mod take;
mod taker;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tourbillon_wheel::{RescheduleError, Time};

use crate::clock::nanoseconds;
use crate::engine::counts::Counts;
use crate::engine::settings::Settings;
use crate::engine::shard::Taken;
use crate::key::Key;
use crate::sync::lock;
use crate::typed::Fired;
pub use error::{PutError, TakeError};
use take::Shared;
pub use taker::Taker;

/// A queue of values that any number of threads can take once their deadline has passed.
///
/// Clones share the same queue.
///
/// - **Never early**, and less than a tick late, plus the time the system takes to wake a thread.
/// - **Exactly once**: a value is taken, removed, or handed back by [`close`](DelayQueue::close): one of the three,
///   once.
/// - **The earliest deadline first**, to the nanosecond; equal deadlines in the order in which they were put or moved.
/// - **No thread of its own**: of the threads that wait to take, one sleeps until the next value is due, and the others
///   until they are woken.
/// - Put, move and remove are O(1), whatever the queue holds. So is take, except that the values of one tick are
///   sorted. Before a thread goes to sleep, it determines the next deadline, which may walk the values of one slot.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{DelayQueue, TakeError};
///
/// let queue = DelayQueue::new();
/// queue.put(Duration::from_millis(20), "second")?;
/// queue.put(Duration::from_millis(10), "first")?;
/// let hour = queue.put(Duration::from_secs(3600), "in an hour")?;
///
/// assert_eq!(queue.try_take(), Err(TakeError::NothingDue));
/// assert_eq!(queue.take(), Ok("first"));
/// assert_eq!(queue.take(), Ok("second"));
/// assert_eq!(queue.take_within(Duration::from_millis(1)), Err(TakeError::NothingDue));
/// assert_eq!(queue.remove(hour), Some("in an hour"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Under a [`VirtualClock`](crate::VirtualClock), an advance pauses at the deadline of each value until a waiting
/// thread has taken it. A value for which no thread waits stays in the queue. The clock does not wait until the thread
/// has processed the value or takes again. If values should also be processed at their deadlines, give each thread a
/// [`taker`](DelayQueue::taker), or take on the thread that advances the clock:
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{Timer, VirtualClock};
///
/// let clock = VirtualClock::new();
/// let queue = Timer::builder().clock(&clock).queue()?;
/// for minutes in [3, 1, 2] {
///     queue.put(Duration::from_secs(60 * minutes), minutes)?;
/// }
/// while clock.advance_to_next()? {
///     while let Ok(minutes) = queue.try_take() {
///         assert_eq!(clock.elapsed(), Duration::from_secs(60 * minutes));
///     }
/// }
/// assert!(queue.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DelayQueue<T: Send + 'static> {
    shared: Arc<Shared<T>>,
}

impl<T: Send + 'static> DelayQueue<T> {
    pub(crate) fn with(settings: Settings) -> Self {
        DelayQueue { shared: Shared::new(settings) }
    }

    /// Adds a value that can be taken after the given delay, at once if the delay is zero.
    ///
    /// # Errors
    /// If the queue is closed or full. The error holds the value.
    pub fn put(&self, after: Duration, value: T) -> Result<Key, PutError<T>> {
        let now = self.shared.clock.now();
        self.put_time(now + nanoseconds(after), now, value)
    }

    /// Adds a value that can be taken from the given instant on, at once if the instant has passed.
    ///
    /// # Errors
    /// As [`put`](DelayQueue::put).
    pub fn put_at(&self, at: Instant, value: T) -> Result<Key, PutError<T>> {
        let deadline = planted!(
            "sixth.values-put-for-the-past-lose-their-order",
            self.shared.clock.time(at).max(self.shared.clock.now()),
            self.shared.clock.time(at)
        );
        self.put_time(deadline, self.shared.clock.now(), value)
    }

    fn put_time(&self, deadline: Time, now: Time, value: T) -> Result<Key, PutError<T>> {
        let mut state = lock(&self.shared.state);
        let key = state.put(deadline, now, value)?;
        self.shared.leave_earlier(state, key);
        Ok(Key::new(0, key))
    }

    /// Takes a value that is due; if there is none, waits for one.
    ///
    /// If the queue is empty, it waits until a value is put and becomes due, or the queue is closed.
    ///
    /// # Errors
    /// Only [`TakeError::Closed`].
    pub fn take(&self) -> Result<T, TakeError> {
        self.shared.take(None).map(|taken| taken.value)
    }

    /// As [`take`](DelayQueue::take), but waits no longer than `limit`, measured by the queue's clock.
    ///
    /// # Errors
    /// If the queue is closed, or no value became due within the limit.
    pub fn take_within(&self, limit: Duration) -> Result<T, TakeError> {
        let end = self.shared.clock.now() + nanoseconds(limit);
        self.shared.take(Some(end)).map(|taken| taken.value)
    }

    /// Takes a value that is due. Never blocks.
    ///
    /// # Errors
    /// If the queue is closed, or no value is due.
    pub fn try_take(&self) -> Result<T, TakeError> {
        self.shared.take(Some(Time::ZERO)).map(|taken| taken.value)
    }

    /// As [`take`](DelayQueue::take), but returns the value with its key and its deadline.
    ///
    /// # Errors
    /// As [`take`](DelayQueue::take).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::DelayQueue;
    ///
    /// let queue = DelayQueue::new();
    /// let key = queue.put(Duration::from_millis(5), "value")?;
    /// let deadline = queue.deadline(key);
    /// let taken = queue.take_entry()?;
    /// assert_eq!((taken.key, taken.value, Some(taken.deadline())), (key, "value", deadline));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take_entry(&self) -> Result<Fired<T>, TakeError> {
        self.entry(self.shared.take(None))
    }

    /// As [`take_within`](DelayQueue::take_within), but returns the value with its key and its deadline.
    ///
    /// # Errors
    /// As [`take_within`](DelayQueue::take_within).
    pub fn take_entry_within(&self, limit: Duration) -> Result<Fired<T>, TakeError> {
        let end = self.shared.clock.now() + nanoseconds(limit);
        self.entry(self.shared.take(Some(end)))
    }

    /// As [`try_take`](DelayQueue::try_take), but returns the value with its key and its deadline.
    ///
    /// # Errors
    /// As [`try_take`](DelayQueue::try_take).
    pub fn try_take_entry(&self) -> Result<Fired<T>, TakeError> {
        self.entry(self.shared.take(Some(Time::ZERO)))
    }

    fn entry(&self, taken: Result<Taken<T>, TakeError>) -> Result<Fired<T>, TakeError> {
        taken.map(|taken| Fired::new(0, taken, self.shared.clock.begin()))
    }

    /// Creates a taker, for a thread that a virtual clock waits for: see [`Taker`].
    pub fn taker(&self) -> Taker<T> {
        Taker::new(self.shared.clone())
    }

    /// Removes a value, due or not. `None` if it is no longer in the queue.
    pub fn remove(&self, key: Key) -> Option<T> {
        if key.shard() != 0 {
            return None;
        }
        let removed = lock(&self.shared.state).remove(key.inner());
        planted!("queue.removal-does-not-notify-advance", (), self.shared.gone());
        removed
    }

    /// Moves a value's deadline to the given delay from now. The value may already be due.
    ///
    /// # Errors
    /// If the value is no longer in the queue, or memory is exhausted. It then keeps its deadline.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::DelayQueue;
    ///
    /// let queue = DelayQueue::new();
    /// let key = queue.put(Duration::ZERO, "later, please")?;
    /// queue.reschedule(key, Duration::from_secs(60))?;
    /// assert!(queue.try_take().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reschedule(&self, key: Key, after: Duration) -> Result<(), RescheduleError> {
        let now = self.shared.clock.now();
        self.move_to(key, now + nanoseconds(after), now)
    }

    /// Moves a value's deadline to the given instant.
    ///
    /// # Errors
    /// As [`reschedule`](DelayQueue::reschedule).
    pub fn reschedule_at(&self, key: Key, at: Instant) -> Result<(), RescheduleError> {
        self.move_to(key, self.shared.clock.time(at), self.shared.clock.now())
    }

    fn move_to(&self, key: Key, deadline: Time, now: Time) -> Result<(), RescheduleError> {
        if key.shard() != 0 {
            return Err(RescheduleError::NotPending);
        }
        let mut state = lock(&self.shared.state);
        let now = planted!("later.moved-to-now-waits-for-a-tick", Time::ZERO, now);
        state.reschedule(key.inner(), deadline, now)?;
        self.shared.leave_earlier(state, key.inner());
        planted!("queue.move-does-not-notify-advance", (), self.shared.gone());
        Ok(())
    }

    /// The deadline of a value, if the value is still in the queue.
    pub fn deadline(&self, key: Key) -> Option<Instant> {
        let time = lock(&self.shared.state).deadline(key.inner())?;
        Some(self.shared.clock.instant(time)).filter(|_| key.shard() == 0)
    }

    /// Closes the queue and hands back every value in it, due or not, each once.
    ///
    /// Nothing is taken after this: threads that wait, and threads that try to take later, get [`TakeError::Closed`]. A
    /// second close returns nothing.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{DelayQueue, TakeError};
    ///
    /// let queue = DelayQueue::new();
    /// queue.put(Duration::from_secs(60), "late")?;
    /// let worker = std::thread::spawn({
    ///     let queue = queue.clone();
    ///     move || queue.take()
    /// });
    /// let left = queue.close();
    /// assert_eq!(left[0].value, "late");
    /// assert_eq!(worker.join().unwrap(), Err(TakeError::Closed));
    /// assert_eq!(queue.put(Duration::ZERO, "too late").unwrap_err().into_inner(), "too late");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(&self) -> Vec<Fired<T>> {
        let begin = self.shared.clock.begin();
        self.shared.close().into_iter().map(|taken| Fired::new(0, taken, begin)).collect()
    }

    /// Whether the queue was closed.
    pub fn is_closed(&self) -> bool {
        lock(&self.shared.state).is_closed()
    }

    /// The number of values, due or not.
    pub fn len(&self) -> usize {
        self.counts().pending as usize
    }

    /// Whether the queue has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The counts of all operations: a taken value counts as fired, a removed one as cancelled.
    pub fn counts(&self) -> Counts {
        lock(&self.shared.state).counts()
    }

    /// The current time of the queue's clock.
    pub fn now(&self) -> Instant {
        self.shared.clock.instant(self.shared.clock.now())
    }

    /// Releases the memory of an earlier peak.
    pub fn shrink(&self) {
        lock(&self.shared.state).shrink();
    }

    /// Walks the wheel and reports the first broken invariant. For tests.
    ///
    /// # Errors
    /// The broken invariant, which is a bug in this crate.
    pub fn check(&self) -> Result<(), String> {
        lock(&self.shared.state).check()
    }
}

/// For models in which a thread advances time.
#[cfg(all(loom, test))]
impl<T: Send + 'static> DelayQueue<T> {
    /// Wakes the leader after time has passed; the leader reads the clock.
    pub(crate) fn pass_time(&self) {
        self.shared.pass_time();
    }

    /// Takes until the given duration after the clock's beginning, whenever this is called.
    pub(crate) fn take_until(&self, end: Duration) -> Result<T, TakeError> {
        let end = crate::clock::BEGIN + nanoseconds(end);
        self.shared.take(Some(end)).map(|taken| taken.value)
    }
}

impl<T: Send + 'static> Clone for DelayQueue<T> {
    fn clone(&self) -> Self {
        DelayQueue { shared: self.shared.clone() }
    }
}

impl<T: Send + 'static> fmt::Debug for DelayQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayQueue").field("counts", &self.counts()).finish_non_exhaustive()
    }
}
