//! The verbs, the same for both kinds of wheel.

use crate::chunks::READY;
use crate::hashed::Hashed;
use crate::hierarchical::Hierarchical;
use crate::rules::{Budget, Cut, Rules, Watch};
use crate::shared::Core;
use crate::tick::{Scale, Tick};
use crate::{Full, GeometryError, Key, OutOfMemory, Place, RescheduleError, Time};

/// A timing wheel: timers with values of `T`, driven by the caller's clock.
///
/// `K` is [`Hierarchical`] or [`Hashed`]; the verbs and their promises are the same, their costs differ.
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
    pub(crate) core: Core<T>,
    pub(crate) rules: K,
}

/// Rings of growing span. See [the crate's page](crate) for how it works.
///
/// | verb | cost |
/// |---|---|
/// | insert, cancel, reschedule | O(1) |
/// | advance | what is due, and each timer once a level on its way down; never the ticks that passed |
pub type HierarchicalWheel<T> = Wheel<T, Hierarchical>;

/// One ring on which timers of many turns share a slot. See [the crate's page](crate) for how it works.
///
/// | verb | cost |
/// |---|---|
/// | insert, cancel, reschedule | O(1) |
/// | advance | what is due, and every timer of a slot in which one is due; the occupied slots, in a turn without any |
/// | next_due | the occupied slots until one in which something is due in this turn |
pub type HashedWheel<T> = Wheel<T, Hashed>;

/// The most slots that a level may have.
pub const MAX_SLOTS: u32 = 1 << 20;

/// The slots of each level of a wheel that was not told otherwise.
const DEFAULT_LEVELS: &[u32] = &[256];
const DEFAULT_SLOTS: u32 = 512;

/// A kind of wheel: [`Hierarchical`] or [`Hashed`]. Nothing else implements it.
#[expect(private_bounds, reason = "sealed: what a kind must do is nobody's business outside")]
pub trait Kind: Rules {}
impl Kind for Hierarchical {}
impl Kind for Hashed {}

/// A timer whose time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expired<T> {
    /// The key it had. It is stale now.
    pub key: Key,
    /// The moment it was due: its deadline, rounded up to a tick.
    pub due: Time,
    /// What was inserted.
    pub value: T,
}

/// A timer was handed down to a lower level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Moved {
    /// The timer.
    pub key: Key,
    /// The slot it was in.
    pub from: Place,
    /// The slot it is in now.
    pub to: Place,
}

/// How far an [`advance`](Wheel::advance) came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "work may remain"]
pub enum Progress {
    /// Everything that is due has been made ready.
    Done,
    /// The budget was used up: pop what is ready, and advance again.
    More,
    /// Timers could not be handed down, or made ready, for want of memory. Nothing is lost: advance again when
    /// there is some.
    OutOfMemory,
}

impl<T> HierarchicalWheel<T> {
    /// An empty wheel whose ticks are one unit long, with 256 slots a level.
    pub fn new(start: Time) -> Self {
        Self::with_levels(start, 1, DEFAULT_LEVELS).expect("the default levels are in range")
    }

    /// An empty wheel with ticks of `tick` units and so many slots a level, lowest first. The last number
    /// repeats for every further level; levels are made when they are first needed.
    ///
    /// # Errors
    /// A tick of 0, an empty list, or a level with fewer than 2 or more than [`MAX_SLOTS`] slots.
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
        Ok(Wheel { core: Core::new(Scale::new(start, tick)?), rules: Hierarchical::new(slots)? })
    }
}

impl<T> HashedWheel<T> {
    /// An empty wheel whose ticks are one unit long, with 512 slots.
    pub fn new(start: Time) -> Self {
        Self::with_slots(start, 1, DEFAULT_SLOTS).expect("the default slots are in range")
    }

    /// An empty wheel with ticks of `tick` units and one ring of `slots`. It is at its best if a turn is as
    /// long as most delays.
    ///
    /// # Errors
    /// A tick of 0, no slots, or more than [`MAX_SLOTS`].
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
        Ok(Wheel { core: Core::new(Scale::new(start, tick)?), rules: Hashed::new(slots)? })
    }
}

