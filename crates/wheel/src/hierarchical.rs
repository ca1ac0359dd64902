//! The hierarchical wheel: rings of growing span.
//!
//! - A timer is filed on the lowest level that reaches it, counted from the hand.
//! - When the hand is where an occupied slot of an upper level begins, that slot is handed down before anything
//!   of that tick is made ready. The hand stops at every such beginning, so no slot holds two turns.
//! - What is already due is filed in the lowest slot under the hand, and the hand does not leave it before that
//!   slot is empty.
//! - A slot may hold a timer that was moved to later: it is filed anew when its slot is met.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::chunks::CHUNK;
use crate::held::Held;
use crate::levels::{Level, Levels};
use crate::rules::{Budget, Cut, Rules, Watch};
use crate::shared::{Core, Slot};
use crate::tick::Tick;
use crate::{GeometryError, LevelView, Moved, OutOfMemory, Place};

/// The rules of [`HierarchicalWheel`](crate::HierarchicalWheel).
pub struct Hierarchical {
    levels: Levels,
    /// No occupied slot of a level begins before its tick here. Not kept for the lowest.
    begins: Box<[Tick]>,
    /// The least of these. It spares a look at every level when the hand goes from one slot of the lowest to the
    /// next.
    above: Tick,
}

impl Hierarchical {
    pub(crate) fn new(slots: &[u32]) -> Result<Self, GeometryError> {
        let levels = Levels::new(slots)?;
        let begins = levels.levels.iter().map(|_| Tick::MAX).collect();
        Ok(Hierarchical { levels, begins, above: Tick::MAX })
    }
}

impl Rules for Hierarchical {
    const SCANS: bool = false;

    #[inline(always)]
    fn spot(&self, due: Tick, hand: Tick) -> u32 {
        self.levels.spot(due, hand)
    }

    #[inline(always)]
    fn near(&self, due: Tick, hand: Tick) -> Option<u32> {
        self.levels.near(due, hand)
    }

    #[cold]
    fn make(&mut self, due: Tick, hand: Tick, slots: &mut Vec<Slot>) -> Result<(), OutOfMemory> {
        let level = self.levels.reaching(due.saturating_sub(hand));
        let count = self.levels.levels[level].slots as usize;
        slots.try_reserve_exact(count).map_err(|_| OutOfMemory)?;
        self.levels.make(level, slots.len() as u32)?;
        slots.resize(slots.len() + count, Slot::new(level as u8));
        Ok(())
    }

    fn unmake(&mut self) {
        self.levels.unmake();
        self.begins.fill(Tick::MAX);
        self.above = Tick::MAX;
    }

    #[inline]
    fn mark(&mut self, level: u8, number: u32, due: Tick) -> Tick {
        let here = &mut self.levels.levels[usize::from(level)];
        here.occupied.insert(number - here.base);
        let begin = here.begin(due);
        if level > planted!("wheel.earlier-slot-above-unnoticed", 1, 0) {
            let first = &mut self.begins[usize::from(level)];
            *first = begin.min(*first);
            self.above = begin.min(self.above);
        }
        begin
    }

    #[inline]
    fn unmark(&mut self, level: u8, number: u32) {
        let level = &mut self.levels.levels[usize::from(level)];
        level.occupied.remove(number - level.base);
    }

    #[inline]
    fn covers(&self, level: u8, number: u32, due: Tick, hand: Tick) -> bool {
        let level = &self.levels.levels[usize::from(level)];
        let begin = level.begin_of(number - level.base, hand);
        begin <= due.max(hand) + planted!("wheel.moved-earlier-stays", 1, 0)
    }

    #[inline]
    fn next_stop<T>(&mut self, core: &Core<T>, _budget: &mut Budget) -> Tick {
        self.levels.levels[0].next_tick(core.hand).min(self.above)
    }

    #[inline]
    fn first(&self, level: usize, hand: Tick) -> Tick {
        let level = &self.levels.levels[level];
        if level.is_made() { level.next_begin(hand) } else { Tick::MAX }
    }

    fn met(&self, level: usize, hand: Tick) -> impl Iterator<Item = (u32, Tick)> {
        let level = &self.levels.levels[level];
        level.occupied(hand).map(|(slot, begin)| (level.base + slot, begin))
    }

