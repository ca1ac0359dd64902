//! The public methods, the same for both kinds of wheel.

mod inspect;
mod next;
mod query;

use crate::hashed::Hashed;
use crate::hierarchical::Hierarchical;
use crate::kind::{Motion, turn};
use crate::outcome::{Expired, Moved, Progress};
use crate::tick::Scale;
use crate::timers::Timers;
use crate::{Full, GeometryError, Key, RescheduleError, Time};

/// A timing wheel: timers with values of type `T`, driven by the caller's clock.
///
/// `K` is [`Hierarchical`] or [`Hashed`]. The methods and their guarantees are the same; their costs differ.
///
/// ```
/// use tourbillon_wheel::{HierarchicalWheel, Progress, Time};
///
/// let mut wheel = HierarchicalWheel::new(Time::ZERO);
/// let idle = wheel.insert(Time::from(30), "idle limit").unwrap();
/// wheel.insert(Time::from(50), "request timeout").unwrap();
/// wheel.reschedule(idle, Time::from(90)).unwrap();
///
/// assert_eq!(wheel.next_due(), Some(Time::from(50)));
/// assert_eq!(wheel.advance(Time::from(60), usize::MAX), Progress::Done);
/// let expired = wheel.pop().unwrap();
/// assert_eq!((expired.value, expired.due), ("request timeout", Time::from(50)));
/// assert!(wheel.pop().is_none());
/// assert_eq!(wheel.cancel(idle), Some("idle limit"));
/// ```
pub struct Wheel<T, K> {
    scale: Scale,
    timers: Timers<T>,
    kind: K,
}

/// Levels of growing span. See [the crate's page](crate) for how it works.
///
/// | method | cost |
/// |---|---|
/// | insert, cancel, reschedule | O(1) |
/// | advance | O(1) per due timer, and per level that a timer cascades through; nothing for the ticks that passed |
pub type HierarchicalWheel<T> = Wheel<T, Hierarchical>;

/// One ring on which timers of many turns share a slot. See [the crate's page](crate) for how it works.
///
/// | method | cost |
/// |---|---|
/// | insert, cancel, reschedule | O(1) |
/// | advance | O(1) per timer of a slot in which one is due; in a turn without due timers, per occupied slot |
/// | next_due | O(1) per occupied slot, up to the first in which something is due in this turn |
pub type HashedWheel<T> = Wheel<T, Hashed>;

/// The slots of each level by default.
const DEFAULT_LEVELS: &[u32] = &[256];
const DEFAULT_SLOTS: u32 = 512;

/// A kind of wheel: [`Hierarchical`] or [`Hashed`]. Nothing else implements it.
#[expect(private_bounds, reason = "sealed: the bound is private on purpose")]
pub trait Kind: Motion {}
impl Kind for Hierarchical {}
impl Kind for Hashed {}

impl<T> HierarchicalWheel<T> {
    /// An empty wheel whose ticks are one unit long, with 256 slots a level.
    pub fn new(start: Time) -> Self {
        Self::with_levels(start, 1, DEFAULT_LEVELS).expect("the default levels are in range")
    }

    /// An empty wheel with ticks of `tick` units and these numbers of slots a level, lowest first.
    ///
    /// The last number repeats for every further level. Levels are made when they are first needed.
    ///
    /// # Errors
    /// A tick of 0, an empty list, or a level with fewer than 2 or more than [`MAX_SLOTS`](crate::MAX_SLOTS) slots.
    ///
    /// ```
    /// use tourbillon_wheel::{HierarchicalWheel, Place, Time};
    ///
    /// // Seconds, minutes and hours.
    /// let mut wheel = HierarchicalWheel::with_levels(Time::ZERO, 1, &[60, 60, 24])?;
    /// let key = wheel.insert(Time::from(5420), ()).unwrap();
    /// assert_eq!(wheel.place(key), Some(Place::Level { level: 3, slot: 1 }));
    /// # Ok::<(), tourbillon_wheel::GeometryError>(())
    /// ```
    pub fn with_levels(start: Time, tick: u64, slots: &[u32]) -> Result<Self, GeometryError> {
        let (scale, kind) = (Scale::new(start, tick)?, Hierarchical::new(slots)?);
        Ok(Wheel { scale, timers: Timers::new(), kind })
    }
}