/// Starting, stopping and moving timers.
impl<T, K: Kind> Wheel<T, K> {
    /// Starts a timer. It fires with the first [`advance`](Wheel::advance) to its deadline or later, never to
    /// an earlier moment; one whose deadline has passed fires with the next advance, whatever its moment.
    ///
    /// # Errors
    /// [`Full`] gives the value back if there is no memory, or no index, for another timer.
    #[inline(always)]
    pub fn insert(&mut self, deadline: Time, value: T) -> Result<Key, Full<T>> {
        let due = self.core.scale.due(deadline);
        self.core.start(&self.rules, due, value).or_else(|value| self.insert_anew(due, value))
    }

    /// Starts a timer for which a level, a node, or room in its slot is missing, or that the front must know.
    #[cold]
    #[inline(never)]
    fn insert_anew(&mut self, due: Tick, value: T) -> Result<Key, Full<T>> {
        let Wheel { core, rules } = self;
        if core.nodes.prepare().is_err() {
            return Err(Full(value));
        }
        let (index, spot) = (core.nodes.next(), rules.spot(due, core.hand));
        let position = core.file(rules, index, due, spot).or_else(|| {
            let spot = core.prepare(rules, due).ok()?;
            core.file(rules, index, due, spot)
        });
        core.nodes.occupy(due, value, |_| position).map_err(Full)
    }

    /// Stops a timer and returns its value: it will never fire. `None` if it is not pending.
    #[inline(always)]
    pub fn cancel(&mut self, key: Key) -> Option<T> {
        let (value, position) = self.core.nodes.vacate(key)?;
        self.core.unfile(&mut self.rules, position);
        Some(value)
    }

    /// Moves a pending timer to another deadline.
    ///
    /// Moving it to a later one, as a keep-alive does, writes to the timer's own node and nothing else, unless it
    /// is already waiting to be popped.
    ///
    /// # Errors
    /// It is not pending, or there is no memory to move it to an earlier slot or away from what waits to be
    /// popped; nothing has changed then.
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
        let index = self.core.nodes.find(key).ok_or(RescheduleError::NotPending)?;
        let due = self.core.scale.due(deadline);
        let node = self.core.nodes.node_mut(index);
        if due >= node.due() && node.position != READY {
            // The hand meets its reference no later than before, and files it anew then.
            node.set_due(due);
            return Ok(());
        }
        self.move_to(index, due).map_err(|OutOfMemory| RescheduleError::OutOfMemory)
    }

    /// Moves a timer to an earlier tick, or away from the ready ones.
    fn move_to(&mut self, index: u32, due: Tick) -> Result<(), OutOfMemory> {
        let Wheel { core, rules } = self;
        let number = core.slot_of(index);
        if let Some(slot) = core.slots.get(number as usize) {
            if rules.covers(slot.level, number, due, core.hand) {
                core.nodes.node_mut(index).set_due(due);
                core.lower::<K>(number, due, index);
                return Ok(());
            }
        }
        core.prepare(rules, due)?;
        core.unfile(rules, core.nodes.node(index).position);
        core.nodes.node_mut(index).set_due(due);
        core.refile(rules, index, due);
        Ok(())
    }

    /// Stops every timer and drops its value. Keys stay stale; the memory is kept for the next ones.
    pub fn clear(&mut self) {
        // One by one, so that a value whose drop panics leaves a wheel that is whole.
        for index in 0..self.core.nodes.len() {
            if self.core.nodes.node(index).is_pending() {
                drop(self.cancel(self.core.nodes.key(index)));
            }
        }
    }
}

/// Moving the hand.
impl<T, K: Kind> Wheel<T, K> {
    /// Moves the hand to the tick that `now` is in and makes what is due on the way ready to be popped, in the
    /// order of its ticks. What was past already when it was inserted or moved comes with the tick at which it was, in
    /// no order of its own; or in its old place, if it was ready there. A `now` before the hand leaves the hand where
    /// it is.
    ///
    /// `budget` (at least 1) bounds the pass: it ends with [`Progress::More`] once it has made so many timers ready,
    /// or once so many others, or slots of other turns, were handed down or looked at, and the next call goes on from
    /// there. At any one tick everything is handed down before the first timer is made ready. Where cancels have left
    /// many gaps, each that is handed down may move up to sixteen others closer together, which are not counted.
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

