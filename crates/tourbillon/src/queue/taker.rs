//! Takers: threads that a virtual clock waits for.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use tourbillon_wheel::Time;

use super::error::TakeError;
use super::take::Shared;
use crate::clock::nanoseconds;
use crate::typed::Fired;

/// Takes from a [`DelayQueue`](crate::DelayQueue), and holds up a virtual clock while it processes a value.
///
/// When an [`advance`](crate::VirtualClock::advance) reaches a value's deadline, it pauses until every taker is waiting
/// in [`take`](Taker::take) again or has been dropped, just as it pauses for callbacks. So a thread processes each
/// value at its deadline, and has finished when the advance returns, even if it was not yet waiting when the advance
/// began. On any other clock, a taker behaves like the queue's own `take`.
///
/// The thread that advances the clock must not own a taker in which no other thread is waiting: the advance would wait
/// for its own thread.
///
/// Each thread needs its own taker. A taker can be sent to another thread but not shared: if one thread waited in it
/// while another processed a value, the clock could not tell whether the taker is waiting.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use std::time::Duration;
/// use tourbillon::{Timer, VirtualClock};
///
/// let clock = VirtualClock::new();
/// let queue = Timer::builder().clock(&clock).queue()?;
/// let (taker, seen) = (queue.taker(), Arc::new(Mutex::new(Vec::new())));
/// let (own, log) = (clock.clone(), seen.clone());
/// let worker = std::thread::spawn(move || {
///     while let Ok(value) = taker.take() {
///         log.lock().unwrap().push((value, own.elapsed()));
///     }
/// });
/// queue.put(Duration::from_secs(1), "one")?;
/// queue.put(Duration::from_secs(2), "two")?;
/// clock.advance(Duration::from_secs(5))?;
/// let seconds = Duration::from_secs;
/// assert_eq!(*seen.lock().unwrap(), [("one", seconds(1)), ("two", seconds(2))]);
/// queue.close();
/// worker.join().unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```compile_fail,E0277
/// let queue = tourbillon::DelayQueue::<u32>::new();
/// let taker = queue.taker();
/// std::thread::scope(|scope| {
///     scope.spawn(|| taker.take());
/// });
/// ```
pub struct Taker<T: Send + 'static> {
    shared: Arc<Shared<T>>,
    /// `Send` but not `Sync`: at most one thread waits in the taker, and the taker does not count as busy during that
    /// time.
    one_thread: PhantomData<Cell<()>>,
}

impl<T: Send + 'static> Taker<T> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        shared.count_taker(true);
        Taker { shared, one_thread: PhantomData }
    }

    /// As [`DelayQueue::take`](crate::DelayQueue::take).
    ///
    /// # Errors
    /// As [`DelayQueue::take`](crate::DelayQueue::take).
    pub fn take(&self) -> Result<T, TakeError> {
        self.take_entry().map(|fired| fired.value)
    }

    /// As [`DelayQueue::take_within`](crate::DelayQueue::take_within).
    ///
    /// # Errors
    /// As [`DelayQueue::take_within`](crate::DelayQueue::take_within).
    pub fn take_within(&self, limit: Duration) -> Result<T, TakeError> {
        let end = self.shared.clock.now() + nanoseconds(limit);
        self.entry(planted!("fifth.taker-waits-past-its-limit", None, Some(end)))
            .map(|fired| fired.value)
    }

    /// As [`DelayQueue::take_entry`](crate::DelayQueue::take_entry).
    ///
    /// # Errors
    /// As [`DelayQueue::take_entry`](crate::DelayQueue::take_entry).
    pub fn take_entry(&self) -> Result<Fired<T>, TakeError> {
        self.entry(None)
    }

    fn entry(&self, end: Option<Time>) -> Result<Fired<T>, TakeError> {
        let taken = self.shared.take_as(end, true)?;
        Ok(Fired::new(0, taken, self.shared.clock.begin()))
    }
}

impl<T: Send + 'static> Drop for Taker<T> {
    fn drop(&mut self) {
        self.shared.count_taker(false);
    }
}

impl<T: Send + 'static> fmt::Debug for Taker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Taker")
    }
}
