//! What distinguishes one kind of wheel from another: its geometry, and what there is to do at a tick.

use crate::budget::{Budget, Cut};
use crate::geometry::Geometry;
use crate::outcome::{Moved, Progress};
use crate::place::{LevelView, Place, Slot};
use crate::tick::Tick;
use crate::timers::Timers;

/// Who wants to know of every timer that is handed down, if anybody does.
pub(crate) type Watch<'a, 'w> = &'a mut Option<&'w mut dyn FnMut(Moved)>;

pub(crate) trait Motion: Geometry + Sized {
    /// The next tick, not before the hand, at which there may be something to settle, now that all is settled there;
    /// `Tick::MAX` if there is none. It is found whatever is left of the budget, and counts in it.
    fn next_stop<T>(&mut self, timers: &Timers<T>, budget: &mut Budget) -> Tick;

    /// Does all there is to do at the hand: hands down what begins there, then makes ready what is due.
    fn settle<T>(
        &mut self,
        timers: &mut Timers<T>,
        budget: &mut Budget,
        watch: Watch<'_, '_>,
    ) -> Result<(), Cut>;

    /// When the hand next meets an occupied slot.
    fn begin<T>(&self, timers: &Timers<T>, number: u32) -> Tick;

    /// When the hand next meets any occupied slot.
    fn next_slot<T>(&self, timers: &Timers<T>) -> Tick;

    /// The tick, not before the hand, at which an occupied slot must be settled. For `check` alone.
    fn need<T>(&self, timers: &Timers<T>, number: u32) -> Tick;

    /// Where the drawings show a timer that is filed in this slot, due after the hand.
    fn home(&self, level: u8, number: u32, due: Tick, hand: Tick) -> Place;

    /// Where the drawings show a timer that is filed now, due after the hand.
    fn place_of(&self, due: Tick, hand: Tick) -> Place;

    /// How the drawings name a slot.
    fn slot(&self, level: u8, number: u32) -> Slot;

    /// The ticks that a slot stands for in the turn in which the hand next meets it.
    fn range<T>(&self, timers: &Timers<T>, slot: Slot) -> Option<(Tick, Tick)>;

    fn view(&self, level: usize) -> LevelView;

    fn memory(&self) -> usize;
}

/// Moves the hand to a tick, and settles every tick on the way at which there is something to do.
pub(crate) fn turn<T, K: Motion>(
    timers: &mut Timers<T>,
    kind: &mut K,
    target: Tick,
    budget: usize,
    watch: Watch<'_, '_>,
) -> Progress {
    let mut budget = Budget::new(budget, timers.ready());
    while timers.stop() <= target {
        timers.move_hand(timers.stop());
        match kind.settle(timers, &mut budget, watch) {
            Ok(()) => {}
            Err(Cut::Budget) => return Progress::More,
            Err(Cut::Memory) if timers.sweep_all() => continue,
            Err(Cut::Memory) => return Progress::OutOfMemory,
        }
        timers.sweep();
        timers.set_stop(kind.next_stop(timers, &mut budget));
        if timers.hand() == target {
            break;
        }
    }
    timers.move_hand(target);
    Progress::Done
}