    /// [`advance`](Wheel::advance), telling `watch` of every timer that is handed down to a lower level. One
    /// that is due at that very tick fires straight from above, and `watch` is not told.
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
        let target = self.core.scale.current(now).max(self.core.hand);
        if self.core.stop > target {
            self.core.hand = target;
            return Progress::Done;
        }
        self.turn(target, budget.max(1), &mut watch)
    }

    fn turn(&mut self, target: Tick, budget: usize, watch: Watch<'_, '_>) -> Progress {
        let Wheel { core, rules } = self;
        // Those that wait to be popped since an earlier call do not count: the budget is for the work of this one.
        let ready = core.ready.len().saturating_add(budget);
        let mut budget = Budget { work: budget, ready };
        while core.stop <= target {
            core.hand = core.hand.max(core.stop);
            match rules.settle(core, &mut budget, watch) {
                Ok(()) => {}
                Err(Cut::Budget) => return Progress::More,
                Err(Cut::Memory) if core.sweep_all() => continue,
                Err(Cut::Memory) => return Progress::OutOfMemory,
            }
            core.sweep();
            core.stop = rules.next_stop(core, &mut budget);
            if core.hand == target {
                break;
            }
        }
        core.hand = target;
        Progress::Done
    }

    /// Takes the next timer that an [`advance`](Wheel::advance) has made ready.
    ///
    /// Until it is popped such a timer is pending like any other: it can be cancelled, moved and looked at. A pop
    /// passes over those that were cancelled or moved since.
    #[inline]
    pub fn pop(&mut self) -> Option<Expired<T>> {
        let core = &mut self.core;
        let (key, due, value) = core.ready.pop(&mut core.nodes)?;
        Some(Expired { key, due: core.scale.time_or_max(due), value })
    }

    /// The timer that [`pop`](Wheel::pop) would take out next.
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
        let Core { ready, nodes, .. } = &mut self.core;
        let index = ready.peek(nodes)?;
        Some((nodes.key(index), nodes.value(index)?))
    }

    /// The values of the timers that are ready to be popped, in the order in which they will be. One that was moved
    /// away and has come back may be there twice.
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
        let Core { ready, nodes, .. } = &self.core;
        ready.iter(nodes).filter_map(|index| nodes.value(index))
    }

    /// How many timers are ready to be popped.
    pub fn ready(&self) -> usize {
        self.core.ready.len()
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
            // Every way to leave a node.
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
        let retired = wheel.core.nodes.retired();
        assert_eq!(retired, 100, "a node is retired when its generations are used up");
        assert_eq!(wheel.shrink(), Ok(()));
        assert!(keys.iter().all(|&stale| wheel.get(stale).is_none()));
        let key = wheel.insert(Time::from(9), 7).unwrap();
        assert!(!keys.contains(&key), "a shrink of an empty wheel begins anew, and repeats no key");
        // With a timer pending whole segments are forgotten and made anew, however often. What has few generations left
        // stays, so that new nodes have many.
        let (mut seen, mut forgotten) = (keys.iter().copied().collect::<BTreeSet<Key>>(), 0);
        for _ in 0..3 * GENERATIONS {
            let more: Vec<Key> =
                (0..500).map(|n| wheel.insert(Time::from(9), n).unwrap()).collect();
            assert!(more.iter().all(|&next| seen.insert(next)));
            assert!(more.into_iter().all(|next| wheel.cancel(next).is_some()));
            let before = wheel.core.nodes.len();
            assert_eq!(wheel.shrink(), Ok(()));
            forgotten += before - wheel.core.nodes.len();
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

    /// A keep-alive writes to its node alone: the reference stays, and so does all that is known of its slot.
    #[test]
    fn a_move_to_later_moves_no_reference() {
        let mut wheel = HierarchicalWheel::new(Time::ZERO);
        let keys: Vec<Key> = (1..400).map(|n| wheel.insert(Time::from(n), n).unwrap()).collect();
        for &key in &keys {
            let before = wheel.core.nodes.node(key.index()).position;
            let (number, (stop, earliest)) =
                (wheel.core.slot_of(key.index()), (wheel.core.stop, wheel.core.earliest));
            let min = wheel.core.slots[number as usize].min;
            wheel.reschedule(key, Time::from(1_000_000)).unwrap();
            assert_eq!(wheel.core.nodes.node(key.index()).position, before);
            assert_eq!(wheel.core.slots[number as usize].min, min);
            assert_eq!((wheel.core.stop, wheel.core.earliest), (stop, earliest));
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
        assert_eq!(wheel.core.nodes.retired(), 500);
        wheel.reserve(300).unwrap();
        assert!(wheel.core.nodes.memory() >= 800 * 24, "{} bytes", wheel.core.nodes.memory());
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
