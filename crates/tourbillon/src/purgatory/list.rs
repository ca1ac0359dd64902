//! Those that wait under one key, in the order in which they came.
//!
//! ```text
//!   position  0    1    2    3    4    5
//!   serial    3    7    8   12   15   20
//!            ─────────────────────────────
//!             ·    a    ·    ·    b    c      · has left
//!                  └ head: nobody waits before
//! ```
//!
//! When more have left than wait, those that wait close ranks; that costs a few steps for each that has left, and a
//! list never holds much more memory than who waits in it. Nobody is told its new position: serials rise, so whoever is
//! no longer where it was is found by halving. And a walk can stop anywhere, let go of the lock, and go on behind the
//! last that it saw.
//!
//! Many keys have one operation each: a list of one takes no memory of its own.

use std::sync::Arc;

use super::node::Entry;

/// So many gaps are not worth closing.
const GAPS: usize = 16;

/// So many are copied at a time.
pub(super) const BATCH: usize = 16;

/// Some that wait under a key.
pub(super) type Batch<O> = [Option<Arc<dyn Entry<O>>>; BATCH];

pub(super) enum List<O> {
    One(Slot<O>),
    Many(Many<O>),
}

pub(super) struct Many<O> {
    slots: Vec<Slot<O>>,
    /// How many wait.
    waiting: u32,
    head: u32,
}

pub(super) struct Slot<O> {
    serial: u64,
    entry: Option<Arc<dyn Entry<O>>>,
}

impl<O> List<O> {
    pub(super) fn new() -> Self {
        List::Many(Many { slots: Vec::new(), waiting: 0, head: 0 })
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, List::Many(Many { waiting: 0, .. }))
    }

    /// Adds one, whose serial is higher than all before. Returns its position.
    #[inline]
    pub(super) fn push(&mut self, serial: u64, entry: Arc<dyn Entry<O>>) -> u32 {
        let slot = Slot { serial, entry: Some(entry) };
        if self.is_empty() {
            *self = List::One(slot);
            return 0;
        }
        self.many().push(slot)
    }

    /// Takes out the one with that serial, which was at that position once.
    #[inline]
    pub(super) fn remove(&mut self, serial: u64, position: u32) -> Option<Arc<dyn Entry<O>>> {
        let slot = match self {
            List::Many(many) => return many.remove(serial, position),
            List::One(slot) => slot,
        };
        let entry = if slot.serial == serial { slot.entry.take() } else { None };
        if entry.is_some() {
            *self = List::new();
        }
        entry
    }

    /// Copies the next with a serial after `after` and not after `until`. Returns the last serial, and how many.
    #[inline]
    pub(super) fn copy(&self, after: u64, until: u64, to: &mut Batch<O>) -> (u64, usize) {
        let rest = match self {
            List::One(slot) => std::slice::from_ref(slot),
            List::Many(many) => many.behind(after),
        };
        let (mut last, mut count) = (after, 0);
        let met = rest.iter().filter(|slot| slot.entry.is_some() && slot.serial > after);
        for (slot, place) in met.take_while(|slot| slot.serial <= until).zip(to) {
            place.clone_from(&slot.entry);
            (last, count) = (slot.serial, count + 1);
        }
        (last, count)
    }

    pub(super) fn into_entries(self) -> impl Iterator<Item = Arc<dyn Entry<O>>> {
        let (one, many) = match self {
            List::One(slot) => (Some(slot), Vec::new()),
            List::Many(many) => (None, many.slots),
        };
        one.into_iter().chain(many).filter_map(|slot| slot.entry)
    }

    fn many(&mut self) -> &mut Many<O> {
        if let List::One(_) = self {
            let List::One(slot) = std::mem::replace(self, List::new()) else { unreachable!() };
            if let List::Many(many) = self {
                many.push(slot);
            }
        }
        match self {
            List::Many(many) => many,
            List::One(_) => unreachable!("it was made to be many"),
        }
    }
}

impl<O> Many<O> {
    #[inline]
    fn push(&mut self, slot: Slot<O>) -> u32 {
        debug_assert!(self.slots.last().is_none_or(|last| last.serial < slot.serial));
        self.slots.push(slot);
        self.waiting += 1;
        (self.slots.len() - 1) as u32
    }

    #[inline]
    fn remove(&mut self, serial: u64, position: u32) -> Option<Arc<dyn Entry<O>>> {
        let place = match self.slots.get(position as usize) {
            Some(slot) if slot.serial == serial => position as usize,
            _ => self.slots.binary_search_by_key(&serial, |slot| slot.serial).ok()?,
        };
        let entry = self.slots[place].entry.take()?;
        self.waiting -= 1;
        let (len, waiting) = (self.slots.len(), self.waiting as usize);
        if len - waiting > waiting + GAPS {
            self.close_ranks();
        } else {
            let gap = |slot: &Slot<O>| slot.entry.is_none();
            while self.slots.get(self.head as usize).is_some_and(gap) {
                self.head += 1;
            }
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

    /// Those with a serial after that one.
    #[inline]
    fn behind(&self, after: u64) -> &[Slot<O>] {
        let begin = match self.slots.get(self.head as usize) {
            Some(slot) if slot.serial > after => self.head as usize,
            _ => self.slots.partition_point(|slot| slot.serial <= after),
        };
        &self.slots[begin..]
    }
}
