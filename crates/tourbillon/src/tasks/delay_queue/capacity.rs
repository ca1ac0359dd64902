//! The memory of a delay queue.

use std::hash::Hash;

use super::DelayQueue;
use crate::tasks::host::Home;

impl<K: Hash + Eq + Clone, V> DelayQueue<K, V> {
    /// Creates an empty queue on the default engine, with room for `capacity` items.
    ///
    /// # Panics
    /// If memory is exhausted.
    pub fn with_capacity(capacity: usize) -> Self {
        let mut queue = DelayQueue::new();
        queue.reserve(capacity);
        queue
    }
}

/// Memory.
impl<K: Hash + Eq + Clone, V, H: Home> DelayQueue<K, V, H> {
    /// The number of items that the queue can hold without allocating.
    pub fn capacity(&self) -> usize {
        self.keys.capacity().min(self.wheel.capacity())
    }

    /// Makes room for `additional` more items.
    ///
    /// # Panics
    /// If memory is exhausted. An insertion for which memory is exhausted is an error, not a panic.
    ///
    /// ```
    /// use tourbillon::tasks::DelayQueue;
    ///
    /// let mut queue: DelayQueue<u32, &str> = DelayQueue::with_capacity(100);
    /// queue.reserve(1000);
    /// assert!(queue.capacity() >= 1000);
    /// queue.shrink_to_fit();
    /// assert!(queue.capacity() < 1000);
    /// ```
    pub fn reserve(&mut self, additional: usize) {
        self.keys.reserve(additional);
        let reserved = planted!(
            "tasks.queue-reserves-for-its-keys-only",
            true,
            self.wheel.reserve(additional)
        );
        assert!(reserved, "no memory for {additional} more items");
    }

    /// Releases memory that the current items do not need.
    pub fn shrink_to_fit(&mut self) {
        self.keys.shrink_to_fit();
        self.wheel.shrink();
    }
}
