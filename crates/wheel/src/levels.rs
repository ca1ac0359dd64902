//! The levels of a hierarchical wheel: the span of each, and the slot of a tick.
//!
//! Level `l` has `slots(l)` slots of `unit(l)` ticks each. The unit of the lowest level is 1; a slot of each further
//! level covers one whole turn of the level below. The last level reaches all of `u64`.
//!
//! Levels whose sizes are powers of two use shifts and masks, other levels a division. Only [`Level::find`],
//! [`Level::mark_near`] and [`Way`] distinguish the two.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::bitmap::Bitmap;
use crate::tick::Tick;
use crate::{GeometryError, MAX_SLOTS, OutOfMemory};

/// The value of `shift` for a level that needs a division.
const DIVIDE: u8 = u8::MAX;

/// The base of a level that is not made: its slot numbers are beyond any table.
const UNMADE: u32 = 1 << 31;

pub(crate) struct Level {
    /// Ticks a slot covers.
    unit: u64,
    /// The most ticks that a timer on this level may have left: its span minus one.
    reach: u64,
    slots: u32,
    /// The number of its slot 0 in the table of slots; `UNMADE` until the level is made.
    base: u32,
    /// `log2(unit)` if `unit` and `slots` are powers of two, otherwise `DIVIDE`.
    shift: u8,
    /// The slots that hold a pending timer.
    occupied: Bitmap,
    /// Above the lowest level: no occupied slot begins before this tick.
    pub(crate) first: Tick,
}

impl Level {
    /// The slot of a tick, and the tick at which that slot begins.
    #[inline(always)]
    pub(crate) fn find(&self, tick: Tick) -> (u32, Tick) {
        if self.shift == DIVIDE {
            return self.divide(tick);
        }
        let turns = tick >> (self.shift % 64);
        (turns as u32 & (self.slots - 1), turns << (self.shift % 64))
    }

    #[inline(never)]
    fn divide(&self, tick: Tick) -> (u32, Tick) {
        let turns = tick / self.unit;
        ((turns % u64::from(self.slots)) as u32, turns * self.unit)
    }

    /// The slot of a tick.
    #[inline]
    pub(crate) fn slot(&self, tick: Tick) -> u32 {
        self.find(tick).0
    }

    /// The tick at which the slot of `tick` begins.
    #[inline]
    pub(crate) fn begin(&self, tick: Tick) -> Tick {
        self.find(tick).1
    }

    /// The occupied slots and when they begin, in the order in which the hand meets them. The slot under the hand comes
    /// first if it begins at the hand. Otherwise it comes last: it has cascaded, and holds timers that are a turn away.
    #[inline]
    pub(crate) fn occupied(&self, hand: Tick) -> impl Iterator<Item = (u32, Tick)> {
        let (here, begin) = self.find(hand);
        let begins = begin == hand && self.occupied.contains(here);
        let first = begins.then_some((here, hand));
        let rest = self.occupied.round(here).filter(move |&slot| !(begins && slot == here));
        first.into_iter().chain(rest.map(move |slot| (slot, self.begin_of(slot, hand))))
    }

    /// The tick at which the hand next meets an occupied slot of this level; `Tick::MAX` if there is none.
    #[inline]
    pub(crate) fn next_begin(&self, hand: Tick) -> Tick {
        let (here, begin) = self.find(hand);
        if begin == hand && self.occupied.contains(here) {
            return hand;
        }
        self.next_after(here, begin)
    }

    /// As `next_begin`, when no occupied slot begins at the hand. `here` is the slot under the hand, `begin` its
    /// beginning.
    #[inline]
    pub(crate) fn next_after(&self, here: u32, begin: Tick) -> Tick {
        match self.occupied.after(here) {
            Some(slot) => self.after(here, begin, slot),
            None => Tick::MAX,
        }
    }

    /// As `next_begin`, for the lowest level, and only after the hand. Its slots are one tick long.
    #[inline]
    pub(crate) fn next_tick(&self, hand: Tick) -> Tick {
        let here = self.slot(hand);
        match self.occupied.after(here) {
            Some(slot) => hand.saturating_add(self.ahead(here, slot).into()),
            None => Tick::MAX,
        }
    }

    /// The tick at which an occupied slot begins, in this turn of the hand or the next.
    #[inline]
    pub(crate) fn begin_of(&self, slot: u32, hand: Tick) -> Tick {
        let (here, begin) = self.find(hand);
        if slot == here && begin == hand { hand } else { self.after(here, begin, slot) }
    }

    /// The tick at which `slot` next begins. `here` is the slot that the hand points to.
    #[inline]
    fn after(&self, here: u32, begin: Tick, slot: u32) -> Tick {
        let ahead = u64::from(self.ahead(here, slot));
        // An occupied slot begins before the end of `u64`. An empty one may begin after it.
        begin.saturating_add(ahead.saturating_mul(self.unit))
    }

