//! The memory of a queue.

use std::hash::Hash;

use super::DelayQueue;
use crate::tasks::host::Home;

impl<K: Hash + Eq + Clone, V> DelayQueue<K, V> {
    /// An empty queue on the default engine, with room for so many items.
    ///
    /// # Panics
    /// If there is no memory for it.
    pub fn with_capacity(capacity: usize) -> Self {
        let mut queue = DelayQueue::new();
        queue.reserve(capacity);
        queue
    }
}

/// Memory.
impl<K: Hash + Eq + Clone, V, H: Home> DelayQueue<K, V, H> {
    /// How many items it can hold without asking for more memory.
    pub fn capacity(&self) -> usize {
        self.keys.capacity().min(self.wheel.capacity())
    }

    /// Makes room for so many more items.
    ///
    /// # Panics
    /// If there is no memory for it. To insert without room is an error, and no panic.
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

    /// Gives back the memory of items that have gone.
    pub fn shrink_to_fit(&mut self) {
        self.keys.shrink_to_fit();
        self.wheel.shrink();
    }
}