    fn begin<T>(&self, core: &Core<T>, number: u32) -> Tick {
        let level = &self.levels.levels[usize::from(core.slots[number as usize].level)];
        level.begin_of(number - level.base, core.hand)
    }

    fn need<T>(&self, core: &Core<T>, number: u32) -> Tick {
        let (begin, level) = (self.begin(core, number), core.slots[number as usize].level);
        // What is said of the levels above must be true, or the hand would pass it by.
        let first = self.begins[usize::from(level)].max(self.above);
        if level > 0 && begin < first { 0 } else { begin }
    }

    fn next_slot<T>(&self, core: &Core<T>) -> Tick {
        let made = self.levels.levels.iter().filter(|level| level.is_made());
        made.map(|level| level.next_begin(core.hand)).min().unwrap_or(Tick::MAX)
    }

    fn is_occupied(&self, level: u8, number: u32) -> bool {
        let level = &self.levels.levels[usize::from(level)];
        level.occupied.contains(number - level.base)
    }

    fn levels(&self) -> usize {
        self.levels.levels.len()
    }

    #[inline]
    fn settle<T>(
        &mut self,
        core: &mut Core<T>,
        budget: &mut Budget,
        watch: Watch<'_, '_>,
    ) -> Result<(), Cut> {
        if self.above <= core.hand {
            self.settle_above(core, budget, watch)?;
        }
        let lowest = &self.levels.levels[0];
        // Due timers above open it. At the end of time the hand may come here with nothing to settle.
        if !lowest.is_made() {
            return Ok(());
        }
        let number = lowest.base + lowest.slot(core.hand);
        loop {
            match core.slots[number as usize].ring.held() {
                Held::Nothing => return Ok(()),
                Held::One(node) => {
                    budget.room(core.ready.len())?;
                    // One that was moved to later goes elsewhere: this is no slot of another turn.
                    return Ok(core.settle_one(self, number, node, budget)?);
                }
                Held::Ring(head) => {
                    let room = budget.room(core.ready.len())?;
                    core.ready.reserve(CHUNK, &mut core.nodes)?;
                    if core.ripen(self, number, head, room) {
                        self.move_on(core, number, head, budget)?;
                    }
                }
            }
        }
    }

    fn place(&self, level: u8, number: u32, due: Tick, hand: Tick) -> Place {
        if due <= hand {
            return Place::Due;
        }
        let here = &self.levels.levels[usize::from(level)];
        let slot = number - here.base;
        if here.begin(due) == here.begin_of(slot, hand) {
            return Place::Level { level: u32::from(level) + 1, slot };
        }
        // It was moved to later and its reference waits where it was: say where it belongs.
        self.place_of(due, hand)
    }

    fn place_of(&self, due: Tick, hand: Tick) -> Place {
        let level = self.levels.reaching(due - hand);
        Place::Level { level: level as u32 + 1, slot: self.levels.levels[level].slot(due) }
    }

    fn slot_place(&self, level: u8, number: u32) -> Place {
        Place::Level {
            level: u32::from(level) + 1,
            slot: number - self.levels.levels[usize::from(level)].base,
        }
    }

    fn range<T>(&self, core: &Core<T>, place: Place) -> Option<(Tick, Tick)> {
        let Place::Level { level, slot } = place else { return None };
        let level = self.levels.levels.get((level as usize).checked_sub(1)?)?;
        let begin = (slot < level.slots).then(|| level.begin_of(slot, core.hand))?;
        Some((begin, begin.saturating_add(level.unit - 1)))
    }

    fn view(&self, level: usize) -> LevelView {
        let level = &self.levels.levels[level];
        LevelView { slots: level.slots, ticks_a_slot: level.unit, made: level.is_made() }
    }

    fn memory(&self) -> usize {
        let levels = self.levels.levels.iter();
        let levels = levels.map(|level| size_of::<Level>() + level.occupied.memory());
        levels.sum::<usize>() + size_of_val(&*self.begins)
    }
}

