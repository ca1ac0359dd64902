//! Looking into a wheel, and what it holds. Nothing here moves a timer.

use alloc::string::String;

use crate::place::{LevelView, SlotView};
use crate::{Key, Kind, OutOfMemory, Place, Time, Wheel};

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

    /// The slot that a pending timer is in.
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
    pub fn occupied(&self) -> impl Iterator<Item = SlotView> {
        let Wheel { core, rules } = self;
        (0..rules.levels()).flat_map(move |level| {
            rules.met(level, core.hand).map(move |(number, _)| {
                let slot = &core.slots[number as usize];
                SlotView {
                    place: rules.slot_place(slot.level, number),
                    begin: core.scale.time_or_max(rules.begin(core, number)),
                    timers: slot.live as usize,
                }
            })
        })
    }

    /// The first and the last moment that a slot stands for in the turn in which the hand next meets it, in
    /// ticks. `None` for [`Place::Due`] and for a slot that the wheel does not have.
    pub fn range(&self, place: Place) -> Option<(Time, Time)> {
        let (first, last) = self.rules.range(place, self.core.hand)?;
        Some((self.core.scale.time_or_max(first), self.core.scale.time_or_max(last)))
    }

    /// The levels, lowest first, whether made or not. A hashed wheel has one.
    pub fn levels(&self) -> impl Iterator<Item = LevelView> {
        (0..self.rules.levels()).map(|level| self.rules.view(level))
    }
}

/// Memory.
impl<T, K: Kind> Wheel<T, K> {
    /// How many timers it can hold without asking for more memory for them.
    pub fn capacity(&self) -> usize {
        self.core.nodes.capacity()
    }

    /// Makes room for `additional` more timers.
    ///
    /// # Errors
    /// There is not so much memory; the wheel is as it was.
    pub fn reserve(&mut self, additional: usize) -> Result<(), OutOfMemory> {
        self.core.nodes.reserve(additional)?;
        self.core.chunks.reserve_references(additional)
    }

    /// The bytes of heap that it holds, beside what the values themselves own.
    pub fn memory(&self) -> usize {
        self.core.memory() + self.rules.memory()
    }

    /// Gives back the memory that the pending timers do not need. It takes as many steps as there are timers;
    /// keys stay as they are.
    ///
    /// # Errors
    /// There is not even the memory to do that; the wheel is as it was.
    pub fn shrink(&mut self) -> Result<(), OutOfMemory> {
        self.core.shrink()
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
