//! A wheel that yields its values in exact order of deadlines; equal deadlines in order of insertion.
//!
//! A plain wheel sorts only by tick and yields the values of one tick in no useful order. This wheel gathers the values
//! of the earliest tick in a heap, the *front*, and takes them from there:
//!
//! ```text
//!            past ticks, or the next one      │ later ticks
//!   front  ◄──────────────────────────────────┤ slots of the wheel
//!   (a heap of names by deadline)           hand
//! ```
//!
//! A value stays in the wheel until it is taken: the front holds only its *name* (deadline, serial number and key), so
//! a value in the front can be rescheduled and removed in O(1) like any other. A name is stale once its value was taken
//! or rescheduled: it is skipped, and stale names are removed when they outnumber the others.
//!
//! **Invariant**: either the front is empty, and the order is unknown; or the front holds the name of every value up to
//! the hand, and all other values lie after the hand. So if the first name's deadline is not after the hand, its value
//! is the earliest. If the deadline is after the hand (the value was already due when it was inserted, and its tick is
//! not over), the hand first moves to the end of that tick. The hand may be ahead of the clock, so each deadline is
//! compared with the clock before its value is taken.
//!
//! A tick with a single value, the most frequent case, does not use the front.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tourbillon_wheel::{Full, Key, Progress, RescheduleError, Time};

use crate::clock::BEGIN;
use crate::engine::shard::Taken;
use crate::engine::wheels::{AnyWheel, Geometry};

/// The number of stale names that the front may hold before they are removed.
const STALE: usize = 64;

pub(crate) struct OrderedWheel<T> {
    wheel: AnyWheel<Stamped<T>>,
    front: BinaryHeap<Reverse<Name>>,
    /// The number of stale names in the front.
    stale: usize,
    /// The end of the tick that is being gathered, if its values are not all gathered yet.
    gathering: Option<Time>,
    /// The serial of the next value that is inserted or rescheduled.
    serial: u64,
    /// The tick in nanoseconds.
    tick: u64,
}

struct Stamped<T> {
    value: T,
    deadline: Time,
    serial: u64,
    /// Its own key, set right after the insertion.
    key: Option<Key>,
}

/// A value's place in the order. No two have the same serial.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    deadline: Time,
    serial: u64,
    key: Key,
}

/// Inserting, rescheduling and taking.
impl<T> OrderedWheel<T> {
    /// Creates a wheel whose time begins at [`BEGIN`]. `None` if its geometry is out of range.
    pub(crate) fn new(geometry: &Geometry, tick: u64) -> Option<Self> {
        let wheel = AnyWheel::new(geometry, BEGIN, tick).ok()?;
        let front = BinaryHeap::new();
        Some(OrderedWheel { wheel, front, stale: 0, gathering: None, serial: 0, tick })
    }

    /// Inserts a value. A value that is already due can be taken at once, not only at the next tick.
    pub(crate) fn insert(&mut self, deadline: Time, now: Time, value: T) -> Result<Key, Full<T>> {
        if !self.has_room() {
            return Err(Full(value));
        }
        let stamped = Stamped { value, deadline, serial: self.serial, key: None };
        let inserted = self.wheel.insert(filed(deadline, now), stamped);
        let key = inserted.map_err(|Full(stamped)| Full(stamped.value))?;
        self.stamp(key, deadline);
        Ok(key)
    }

    /// Reschedules a value, and places it after other values with the same deadline.
    pub(crate) fn reschedule(
        &mut self,
        key: Key,
        deadline: Time,
        now: Time,
    ) -> Result<(), RescheduleError> {
        if !self.has_room() {
            return Err(RescheduleError::OutOfMemory);
        }
        let named = self.is_named(key);
        self.wheel.reschedule(key, filed(deadline, now))?;
        self.stamp(key, deadline);
        self.leave(planted!("blind.names-of-the-moved-are-not-counted", false, named));
        Ok(())
    }

    pub(crate) fn cancel(&mut self, key: Key) -> Option<T> {
        let named = self.is_named(key);
        let stamped = self.wheel.cancel(key)?;
        self.leave(named);
        Some(stamped.value)
    }

