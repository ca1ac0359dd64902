//! `DelayQueue`: values that can be taken when their time has come, by any number of threads.
//!
//! There is no thread of its own: who takes drives. `state.rs` has the wheel and its counts, all under one lock;
//! `take.rs` has who sleeps until when, and who wakes whom. This file is the face.

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

/// Values that can be taken when their time has come, by any number of threads. Clones are the same queue.
///
/// - **Never early**, and less than a tick late, plus the time the system takes to wake a thread.
/// - **Exactly once**: a value is taken, removed, or handed back by [`close`](DelayQueue::close); one of them, once.
/// - **The earliest deadline first**, to the nanosecond; equal deadlines in the order in which they were put or moved.
/// - **No thread**: of those who wait to take, one sleeps until the next value is due, the others until they are
///   called.
/// - Put, move and remove are O(1), whatever the queue holds. So is take, except that the values of one tick are
///   sorted. A thread that goes to sleep looks up the next deadline, which may walk the values of one slot.
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
/// Under a [`VirtualClock`](crate::VirtualClock) an advance stops at the moment of each value until whoever waits has
/// taken it, and goes on; what nobody waits for stays. What a thread does with a value that it has taken is its own
/// affair: the clock does not wait for that, nor for it to come back for the next. To have all of it happen at its own
/// moment, give each thread a [`taker`](DelayQueue::taker), or take on the thread that moves the clock:
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

    /// Adds a value that can be taken after so long. Zero and what is past can be taken at once.
    ///
    /// # Errors
    /// The queue is closed or full; the value comes back.
    pub fn put(&self, after: Duration, value: T) -> Result<Key, PutError<T>> {
        let now = self.shared.clock.now();
        self.put_time(now + nanoseconds(after), now, value)
    }

    /// Adds a value that can be taken from that moment on.
    ///
    /// # Errors
    /// As [`put`](DelayQueue::put).
    pub fn put_at(&self, at: Instant, value: T) -> Result<Key, PutError<T>> {
        self.put_time(self.shared.clock.time(at), self.shared.clock.now(), value)
    }

    fn put_time(&self, deadline: Time, now: Time, value: T) -> Result<Key, PutError<T>> {
        let mut state = lock(&self.shared.state);
        let key = state.put(deadline, now, value)?;
        self.shared.leave_earlier(state, key);
        Ok(Key::new(0, key))
    }

    /// Takes a value that is due, and waits for one if there is none. With nothing in the queue it waits for somebody
    /// to put, or to close.
    ///
    /// # Errors
    /// [`TakeError::Closed`], and no other.
    pub fn take(&self) -> Result<T, TakeError> {
        self.shared.take(None).map(|taken| taken.value)
    }

    /// [`take`](DelayQueue::take) that waits no longer than `limit`, of the queue's clock.
    ///
    /// # Errors
    /// The queue is closed, or nothing became due within the limit.
    pub fn take_within(&self, limit: Duration) -> Result<T, TakeError> {
        let end = self.shared.clock.now() + nanoseconds(limit);
        self.shared.take(Some(end)).map(|taken| taken.value)
    }

    /// Takes a value that is due. Never blocks.
    ///
    /// # Errors
    /// The queue is closed, or nothing is due.
    pub fn try_take(&self) -> Result<T, TakeError> {
        self.shared.take(Some(Time::ZERO)).map(|taken| taken.value)
    }

    /// [`take`](DelayQueue::take) that gives the value with its key and its deadline.
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

    /// [`take_within`](DelayQueue::take_within) that gives the value with its key and its deadline.
    ///
    /// # Errors
    /// As [`take_within`](DelayQueue::take_within).
    pub fn take_entry_within(&self, limit: Duration) -> Result<Fired<T>, TakeError> {
        let end = self.shared.clock.now() + nanoseconds(limit);
        self.entry(self.shared.take(Some(end)))
    }

    /// [`try_take`](DelayQueue::try_take) that gives the value with its key and its deadline.
    ///
    /// # Errors
    /// As [`try_take`](DelayQueue::try_take).
    pub fn try_take_entry(&self) -> Result<Fired<T>, TakeError> {
        self.entry(self.shared.take(Some(Time::ZERO)))
    }

    fn entry(&self, taken: Result<Taken<T>, TakeError>) -> Result<Fired<T>, TakeError> {
        taken.map(|taken| Fired::new(0, taken, self.shared.clock.begin()))
    }

    /// A taker, for a thread that a virtual clock is to wait for: see [`Taker`].
    pub fn taker(&self) -> Taker<T> {
        Taker::new(self.shared.clone())
    }

    /// Takes a value out before its time, or before somebody else does. `None` if it is no longer there.
    pub fn remove(&self, key: Key) -> Option<T> {
        if key.shard() != 0 {
            return None;
        }
        let removed = lock(&self.shared.state).remove(key.inner());
        planted!("queue.removal-does-not-notify-advance", (), self.shared.gone());
        removed
    }

    /// Moves a value to so long after now; also one that is due, as long as nobody has taken it.
    ///
    /// # Errors
    /// It is no longer there, or there was no memory to move it; it is as it was.
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

    /// Moves a value to that moment.
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

    /// When a value can be taken, if it is still there.
    pub fn deadline(&self, key: Key) -> Option<Instant> {
        let time = lock(&self.shared.state).deadline(key.inner())?;
        Some(self.shared.clock.instant(time)).filter(|_| key.shard() == 0)
    }

    /// Closes the queue and hands back every value that was not taken, due or not, each once. Nothing is taken after
    /// this: whoever waits, or comes later, hears that it is closed. A second close returns nothing.
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

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        lock(&self.shared.state).is_closed()
    }

    /// How many values are there, due or not.
    pub fn len(&self) -> usize {
        self.counts().pending as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Everything it has done, counted: what was taken has fired, what was removed is cancelled.
    pub fn counts(&self) -> Counts {
        lock(&self.shared.state).counts()
    }

    /// The current time of its clock.
    pub fn now(&self) -> Instant {
        self.shared.clock.instant(self.shared.clock.now())
    }

    /// Gives back the memory of a peak that has passed.
    pub fn shrink(&self) {
        lock(&self.shared.state).shrink();
    }

    /// Walks its wheel and names the first invariant that does not hold. For tests.
    ///
    /// # Errors
    /// The invariant that is broken. That would be a defect of this crate.
    pub fn check(&self) -> Result<(), String> {
        lock(&self.shared.state).check()
    }
}

/// For models in which time is a thread.
#[cfg(all(loom, test))]
impl<T: Send + 'static> DelayQueue<T> {
    /// Time has passed: who leads looks at the clock.
    pub(crate) fn pass_time(&self) {
        self.shared.pass_time();
    }

    /// Takes until so long after time began, whenever this is called.
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
