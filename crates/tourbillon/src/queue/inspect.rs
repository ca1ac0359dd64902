//! Inspecting and emptying a delay queue.

use std::time::{Duration, Instant};

use super::DelayQueue;
use crate::contain::drop_quietly;
use crate::key::Key;
use crate::sync::lock;
use crate::typed::Fired;
use crate::view::Pending;

/// Inspection. A value that is due counts until it is taken.
///
/// Only a take gives access to a value: a closure that visits values would run user code under the queue's lock.
impl<T: Send + 'static> DelayQueue<T> {
    /// The key and the deadline of the next value, due or not.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::DelayQueue;
    ///
    /// let queue = DelayQueue::new();
    /// queue.put(Duration::from_secs(60), "second")?;
    /// let first = queue.put(Duration::from_secs(30), "first")?;
    /// let next = queue.peek().unwrap();
    /// assert_eq!(next.key, first);
    /// assert_eq!(queue.next_deadline(), Some(next.deadline));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn peek(&self) -> Option<Pending> {
        let (key, deadline) = lock(&self.shared.state).first()?;
        let deadline = self.shared.clock.instant(deadline);
        Some(Pending { key: Key::new(0, key), deadline })
    }

    /// The instant at which the next value can be taken. In the past if the value is already due.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.peek().map(|next| next.deadline)
    }

    /// A copy of the keys and deadlines of all values, the earliest first.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::DelayQueue;
    ///
    /// let queue: DelayQueue<_> = [3, 1, 2].map(|n| (Duration::from_secs(n), n)).into_iter().collect();
    /// let keys: Vec<_> = queue.pending().into_iter().map(|value| value.key).collect();
    /// assert_eq!(keys.into_iter().filter_map(|key| queue.remove(key)).collect::<Vec<_>>(), [1, 2, 3]);
    /// ```
    pub fn pending(&self) -> Vec<Pending> {
        let all = lock(&self.shared.state).sorted();
        let clock = &self.shared.clock;
        let pending =
            |(key, deadline)| Pending { key: Key::new(0, key), deadline: clock.instant(deadline) };
        all.into_iter().map(pending).collect()
    }

    /// Whether the value is still in the queue.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::DelayQueue;
    ///
    /// let queue = DelayQueue::new();
    /// let key = queue.put(Duration::ZERO, "now")?;
    /// assert!(queue.contains(key));
    /// queue.take()?;
    /// assert!(!queue.contains(key));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains(&self, key: Key) -> bool {
        self.deadline(key).is_some()
    }
}

/// Emptying.
impl<T: Send + 'static> DelayQueue<T> {
    /// Removes and returns every value, due or not, the earliest first. The queue stays open.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::DelayQueue;
    ///
    /// let queue = DelayQueue::new();
    /// queue.put(Duration::from_secs(2), "second")?;
    /// queue.put(Duration::from_secs(1), "first")?;
    /// let all: Vec<_> = queue.drain().into_iter().map(|fired| fired.value).collect();
    /// assert_eq!(all, ["first", "second"]);
    /// assert!(queue.is_empty() && !queue.is_closed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drain(&self) -> Vec<Fired<T>> {
        let begin = self.shared.clock.begin();
        let all = lock(&self.shared.state).drain();
        self.shared.gone();
        all.into_iter().map(|taken| Fired::new(0, taken, begin)).collect()
    }

    /// Takes at most `most` of the values that are due, the earliest first. Never blocks.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::DelayQueue;
    ///
    /// let queue = DelayQueue::new();
    /// queue.extend([(Duration::ZERO, "due"), (Duration::from_secs(60), "later")]);
    /// let due: Vec<_> = queue.drain_due(10).into_iter().map(|fired| fired.value).collect();
    /// assert_eq!((due, queue.len()), (vec!["due"], 1));
    /// ```
    pub fn drain_due(&self, most: usize) -> Vec<Fired<T>> {
        let due = std::iter::from_fn(|| self.try_take_entry().ok());
        planted!(
            "fourth.full-drain-loses-the-next-value",
            due.zip(0..most).map(|(fired, _)| fired).collect(),
            due.take(most).collect()
        )
    }

    /// Drops every value, due or not. The queue stays open.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::DelayQueue;
    ///
    /// let queue = DelayQueue::new();
    /// queue.put(Duration::from_secs(1), "never")?;
    /// queue.clear();
    /// assert!(queue.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clear(&self) {
        // A panic in one value's drop must not prevent the drops of the others.
        self.drain().into_iter().for_each(drop_quietly);
    }

    /// Puts many values, each after its delay. A value that the queue refuses is dropped.
    ///
    /// The queue refuses a value if it is full or closed. To get a refused value back, use [`put`](DelayQueue::put).
    pub fn extend(&self, values: impl IntoIterator<Item = (Duration, T)>) {
        for (after, value) in values {
            if let Err(refused) = self.put(after, value) {
                drop_quietly(refused);
            }
        }
    }
}

/// As [`DelayQueue::extend`].
impl<T: Send + 'static> Extend<(Duration, T)> for DelayQueue<T> {
    fn extend<I: IntoIterator<Item = (Duration, T)>>(&mut self, values: I) {
        DelayQueue::extend(self, values);
    }
}

/// Creates a queue on the system's clock with these values, each after its delay.
impl<T: Send + 'static> FromIterator<(Duration, T)> for DelayQueue<T> {
    fn from_iter<I: IntoIterator<Item = (Duration, T)>>(values: I) -> Self {
        let queue = DelayQueue::new();
        queue.extend(values);
        queue
    }
}