    /// Makes the first value available to [`pop`](OrderedWheel::pop), if it is due.
    /// One call makes ready or cascades at most `budget` values.
    pub(crate) fn gather(&mut self, now: Time, budget: usize) -> Progress {
        loop {
            self.drop_stale();
            let hand = self.wheel.now();
            let to = match (self.gathering, self.front.peek()) {
                (Some(to), _) => to,
                (None, Some(Reverse(first))) => {
                    let end = first.deadline + (self.tick - 1);
                    let over = first.deadline <= hand || end == Time::MAX;
                    if planted!("ordered.value-put-late-passes-an-earlier", true, over) {
                        return Progress::Done;
                    }
                    // Moves to `now` in one step. If the hand moved tick by tick, a backlog of overdue values would be
                    // put into the front again for each tick.
                    end.max(now)
                }
                (None, None) => match self.next_due_by(now.max(hand)) {
                    Some(next) => next,
                    // Nothing is due. Advancing the hand cascades what it meets.
                    None => return self.wheel.advance(now, budget),
                },
            };
            let progress = self.wheel.advance(to, budget);
            self.gathering = Some(to);
            if progress != Progress::Done {
                return progress;
            }
            if self.wheel.ready() == 0 {
                // The values to be gathered were removed between two calls. Later values may be due.
                self.gathering = None;
                continue;
            }
            if !self.needs_front() {
                self.gathering = None;
                return Progress::Done;
            }
            if !self.name_all() {
                return Progress::OutOfMemory;
            }
            self.gathering = None;
        }
    }

    /// The tick of the earliest value, if it is due by `limit`.
    ///
    /// Skips the search if the lower bound is later than `limit`: a queue is often polled while nothing is due.
    fn next_due_by(&mut self, limit: Time) -> Option<Time> {
        if self.wheel.next_due_bound().is_none_or(|bound| bound > limit) {
            return None;
        }
        self.wheel.next_due().filter(|&next| next <= limit)
    }

    /// Whether several values were gathered, and some of them are not taken yet.
    #[inline]
    #[allow(dead_code, reason = "only the queue of tasks, a feature, calls it")]
    pub(crate) fn has_gathered(&self) -> bool {
        self.gathering.is_none() && !self.front.is_empty()
    }

    /// Whether several values are ready, or one whose deadline lies after the hand.
    fn needs_front(&mut self) -> bool {
        let ready = self.wheel.ready();
        let hand = self.wheel.now();
        let several = !self.front.is_empty() || ready > 1;
        planted!("ordered.tick-is-not-sorted", false, several)
            || planted!(
                "blind.lone-late-value-passes-an-earlier",
                false,
                ready == 1 && self.wheel.peek().is_some_and(|(_, one)| one.deadline > hand)
            )
    }

    /// Takes the first value, if it is due. Call [`gather`](OrderedWheel::gather) first, until it is done.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Taken<T>> {
        let first = self.first_gathered()?;
        if planted!("ordered.value-of-a-tick-to-come-is-early", false, first.deadline > now) {
            return None;
        }
        let taken = match self.front.pop() {
            Some(_) => self.wheel.cancel(first.key),
            None => self.wheel.pop().map(|expired| expired.value),
        };
        let Stamped { value, deadline, .. } = taken?;
        Some(Taken { key: first.key, deadline, value })
    }

    fn first_gathered(&mut self) -> Option<Name> {
        self.drop_stale();
        match self.front.peek() {
            Some(Reverse(first)) => Some(*first),
            None if self.gathering.is_some() => None,
            None => self.wheel.peek()?.1.name(),
        }
    }

    /// Makes every due value ready, so that [`upcoming`](OrderedWheel::upcoming) skips them.
    pub(crate) fn make_ready(&mut self, now: Time) {
        let before = self.wheel.ready();
        while self.wheel.advance(now, usize::MAX) == Progress::More {}
        if planted!("ordered.made-ready-behind-the-front", false, self.wheel.ready() > before) {
            // Their order is determined when the first is taken.
            self.forget_front();
        }
    }

    /// Whether a value is due. Call [`make_ready`](OrderedWheel::make_ready) first.
    pub(crate) fn is_due(&mut self, now: Time) -> bool {
        if self.wheel.now() <= now {
            return self.wheel.ready() > 0;
        }
        while self.gather(now, usize::MAX) == Progress::More {}
        self.first_gathered().is_some_and(|first| first.deadline <= now)
    }

    /// Moves the hand to `now` if the wheel is empty, so that new values are placed close to it.
    #[allow(dead_code, reason = "only the queue of tasks, a feature, calls it")]
    pub(crate) fn catch_up(&mut self, now: Time) {
        if self.wheel.len() == 0 {
            let _nothing_is_due = self.wheel.advance(now, usize::MAX);
        }
    }
}

