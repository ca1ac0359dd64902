//! What a slot holds: nothing, one timer, or a ring of chunks; and the earliest of it.
//!
//! When timers are sparse most slots hold one. It needs no chunk: the slot names its node, and the position of the node
//! names the slot. So starting it, cancelling it, handing it down and firing it touch the slot and the node alone.
//! The second one opens a ring, and takes the first along. A ring that comes down to one timer stays a ring until
//! it is empty: the tempting alternative, to turn it back, opens it once more as soon as the next one comes, and
//! a slot that has had two is likely to have them again.
//!
//! The bound is never above the due tick of a timer in the slot. While its witness, the timer that it was taken from,
//! is there and due then, it is exact.

use crate::position::NONE;
use crate::tick::Tick;

/// What a slot holds, beside what is still to be scanned of it.
pub(crate) enum Content {
    Nothing,
    /// The only timer: its node.
    One(u32),
    /// More, or what is left of more: the head of their ring.
    Ring(u32),
}

/// Stands in the place of a head: the only timer is named beside it. No chunk has this number, so who adds a
/// reference to a head finds out that there is none without asking, as in a slot that is empty.
const ALONE: u32 = NONE - 1;

/// [`Content`] itself would make it a third larger.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    /// `Tick::MAX` if the slot is empty.
    bound: Tick,
    /// The chunk that is being filled, `ALONE`, or `NONE` if the slot is empty.
    head: u32,
    /// If the head is `ALONE`: the node.
    only: u32,
    witness: u32,
    level: u8,
}

impl Slot {
    pub(super) const fn new(level: u8) -> Self {
        Slot { bound: Tick::MAX, head: NONE, only: NONE, witness: NONE, level }
    }

    #[inline]
    pub(super) fn level(&self) -> u8 {
        self.level
    }

    #[inline]
    pub(super) fn content(&self) -> Content {
        match self.head {
            NONE => Content::Nothing,
            ALONE => Content::One(self.only),
            head => Content::Ring(head),
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head == NONE
    }

    /// The chunk that is being filled, or a number that no chunk has.
    #[inline(always)]
    pub(super) fn head(&self) -> u32 {
        self.head
    }

    #[inline]
    pub(super) fn head_mut(&mut self) -> &mut u32 {
        &mut self.head
    }

    /// Holds one timer, and no chunk.
    #[inline]
    pub(super) fn hold_one(&mut self, node: u32) {
        (self.head, self.only) = (ALONE, node);
    }

    #[inline]
    pub(super) fn hold_nothing(&mut self) {
        self.head = NONE;
    }

    #[inline]
    pub(super) fn bound(&self) -> Tick {
        self.bound
    }

    /// The timer that the bound was taken from, or `NONE`.
    #[inline]
    pub(super) fn witness(&self) -> u32 {
        self.witness
    }

    #[inline]
    pub(super) fn set_bound(&mut self, due: Tick, witness: u32) {
        (self.bound, self.witness) = (due, witness);
    }

    /// The bound may be too low from now on.
    pub(super) fn forget_witness(&mut self) {
        self.witness = NONE;
    }

    #[inline]
    pub(super) fn forget_bound(&mut self) {
        self.set_bound(Tick::MAX, NONE);
    }

    /// Takes note of a timer. True if it is due earlier than any other here.
    #[inline(always)]
    pub(super) fn lower(&mut self, due: Tick, node: u32) -> bool {
        let lower = due < self.bound;
        if lower {
            self.set_bound(due, node);
        }
        lower
    }
}