    /// The slots from `here` to `slot`; a whole turn if they are the same.
    #[inline]
    fn ahead(&self, here: u32, slot: u32) -> u32 {
        if slot > here { slot - here } else { slot + self.slots - here }
    }

    pub(crate) fn is_made(&self) -> bool {
        self.base != UNMADE
    }

    /// The ticks that a slot covers.
    pub(crate) fn unit(&self) -> u64 {
        self.unit
    }

    /// How many slots it has.
    pub(crate) fn slots(&self) -> u32 {
        self.slots
    }

    /// The number of a slot in the table of slots.
    #[inline]
    pub(crate) fn number(&self, slot: u32) -> u32 {
        self.base + slot
    }

    /// The slot with this number in the table of slots.
    #[inline]
    pub(crate) fn slot_numbered(&self, number: u32) -> u32 {
        number - self.base
    }

    #[inline]
    pub(crate) fn mark(&mut self, slot: u32) {
        self.occupied.insert(slot);
    }

    /// Marks a slot and returns when the slot of `due` begins, with shifts only. `None` if that does not suffice.
    #[inline(always)]
    pub(crate) fn mark_near(&mut self, slot: u32, due: Tick) -> Option<Tick> {
        if self.shift == DIVIDE {
            return None;
        }
        self.occupied.insert_flat(slot)?;
        Some(due >> (self.shift % 64) << (self.shift % 64))
    }

    #[inline]
    pub(crate) fn unmark(&mut self, slot: u32) {
        self.occupied.remove(slot);
    }

    #[inline]
    pub(crate) fn is_marked(&self, slot: u32) -> bool {
        self.occupied.contains(slot)
    }

    pub(crate) fn memory(&self) -> usize {
        size_of::<Level>() + self.occupied.memory()
    }
}

/// The fields of a level that inserting a timer needs, side by side in memory.
#[derive(Clone, Copy)]
struct Way {
    /// The base of the level, or `UNMADE` if the level needs a division. The highest bit of the remaining ticks
    /// determines the level only if spans are powers of two; a check of `reach` instead would cost every timer a
    /// comparison.
    base: u32,
    mask: u32,
    shift: u32,
    level: u32,
}

pub(crate) struct Levels {
    levels: Box<[Level]>,
    /// For each position of the highest bit of the ticks left, the lowest level that reaches the least such number.
    ways: [Way; 64],
    /// A timer with fewer ticks left than this is placed on a level that is made; 0 if the lowest level is not made.
    made: u64,
    /// One more than the index of the highest level that is made; at least 1.
    top: usize,
}

impl Way {
    const NONE: Way = Way { base: UNMADE, mask: 0, shift: 0, level: 0 };
}

impl Levels {
    pub(crate) fn new(slots: &[u32]) -> Result<Self, GeometryError> {
        let (&last, _) = slots.split_last().ok_or(GeometryError::NoLevels)?;
        if let Some(level) = slots.iter().position(|slots| !(2..=MAX_SLOTS).contains(slots)) {
            return Err(GeometryError::Slots { level: level + 1, slots: slots[level], least: 2 });
        }
        let mut levels: Vec<Level> = Vec::new();
        let mut unit = 1_u64;
        for slots in slots.iter().copied().chain(core::iter::repeat(last)) {
            let span = u128::from(unit) * u128::from(slots);
            let reach = u64::try_from(span - 1).unwrap_or(u64::MAX);
            let shifts = unit.is_power_of_two() && slots.is_power_of_two();
            let shift = if shifts { unit.ilog2() as u8 } else { DIVIDE };
            levels.push(Level {
                unit,
                reach,
                slots,
                base: UNMADE,
                shift,
                occupied: Bitmap::default(),
                first: Tick::MAX,
            });
            match u64::try_from(span) {
                Ok(span) => unit = span,
                Err(_) => {
                    planted!(
                        "wheel.top-one-level-lower",
                        if let (Some(_), Some(top)) = (levels.pop(), levels.last_mut()) {
                            top.reach = u64::MAX;
                        },
                        ()
                    );
                    break;
                }
            }
        }
        let mut levels =
            Levels { levels: levels.into_boxed_slice(), ways: [Way::NONE; 64], made: 0, top: 1 };
        levels.find_ways();
        Ok(levels)
    }

    /// A level, 0 being the lowest.
    #[inline]
    pub(crate) fn level(&self, level: usize) -> &Level {
        &self.levels[level]
    }

    #[inline]
    pub(crate) fn level_mut(&mut self, level: usize) -> &mut Level {
        &mut self.levels[level]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, level: usize) -> Option<&mut Level> {
        self.levels.get_mut(level)
    }

