//! Scanning a slot that holds the timers of many turns. Only a hashed wheel does.
//!
//! The ring of the slot is taken off when its scan begins. A batch at a time, what is due becomes ready, what was
//! moved to another slot goes there, and the rest goes into a new ring of the slot; so does what is filed there
//! meanwhile. The bound of the slot is then of its new ring alone. A scan that a budget cuts goes on in the next call.

use super::{Content, Slot, Timers};
use crate::budget::{Budget, Cut};
use crate::geometry::Geometry;
use crate::position::NONE;

/// The slot that is being scanned, and the ring of what is left of it.
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

    /// A chunk was freed, and another comes after it, or `NONE`.
    #[inline]
    pub(super) fn release(&mut self, chunk: u32, next: u32) {
        if self.head == chunk {
            self.head = next;
            if next == NONE {
                *self = Scan::NONE;
            }
        }
    }

    /// The rings were made anew.
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

    /// Whether this one is.
    pub(crate) fn is_scanned(&self, number: u32) -> bool {
        self.scan.is_of(number)
    }

    /// Scans a slot in which something is due, or a part of it, as far as the budget goes. False if nothing is left.
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
                    self.settle_one(geometry, number, node, budget)?;
                    return Ok(true);
                }
                Content::Ring(head) => {
                    budget.room(self.ready.len())?;
                    self.scan = Scan { slot: number, head };
                    self.slots[number as usize] = Slot::new(self.level(number));
                }
            }
        }
        // What has come while the slot is being scanned waits until that is done.
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
