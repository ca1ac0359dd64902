//! Inspection, for the CLI, the page and tests. Nothing here moves a timer.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};

use crate::tick::Tick;
use crate::timers::Slots;
use crate::{Key, Kind, LevelView, Place, Slot, SlotView, Time, Wheel};

/// Inspection.
impl<T, K: Kind> Wheel<T, K> {
    /// The slot of a pending timer.
    ///
    /// If the timer was moved past the range of the slot that holds its reference, this is the slot in which it belongs
    /// now. The reference moves there when the hand meets it.
    pub fn place(&self, key: Key) -> Option<Place> {
        let index = self.timers.nodes().find(key)?;
        let (due, hand) = (self.timers.nodes().node(index).due(), self.timers.hand());
        let number = self.timers.slot_of(index);
        if due <= hand || number >= self.timers.slots() {
            return Some(Place::Due);
        }
        Some(self.kind.home(self.timers.level(number), number, due, hand))
    }

    /// The slot that a timer with this deadline would be placed in now.
    pub fn place_of(&self, deadline: Time) -> Place {
        let (due, hand) = (self.scale.due(deadline), self.timers.hand());
        if due <= hand { Place::Due } else { self.kind.place_of(due, hand) }
    }

    /// The occupied slots, level by level, in the order in which the hand meets them.
    ///
    /// A timer whose deadline was moved to later counts in the slot where it belongs now, even while its reference is
    /// still in another slot. O(n) in the number of timers.
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
    ///
    /// let key = wheel.insert(Time::from(3), ()).unwrap();
    /// wheel.reschedule(key, Time::from(14)).unwrap();
    /// let slots: Vec<_> = wheel.occupied().map(|slot| (slot.slot.to_string(), slot.timers)).collect();
    /// assert_eq!(slots, [("[3]".into(), 2), ("[6]".into(), 1), ("[0]".into(), 1)]);
    /// ```
    pub fn occupied(&self) -> impl Iterator<Item = SlotView> {
        let Wheel { timers, kind, scale } = self;
        let hand = timers.hand();
        let mut slots: BTreeMap<(u32, Tick, Slot), usize> = BTreeMap::new();
        let mut add = |slot: Slot, count: usize| {
            let level = if let Slot::Level { level, .. } = slot { level } else { 1 };
            let begin = kind.range(timers, slot).map_or(Tick::MAX, |(begin, _)| begin);
            *slots.entry((level, begin, slot)).or_default() += count;
        };
        for (number, _) in (0..kind.levels()).flat_map(|level| kind.met(level, hand)) {
            let (level, mut stay) = (timers.level(number), 0);
            let here = kind.slot(level, number);
            for (_, index) in timers.filed(number) {
                let due = timers.nodes().node(index).due();
                let home = (due > hand).then(|| kind.home(level, number, due, hand));
                match home.and_then(Place::slot) {
                    Some(moved) if moved != here => add(moved, 1),
                    _ => stay += 1,
                }
            }
            if stay > 0 {
                add(here, stay);
            }
        }
        slots.into_iter().map(|((_, begin, slot), timers)| SlotView {
            slot,
            begin: scale.time_or_max(begin),
            timers,
        })
    }

    /// The moments of the first and the last tick that a slot covers when the hand next meets it.
    ///
    /// `None` for [`Place::Due`] and for a slot that the wheel does not have.
    pub fn range(&self, place: Place) -> Option<(Time, Time)> {
        let (first, last) = self.kind.range(&self.timers, place.slot()?)?;
        Some((self.scale.time_or_max(first), self.scale.time_or_max(last)))
    }

    /// All levels, lowest first, including those not made yet. A hashed wheel has one level.
    pub fn levels(&self) -> impl Iterator<Item = LevelView> {
        (0..self.kind.levels()).map(|level| self.kind.view(level))
    }

    /// Checks every invariant of the wheel. For tests: O(n) in the number of slots and timers.
    ///
    /// # Errors
    /// Returns a description of the first invariant that does not hold, which is a bug in this crate.
    pub fn check(&self) -> Result<(), String> {
        let Wheel { timers, kind, .. } = self;
        let slots = Slots {
            name: &|number| kind.slot(timers.level(number), number).to_string(),
            begin: &|number| kind.begin(timers, number),
            need: &|number| kind.need(timers, number),
        };
        timers.check(kind, &slots)
    }
}
