//! Takers: threads that a virtual clock waits for.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tourbillon_wheel::Time;

use super::error::TakeError;
use super::take::Shared;
use crate::clock::nanoseconds;
use crate::typed::Fired;

/// Takes from a [`DelayQueue`](crate::DelayQueue), and holds up a virtual clock while it has work.
///
/// An [`advance`](crate::VirtualClock::advance) that comes to the moment of a value goes on when every taker waits in
/// [`take`](Taker::take) again, or is dropped: as it waits for callbacks. So what a thread does with a value happens at
/// that value's moment, and has happened when the advance returns; also if the thread had not begun to wait before. On
/// any other clock it takes as the queue does.
///
/// The thread that advances the clock must not hold one, unless that waits: it would wait for itself.
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
pub struct Taker<T: Send + 'static> {
    shared: Arc<Shared<T>>,
}

impl<T: Send + 'static> Taker<T> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        shared.count_taker(true);
        Taker { shared }
    }

    /// As [`DelayQueue::take`](crate::DelayQueue::take).
    ///
    /// # Errors
    /// As there.
    pub fn take(&self) -> Result<T, TakeError> {
        self.take_entry().map(|fired| fired.value)
    }

    /// As [`DelayQueue::take_within`](crate::DelayQueue::take_within).
    ///
    /// # Errors
    /// As there.
    pub fn take_within(&self, limit: Duration) -> Result<T, TakeError> {
        let end = self.shared.clock.now() + nanoseconds(limit);
        self.entry(Some(end)).map(|fired| fired.value)
    }

    /// As [`DelayQueue::take_entry`](crate::DelayQueue::take_entry).
    ///
    /// # Errors
    /// As there.
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