impl<T> HashedWheel<T> {
    /// An empty wheel whose ticks are one unit long, with 512 slots.
    pub fn new(start: Time) -> Self {
        Self::with_slots(start, 1, DEFAULT_SLOTS).expect("the default slots are in range")
    }

    /// An empty wheel with ticks of `tick` units and one ring of `slots`.
    ///
    /// It performs best if a turn is as long as most delays.
    ///
    /// # Errors
    /// A tick of 0, no slots, or more than [`MAX_SLOTS`](crate::MAX_SLOTS).
    ///
    /// ```
    /// use tourbillon_wheel::{HashedWheel, Place, Time};
    ///
    /// let mut wheel = HashedWheel::with_slots(Time::ZERO, 1, 8)?;
    /// let key = wheel.insert(Time::from(22), ()).unwrap();
    /// assert_eq!(wheel.place(key), Some(Place::Ring { slot: 6, rounds: 2 }));
    /// # Ok::<(), tourbillon_wheel::GeometryError>(())
    /// ```
    pub fn with_slots(start: Time, tick: u64, slots: u32) -> Result<Self, GeometryError> {
        let (scale, kind) = (Scale::new(start, tick)?, Hashed::new(slots)?);
        Ok(Wheel { scale, timers: Timers::new(), kind })
    }
}

/// Start, cancel and move.
impl<T, K: Kind> Wheel<T, K> {
    /// Starts a timer.
    ///
    /// It fires with the first [`advance`](Wheel::advance) to its deadline or later, never earlier. If the deadline has
    /// already passed, it fires with the next advance, whatever the moment of that advance.
    ///
    /// # Errors
    /// [`Full`] returns the value if there is no memory, or no index, for another timer.
    #[inline(always)]
    pub fn insert(&mut self, deadline: Time, value: T) -> Result<Key, Full<T>> {
        let Wheel { scale, timers, kind } = self;
        let due = scale.due(deadline);
        match timers.start(kind, due, value) {
            Ok(key) => Ok(key),
            Err(value) => timers.start_slowly(kind, due, value),
        }
    }

    /// Cancels a timer and returns its value: it will never fire. `None` if it is not pending.
    #[inline(always)]
    pub fn cancel(&mut self, key: Key) -> Option<T> {
        self.timers.cancel(&mut self.kind, key)
    }

    /// Moves a pending timer to another deadline.
    ///
    /// Moving it to a later deadline, as a keep-alive does, writes only to the timer's own node, unless the timer is
    /// ready.
    ///
    /// # Errors
    /// The timer is not pending, or there is no memory to move it to an earlier slot or out of the ready queue. In
    /// either case nothing has changed.
    ///
    /// ```
    /// use tourbillon_wheel::{HierarchicalWheel, RescheduleError, Time};
    ///
    /// let mut wheel = HierarchicalWheel::new(Time::ZERO);
    /// let key = wheel.insert(Time::from(10), ()).unwrap();
    /// wheel.reschedule(key, Time::from(1_000_000))?;
    /// assert_eq!(wheel.next_due(), Some(Time::from(1_000_000)));
    /// wheel.cancel(key);
    /// assert_eq!(wheel.reschedule(key, Time::from(5)), Err(RescheduleError::NotPending));
    /// # Ok::<(), RescheduleError>(())
    /// ```
    #[inline]
    pub fn reschedule(&mut self, key: Key, deadline: Time) -> Result<(), RescheduleError> {
        self.timers.reschedule(&mut self.kind, key, self.scale.due(deadline))
    }

    /// Cancels every timer and drops its value. The memory is kept for the next timers.
    pub fn clear(&mut self) {
        self.timers.clear(&mut self.kind);
    }
}

