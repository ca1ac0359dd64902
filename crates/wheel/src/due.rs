//! The exact next due tick.
//!
//! Every slot keeps a lower bound of what is due in it and the timer that set it, its witness: while that
//! timer is there and due then, the bound is exact and nothing has to be looked through. When the witness was
//! cancelled or moved, the slot is looked through once, and if it is large, its least timers are kept in a
//! small heap, the [`Front`], so that cancelling the earliest again and again does not look through it again
//! and again.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::nodes::NONE;
use crate::rules::Rules;
use crate::shared::Core;
use crate::tick::Tick;
use crate::{Key, Kind, Time, Wheel};

/// When there is something to do: the three ways to drive a wheel.
///
/// *Tick by tick*: advance at every tick. *Slot by slot*: advance at [`next_slot`](Wheel::next_slot). *By due
/// time*: advance at [`next_due`](Wheel::next_due). All three fire the same timers at the same ticks; the last
/// wakes up only to fire.
impl<T, K: Kind> Wheel<T, K> {
    /// The moment of the tick at which the next timer fires, exactly; the current tick's if one is due already,
    /// `None` if there is none that any clock will reach.
    ///
    /// It takes a look at one slot a level (on a hashed wheel, at the occupied slots until one in which something
    /// is due in this turn), as long as the earliest timer of each was not cancelled or moved. If it was, its slot
    /// is looked through: as many steps as the slot holds timers. One large slot is looked through once for
    /// thousands of such cancels; two that take turns are looked through each time.
    ///
    /// ```
    /// use tourbillon_wheel::{HierarchicalWheel, Time};
    ///
    /// let mut wheel = HierarchicalWheel::new(Time::ZERO);
    /// let first = wheel.insert(Time::from(70_000), ()).unwrap();
    /// wheel.insert(Time::from(70_001), ()).unwrap();
    /// assert_eq!(wheel.next_due(), Some(Time::from(70_000)));
    /// wheel.cancel(first);
    /// assert_eq!(wheel.next_due(), Some(Time::from(70_001)));
    /// assert!(wheel.next_due_bound() <= wheel.next_due());
    /// assert!(wheel.next_slot() <= wheel.next_due());
    /// ```
    pub fn next_due(&mut self) -> Option<Time> {
        let tick = self.core.next_due(&self.rules)?;
        self.core.scale.time(tick)
    }

    /// The timer that fires next, or one of those that fire next together. As many steps as
    /// [`next_due`](Wheel::next_due), and one for each that was cancelled or moved while it waited to be popped.
    ///
    /// ```
    /// use tourbillon_wheel::{HierarchicalWheel, Time};
    ///
    /// let mut wheel = HierarchicalWheel::new(Time::ZERO);
    /// let later = wheel.insert(Time::from(70_001), "later").unwrap();
    /// let sooner = wheel.insert(Time::from(70_000), "sooner").unwrap();
    /// assert_eq!(wheel.first(), Some(sooner));
    /// wheel.cancel(sooner);
    /// assert_eq!(wheel.first(), Some(later));
    /// ```
    pub fn first(&mut self) -> Option<Key> {
        let Wheel { core, rules } = self;
        let node = core.first_ready().or_else(|| core.first_upcoming(rules))?;
        Some(core.nodes.key(node))
    }

    /// [`next_due`](Wheel::next_due) of the timers that no [`advance`](Wheel::advance) has made ready yet: for a
    /// driver that leaves the ready ones to others.
    ///
    /// ```
    /// use tourbillon_wheel::{HierarchicalWheel, Progress, Time};
    ///
    /// let mut wheel = HierarchicalWheel::new(Time::ZERO);
    /// wheel.insert(Time::from(10), ()).unwrap();
    /// wheel.insert(Time::from(90), ()).unwrap();
    /// assert_eq!(wheel.advance(Time::from(20), usize::MAX), Progress::Done);
    /// assert_eq!(wheel.next_due(), Some(Time::from(20)), "one is due already");
    /// assert_eq!(wheel.upcoming(), Some(Time::from(90)));
    /// ```
    pub fn upcoming(&mut self) -> Option<Time> {
        let tick = self.core.upcoming(&self.rules)?;
        self.core.scale.time(tick)
    }

    /// A moment that is not after [`next_due`](Wheel::next_due), in O(1). `None` if nothing is pending.
    #[inline]
    pub fn next_due_bound(&self) -> Option<Time> {
        if self.is_empty() {
            return None;
        }
        let bound = if self.ready() > 0 { 0 } else { self.core.stop.max(self.core.earliest) };
        Some(self.core.scale.time_or_max(bound.max(self.core.hand)))
    }

    /// The moment at which the hand next meets an occupied slot, on any level, or the current tick's if
    /// something is due already. On a hashed wheel that may be a turn in which nothing there is due.
    pub fn next_slot(&self) -> Option<Time> {
        if self.is_empty() {
            return None;
        }
        let tick = if self.ready() > 0 { self.core.hand } else { self.rules.next_slot(&self.core) };
        self.core.scale.time(tick)
    }
}

/// How many of the least timers of one slot are kept.
const KEPT: usize = 4096;

/// The least timers of one slot: every timer of it that is due before `bound` is here, with its due tick or
/// an earlier one. What is no longer true is found out when it is met.
pub(crate) struct Front {
    slot: u32,
    bound: Tick,
    least: BinaryHeap<Reverse<(Tick, u32)>>,
}

