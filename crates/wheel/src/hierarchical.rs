//! The hierarchical wheel: levels of growing span.
//!
//! - A timer is placed on the lowest level whose span exceeds the ticks from the hand to its due tick.
//! - When the hand reaches the beginning of an occupied slot of an upper level, that slot cascades before anything of
//!   that tick becomes ready. The hand stops at every such beginning, so no slot holds two turns.
//! - A timer that is already due is placed in the lowest slot under the hand, and the hand stays until that slot is
//!   empty.
//! - A slot may hold a timer that was moved to later: it is reinserted when the hand meets the slot.

use crate::budget::{Budget, Cut};
use crate::geometry::Geometry;
use crate::kind::{Motion, Watch};
use crate::levels::Levels;
use crate::outcome::Moved;
use crate::place::{LevelView, Place, Slot};
use crate::tick::Tick;
use crate::timers::Timers;
use crate::{GeometryError, OutOfMemory};

/// The levels of [`HierarchicalWheel`](crate::HierarchicalWheel).
pub struct Hierarchical {
    levels: Levels,
    /// The least `first` of all levels above the lowest. Without it, every step of the hand would examine every level.
    above: Tick,
}

impl Hierarchical {
    pub(crate) fn new(slots: &[u32]) -> Result<Self, GeometryError> {
        Ok(Hierarchical { levels: Levels::new(slots)?, above: Tick::MAX })
    }
}

impl Geometry for Hierarchical {
    const SCANS: bool = false;

    #[inline(always)]
    fn spot(&self, due: Tick, hand: Tick) -> u32 {
        self.levels.spot(due, hand)
    }

    #[inline(always)]
    fn near(&self, due: Tick, hand: Tick) -> Option<u32> {
        self.levels.near(due, hand)
    }

    #[inline]
    fn is_made(&self, due: Tick, hand: Tick) -> bool {
        self.levels.is_made(due.saturating_sub(hand))
    }

    #[cold]
    fn level_of(&self, due: Tick, hand: Tick) -> (u8, u32) {
        let level = self.levels.reaching(due.saturating_sub(hand));
        (level as u8, self.levels.level(level).slots())
    }

    fn make(&mut self, level: u8, base: u32) -> Result<(), OutOfMemory> {
        self.levels.make(usize::from(level), base)
    }

    fn unmake(&mut self) {
        self.levels.unmake();
        self.above = Tick::MAX;
    }

    #[inline(never)]
    fn mark(&mut self, level: u8, number: u32, due: Tick) -> Tick {
        let here = self.levels.level_mut(usize::from(level));
        here.mark(here.slot_numbered(number));
        let begin = here.begin(due);
        self.meet(level, begin);
        begin
    }

    #[inline(always)]
    fn mark_near(&mut self, level: u8, number: u32, due: Tick) -> Option<Tick> {
        let here = self.levels.get_mut(usize::from(level))?;
        let begin = here.mark_near(here.slot_numbered(number), due)?;
        self.meet(level, begin);
        Some(begin)
    }

    #[inline]
    fn unmark(&mut self, level: u8, number: u32) {
        let level = self.levels.level_mut(usize::from(level));
        level.unmark(level.slot_numbered(number));
    }

    fn is_marked(&self, level: u8, number: u32) -> bool {
        let level = self.levels.level(usize::from(level));
        level.is_marked(level.slot_numbered(number))
    }

    #[inline]
    fn covers(&self, level: u8, number: u32, due: Tick, hand: Tick) -> bool {
        let level = self.levels.level(usize::from(level));
        let begin = level.begin_of(level.slot_numbered(number), hand);
        begin <= due.max(hand) + planted!("wheel.moved-earlier-stays", 1, 0)
    }

    fn levels(&self) -> usize {
        self.levels.iter().len()
    }

    #[inline]
    fn first(&self, level: usize, hand: Tick) -> Tick {
        let level = self.levels.level(level);
        if level.is_made() { level.next_begin(hand) } else { Tick::MAX }
    }

    fn met(&self, level: usize, hand: Tick) -> impl Iterator<Item = (u32, Tick)> {
        let level = self.levels.level(level);
        level.occupied(hand).map(|(slot, begin)| (level.number(slot), begin))
    }
}

impl Motion for Hierarchical {
    #[inline]
    fn next_stop<T>(&mut self, timers: &Timers<T>, _budget: &mut Budget) -> Tick {
        self.levels.level(0).next_tick(timers.hand()).min(self.above)
    }

    #[inline]
    fn settle<T>(
        &mut self,
        timers: &mut Timers<T>,
        budget: &mut Budget,
        watch: Watch<'_, '_>,
    ) -> Result<(), Cut> {
        if self.above <= timers.hand() {
            self.settle_above(timers, budget, watch)?;
        }
        let lowest = self.levels.level(0);
        // A due timer on an upper level makes the lowest. At the end of time the hand may arrive with nothing to
        // settle.
        if !lowest.is_made() {
            return Ok(());
        }
        let number = lowest.number(lowest.slot(timers.hand()));
        timers.fire(self, number, budget)
    }