impl Hierarchical {
    /// Hands down every slot above the lowest level that begins at the hand, and looks when the next one begins. No
    /// slot that begins now is handed anything, so each level is looked at once.
    fn settle_above<T>(
        &mut self,
        core: &mut Core<T>,
        budget: &mut Budget,
        watch: Watch<'_, '_>,
    ) -> Result<(), Cut> {
        for number in 1..self.levels.top {
            if self.begins[number] > core.hand {
                continue;
            }
            let (slot, begin) = self.levels.levels[number].find(core.hand);
            while begin == core.hand && self.levels.levels[number].occupied.contains(slot) {
                if budget.work == 0 {
                    return Err(Cut::Budget);
                }
                let slot = self.levels.levels[number].base + slot;
                self.hand_down(core, number as u8, slot, budget, watch)?;
            }
            self.begins[number] = self.levels.levels[number].next_after(slot, begin);
        }
        let top = self.levels.top;
        let begins = self.begins[1..planted!("wheel.third-level-passed", top.min(2), top)].iter();
        self.above = begins.copied().min().unwrap_or(Tick::MAX);
        Ok(())
    }

    /// Hands a batch of an upper slot that begins now down to where it belongs.
    fn hand_down<T>(
        &mut self,
        core: &mut Core<T>,
        level: u8,
        number: u32,
        budget: &mut Budget,
        watch: Watch<'_, '_>,
    ) -> Result<(), Cut> {
        let head = match core.slots[number as usize].ring.held() {
            Held::Nothing => unreachable!("a slot that is marked holds a timer"),
            Held::One(node) => {
                let due = core.pass_on(self, number, node)?;
                budget.work -= 1;
                if let Some(watch) = watch {
                    self.tell(core, (level, number), (node, due), watch);
                }
                return Ok(());
            }
            Held::Ring(head) => head,
        };
        self.move_on(core, number, head, budget)?;
        // Told only now: should `watch` panic, everything is where it belongs.
        if let Some(watch) = watch {
            for nth in 0..core.batch.len {
                self.tell(core, (level, number), core.batch.get(nth), watch);
            }
        }
        Ok(())
    }

    /// Tells of a timer that was handed down from this slot.
    fn tell<T>(
        &self,
        core: &Core<T>,
        (level, number): (u8, u32),
        (node, due): (u32, Tick),
        watch: &mut dyn FnMut(Moved),
    ) {
        let spot = self.spot(due, core.hand);
        let below = core.slots[spot as usize].level;
        // Due right now: it fires straight from above. Moved to later: it may even rise.
        if due > core.hand && below < level {
            let from = self.slot_place(level, number);
            let to = self.slot_place(below, spot);
            watch(Moved { key: core.nodes.key(node), from, to });
        }
    }

    /// Files a batch of what is in the head of a slot where it belongs now.
    #[inline]
    fn move_on<T>(
        &mut self,
        core: &mut Core<T>,
        number: u32,
        head: u32,
        budget: &mut Budget,
    ) -> Result<(), Cut> {
        planted!("wheel.more-than-the-budget", budget.work = budget.work.max(CHUNK), ());
        core.look(number, head, budget.work);
        planted!(
            "wheel.taken-before-there-is-room",
            {
                core.take(self);
                self.prepare_batch(core)?;
            },
            {
                self.prepare_batch(core)?;
                core.take(self);
            }
        );
        budget.work -= core.batch.len;
        let all = core.batch.len;
        for nth in 0..planted!("wheel.lost-when-handed-down", all.min(31), all) {
            let (node, due) = core.batch.get(nth);
            core.refile(self, node, due);
        }
        Ok(())
    }

    /// Makes sure that the whole batch can be filed before any of it moves.
    #[inline]
    fn prepare_batch<T>(&mut self, core: &mut Core<T>) -> Result<(), OutOfMemory> {
        // Its own chunk is free by then, if nothing stays there.
        core.chunks.reserve(core.batch.len - usize::from(core.batch.takes_all()))?;
        if core.batch.last.saturating_sub(core.hand) < self.levels.made {
            return Ok(());
        }
        for nth in 0..core.batch.len {
            let due = core.batch.get(nth).1;
            if self.spot(due, core.hand) as usize >= core.slots.len() {
                self.make(due, core.hand, &mut core.slots)?;
            }
        }
        Ok(())
    }
}
