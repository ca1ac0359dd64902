//! Looking into a wheel, and what it holds. Nothing here moves a timer.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::place::{LevelView, SlotView};
use crate::shared::Core;
use crate::{Key, Kind, OutOfMemory, Place, Time, Wheel, probe};

/// Looking.
impl<T, K: Kind> Wheel<T, K> {
    /// The value of a pending timer.
    pub fn get(&self, key: Key) -> Option<&T> {
        self.core.nodes.value(self.core.nodes.find(key)?)
    }

    /// The value of a pending timer, to be changed.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.core.nodes.value_mut(self.core.nodes.find(key)?)
    }

    /// Whether the timer is pending.
    pub fn contains(&self, key: Key) -> bool {
        self.core.nodes.find(key).is_some()
    }

    /// The moment at which a pending timer fires: its deadline, rounded up to a tick. [`Time::MAX`] if that
    /// tick lies past the end of time.
    pub fn due(&self, key: Key) -> Option<Time> {
        let index = self.core.nodes.find(key)?;
        Some(self.core.scale.time_or_max(self.core.nodes.node(index).due()))
    }

    /// The pending timers with the moments at which they fire, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (Key, Time, &T)> {
        let scale = self.core.scale;
        self.core.nodes.iter().map(move |(key, due, value)| (key, scale.time_or_max(due), value))
    }

    /// How many timers are pending, ready ones included.
    #[inline]
    pub fn len(&self) -> usize {
        self.core.nodes.pending()
    }

    /// Whether none is pending.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The moment of the tick that the hand is on.
    pub fn now(&self) -> Time {
        self.core.scale.time_or_max(self.core.hand)
    }

    /// The moment of tick 0.
    pub fn start(&self) -> Time {
        self.core.scale.start()
    }

    /// The units of one tick.
    pub fn tick(&self) -> u64 {
        self.core.scale.tick()
    }

    /// The slot that a pending timer is drawn in: the one that it is filed in, or, once it was moved past the
    /// range of that slot, the one that it belongs in now (it goes there when the hand meets it).
    pub fn place(&self, key: Key) -> Option<Place> {
        let index = self.core.nodes.find(key)?;
        let (due, number) = (self.core.nodes.node(index).due(), self.core.slot_of(index));
        let Some(slot) = self.core.slots.get(number as usize) else { return Some(Place::Due) };
        Some(self.rules.place(slot.level, number, due, self.core.hand))
    }

    /// The slot that a timer with this deadline would be filed in now.
    pub fn place_of(&self, deadline: Time) -> Place {
        let (due, hand) = (self.core.scale.due(deadline), self.core.hand);
        if due <= hand { Place::Due } else { self.rules.place_of(due, hand) }
    }

    /// The occupied slots, level by level, in the order in which the hand meets them.
    ///
    /// ```
    /// use tourbillon_wheel::{HashedWheel, Time};
    ///
    /// let mut wheel = HashedWheel::with_slots(Time::ZERO, 1, 8).unwrap();
    /// for due in [3, 8, 11] {
    ///     wheel.insert(Time::from(due), ()).unwrap();
    /// }
    /// let slots: Vec<_> = wheel.occupied().map(|slot| (slot.begin.units(), slot.timers)).collect();
    /// assert_eq!(slots, [(3, 2), (8, 1)]);
    /// ```
    pub fn occupied(&self) -> impl Iterator<Item = SlotView> {
        let Wheel { core, rules } = self;
        (0..rules.levels()).flat_map(move |level| {
            let mut slots: Vec<_> = rules
                .met(level, core.hand)
                .map(|(number, _)| (rules.begin(core, number), number))
                .collect();
            slots.sort_unstable();
            slots.into_iter().map(move |(begin, number)| {
                let slot = &core.slots[number as usize];
                let place = rules.slot_place(slot.level, number);
                let (begin, timers) = (core.scale.time_or_max(begin), core.count(number));
                SlotView { place, begin, timers }
            })
        })
    }

    /// The first and the last moment that a slot stands for in the turn in which the hand next meets it, in
    /// ticks. `None` for [`Place::Due`] and for a slot that the wheel does not have.
    pub fn range(&self, place: Place) -> Option<(Time, Time)> {
        let (first, last) = self.rules.range(&self.core, place)?;
        Some((self.core.scale.time_or_max(first), self.core.scale.time_or_max(last)))
    }

    /// The levels, lowest first, whether made or not. A hashed wheel has one.
    pub fn levels(&self) -> impl Iterator<Item = LevelView> {
        (0..self.rules.levels()).map(|level| self.rules.view(level))
    }
}

/// Memory.
impl<T, K: Kind> Wheel<T, K> {
    /// How many timers it can hold without asking for more memory for them. It takes memory for 128 at a time.
    pub fn capacity(&self) -> usize {
        self.core.nodes.capacity()
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
        let Core { nodes, chunks, .. } = &mut self.core;
        probe(nodes.lacking(additional)?.saturating_add(chunks.lacking(additional)))?;
        nodes.reserve(additional)?;
        chunks.reserve_references(additional)
    }

    /// The bytes of heap that it holds, beside what the values themselves own.
    pub fn memory(&self) -> usize {
        self.core.memory() + self.rules.memory()
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
        self.core.shrink(&mut self.rules)
    }

    /// Walks the whole wheel and names the first of its invariants that does not hold. For tests, and for the
    /// curious: it takes as many steps as there are slots and timers.
    ///
    /// # Errors
    /// The invariant that is broken, in words. That would be a defect of this crate.
    pub fn check(&self) -> Result<(), String> {
        self.core.check(&self.rules)
    }
}

impl<T, K: Kind> fmt::Debug for Wheel<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Wheel");
        debug.field("now", &self.now()).field("len", &self.len()).field("ready", &self.ready());
        debug.finish_non_exhaustive()
    }
}