    fn begin<T>(&self, timers: &Timers<T>, number: u32) -> Tick {
        let level = self.levels.level(usize::from(timers.level(number)));
        level.begin_of(level.slot_numbered(number), timers.hand())
    }

    fn next_slot<T>(&self, timers: &Timers<T>) -> Tick {
        let made = self.levels.iter().filter(|level| level.is_made());
        made.map(|level| level.next_begin(timers.hand())).min().unwrap_or(Tick::MAX)
    }

    fn need<T>(&self, timers: &Timers<T>, number: u32) -> Tick {
        let (begin, level) = (self.begin(timers, number), timers.level(number));
        // If `first` or `above` is later than the slot, the hand would skip it. 0 reports this.
        let first = self.levels.level(usize::from(level)).first.max(self.above);
        if level > 0 && begin < first { 0 } else { begin }
    }

    fn home(&self, level: u8, number: u32, due: Tick, hand: Tick) -> Place {
        let here = self.levels.level(usize::from(level));
        let slot = here.slot_numbered(number);
        if here.begin(due) == here.begin_of(slot, hand) {
            return Place::Level { level: u32::from(level) + 1, slot };
        }
        // The timer was moved to later, and its reference is still here. Return the place where the timer belongs.
        self.place_of(due, hand)
    }

    fn place_of(&self, due: Tick, hand: Tick) -> Place {
        let level = self.levels.reaching(due - hand);
        Place::Level { level: level as u32 + 1, slot: self.levels.level(level).slot(due) }
    }

    fn slot(&self, level: u8, number: u32) -> Slot {
        let slot = self.levels.level(usize::from(level)).slot_numbered(number);
        Slot::Level { level: u32::from(level) + 1, slot }
    }

    fn range<T>(&self, timers: &Timers<T>, slot: Slot) -> Option<(Tick, Tick)> {
        let Slot::Level { level, slot } = slot else { return None };
        let level = self.levels.iter().nth((level as usize).checked_sub(1)?)?;
        let begin = (slot < level.slots()).then(|| level.begin_of(slot, timers.hand()))?;
        Some((begin, begin.saturating_add(level.unit() - 1)))
    }

    fn view(&self, level: usize) -> LevelView {
        let level = self.levels.level(level);
        LevelView { slots: level.slots(), ticks_a_slot: level.unit(), made: level.is_made() }
    }

    fn memory(&self) -> usize {
        self.levels.iter().map(|level| level.memory()).sum()
    }
}

impl Hierarchical {
    /// Records that an occupied slot of a level begins at this tick.
    #[inline(always)]
    fn meet(&mut self, level: u8, begin: Tick) {
        if level > planted!("wheel.earlier-slot-above-unnoticed", 1, 0) {
            self.levels.note_begin(level, begin);
            self.above = begin.min(self.above);
        }
    }

    /// Cascades every slot above the lowest level that begins at the hand, and finds when the next such slot begins. No
    /// cascade adds to a slot above the lowest level that begins now, so each level is examined once.
    fn settle_above<T>(
        &mut self,
        timers: &mut Timers<T>,
        budget: &mut Budget,
        watch: Watch<'_, '_>,
    ) -> Result<(), Cut> {
        for level in 1..self.levels.top() {
            if self.levels.level(level).first > timers.hand() {
                continue;
            }
            let (slot, begin) = self.levels.level(level).find(timers.hand());
            while begin == timers.hand() && self.levels.level(level).is_marked(slot) {
                let number = self.levels.level(level).number(slot);
                timers.cascade(self, number, budget)?;
                // Called after the cascade, so that the wheel is consistent if `watch` panics.
                if let Some(watch) = watch {
                    self.report(timers, level as u8, number, watch);
                }
            }
            let here = self.levels.level_mut(level);
            here.first = here.next_after(slot, begin);
        }
        // Reinserting a timer that was moved to later may have made a level, so `top` is read again.
        let top = self.levels.top();
        let above = 1..planted!("wheel.third-level-passed", top.min(2), top);
        let firsts = above.map(|level| self.levels.level(level).first);
        self.above = firsts.min().unwrap_or(Tick::MAX);
        Ok(())
    }

    /// Reports the timers that have just cascaded from this slot.
    fn report<T>(&self, timers: &Timers<T>, level: u8, number: u32, watch: &mut dyn FnMut(Moved)) {
        let place = |level: u8, number| {
            let slot = self.levels.level(usize::from(level)).slot_numbered(number);
            Place::Level { level: u32::from(level) + 1, slot }
        };
        for (key, due) in timers.cascaded() {
            let spot = self.spot(due, timers.hand());
            let below = timers.level(spot);
            // A timer that is due now fires and is not reported. A timer that was moved to later may even move to a
            // higher level.
            if due > timers.hand() && below < level {
                watch(Moved { key, from: place(level, number), to: place(below, spot) });
            }
        }
    }
}
