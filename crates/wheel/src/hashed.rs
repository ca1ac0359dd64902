//! The hashed wheel: one ring, on which timers of many turns share a slot.
//!
//! - A timer is filed in slot `due mod slots`; what is already due, in the slot under the hand.
//! - `min` of a slot says in which turn something there is due: before that the hand passes over it.
//! - A slot in which something is due is scanned once, unless one timer is all it has: its ring is taken off, and
//!   what is due becomes ready, what was moved to another slot goes there, the rest goes into a new ring. A scan that
//!   the budget cuts goes on in the next call; the hand stays until it is done.

use alloc::vec::Vec;

use crate::bitmap::Bitmap;
use crate::held::Held;
use crate::nodes::NONE;
use crate::rules::{Budget, Cut, Rules, Scan, Watch};
use crate::shared::{Core, Slot};
use crate::tick::Tick;
use crate::{GeometryError, LevelView, MAX_SLOTS, OutOfMemory, Place};

/// The rules of [`HashedWheel`](crate::HashedWheel).
pub struct Hashed {
    slots: u32,
    /// Whether the ring has been made: an empty wheel takes no memory for it.
    made: bool,
    occupied: Bitmap,
}

impl Hashed {
    pub(crate) fn new(slots: u32) -> Result<Self, GeometryError> {
        if !(1..=MAX_SLOTS).contains(&slots) {
            return Err(GeometryError::Slots { level: 1, slots, least: 1 });
        }
        Ok(Hashed { slots, made: false, occupied: Bitmap::default() })
    }

    #[inline]
    pub(crate) fn slot(&self, tick: Tick) -> u32 {
        if self.slots.is_power_of_two() {
            tick as u32 & (self.slots - 1)
        } else {
            (tick % u64::from(self.slots)) as u32
        }
    }

    /// A timer that was moved to later waits for the hand where it was: the hand must come there once more
    /// before it is due.
    fn floor(&self, number: u32, due: Tick, hand: Tick) -> Tick {
        let since = (self.slot(due) + self.slots - (number)) % self.slots;
        if due <= hand { due } else { due - u64::from(since) }
    }

    /// The first tick after the hand at which it meets a slot.
    #[inline]
    pub(crate) fn visit(&self, slot: u32, hand: Tick) -> Tick {
        let here = self.slot(hand);
        let ahead = if slot > here { slot - here } else { slot + self.slots - here };
        hand.saturating_add(u64::from(ahead))
    }
}

impl Rules for Hashed {
    const SCANS: bool = true;

    #[inline(always)]
    fn spot(&self, due: Tick, hand: Tick) -> u32 {
        self.slot(due.max(hand))
    }

    #[inline(always)]
    fn near(&self, due: Tick, hand: Tick) -> Option<u32> {
        Some(self.spot(due, hand))
    }

    #[cold]
    fn make(&mut self, _due: Tick, _hand: Tick, slots: &mut Vec<Slot>) -> Result<(), OutOfMemory> {
        let count = self.slots as usize;
        slots.try_reserve_exact(count).map_err(|_| OutOfMemory)?;
        self.occupied = Bitmap::new(count)?;
        slots.resize(slots.len() + count, Slot::new(0));
        self.made = true;
        Ok(())
    }

    fn unmake(&mut self) {
        (self.made, self.occupied) = (false, Bitmap::default());
    }

    #[inline(never)]
    fn mark(&mut self, _level: u8, number: u32, due: Tick) -> Tick {
        self.occupied.insert(number);
        due
    }

    #[inline(never)]
    fn unmark(&mut self, _level: u8, number: u32) {
        self.occupied.remove(number);
    }

    #[inline]
    fn covers(&self, _level: u8, number: u32, due: Tick, hand: Tick) -> bool {
        self.slot(due.max(hand)) == number
    }

    /// Slots in which nothing is due in this turn are passed over, and so are whole turns without anything due.
    fn next_stop<T>(&mut self, core: &Core<T>, budget: &mut Budget) -> Tick {
        if core.scan.slot != NONE {
            return core.hand;
        }
        let mut least = Tick::MAX;
        for (number, visit) in self.met(0, core.hand) {
            if visit >= least {
                break;
            }
            let min = self.floor(number, core.slots[number as usize].min, core.hand);
            if min > visit {
                let work = planted!("wheel.slots-for-nothing", 0, 1);
                budget.work = budget.work.saturating_sub(work);
            }
            least = least.min(min.max(visit));
        }
        least
    }

    fn first(&self, _level: usize, hand: Tick) -> Tick {
        hand
    }

