//! Queries, and memory.

use core::fmt;

use crate::{Key, Kind, OutOfMemory, Time, Wheel};

/// Queries.
impl<T, K: Kind> Wheel<T, K> {
    /// The value of a pending timer.
    pub fn get(&self, key: Key) -> Option<&T> {
        self.timers.nodes().value(self.timers.nodes().find(key)?)
    }

    /// The value of a pending timer, mutably.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.timers.get_mut(key)
    }

    /// Whether the timer is pending.
    pub fn contains(&self, key: Key) -> bool {
        self.timers.nodes().find(key).is_some()
    }

    /// The moment at which a pending timer fires: its deadline, rounded up to a tick.
    ///
    /// [`Time::MAX`] if that tick lies past the end of time.
    pub fn due(&self, key: Key) -> Option<Time> {
        let index = self.timers.nodes().find(key)?;
        Some(self.scale.time_or_max(self.timers.nodes().node(index).due()))
    }

    /// The pending timers with the moments at which they fire, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (Key, Time, &T)> {
        let scale = self.scale;
        self.timers
            .nodes()
            .iter()
            .map(move |(key, due, value)| (key, scale.time_or_max(due), value))
    }

    /// The number of pending timers, ready ones included.
    #[inline]
    pub fn len(&self) -> usize {
        self.timers.nodes().pending()
    }

    /// Whether no timer is pending.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The moment of the tick that the hand is on.
    pub fn now(&self) -> Time {
        self.scale.time_or_max(self.timers.hand())
    }

    /// The moment of tick 0.
    pub fn start(&self) -> Time {
        self.scale.start()
    }

    /// The units of one tick.
    pub fn tick(&self) -> u64 {
        self.scale.tick()
    }
}

/// Memory.
impl<T, K: Kind> Wheel<T, K> {
    /// The number of timers that the wheel can hold without allocating more nodes. Nodes are allocated 128 at a time.
    pub fn capacity(&self) -> usize {
        self.timers.nodes().capacity()
    }

    /// Reserves memory for `additional` more timers and their references.
    ///
    /// A level that is not made yet, or a slot that does not fill its last chunk, may still allocate a little. O(n) in
    /// `additional`.
    ///
    /// # Errors
    /// The memory is not available in one piece. This is checked before anything is allocated, and no timer has
    /// changed.
    ///
    /// ```
    /// let mut wheel = tourbillon_wheel::HierarchicalWheel::<u64>::new(0.into());
    /// wheel.reserve(1_000).unwrap();
    /// assert!(wheel.capacity() >= 1_000);
    /// assert!(wheel.reserve(usize::MAX).is_err());
    /// ```
    pub fn reserve(&mut self, additional: usize) -> Result<(), OutOfMemory> {
        self.timers.reserve(additional)
    }

    /// The bytes of heap that the wheel holds, without what the values own.
    pub fn memory(&self) -> usize {
        self.timers.memory() + self.kind.memory()
    }

    /// Releases unused memory: all memory if nothing is pending.
    ///
    /// Keys stay valid. Nodes before the last one in use are kept. O(n) in the number of timers.
    ///
    /// # Errors
    /// There is not enough memory to copy the references. The wheel is unchanged.
    ///
    /// ```
    /// let mut wheel = tourbillon_wheel::HierarchicalWheel::<u64>::new(0.into());
    /// for n in 0..10_000 {
    ///     wheel.insert(n.into(), n).unwrap();
    /// }
    /// wheel.clear();
    /// let held = wheel.memory();
    /// wheel.shrink().unwrap();
    /// assert!(wheel.memory() < held / 100);
    /// ```
    pub fn shrink(&mut self) -> Result<(), OutOfMemory> {
        self.timers.shrink(&mut self.kind)
    }
}

impl<T, K: Kind> fmt::Debug for Wheel<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Wheel");
        debug.field("now", &self.now()).field("len", &self.len()).field("ready", &self.ready());
        debug.finish_non_exhaustive()
    }
}
