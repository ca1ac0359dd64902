//! What distinguishes one kind of wheel from another, and the words in which they speak with what they share.

use alloc::vec::Vec;

use crate::nodes::NONE;
use crate::shared::{Core, Slot};
use crate::tick::Tick;
use crate::{LevelView, Moved, OutOfMemory, Place};

/// The slot of a hashed wheel that is being looked through, and the ring of what is left of it. What has been
/// looked at, or is filed while it is being looked through, is in the slot's own ring.
#[derive(Clone, Copy)]
pub(crate) struct Scan {
    pub(crate) slot: u32,
    pub(crate) head: u32,
}

impl Scan {
    pub(crate) const NONE: Scan = Scan { slot: NONE, head: NONE };
}

/// What one call of `advance` may still do.
pub(crate) struct Budget {
    /// References, and slots of other turns, that may still be looked at without firing.
    pub(crate) work: usize,
    /// The most timers that may be ready.
    pub(crate) ready: usize,
}

impl Budget {
    /// How many timers may still be made ready, having looked at as many, if so many are.
    #[inline]
    pub(crate) fn room(&self, ready: usize) -> Result<usize, Cut> {
        let room = self.ready.saturating_sub(ready).min(self.work);
        if room == 0 { Err(Cut::Budget) } else { Ok(room) }
    }
}

/// Who wants to know of every timer that is handed down, if anybody does.
pub(crate) type Watch<'a, 'w> = &'a mut Option<&'w mut dyn FnMut(Moved)>;

/// Why settling a tick ended before its end.
pub(crate) enum Cut {
    Budget,
    Memory,
}

impl From<OutOfMemory> for Cut {
    fn from(_: OutOfMemory) -> Self {
        Cut::Memory
    }
}

/// What distinguishes one kind of wheel from another.
pub(crate) trait Rules: Sized {
    /// Whether a slot holds the timers of several turns. It is looked through then.
    const SCANS: bool;

    /// The number of the slot in which a timer that is due then is filed, the one under the hand if it is due
    /// already; a number that the table does not have if the level is still to be made.
    fn spot(&self, due: Tick, hand: Tick) -> u32;

    /// The same, without a call in it. If it is not found at once: `None`, or a number that the table does not have.
    fn near(&self, due: Tick, hand: Tick) -> Option<u32>;

    /// Makes the level on which a timer is filed that is due then.
    fn make(&mut self, due: Tick, hand: Tick, slots: &mut Vec<Slot>) -> Result<(), OutOfMemory>;

    /// Forgets all levels, as if none had been made.
    fn unmake(&mut self);

    /// Remembers that a slot is occupied from now on, by a timer that is due then, not before the hand. Returns when
    /// the hand meets it.
    fn mark(&mut self, level: u8, number: u32, due: Tick) -> Tick;

    /// Remembers that a slot is no longer occupied.
    fn unmark(&mut self, level: u8, number: u32);

    /// Whether a timer that is filed there may stay when its deadline is moved earlier, to `due`.
    fn covers(&self, level: u8, number: u32, due: Tick, hand: Tick) -> bool;

    /// The next tick, not before the hand, at which there may be something to settle, now that all is settled there;
    /// `Tick::MAX` if there is none. It is found whatever is left of the budget, and counts in it.
    fn next_stop<T>(&mut self, core: &Core<T>, budget: &mut Budget) -> Tick;

    /// A tick that is not after anything due on a level; `Tick::MAX` if it is empty.
    fn first(&self, level: usize, hand: Tick) -> Tick;

    /// The occupied slots of a level in the order in which the hand meets them, each with a tick that is not
    /// after anything due in it.
    fn met(&self, level: usize, hand: Tick) -> impl Iterator<Item = (u32, Tick)>;

    /// When the hand next meets an occupied slot.
    fn begin<T>(&self, core: &Core<T>, number: u32) -> Tick;

    /// The tick, not before the hand, at which an occupied slot must be settled. For `check` alone.
    fn need<T>(&self, core: &Core<T>, number: u32) -> Tick;

    /// When the hand next meets any occupied slot.
    fn next_slot<T>(&self, core: &Core<T>) -> Tick;

    fn levels(&self) -> usize;

    fn is_occupied(&self, level: u8, number: u32) -> bool;

    /// Does all there is to do at the hand: hands down what begins there, then makes ready what is due.
    fn settle<T>(
        &mut self,
        core: &mut Core<T>,
        budget: &mut Budget,
        watch: Watch<'_, '_>,
    ) -> Result<(), Cut>;

    /// Where the drawings show a timer that is filed in this slot.
    fn place(&self, level: u8, number: u32, due: Tick, hand: Tick) -> Place;

    /// Where they show a timer that is filed now, due after the hand.
    fn place_of(&self, due: Tick, hand: Tick) -> Place;

    /// Where they show the slot itself.
    fn slot_place(&self, level: u8, number: u32) -> Place;

    /// The ticks that a slot stands for in the turn in which the hand next meets it.
    fn range<T>(&self, core: &Core<T>, place: Place) -> Option<(Tick, Tick)>;

    fn view(&self, level: usize) -> LevelView;

    fn memory(&self) -> usize;
}