/// Inspection and memory.
impl<T> OrderedWheel<T> {
    /// The first value, due or not. If the values of the earliest tick have not been gathered, it walks all values.
    #[allow(dead_code, reason = "only the queue of tasks, a feature, calls it")]
    pub(crate) fn first(&self) -> Option<(&T, Time)> {
        let gathered = self.front.peek().filter(|Reverse(name)| {
            let current = self.gathering.is_none() && name.deadline <= self.wheel.now();
            let stale = Self::is_stale(&self.wheel, name);
            current && !planted!("fourth.peek-trusts-the-name-of-one-that-left", false, stale)
        });
        let first = gathered.map_or_else(|| self.search(), |Reverse(name)| Some(*name))?;
        let stamped = self.wheel.get(first.key)?;
        Some((&stamped.value, stamped.deadline))
    }

    /// The key and the deadline of the first value, due or not. It gathers the values of the earliest tick.
    pub(crate) fn first_key(&mut self) -> Option<(Key, Time)> {
        // Gather up to its tick, however distant: values inserted before that tick go to the front.
        if let Some(next) = self.wheel.next_due() {
            while self.gather(next, usize::MAX) == Progress::More {}
        }
        // Values that no clock reaches are in no order.
        let first = self.first_gathered().or_else(|| {
            planted!("fifth.value-that-is-never-due-is-never-next", None, self.search())
        });
        first.map(|first| (first.key, first.deadline))
    }

    /// The first of all values, by walking them.
    fn search(&self) -> Option<Name> {
        let mut first = None;
        self.wheel.for_each(|_, stamped| {
            let names = first.into_iter().chain(stamped.name());
            first =
                planted!("blind.peek-at-the-end-of-time-shows-the-last", names.max(), names.min());
        });
        first
    }

    /// Every value with its key and deadline, in their order.
    pub(crate) fn sorted(&self) -> Vec<(Key, Time)> {
        let mut all = Vec::with_capacity(self.wheel.len());
        self.wheel.for_each(|_, stamped| all.extend(stamped.name()));
        all.sort_unstable();
        all.into_iter().map(|name| (name.key, name.deadline)).collect()
    }

    /// When the next value that is not due yet becomes due. May have to walk the values of a slot.
    pub(crate) fn upcoming(&mut self, now: Time) -> Option<Time> {
        let hand = self.wheel.now();
        if planted!("ordered.sleeps-past-what-the-hand-has-passed", true, hand <= now) {
            return self.wheel.upcoming();
        }
        // Values up to the hand may not be due yet. If none of them is due, the first of them is the next.
        let mut progress = Progress::More;
        while progress == Progress::More {
            progress = self.gather(now, usize::MAX);
        }
        let first = self.first_gathered().filter(|_| progress == Progress::Done);
        if let Some(first) = first.filter(|first| first.deadline > now) {
            return Some(first.deadline);
        }
        while self.wheel.advance(hand, usize::MAX) == Progress::More {}
        let mut next = self.wheel.upcoming();
        self.wheel.show_ready(usize::MAX, |Stamped { deadline, .. }| {
            if *deadline > now {
                next = Some(next.map_or(*deadline, |next| next.min(*deadline)));
            }
        });
        next
    }

    /// When a value can be taken: at its tick, or at its deadline if the hand has passed that tick.
    pub(crate) fn due(&self, key: Key) -> Option<Time> {
        let due = self.wheel.due(key)?;
        if due > self.wheel.now() { Some(due) } else { self.deadline(key) }
    }

    pub(crate) fn deadline(&self, key: Key) -> Option<Time> {
        self.wheel.get(key).map(|stamped| stamped.deadline)
    }

    #[allow(dead_code, reason = "only the queue of tasks, a feature, calls it")]
    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        self.wheel.get(key).map(|stamped| &stamped.value)
    }

    pub(crate) fn len(&self) -> usize {
        self.wheel.len()
    }

    /// The number of values that it can hold without allocating.
    #[allow(dead_code, reason = "only the queue of tasks, a feature, calls it")]
    pub(crate) fn capacity(&self) -> usize {
        self.wheel.capacity()
    }

    /// Makes room for `additional` more values. `false` if memory is exhausted.
    #[allow(dead_code, reason = "only the queue of tasks, a feature, calls it")]
    pub(crate) fn reserve(&mut self, additional: usize) -> bool {
        self.wheel.reserve(additional)
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        self.wheel.keys()
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.wheel.is_spent()
    }

    pub(crate) fn shrink(&mut self) {
        self.sweep();
        self.front.shrink_to_fit();
        self.wheel.shrink();
    }

    /// Checks the invariants, and names the first that does not hold.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.wheel.check()?;
        if self.front.is_empty() || self.gathering.is_some() {
            return Ok(());
        }
        let mut missing = Vec::new();
        self.wheel.for_each(|key, stamped| {
            let named = || self.front.iter().any(|Reverse(name)| Some(*name) == stamped.name());
            if self.wheel.due(key).is_some_and(|due| due <= self.wheel.now()) && !named() {
                missing.push(key);
            }
        });
        if missing.is_empty() {
            Ok(())
        } else {
            Err(format!("the front does not name {missing:?}"))
        }
    }
}