/// Moving the hand.
impl<T, K: Kind> Wheel<T, K> {
    /// Moves the hand to the tick of `now` and makes the timers that are due by then ready to be popped.
    ///
    /// They become ready in the order of their ticks. A timer that is already due when it is inserted or moved becomes
    /// ready with the timers of the hand's tick at that call; if it is ready and is moved to the same tick, it keeps
    /// its place. If `now` is before the hand, the hand stays.
    ///
    /// `budget` (at least 1) bounds the work. The call returns [`Progress::More`] once it has made that many timers
    /// ready, or has cascaded or examined that many other timers or slots of other turns. The next call continues
    /// there. At each tick, everything cascades before the first timer becomes ready. Where cancels have left many
    /// gaps, each cascading timer may also merge a chunk of up to sixteen other timers; the budget does not count them.
    ///
    /// ```
    /// use tourbillon_wheel::{HashedWheel, Progress, Time};
    ///
    /// let mut wheel = HashedWheel::new(Time::ZERO);
    /// for n in 0..5 {
    ///     wheel.insert(Time::from(10), n).unwrap();
    /// }
    /// let mut passes = 0;
    /// loop {
    ///     let progress = wheel.advance(Time::from(10), 2);
    ///     passes += 1;
    ///     while let Some(expired) = wheel.pop() {
    ///         assert_eq!(expired.due, Time::from(10));
    ///     }
    ///     if progress == Progress::Done {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(passes, 3);
    /// ```
    #[inline]
    pub fn advance(&mut self, now: Time, budget: usize) -> Progress {
        self.advance_to(now, budget, None)
    }

    /// As [`advance`](Wheel::advance), calling `watch` for every timer that cascades to a lower level.
    ///
    /// A timer that is due at the tick at which its slot cascades fires directly, without a call of `watch`.
    pub fn advance_watched(
        &mut self,
        now: Time,
        budget: usize,
        mut watch: impl FnMut(Moved),
    ) -> Progress {
        self.advance_to(now, budget, Some(&mut watch))
    }

    #[inline]
    fn advance_to(
        &mut self,
        now: Time,
        budget: usize,
        mut watch: Option<&mut dyn FnMut(Moved)>,
    ) -> Progress {
        let Wheel { scale, timers, kind } = self;
        let target = scale.current(now).max(timers.hand());
        if timers.stop() > target {
            timers.move_hand(target);
            return Progress::Done;
        }
        turn(timers, kind, target, budget.max(1), &mut watch)
    }

    /// Takes the next timer that an [`advance`](Wheel::advance) has made ready.
    ///
    /// Until it is popped, a ready timer is pending like any other: it can be cancelled, moved and read.
    #[inline]
    pub fn pop(&mut self) -> Option<Expired<T>> {
        let (key, due, value) = self.timers.pop()?;
        Some(Expired { key, due: self.scale.time_or_max(due), value })
    }

    /// The timer that [`pop`](Wheel::pop) would return next.
    ///
    /// ```
    /// use tourbillon_wheel::{HierarchicalWheel, Progress, Time};
    ///
    /// let mut wheel = HierarchicalWheel::new(Time::ZERO);
    /// let key = wheel.insert(Time::from(1), "one").unwrap();
    /// assert_eq!(wheel.peek(), None);
    /// assert_eq!(wheel.advance(Time::from(1), usize::MAX), Progress::Done);
    /// assert_eq!(wheel.peek(), Some((key, &"one")));
    /// ```
    pub fn peek(&mut self) -> Option<(Key, &T)> {
        self.timers.peek()
    }

    /// The values of the ready timers, in the order in which they will be popped.
    ///
    /// A timer that was moved away and back may appear twice.
    ///
    /// ```
    /// use tourbillon_wheel::{HierarchicalWheel, Progress, Time};
    ///
    /// let mut wheel = HierarchicalWheel::new(Time::ZERO);
    /// let keys: Vec<_> = (1..5).map(|n| wheel.insert(Time::from(n), n).unwrap()).collect();
    /// assert_eq!(wheel.advance(Time::from(3), usize::MAX), Progress::Done);
    /// wheel.cancel(keys[1]);
    /// assert!(wheel.iter_ready().eq([&1, &3]));
    /// ```
    pub fn iter_ready(&self) -> impl Iterator<Item = &T> {
        self.timers.iter_ready()
    }

    /// The number of timers that are ready to be popped.
    pub fn ready(&self) -> usize {
        self.timers.ready()
    }
}

