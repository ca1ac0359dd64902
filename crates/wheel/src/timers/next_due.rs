//! Finds the exact next due tick.
//!
//! Every slot keeps a lower bound of its due ticks and the timer that set it, its witness. While the witness is still
//! in the slot and due at that tick, the bound is exact. When the witness was cancelled or moved, the slot is searched
//! once. If the slot is large, its earliest timers are kept in a small heap, the [`Front`], so that cancelling the
//! earliest timer repeatedly does not search the slot each time.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::Timers;
use crate::geometry::Geometry;
use crate::position::NONE;
use crate::tick::Tick;

/// A front is built with at least this many of a slot's earliest timers, and holds at most twice as many.
const KEPT: usize = 4096;

/// The earliest timers of one slot. Contains every timer of the slot that is due before `bound`, with its due tick or
/// an earlier one. Outdated entries are detected when they reach the top of the heap.
pub(super) struct Front {
    slot: u32,
    bound: Tick,
    least: BinaryHeap<Reverse<(Tick, u32)>>,
}

impl Front {
    pub(super) const fn new() -> Self {
        Front { slot: NONE, bound: 0, least: BinaryHeap::new() }
    }

    /// The slot whose timers it holds, or `NONE`.
    #[inline]
    pub(super) fn slot(&self) -> u32 {
        self.slot
    }

    /// Records a timer that was inserted into a slot or moved earlier within it.
    #[inline]
    pub(super) fn note(&mut self, slot: u32, due: Tick, node: u32) {
        if slot == self.slot {
            self.keep(due, node);
        }
    }

    #[cold]
    fn keep(&mut self, due: Tick, node: u32) {
        if due >= self.bound {
            return;
        }
        // If there is no room, the front is dropped, and the slot is searched again when needed.
        if self.least.len() >= 2 * KEPT || self.least.try_reserve(1).is_err() {
            self.drop_all();
        } else {
            self.least.push(Reverse((due, node)));
        }
    }

    #[inline]
    pub(super) fn forget(&mut self, slot: u32) {
        if slot == self.slot {
            self.drop_all();
        }
    }

    #[cold]
    fn drop_all(&mut self) {
        *self = Front::new();
    }

    pub(super) fn memory(&self) -> usize {
        self.least.capacity() * size_of::<(Tick, u32)>()
    }
}

impl<T> Timers<T> {
    /// The tick at which the next timer fires, not before the hand.
    pub(crate) fn next_due(&mut self, geometry: &impl Geometry) -> Option<Tick> {
        if self.ready.len() > 0 { Some(self.hand) } else { self.upcoming(geometry) }
    }

    /// As `next_due`, for timers that are not ready yet.
    pub(crate) fn upcoming(&mut self, geometry: &impl Geometry) -> Option<Tick> {
        if self.nodes.pending() == self.ready.len() {
            return None;
        }
        let mut best = Tick::MAX;
        for level in 0..geometry.levels() {
            if geometry.first(level, self.hand) >= best {
                continue;
            }
            for (number, begin) in geometry.met(level, self.hand) {
                if begin >= best {
                    break;
                }
                best = best.min(self.exact(number, best));
            }
        }
        let best = best.max(self.hand);
        // `earliest` must not exceed the bound of any slot, and the bound of a slot that is being scanned may be lower.
        if !self.is_scanning() {
            self.earliest = best;
        }
        Some(best)
    }

    /// The timer that fires next, or one of several.
    pub(crate) fn first(&mut self, geometry: &impl Geometry) -> Option<u32> {
        let ready = self.ready.iter(&self.nodes).next();
        ready.or_else(|| self.first_upcoming(geometry))
    }

    /// A lower bound of the next due tick.
    #[inline]
    pub(crate) fn next_due_bound(&self) -> Tick {
        let bound = if self.ready.len() > 0 { 0 } else { self.stop.max(self.earliest) };
        bound.max(self.hand)
    }