    /// Records that an occupied slot of a level begins at this tick.
    #[inline(always)]
    pub(crate) fn note_begin(&mut self, level: u8, begin: Tick) {
        if let Some(level) = self.levels.get_mut(usize::from(level)) {
            level.first = begin.min(level.first);
        }
    }

    pub(crate) fn iter(&self) -> core::slice::Iter<'_, Level> {
        self.levels.iter()
    }

    /// One more than the index of the highest level that is made; at least 1.
    #[inline]
    pub(crate) fn top(&self) -> usize {
        self.top
    }

    /// True only if a timer with `left` ticks left is placed on a level that is made. May return false for one that is.
    #[inline]
    pub(crate) fn is_made(&self, left: u64) -> bool {
        left < self.made
    }

    fn find_ways(&mut self) {
        let made = self.levels.iter().take_while(|level| level.is_made());
        let none = planted!("wheel.level-not-made", 1, 0);
        self.made = made.last().map_or(none, |level| level.reach.saturating_add(1));
        self.top = self.levels.iter().rposition(Level::is_made).map_or(1, |last| last + 1);
        for bit in 0..64 {
            // A timer with 0 ticks left uses the same entry as one with 1: every level has at least two slots.
            let least = 1 << bit;
            let index = self.levels.iter().position(|level| least <= level.reach).unwrap_or(0);
            let level = &self.levels[index];
            let base = if level.shift == DIVIDE { UNMADE } else { level.base };
            let (mask, shift) = (level.slots - 1, u32::from(level.shift));
            self.ways[bit] = Way { base, mask, shift, level: index as u32 };
        }
    }

    /// The lowest level that reaches `left` ticks ahead.
    pub(crate) fn reaching(&self, left: u64) -> usize {
        let mut level = self.ways[(left | 1).ilog2() as usize].level as usize;
        while left > self.levels[level].reach {
            level += 1;
        }
        level
    }

    /// The slot in which a timer due at `due` is placed. If `due` has passed, the slot that the hand points to.
    #[inline(always)]
    pub(crate) fn spot(&self, due: Tick, hand: Tick) -> u32 {
        match self.near(due, hand) {
            Some(number) if number < UNMADE => number,
            _ => self.spot_by_search(due.max(hand), hand),
        }
    }

    /// As `spot`, with shifts only. If that does not suffice, returns `None` or a number beyond any table.
    #[inline(always)]
    pub(crate) fn near(&self, due: Tick, hand: Tick) -> Option<u32> {
        let left = due.checked_sub(hand)?;
        let way = &self.ways[(left | 1).ilog2() as usize];
        let slot = (due >> (way.shift % 64)) as u32;
        Some(way.base + (planted!("wheel.slot-off-by-one", slot + 1, slot) & way.mask))
    }

    #[inline(never)]
    fn spot_by_search(&self, due: Tick, hand: Tick) -> u32 {
        let level = &self.levels[self.reaching(due - hand)];
        level.base + level.slot(due)
    }

    /// Removes all levels.
    pub(crate) fn unmake(&mut self) {
        for level in &mut self.levels {
            (level.base, level.occupied) = (UNMADE, Bitmap::default());
            level.first = Tick::MAX;
        }
        self.find_ways();
    }

    /// Makes a level: its bitmap, and the number of its slot 0.
    pub(crate) fn make(&mut self, level: usize, base: u32) -> Result<(), OutOfMemory> {
        let level = &mut self.levels[level];
        level.occupied = Bitmap::new(level.slots as usize)?;
        level.base = base;
        self.find_ways();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_levels_reach_all_of_time_and_no_further() {
        for (slots, count) in
            [(&[256][..], 8), (&[64], 11), (&[2], 64), (&[1 << 20], 4), (&[60, 60, 24], 14)]
        {
            let levels = Levels::new(slots).unwrap();
            assert_eq!(levels.levels.len(), count, "{slots:?}");
            assert_eq!(levels.reaching(u64::MAX), count - 1);
            assert_eq!(levels.reaching(0), 0);
            for level in 0..count - 1 {
                let reach = levels.levels[level].reach;
                assert_eq!(levels.reaching(reach), level);
                assert_eq!(levels.reaching(reach + 1), level + 1);
                assert_eq!(levels.levels[level + 1].unit, reach + 1);
            }
        }
    }

    #[test]
    fn a_geometry_that_cannot_be_is_an_error_that_names_it() {
        let error = |slots: &[u32]| Levels::new(slots).err();
        assert_eq!(error(&[]), Some(GeometryError::NoLevels));
        assert_eq!(error(&[20, 1]), Some(GeometryError::Slots { level: 2, slots: 1, least: 2 }));
        assert_eq!(
            error(&[MAX_SLOTS + 1]),
            Some(GeometryError::Slots { level: 1, slots: MAX_SLOTS + 1, least: 2 })
        );
        assert_eq!(error(&[MAX_SLOTS]), None);
    }
}
