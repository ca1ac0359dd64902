//! Those that wait under one key, in the order in which they came.
//!
//! ```text
//!   serial    3    7    8   12   15   20
//!            ─────────────────────────────
//!             ·    a    ·    ·    b    c      · has left
//!                  └ head: nobody waits before
//! ```
//!
//! Serials rise, so a place is found by its serial: at the head, where a check takes them out, at once, and elsewhere
//! by halving. When more have left than wait, those that wait close ranks; that costs a few steps for each that has
//! left. Nobody needs to be told, because a serial is no position; and a walk can stop anywhere, let go of the lock,
//! and go on behind the last that it saw.

use std::sync::Arc;

use super::node::Entry;

/// So many gaps are not worth closing.
const GAPS: usize = 16;

pub(super) struct List<O> {
    slots: Vec<Slot<O>>,
    /// How many wait.
    waiting: usize,
    head: usize,
}

struct Slot<O> {
    serial: u64,
    entry: Option<Arc<dyn Entry<O>>>,
}

impl<O> List<O> {
    pub(super) fn new() -> Self {
        List { slots: Vec::new(), waiting: 0, head: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// The serial is higher than all before.
    #[inline]
    pub(super) fn push(&mut self, serial: u64, entry: Arc<dyn Entry<O>>) {
        debug_assert!(self.slots.last().is_none_or(|last| last.serial < serial));
        self.slots.push(Slot { serial, entry: Some(entry) });
        self.waiting += 1;
    }

    #[inline]
    pub(super) fn remove(&mut self, serial: u64) -> Option<Arc<dyn Entry<O>>> {
        let place = match self.slots.get(self.head) {
            Some(slot) if slot.serial == serial => self.head,
            _ => self.slots.binary_search_by_key(&serial, |slot| slot.serial).ok()?,
        };
        let entry = self.slots[place].entry.take()?;
        self.waiting -= 1;
        while self.slots.get(self.head).is_some_and(|slot| slot.entry.is_none()) {
            self.head += 1;
        }
        if self.slots.len() - self.waiting > self.waiting + GAPS {
            self.close_ranks();
        }
        Some(entry)
    }

    #[cold]
    fn close_ranks(&mut self) {
        self.slots.retain(|slot| slot.entry.is_some());
        self.head = 0;
        if self.slots.capacity() / 4 > self.slots.len() {
            self.slots.shrink_to(self.slots.len() * 2);
        }
    }

    /// Copies the next `most` with a serial after `after` and not after `until`. Returns the last serial.
    pub(super) fn copy(
        &self,
        after: u64,
        until: u64,
        most: usize,
        to: &mut Vec<Arc<dyn Entry<O>>>,
    ) -> u64 {
        let mut last = after;
        let begin = match self.slots.get(self.head) {
            Some(slot) if slot.serial > after => self.head,
            _ => self.slots.partition_point(|slot| slot.serial <= after),
        };
        let rest = self.slots[begin..].iter().take_while(|slot| slot.serial <= until);
        let waiting = rest.filter_map(|slot| slot.entry.as_ref().map(|entry| (slot.serial, entry)));
        to.reserve(self.waiting.min(most));
        for (serial, entry) in waiting.take(most) {
            to.push(entry.clone());
            last = serial;
        }
        last
    }

    pub(super) fn into_entries(self) -> impl Iterator<Item = Arc<dyn Entry<O>>> {
        self.slots.into_iter().filter_map(|slot| slot.entry)
    }
}