    /// The timer that becomes ready next, or one of several.
    fn first_upcoming(&mut self, geometry: &impl Geometry) -> Option<u32> {
        let next = self.upcoming(geometry)?;
        let is_next = |core: &Self, node: u32| core.nodes.node(node).due() <= next;
        for level in 0..geometry.levels() {
            for (number, begin) in geometry.met(level, self.hand) {
                if begin > next {
                    break;
                }
                let slot = &self.slots[number as usize];
                let found = match self.witnessed(number) {
                    Some(min) => (min <= next).then_some(slot.witness()),
                    None if slot.bound() > next && !self.scan.is_of(number) => None,
                    // `upcoming` sets no witness in a slot that is being scanned.
                    None => {
                        self.filed(number).map(|filed| filed.1).find(|&node| is_next(self, node))
                    }
                };
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    /// The bound of a slot, if it is exact.
    pub(super) fn witnessed(&self, number: u32) -> Option<Tick> {
        let slot = &self.slots[number as usize];
        if slot.witness() == NONE || self.scan.is_of(number) {
            return None;
        }
        let true_still = self.slot_of(slot.witness()) == number;
        let exact = planted!(
            "wheel.bound-believed-too-long",
            true_still || !slot.is_empty(),
            true_still && self.nodes.node(slot.witness()).due() == slot.bound()
        );
        exact.then_some(slot.bound())
    }

    /// The least due tick of an occupied slot. If that is not below `best`, any tick not below `best` may be returned.
    fn exact(&mut self, number: u32, best: Tick) -> Tick {
        if let Some(min) = self.witnessed(number) {
            return min;
        }
        // While a slot is being scanned, its bound does not cover the timers that are not scanned yet.
        let min = self.bound(number);
        if min >= best && !self.scan.is_of(number) {
            return min;
        }
        self.front_of(number).unwrap_or_else(|| self.look_through(number))
    }

    /// The least due tick according to the front, if the front is of this slot and not used up.
    fn front_of(&mut self, number: u32) -> Option<Tick> {
        if self.front.slot != number {
            return None;
        }
        while let Some(&Reverse((due, node))) = self.front.least.peek() {
            let (here, now) = (self.slot_of(node) == number, self.nodes.node(node).due());
            if here && now == due {
                // During a scan the bound covers only the timers already scanned; lowering it would cause another scan.
                if !self.scan.is_of(number) {
                    self.slots[number as usize].set_bound(due, node);
                }
                return Some(due);
            }
            self.front.least.pop();
            if here && now < self.front.bound {
                self.front.least.push(Reverse((now, node)));
            }
        }
        None
    }

    /// Reads every timer of a slot and sets its bound. Builds the front if the slot is large.
    fn look_through(&mut self, number: u32) -> Tick {
        let keep = self.count(number) > KEPT;
        let (mut least, mut witness) = (Tick::MAX, NONE);
        let mut kept: Vec<Reverse<(Tick, u32)>> = Vec::new();
        let mut below = Tick::MAX;
        let roomy = keep && kept.try_reserve_exact(2 * KEPT).is_ok();
        for (_, node) in self.filed(number) {
            let due = self.nodes.node(node).due();
            if due < least || witness == NONE {
                (least, witness) = (due, node);
            }
            if roomy && due < below {
                kept.push(Reverse((due, node)));
                if kept.len() == 2 * KEPT {
                    below = halve(&mut kept);
                }
            }
        }
        // As in `front_of`.
        if !self.scan.is_of(number) {
            self.slots[number as usize].set_bound(least, witness);
        }
        if roomy {
            self.front = Front { slot: number, bound: below, least: BinaryHeap::from(kept) };
        }
        least
    }
}

/// Keeps the earlier half. Returns a tick: every timer due before it has been kept.
fn halve(kept: &mut Vec<Reverse<(Tick, u32)>>) -> Tick {
    let (_, &mut Reverse((below, _)), _) =
        kept.select_nth_unstable_by_key(KEPT, |&Reverse(timer)| timer);
    kept.truncate(KEPT);
    below
}
