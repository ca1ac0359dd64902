//! The entries under one key, in order of arrival.
//!
//! ```text
//!   position  5    6    7    8    9
//!   serial    7    8   12   15   20
//!            ────────────────────────
//!             a    ·    ·    b    c      · removed; the five before `a` were removed too, and take no space
//! ```
//!
//! Removal at the front leaves no gap: a short list stays small, however many entries come and go. When gaps outnumber
//! the entries, the list is compacted: the cost is a few steps for each removed entry, and a list never holds much more
//! memory than its entries need. Compaction does not update the positions that entries remember: serials increase along
//! the list, so an entry that has moved is found by binary search. A walk can stop anywhere, release the lock, and
//! continue after the last serial that it saw.
//!
//! A list of one entry allocates nothing: often there are many keys with one operation each.

use std::collections::{VecDeque, vec_deque};
use std::sync::Arc;

use super::node::Waiter;

/// The number of gaps that are tolerated before the list is compacted.
const GAPS: usize = 16;

/// A capacity up to this is never released.
const ROOM: usize = 32;

pub(super) enum List<O> {
    One(ListSlot<O>),
    Many(Many<O>),
}

pub(super) struct Many<O> {
    /// The first slot always holds an entry.
    slots: VecDeque<ListSlot<O>>,
    /// The number of entries.
    waiting: u32,
    /// The position of the first slot.
    front: u32,
}

pub(super) struct ListSlot<O> {
    serial: u64,
    entry: Option<Arc<dyn Waiter<O>>>,
}

impl<O> List<O> {
    pub(super) fn one(serial: u64, entry: Arc<dyn Waiter<O>>) -> Self {
        List::One(ListSlot { serial, entry: Some(entry) })
    }

    fn none() -> Self {
        List::Many(Many { slots: VecDeque::new(), waiting: 0, front: 0 })
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, List::Many(Many { waiting: 0, .. }))
    }

    /// Adds an entry with the highest serial so far; returns its position.
    #[inline]
    pub(super) fn push(&mut self, serial: u64, entry: Arc<dyn Waiter<O>>) -> u32 {
        self.many().push(ListSlot { serial, entry: Some(entry) })
    }

    /// Removes the entry with this serial, which was inserted at `position`.
    #[inline]
    pub(super) fn remove(&mut self, serial: u64, position: u32) -> Option<Arc<dyn Waiter<O>>> {
        let slot = match self {
            List::Many(many) => return many.remove(serial, position),
            List::One(slot) => slot,
        };
        let own = planted!("blind.colliding-key-loses-its-waiter", true, slot.serial == serial);
        let entry = if own { slot.entry.take() } else { None };
        if entry.is_some() {
            *self = List::none();
        }
        entry
    }

    /// Copies the next entries with serials above `after`, up to `until`. Returns the last serial copied, and whether
    /// the walk is complete.
    #[inline]
    pub(super) fn copy(
        &self,
        after: u64,
        until: u64,
        to: &mut [Option<Arc<dyn Waiter<O>>>],
    ) -> (u64, bool) {
        let (one, many) = match self {
            List::One(slot) => (Some(slot), None),
            List::Many(many) => (None, Some(many.behind(after))),
        };
        let rest = one.into_iter().chain(many.into_iter().flatten());
        let met = rest.filter(|slot| slot.entry.is_some() && slot.serial > after);
        let mut met = met.take_while(|slot| slot.serial <= until);
        let mut last = after;
        for place in to {
            let Some(slot) = met.next() else { return (last, true) };
            place.clone_from(&slot.entry);
            last = slot.serial;
        }
        (last, met.next().is_none())
    }

    pub(super) fn into_entries(self) -> impl Iterator<Item = Arc<dyn Waiter<O>>> {
        let (one, many) = match self {
            List::One(slot) => (Some(slot), VecDeque::new()),
            List::Many(many) => (None, many.slots),
        };
        one.into_iter().chain(many).filter_map(|slot| slot.entry)
    }

    fn many(&mut self) -> &mut Many<O> {
        if let List::One(_) = self {
            let List::One(slot) = std::mem::replace(self, List::none()) else { unreachable!() };
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
    fn push(&mut self, slot: ListSlot<O>) -> u32 {
        debug_assert!(self.slots.back().is_none_or(|last| last.serial < slot.serial));
        self.slots.push_back(slot);
        self.waiting += 1;
        self.front.wrapping_add((self.slots.len() - 1) as u32)
    }

    #[inline]
    fn remove(&mut self, serial: u64, position: u32) -> Option<Arc<dyn Waiter<O>>> {
        let place = position.wrapping_sub(self.front) as usize;
        let place = match self.slots.get(place) {
            Some(slot)
                if planted!("purgatory.old-position-trusted", true, slot.serial == serial) =>
            {
                place
            }
            _ => self.slots.binary_search_by_key(&serial, |slot| slot.serial).ok()?,
        };
        let entry = self.slots[place].entry.take()?;
        self.waiting -= 1;
        while self.slots.front().is_some_and(|slot| slot.entry.is_none()) {
            self.slots.pop_front();
            self.front = self.front.wrapping_add(1);
        }
        let is_sparse = self.slots.len() > 2 * self.waiting as usize + GAPS;
        if planted!("purgatory.gaps-never-closed", false, is_sparse) {
            self.slots.retain(|slot| slot.entry.is_some());
        }
        let (room, len) = (self.slots.capacity(), self.slots.len());
        if planted!("third.list-keeps-the-room-of-its-peak", false, room > ROOM && room / 4 > len) {
            self.slots.shrink_to(self.slots.len() * 2);
        }
        Some(entry)
    }

    /// The slots with a serial above `after`.
    #[inline]
    fn behind(&self, after: u64) -> vec_deque::Iter<'_, ListSlot<O>> {
        let begin = match self.slots.front() {
            Some(slot) if slot.serial <= after => {
                self.slots.partition_point(|slot| slot.serial <= after)
            }
            _ => 0,
        };
        self.slots.range(begin..)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::super::request::Why;
    use super::super::returned::Returned;
    use super::*;

    struct Waits;

    impl Waiter<()> for Waits {
        fn check(&self) -> bool {
            false
        }

        fn take(&self, _why: Why, _basket: Option<&Arc<Returned<()>>>) -> Option<()> {
            None
        }
    }

    /// The first entry stays; the others are removed in strides that visit each of them once. The memory stays
    /// proportional to the entries, and every entry is found.
    #[test]
    fn a_list_holds_no_more_than_who_waits() {
        const MANY: u64 = 1000;
        for stride in [1, 5, 333, 999] {
            let mut list = List::one(0, Arc::new(Waits));
            let positions: Vec<u32> = (1..=MANY).map(|n| list.push(n, Arc::new(Waits))).collect();
            for n in 1..=MANY {
                let serial = n * stride % (MANY + 1);
                let position = positions[serial as usize - 1];
                assert!(list.remove(serial, position).is_some(), "{serial} waits");
                assert!(list.remove(serial, position).is_none(), "{serial} has left");
                let List::Many(many) = &list else { unreachable!("many have come") };
                let waiting = (MANY + 1 - n) as usize;
                assert_eq!(many.waiting as usize, waiting);
                assert!(many.slots.len() <= 2 * waiting + GAPS, "{} slots", many.slots.len());
                assert!(many.slots.capacity() <= ROOM.max(4 * many.slots.len() + 3));
            }
            assert!(list.remove(0, 0).is_some() && list.is_empty());
        }
    }
}
