//! What a kind of wheel does at a tick, and the loop of `advance`.

use crate::budget::{Budget, Cut};
use crate::geometry::Geometry;
use crate::outcome::{Moved, Progress};
use crate::place::{LevelView, Place, Slot};
use crate::tick::Tick;
use crate::timers::Timers;

/// A callback for every timer that cascades, if the caller gave one.
pub(crate) type Watch<'a, 'w> = &'a mut Option<&'w mut dyn FnMut(Moved)>;

pub(crate) trait Motion: Geometry + Sized {
    /// The next tick, not before the hand, at which there may be something to settle; `Tick::MAX` if there is none.
    /// Called when the hand's tick is settled. The search spends the budget, but is not ended by it.
    fn next_stop<T>(&mut self, timers: &Timers<T>, budget: &mut Budget) -> Tick;

    /// Settles the hand's tick: cascades the slots that begin there, then makes the due timers ready.
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

    /// The place to show for a timer whose reference is in this slot and which is due after the hand.
    fn home(&self, level: u8, number: u32, due: Tick, hand: Tick) -> Place;

    /// The place to show for a timer that is placed now and is due after the hand.
    fn place_of(&self, due: Tick, hand: Tick) -> Place;

    /// The public form of a slot.
    fn slot(&self, level: u8, number: u32) -> Slot;

    /// The ticks that a slot covers in the turn in which the hand next meets it.
    fn range<T>(&self, timers: &Timers<T>, slot: Slot) -> Option<(Tick, Tick)>;

    fn view(&self, level: usize) -> LevelView;

    fn memory(&self) -> usize;
}

/// Moves the hand to a tick and settles every tick on the way at which there is something to do.
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
