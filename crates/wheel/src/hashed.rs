//! The hashed wheel: one ring, on which timers of many turns (rotations of the hand) share a slot.
//!
//! - A timer is placed in slot `due mod slots`; one that is already due, in the slot under the hand.
//! - The bound of a slot, a lower bound of its due ticks, determines the turn in which the slot is next scanned; until
//!   then the hand skips it.
//! - A slot in which something is due is scanned once, unless it holds a single timer. Its ring is detached: due timers
//!   become ready, timers that were moved to another slot are reinserted there, and the rest goes into a new ring. If
//!   the budget ends a scan, the next call continues it; the hand stays until the scan is done.

use crate::bitmap::Bitmap;
use crate::budget::{Budget, Cut};
use crate::geometry::Geometry;
use crate::kind::{Motion, Watch};
use crate::place::{LevelView, Place, Slot};
use crate::tick::Tick;
use crate::timers::Timers;
use crate::{GeometryError, MAX_SLOTS, OutOfMemory};

/// The ring of [`HashedWheel`](crate::HashedWheel).
pub struct Hashed {
    slots: u32,
    /// Whether the ring is allocated: an empty wheel takes no memory for it.
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

    /// The slot for a timer due at `tick`.
    #[inline]
    fn slot_of(&self, tick: Tick) -> u32 {
        if self.slots.is_power_of_two() {
            tick as u32 & (self.slots - 1)
        } else {
            (tick % u64::from(self.slots)) as u32
        }
    }

    /// The last tick, up to a slot's bound, at which the hand meets the slot. It may differ from the bound: a timer
    /// that was moved to later keeps its reference, and the hand must meet the slot before the timer is due.
    fn floor<T>(&self, timers: &Timers<T>, number: u32) -> Tick {
        let due = timers.bound(number);
        let since = (self.slot_of(due) + self.slots - number) % self.slots;
        if due <= timers.hand() { due } else { due - u64::from(since) }
    }

    /// The first tick after `hand` at which the hand meets a slot.
    #[inline]
    fn visit(&self, slot: u32, hand: Tick) -> Tick {
        let here = self.slot_of(hand);
        let ahead = if slot > here { slot - here } else { slot + self.slots - here };
        hand.saturating_add(u64::from(ahead))
    }
}

impl Geometry for Hashed {
    const SCANS: bool = true;

    #[inline(always)]
    fn spot(&self, due: Tick, hand: Tick) -> u32 {
        self.slot_of(due.max(hand))
    }

    #[inline(always)]
    fn near(&self, due: Tick, hand: Tick) -> Option<u32> {
        Some(self.spot(due, hand))
    }

    fn is_made(&self, _due: Tick, _hand: Tick) -> bool {
        self.made
    }

    fn level_of(&self, _due: Tick, _hand: Tick) -> (u8, u32) {
        (0, self.slots)
    }

    #[cold]
    fn make(&mut self, _level: u8, _base: u32) -> Result<(), OutOfMemory> {
        self.occupied = Bitmap::new(self.slots as usize)?;
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

    #[inline(always)]
    fn mark_near(&mut self, _level: u8, number: u32, due: Tick) -> Option<Tick> {
        self.occupied.insert_flat(number)?;
        Some(due)
    }

    #[inline(never)]
    fn unmark(&mut self, _level: u8, number: u32) {
        self.occupied.remove(number);
    }

    fn is_marked(&self, _level: u8, number: u32) -> bool {
        self.occupied.contains(number)
    }

    #[inline]
    fn covers(&self, _level: u8, number: u32, due: Tick, hand: Tick) -> bool {
        self.spot(due, hand) == number
    }

    fn levels(&self) -> usize {
        1
    }

    fn first(&self, _level: usize, hand: Tick) -> Tick {
        hand
    }

    /// The slot under the hand comes first: it may hold timers that are due now as well as timers of later turns.
    fn met(&self, _level: usize, hand: Tick) -> impl Iterator<Item = (u32, Tick)> {
        let here = self.slot_of(hand);
        let first = self.occupied.contains(here).then_some((here, hand));
        let rest = self.occupied.round(here).take_while(move |&slot| slot != here);
        first.into_iter().chain(rest.map(move |slot| (slot, self.visit(slot, hand))))
    }
}

impl Motion for Hashed {
    /// Skips slots in which nothing is due in this turn, and whole turns in which nothing is due.
    fn next_stop<T>(&mut self, timers: &Timers<T>, budget: &mut Budget) -> Tick {
        if timers.is_scanning() {
            return timers.hand();
        }
        let mut least = Tick::MAX;
        for (number, visit) in self.met(0, timers.hand()) {
            if visit >= least {
                break;
            }
            let floor = self.floor(timers, number);
            if floor > visit {
                budget.spend(planted!("wheel.slots-for-nothing", 0, 1));
            }
            least = least.min(floor.max(visit));
        }
        least
    }

    /// Scans the slot under the hand once: due timers become ready, timers of later turns stay.
    fn settle<T>(
        &mut self,
        timers: &mut Timers<T>,
        budget: &mut Budget,
        _watch: Watch<'_, '_>,
    ) -> Result<(), Cut> {
        budget.work()?;
        let number = self.slot_of(timers.hand());
        let is_due = |timers: &Timers<T>, hashed: &Self| {
            timers.is_scanning()
                || number < timers.slots() && hashed.floor(timers, number) <= timers.hand()
        };
        while is_due(timers, self) && timers.scan(self, number, budget)? {}
        Ok(())
    }

    fn begin<T>(&self, timers: &Timers<T>, number: u32) -> Tick {
        let hand = timers.hand();
        let due_now = self.floor(timers, number) <= hand || timers.is_scanned(number);
        if number == self.slot_of(hand) && due_now { hand } else { self.visit(number, hand) }
    }

    fn next_slot<T>(&self, timers: &Timers<T>) -> Tick {
        // `met` returns the slot under the hand first, but if nothing in it is due now, the hand meets it last.
        let begins = self.met(0, timers.hand()).take(2);
        begins.map(|(number, _)| self.begin(timers, number)).min().unwrap_or(Tick::MAX)
    }

    fn need<T>(&self, timers: &Timers<T>, number: u32) -> Tick {
        self.floor(timers, number).max(timers.hand())
    }

    fn home(&self, _level: u8, _number: u32, due: Tick, hand: Tick) -> Place {
        self.place_of(due, hand)
    }

    fn place_of(&self, due: Tick, hand: Tick) -> Place {
        Place::Ring { slot: self.slot_of(due), rounds: (due - hand) / u64::from(self.slots) }
    }

    fn slot(&self, _level: u8, number: u32) -> Slot {
        Slot::Ring { slot: number }
    }

    fn range<T>(&self, timers: &Timers<T>, slot: Slot) -> Option<(Tick, Tick)> {
        let Slot::Ring { slot } = slot else { return None };
        if slot >= self.slots {
            return None;
        }
        let begin = if self.occupied.contains(slot) {
            self.begin(timers, slot)
        } else {
            self.visit(slot, timers.hand())
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
