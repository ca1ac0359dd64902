//! Scans a slot that holds timers of many turns. Only a hashed wheel does this.
//!
//! The scan detaches the ring of the slot. Batch by batch, due timers become ready, timers that were moved to another
//! slot are reinserted there, and the rest goes into a new ring of the slot, together with timers that are inserted
//! during the scan. From then on, the lower bound of the slot's due ticks covers only the new ring. If the budget ends
//! a scan, the next call continues it.

use super::{Content, Slot, Timers};
use crate::budget::{Budget, Cut};
use crate::geometry::Geometry;
use crate::position::NONE;

/// The slot that is being scanned, and the head of the ring that is left to scan.
#[derive(Clone, Copy)]
pub(super) struct Scan {
    slot: u32,
    head: u32,
}

impl Scan {
    pub(super) const NONE: Scan = Scan { slot: NONE, head: NONE };

    /// Whether this slot is being scanned.
    #[inline]
    pub(super) fn is_of(&self, number: u32) -> bool {
        self.slot == number
    }

    #[inline]
    pub(super) fn head(&self) -> u32 {
        self.head
    }

    /// Updates the head after a chunk was released; `next` is the chunk after it in its ring, or `NONE`.
    #[inline]
    pub(super) fn release(&mut self, chunk: u32, next: u32) {
        if self.head == chunk {
            self.head = next;
            if next == NONE {
                *self = Scan::NONE;
            }
        }
    }

    /// Replaces the ring, if this slot is being scanned.
    pub(super) fn renew(&mut self, number: u32, head: u32) {
        if self.slot == number {
            self.head = head;
        }
    }
}

impl<T> Timers<T> {
    /// Whether a slot is being scanned.
    #[inline]
    pub(crate) fn is_scanning(&self) -> bool {
        self.scan.slot != NONE
    }

    /// Whether this slot is being scanned.
    pub(crate) fn is_scanned(&self, number: u32) -> bool {
        self.scan.is_of(number)
    }

    /// Scans one batch of a slot in which something is due. Returns false if nothing is left.
    pub(crate) fn scan(
        &mut self,
        geometry: &mut impl Geometry,
        number: u32,
        budget: &mut Budget,
    ) -> Result<bool, Cut> {
        if !self.is_scanning() {
            match self.content(number) {
                Content::Nothing => return Ok(false),
                Content::One(node) => {
                    budget.room(self.ready.len())?;
                    self.settle_only(geometry, number, node, budget)?;
                    return Ok(true);
                }
                Content::Ring(head) => {
                    budget.room(self.ready.len())?;
                    self.scan = Scan { slot: number, head };
                    self.slots[number as usize] = Slot::new(self.level(number));
                }
            }
        }
        // Timers that are inserted during the scan wait until it is done.
        let room = budget.room(self.ready.len())?;
        self.look(number, self.scan.head, room);
        self.ready.reserve(self.batch.len(), &mut self.nodes)?;
        self.chunks.reserve(self.batch.len())?;
        self.take(geometry);
        for nth in 0..self.batch.len() {
            let (node, due) = self.batch.get(nth);
            if due <= self.hand {
                self.make_ready(node, due);
            } else {
                self.refile(geometry, node, due);
                budget.spend(1);
                planted!("wheel.hashed-stops-at-first", break, ());
            }
        }
        Ok(true)
    }
}
