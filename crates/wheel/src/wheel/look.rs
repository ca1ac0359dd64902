//! What a wheel holds, and its memory.

use core::fmt;

use crate::{Key, Kind, OutOfMemory, Time, Wheel};

/// Looking.
impl<T, K: Kind> Wheel<T, K> {
    /// The value of a pending timer.
    pub fn get(&self, key: Key) -> Option<&T> {
        self.timers.nodes().value(self.timers.nodes().find(key)?)
    }

    /// The value of a pending timer, to be changed.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.timers.get_mut(key)
    }

    /// Whether the timer is pending.
    pub fn contains(&self, key: Key) -> bool {
        self.timers.nodes().find(key).is_some()
    }

    /// The moment at which a pending timer fires: its deadline, rounded up to a tick. [`Time::MAX`] if that
    /// tick lies past the end of time.
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

    /// How many timers are pending, ready ones included.
    #[inline]
    pub fn len(&self) -> usize {
        self.timers.nodes().pending()
    }

    /// Whether none is pending.
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
    /// How many timers it can hold without asking for more memory for them. It takes memory for 128 at a time.
    pub fn capacity(&self) -> usize {
        self.timers.nodes().capacity()
    }

    /// Makes room for `additional` more timers and their references. A level that is still to be made, and slots
    /// that do not fill their last chunk, may need a little more. It takes a step for each timer.
    ///
    /// # Errors
    /// There is not so much memory, or not in one piece: it is asked for so, before anything is made. No timer has
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

    /// The bytes of heap that it holds, beside what the values themselves own.
    pub fn memory(&self) -> usize {
        self.timers.memory() + self.kind.memory()
    }

    /// Gives back memory: all but that of a new wheel if nothing is pending, otherwise what lies behind the
    /// pending timer that was given its place last. It takes as many steps as there are timers; keys stay as
    /// they are.
    ///
    /// # Errors
    /// There is not even the memory to do that; the wheel is as it was.
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
