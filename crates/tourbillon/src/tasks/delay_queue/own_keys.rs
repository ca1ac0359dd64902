//! Keys that the queue generates.

use std::time::{Duration, Instant};

use tourbillon_wheel::Full;

use super::DelayQueue;
use crate::tasks::host::Home;

/// A key that a [`DelayQueue`] generated.
///
/// No other item of that queue ever has this key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueKey(u64);

/// Inserting items under generated keys.
impl<V, H: Home> DelayQueue<QueueKey, V, H> {
    /// Inserts an item that expires after the given delay, under a new key.
    ///
    /// # Errors
    /// If memory is exhausted. The error holds the value, and the queue is unchanged.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::tasks::DelayQueue;
    ///
    /// let mut queue = DelayQueue::new();
    /// let first = queue.push("first", Duration::from_millis(1))?;
    /// let other = queue.push("other", Duration::from_secs(60))?;
    /// assert_eq!(queue.remove(&other), Some("other"));
    /// # futures_lite::future::block_on(async {
    /// let expired = queue.next().await.unwrap();
    /// assert_eq!((expired.key, expired.value), (first, "first"));
    /// # });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn push(&mut self, value: V, after: Duration) -> Result<QueueKey, Full<V>> {
        let key = self.make_key();
        let inserted = self.insert(key, value, after);
        inserted.map(|_| key).map_err(|Full((_, value))| Full(value))
    }

    /// Inserts an item that expires at the given instant, as [`push`](DelayQueue::push) does.
    ///
    /// # Errors
    /// As [`push`](DelayQueue::push).
    pub fn push_at(&mut self, value: V, at: impl Into<Instant>) -> Result<QueueKey, Full<V>> {
        let key = self.make_key();
        let inserted = self.insert_at(key, value, at);
        inserted.map(|_| key).map_err(|Full((_, value))| Full(value))
    }

    fn make_key(&mut self) -> QueueKey {
        let key = QueueKey(self.next_key);
        self.next_key += planted!("tasks.queue-makes-one-key-twice", 0, 1);
        key
    }
}
