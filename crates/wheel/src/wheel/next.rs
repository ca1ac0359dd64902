//! When the wheel next needs to be advanced.

use crate::{Key, Kind, Time, Wheel};

/// Three ways to drive a wheel.
///
/// *Tick by tick*: advance at every tick. *Slot by slot*: advance at [`next_slot`](Wheel::next_slot). *By due
/// time*: advance at [`next_due`](Wheel::next_due). All three fire the same timers at the same ticks; the last one
/// wakes up only to fire.
impl<T, K: Kind> Wheel<T, K> {
    /// The exact moment of the tick at which the next timer fires.
    ///
    /// This is the moment of the current tick if a timer is already due, and `None` if no timer has a deadline that a
    /// clock can reach.
    ///
    /// Cost: it reads one slot per level, or, on a hashed wheel, the occupied slots up to the first in which something
    /// is due in this turn. If the earliest timer of a slot that it reads was cancelled or moved, it searches the slot,
    /// in O(n) of the slot's timers. A large slot is searched once for thousands of such cancels, but two large slots
    /// in alternation are searched each time.
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
        let tick = self.timers.next_due(&self.kind)?;
        self.scale.time(tick)
    }

    /// The timer that fires next, or one of several.
    ///
    /// Costs as much as [`next_due`](Wheel::next_due), plus one step for each ready timer that was cancelled or moved.
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
        let index = self.timers.first(&self.kind)?;
        Some(self.timers.nodes().key(index))
    }

    /// As [`next_due`](Wheel::next_due), but only for timers that are not ready yet.
    ///
    /// For a driver that leaves ready timers to other threads.
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
        let tick = self.timers.upcoming(&self.kind)?;
        self.scale.time(tick)
    }

    /// A lower bound of [`next_due`](Wheel::next_due), in O(1). `None` if nothing is pending.
    #[inline]
    pub fn next_due_bound(&self) -> Option<Time> {
        if self.is_empty() {
            return None;
        }
        Some(self.scale.time_or_max(self.timers.next_due_bound()))
    }

    /// The moment at which the hand next meets an occupied slot on any level.
    ///
    /// This is the moment of the current tick if a timer is already due. On a hashed wheel, the timers of that slot may
    /// all be due in later turns.
    pub fn next_slot(&self) -> Option<Time> {
        if self.is_empty() {
            return None;
        }
        let Wheel { timers, kind, .. } = self;
        let tick = if self.ready() > 0 { timers.hand() } else { kind.next_slot(timers) };
        self.scale.time(tick)
    }
}