#[cfg(test)]
impl<T, K> Wheel<T, K> {
    /// For unit tests.
    pub(crate) fn timers(&self) -> &Timers<T> {
        &self.timers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::GENERATIONS;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    fn a_key_stays_stale_for_ever<K: Kind>(mut wheel: Wheel<u32, K>) {
        let mut keys = Vec::new();
        for n in 0..100 * GENERATIONS {
            // Each way in which a timer can leave its node.
            let key = wheel.insert(Time::from(5), n).unwrap();
            match n % 3 {
                0 => assert_eq!(wheel.cancel(key), Some(n)),
                1 => {
                    assert_eq!(wheel.advance(Time::from(5), 1), Progress::Done);
                    assert_eq!(wheel.pop().map(|expired| expired.key), Some(key));
                }
                _ => wheel.clear(),
            }
            keys.push(key);
            assert!(
                keys.iter()
                    .all(|&stale| wheel.get(stale).is_none() && wheel.cancel(stale).is_none())
            );
            wheel.check().unwrap();
        }
        let count = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), count, "no key was given twice");
        let retired = wheel.timers().nodes().retired();
        assert_eq!(retired, 100, "a node is retired when its generations are used up");
        assert_eq!(wheel.shrink(), Ok(()));
        assert!(keys.iter().all(|&stale| wheel.get(stale).is_none()));
        let key = wheel.insert(Time::from(9), 7).unwrap();
        assert!(!keys.contains(&key), "a shrink of an empty wheel begins anew, and repeats no key");
        // While a timer is pending, `shrink` removes whole segments, and they can be made again any number of times.
        // Nodes with few generations left stay, so new nodes have many.
        let (mut seen, mut forgotten) = (keys.iter().copied().collect::<BTreeSet<Key>>(), 0);
        for _ in 0..3 * GENERATIONS {
            let more: Vec<Key> =
                (0..500).map(|n| wheel.insert(Time::from(9), n).unwrap()).collect();
            assert!(more.iter().all(|&next| seen.insert(next)));
            assert!(more.into_iter().all(|next| wheel.cancel(next).is_some()));
            let before = wheel.timers().nodes().len();
            assert_eq!(wheel.shrink(), Ok(()));
            forgotten += before - wheel.timers().nodes().len();
        }
        assert!(forgotten > 0);
        assert!(seen.iter().all(|&stale| wheel.get(stale).is_none()));
        assert!(wheel.contains(key));
        wheel.check().unwrap();
    }

    #[test]
    fn a_key_stays_stale_for_ever_on_both_kinds() {
        a_key_stays_stale_for_ever(HierarchicalWheel::new(Time::ZERO));
        a_key_stays_stale_for_ever(HashedWheel::new(Time::ZERO));
    }

    /// A move to a later deadline writes only to the node: the reference and the slot's bound stay.
    #[test]
    fn a_move_to_later_moves_no_reference() {
        let mut wheel = HierarchicalWheel::new(Time::ZERO);
        let keys: Vec<Key> = (1..400).map(|n| wheel.insert(Time::from(n), n).unwrap()).collect();
        for &key in &keys {
            let seen = |wheel: &HierarchicalWheel<u64>| {
                let (timers, index) = (wheel.timers(), key.index());
                let number = timers.slot_of(index);
                let node = timers.nodes().node(index).position();
                (node, number, timers.bound(number), timers.stop(), timers.next_due_bound())
            };
            let before = seen(&wheel);
            wheel.reschedule(key, Time::from(1_000_000)).unwrap();
            assert_eq!(seen(&wheel), before);
            wheel.check().unwrap();
        }
    }

    #[test]
    fn what_is_retired_is_no_room() {
        let mut wheel = HierarchicalWheel::new(Time::ZERO);
        for n in 0..500 * GENERATIONS {
            let key = wheel.insert(Time::from(5), n).unwrap();
            wheel.cancel(key);
        }
        assert_eq!(wheel.timers().nodes().retired(), 500);
        wheel.reserve(300).unwrap();
        assert!(
            wheel.timers().nodes().memory() >= 800 * 24,
            "{} bytes",
            wheel.timers().nodes().memory()
        );
        let room = wheel.capacity();
        assert!((300..600).contains(&room), "room for {room}");
    }

    #[test]
    fn a_shrink_does_not_revive_a_key() {
        let mut wheel = HierarchicalWheel::new(Time::ZERO);
        let old: Vec<Key> = (0..50).map(|n| wheel.insert(Time::from(n), n).unwrap()).collect();
        wheel.clear();
        wheel.shrink().unwrap();
        let new: Vec<Key> = (0..50).map(|n| wheel.insert(Time::from(n), n).unwrap()).collect();
        assert!(old.iter().all(|&key| wheel.get(key).is_none()));
        assert!(new.iter().all(|&key| wheel.get(key).is_some()));
    }
}