impl Front {
    pub(crate) const fn new() -> Self {
        Front { slot: NONE, bound: 0, least: BinaryHeap::new() }
    }

    /// The slot that it is the front of, or `NONE`.
    #[inline]
    pub(crate) fn slot(&self) -> u32 {
        self.slot
    }

    /// A timer of a slot is due earlier than the front may know.
    #[inline]
    pub(crate) fn note(&mut self, slot: u32, due: Tick, node: u32) {
        if slot == self.slot {
            self.keep(due, node);
        }
    }

    #[cold]
    fn keep(&mut self, due: Tick, node: u32) {
        if due >= self.bound {
            return;
        }
        // A front that has no room is a front that is not worth keeping.
        if self.least.len() >= 2 * KEPT || self.least.try_reserve(1).is_err() {
            self.drop_all();
        } else {
            self.least.push(Reverse((due, node)));
        }
    }

    #[inline]
    pub(crate) fn forget(&mut self, slot: u32) {
        if slot == self.slot {
            self.drop_all();
        }
    }

    #[cold]
    fn drop_all(&mut self) {
        *self = Front::new();
    }

    pub(crate) fn memory(&self) -> usize {
        self.least.capacity() * size_of::<(Tick, u32)>()
    }
}

impl<T> Core<T> {
    /// The tick at which the next timer fires, not before the hand.
    pub(crate) fn next_due(&mut self, rules: &impl Rules) -> Option<Tick> {
        if self.ready.len() > 0 { Some(self.hand) } else { self.upcoming(rules) }
    }

    /// The same, for those that are not ready yet.
    pub(crate) fn upcoming(&mut self, rules: &impl Rules) -> Option<Tick> {
        if self.nodes.pending() == self.ready.len() {
            return None;
        }
        let mut best = Tick::MAX;
        for level in 0..rules.levels() {
            if rules.first(level, self.hand) >= best {
                continue;
            }
            for (number, begin) in rules.met(level, self.hand) {
                if begin >= best {
                    break;
                }
                best = best.min(self.exact(number, best));
            }
        }
        let best = best.max(self.hand);
        // Not above the bound of any slot; and that of a slot that is being scanned may be too low for that.
        if self.scan.slot == NONE {
            self.earliest = best;
        }
        Some(best)
    }

    pub(crate) fn first_ready(&self) -> Option<u32> {
        self.ready.iter(&self.nodes).next()
    }

    /// The timer that is ready next, or one of several.
    pub(crate) fn first_upcoming(&mut self, rules: &impl Rules) -> Option<u32> {
        let next = self.upcoming(rules)?;
        let is_next = |core: &Self, node: u32| core.nodes.node(node).due() <= next;
        for level in 0..rules.levels() {
            for (number, begin) in rules.met(level, self.hand) {
                if begin > next {
                    break;
                }
                let slot = &self.slots[number as usize];
                let found = match self.witnessed(number) {
                    Some(min) => (min <= next).then_some(slot.witness),
                    None if slot.min > next && number != self.scan.slot => None,
                    // The look for the next leaves no witness in a slot that is being scanned.
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
    pub(crate) fn witnessed(&self, number: u32) -> Option<Tick> {
        let slot = &self.slots[number as usize];
        if slot.witness == NONE || number == self.scan.slot {
            return None;
        }
        let true_still = self.slot_of(slot.witness) == number;
        let exact = planted!(
            "wheel.bound-believed-too-long",
            true_still || slot.ring.head != NONE,
            true_still && self.nodes.node(slot.witness).due() == slot.min
        );
        exact.then_some(slot.min)
    }

    /// The least due tick of an occupied slot, or anything that is not below `best` if that is not.
    fn exact(&mut self, number: u32, best: Tick) -> Tick {
        if let Some(min) = self.witnessed(number) {
            return min;
        }
        // While a slot is being scanned, its bound says nothing of what was not scanned yet.
        let min = self.slots[number as usize].min;
        if min >= best && number != self.scan.slot {
            return min;
        }
        self.front_of(number).unwrap_or_else(|| self.look_through(number))
    }

    /// What the front knows, if it is the front of this slot.
    fn front_of(&mut self, number: u32) -> Option<Tick> {
        if self.front.slot != number {
            return None;
        }
        while let Some(&Reverse((due, node))) = self.front.least.peek() {
            let (here, now) = (self.slot_of(node) == number, self.nodes.node(node).due());
            if here && now == due {
                // While it is being scanned its bound is of what was scanned, or it would be scanned once more.
                if number != self.scan.slot {
                    let slot = &mut self.slots[number as usize];
                    (slot.min, slot.witness) = (due, node);
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

    /// Reads every timer of a slot, renews its bound, and makes it the front if it is large.
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
        // As for the front.
        if number != self.scan.slot {
            let slot = &mut self.slots[number as usize];
            (slot.min, slot.witness) = (least, witness);
        }
        if roomy {
            self.front = Front { slot: number, bound: below, least: BinaryHeap::from(kept) };
        }
        least
    }
}

/// Keeps the lesser half, and says below which tick everything is in it.
fn halve(kept: &mut Vec<Reverse<(Tick, u32)>>) -> Tick {
    let (_, &mut Reverse((below, _)), _) =
        kept.select_nth_unstable_by_key(KEPT, |&Reverse(timer)| timer);
    kept.truncate(KEPT);
    below
}
