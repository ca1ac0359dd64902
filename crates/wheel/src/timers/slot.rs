//! A slot: nothing, one timer, or a ring of chunks; and a lower bound of its due ticks.
//!
//! When timers are sparse, most occupied slots hold one timer. It needs no chunk: the slot stores the index of the
//! timer's node, and the node's position identifies the slot. So starting, cancelling, cascading and firing the timer
//! touch only the slot and the node. A second timer opens a ring for both. A ring that shrinks to one timer stays a
//! ring until it is empty: a slot that has had two timers is likely to have two again.
//!
//! The bound is never above the due tick of a timer in the slot. It is exact while its witness, the timer that set it,
//! is still in the slot and due at that tick.

use crate::position::NONE;
use crate::tick::Tick;

/// The contents of a slot, without the ring that is being scanned.
pub(crate) enum Content {
    Nothing,
    /// The index of its only timer.
    One(u32),
    /// The head of its ring.
    Ring(u32),
}

/// The value of `head` in a slot that holds one timer and no chunk. No chunk has this number, so the attempt to add to
/// the head chunk fails as it does in an empty slot, and needs no extra test.
const ALONE: u32 = NONE - 1;

/// A slot. Stores its [`Content`] in separate fields: with the enum it would be a third larger.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    /// `Tick::MAX` if the slot is empty.
    bound: Tick,
    /// The chunk that is filled next, `ALONE`, or `NONE` if the slot is empty.
    head: u32,
    /// The index of the only timer, if the head is `ALONE`.
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

    /// The chunk that is filled next, or an invalid index (`ALONE` or `NONE`).
    #[inline(always)]
    pub(super) fn head(&self) -> u32 {
        self.head
    }

    #[inline]
    pub(super) fn head_mut(&mut self) -> &mut u32 {
        &mut self.head
    }

    /// Stores the index of the only timer.
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

    /// The timer that set the bound, or `NONE`.
    #[inline]
    pub(super) fn witness(&self) -> u32 {
        self.witness
    }

    #[inline]
    pub(super) fn set_bound(&mut self, due: Tick, witness: u32) {
        (self.bound, self.witness) = (due, witness);
    }

    /// Keeps the bound, but marks it as possibly not exact.
    pub(super) fn forget_witness(&mut self) {
        self.witness = NONE;
    }

    #[inline]
    pub(super) fn forget_bound(&mut self) {
        self.set_bound(Tick::MAX, NONE);
    }

    /// Lowers the bound to `due` if `due` is less. Returns whether it was.
    #[inline(always)]
    pub(super) fn lower(&mut self, due: Tick, node: u32) -> bool {
        let lower = due < self.bound;
        if lower {
            self.set_bound(due, node);
        }
        lower
    }
}