    /// The slot under the hand may hold both what is due now and what is due a turn later: it comes first.
    fn met(&self, _level: usize, hand: Tick) -> impl Iterator<Item = (u32, Tick)> {
        let here = self.slot(hand);
        let first = self.occupied.contains(here).then_some((here, hand));
        let rest = self.occupied.round(here).take_while(move |&slot| slot != here);
        first.into_iter().chain(rest.map(move |slot| (slot, self.visit(slot, hand))))
    }

    fn begin<T>(&self, core: &Core<T>, number: u32) -> Tick {
        let min = self.floor(number, core.slots[number as usize].min, core.hand);
        let due_now = min <= core.hand || core.scan.slot == number;
        if number == self.slot(core.hand) && due_now {
            core.hand
        } else {
            self.visit(number, core.hand)
        }
    }

    fn need<T>(&self, core: &Core<T>, number: u32) -> Tick {
        self.floor(number, core.slots[number as usize].min, core.hand).max(core.hand)
    }

    fn next_slot<T>(&self, core: &Core<T>) -> Tick {
        // The slot under the hand comes first among those that are met, but may be the last to be met again.
        let begins = self.met(0, core.hand).take(2).map(|(number, _)| self.begin(core, number));
        begins.min().unwrap_or(Tick::MAX)
    }

    fn is_occupied(&self, _level: u8, number: u32) -> bool {
        self.occupied.contains(number)
    }

    fn levels(&self) -> usize {
        1
    }

    /// Looks through the slot under the hand once: what is due becomes ready, the other rounds stay.
    fn settle<T>(
        &mut self,
        core: &mut Core<T>,
        budget: &mut Budget,
        _watch: Watch<'_, '_>,
    ) -> Result<(), Cut> {
        let number = self.slot(core.hand);
        if budget.work == 0 {
            return Err(Cut::Budget);
        }
        loop {
            let Some(slot) = core.slots.get_mut(number as usize) else { return Ok(()) };
            let scans = core.scan.slot != NONE;
            // What has come while the slot is being looked through waits until that is done.
            let held = if scans { Held::Ring(core.scan.head) } else { slot.ring.held() };
            if !scans && self.floor(number, slot.min, core.hand) > core.hand {
                return Ok(());
            }
            match held {
                Held::Nothing => return Ok(()),
                Held::One(node) => {
                    budget.room(core.ready.len())?;
                    core.settle_one(self, number, node, budget)?;
                }
                Held::Ring(head) => {
                    let room = budget.room(core.ready.len())?;
                    if !scans {
                        core.scan = Scan { slot: number, head };
                        *slot = Slot::new(slot.level);
                    }
                    self.scan(core, number, room, budget)?;
                }
            }
        }
    }

    fn place(&self, _level: u8, _number: u32, due: Tick, hand: Tick) -> Place {
        if due <= hand {
            return Place::Due;
        }
        self.place_of(due, hand)
    }

    fn place_of(&self, due: Tick, hand: Tick) -> Place {
        Place::Ring { slot: self.slot(due), rounds: (due - hand) / u64::from(self.slots) }
    }

    fn slot_place(&self, _level: u8, number: u32) -> Place {
        Place::Ring { slot: number, rounds: 0 }
    }

    fn range<T>(&self, core: &Core<T>, place: Place) -> Option<(Tick, Tick)> {
        let Place::Ring { slot, .. } = place else { return None };
        if slot >= self.slots {
            return None;
        }
        let begin = if self.occupied.contains(slot) {
            self.begin(core, slot)
        } else {
            self.visit(slot, core.hand)
        };
        Some((begin, begin))
    }

    fn view(&self, _level: usize) -> LevelView {
        LevelView { slots: self.slots, ticks_a_slot: 1, made: self.made }
    }

    fn memory(&self) -> usize {
        self.occupied.memory()
    }
}

impl Hashed {
    fn scan<T>(
        &mut self,
        core: &mut Core<T>,
        number: u32,
        room: usize,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        core.look(number, core.scan.head, room);
        core.ready.reserve(core.batch.len, &mut core.nodes)?;
        core.chunks.reserve(core.batch.len)?;
        core.take(self);
        for nth in 0..core.batch.len {
            let (node, due) = core.batch.get(nth);
            if due <= core.hand {
                core.file_ready(node, due);
            } else {
                // Into the ring of what was looked at, or, if it was moved, into that of another slot.
                core.refile(self, node, due);
                budget.work -= 1;
                planted!("wheel.hashed-stops-at-first", break, ());
            }
        }
        Ok(())
    }
}