/// The front.
impl<T> OrderedWheel<T> {
    /// Reserves room for a name before the wheel changes, so that no name is lost for lack of memory.
    fn has_room(&mut self) -> bool {
        self.front.is_empty() || self.front.try_reserve(1).is_ok()
    }

    /// Sets the deadline and serial of a value that was inserted or rescheduled, and adds its name to the front if
    /// needed.
    fn stamp(&mut self, key: Key, deadline: Time) {
        let serial = planted!(
            "fourth.moved-to-its-own-deadline-keeps-its-turn",
            {
                let same =
                    |stamped: &&Stamped<T>| stamped.key.is_some() && stamped.deadline == deadline;
                self.wheel.get(key).filter(same).map_or(self.serial, |stamped| stamped.serial)
            },
            self.serial
        );
        self.serial += planted!(
            "sixth.moved-value-shares-its-number-with-the-next",
            u64::from(self.wheel.get(key).is_some_and(|stamped| stamped.key.is_none())),
            1
        );
        if let Some(stamped) = self.wheel.get_mut(key) {
            stamped.deadline =
                planted!("queue.a-moved-value-keeps-its-old-deadline", stamped.deadline, deadline);
            stamped.serial = serial;
            stamped.key = Some(key);
        }
        if planted!("ordered.value-due-when-put-is-forgotten", false, self.is_named(key)) {
            self.front.push(Reverse(Name { deadline, serial, key }));
        }
    }

    /// Whether the front holds the name of this value.
    fn is_named(&self, key: Key) -> bool {
        !self.front.is_empty() && self.wheel.due(key).is_some_and(|due| due <= self.wheel.now())
    }

    /// Accounts for a value that was taken or rescheduled. `named` says whether the front holds its old name.
    #[inline]
    fn leave(&mut self, named: bool) {
        self.stale += usize::from(named);
        if self.stale > STALE && self.stale > self.front.len() / 2 {
            self.sweep();
        }
    }

    /// Rebuilds the front from all ready values. `false` if there is no memory for it.
    fn name_all(&mut self) -> bool {
        let mut names = std::mem::take(&mut self.front).into_vec();
        names.clear();
        self.stale = 0;
        if names.try_reserve(self.wheel.ready()).is_err() {
            return false;
        }
        self.wheel.show_ready(usize::MAX, |stamped| names.extend(stamped.name().map(Reverse)));
        self.front = BinaryHeap::from(names);
        true
    }

    fn forget_front(&mut self) {
        self.front.clear();
        self.stale = 0;
    }

    fn is_stale(wheel: &AnyWheel<Stamped<T>>, name: &Name) -> bool {
        wheel.get(name.key).is_none_or(|stamped| stamped.serial != name.serial)
    }

    fn drop_stale(&mut self) {
        while self.front.peek().is_some_and(|Reverse(name)| Self::is_stale(&self.wheel, name)) {
            self.front.pop();
            self.stale = self.stale.saturating_sub(1);
        }
    }

    #[cold]
    fn sweep(&mut self) {
        let wheel = &self.wheel;
        planted!(
            "ordered.names-of-the-gone-stay",
            (),
            self.front.retain(|Reverse(name)| !Self::is_stale(wheel, name))
        );
        self.stale = 0;
    }
}

impl<T> Stamped<T> {
    fn name(&self) -> Option<Name> {
        let Stamped { deadline, serial, key, .. } = *self;
        key.map(|key| Name { deadline, serial, key })
    }
}

/// The deadline to pass to the wheel. A value that is already due must not wait for the next tick.
fn filed(deadline: Time, now: Time) -> Time {
    let due = if deadline <= now { Time::ZERO } else { deadline };
    planted!("queue.what-is-due-waits-for-the-next-tick", deadline, due)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
