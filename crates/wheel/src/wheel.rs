//! The verbs, the same for both kinds of wheel.

use alloc::string::String;

use crate::shared::{Budget, Core, Cut, READY, Rules};
use crate::hashed::Hashed;
use crate::hierarchical::Hierarchical;
use crate::place::{LevelView, SlotView};
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
    core: Core<T>,
    rules: K,
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
/// | advance | what is due, and every timer of a slot in which one is due |
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
    /// Timers could not be handed down for want of memory. Nothing is lost: advance again when there is some.
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
    #[inline]
    pub fn insert(&mut self, deadline: Time, value: T) -> Result<Key, Full<T>> {
        let Wheel { core, rules } = self;
        let due = core.scale.due(deadline);
        let spot = rules.spot(due, core.hand);
        if core.prepare(rules, spot).is_err() {
            return Err(Full(value));
        }
        let key = core.nodes.insert(due, value)?;
        core.file(rules, key.index, due, spot);
        Ok(key)
    }

    /// Stops a timer and returns its value: it will never fire. `None` if it is not pending.
    #[inline]
    pub fn cancel(&mut self, key: Key) -> Option<T> {
        let index = self.core.nodes.find(key)?;
        self.cancel_index(index)
    }

    #[inline]
    fn cancel_index(&mut self, index: u32) -> Option<T> {
        let Wheel { core, rules } = self;
        let number = core.nodes.node(index).at.slot();
        let value = core.nodes.remove(index)?;
        core.leave(rules, number);
        core.sweep(number);
        Some(value)
    }

    /// Moves a pending timer to another deadline.
    ///
    /// Moving it to a later one, as a keep-alive does, writes to the timer's own node and nothing else.
    ///
    /// # Errors
    /// It is not pending, or there is no memory to move it to an earlier slot; nothing has changed then.
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
        if due >= node.due() && node.at.slot() != READY {
            // The hand meets its reference no later than before, and files it anew then.
            node.set_due(due);
            return Ok(());
        }
        self.move_to(index, due).map_err(|OutOfMemory| RescheduleError::OutOfMemory)
    }

    /// Moves a timer to an earlier tick, or out of the ready slot.
    fn move_to(&mut self, index: u32, due: Tick) -> Result<(), OutOfMemory> {
        let Wheel { core, rules } = self;
        let number = core.nodes.node(index).at.slot();
        let slot = &mut core.slots[number as usize];
        if number != READY {
            if let Some(begin) = rules.covers(slot.level, number, due, core.hand) {
                core.nodes.node_mut(index).set_due(due);
                slot.lower(due, index);
                core.front.note(number, due, index);
                core.stop = core.stop.min(begin);
                core.earliest = core.earliest.min(due);
                return Ok(());
            }
        }
        let spot = rules.spot(due, core.hand);
        core.prepare(rules, spot)?;
        core.nodes.node_mut(index).set_due(due);
        core.file(rules, index, due, spot);
        core.leave(rules, number);
        core.sweep(number);
        Ok(())
    }

    /// Stops every timer and drops its value. Keys stay stale; the memory is kept for the next ones.
    pub fn clear(&mut self) {
        // One by one, so that a value whose drop panics leaves a wheel that is whole.
        for index in 0..self.core.nodes.len() {
            drop(self.cancel_index(index));
        }
    }
}

/// Moving the hand.
impl<T, K: Kind> Wheel<T, K> {
    /// Moves the hand to the tick that `now` is in and makes what is due on the way ready to be popped, in the
    /// order of its ticks. A `now` before the hand leaves the hand where it is.
    ///
    /// `budget` (at least 1) bounds the pass: it ends with [`Progress::More`] once so many timers are ready, or
    /// once so many others were handed down, and the next call goes on from there. At any one tick everything
    /// is handed down before the first timer is made ready.
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
        self.advance_watched(now, budget, |_| {})
    }

    /// [`advance`](Wheel::advance), telling `watch` of every timer that is handed down to a lower level. One
    /// that is due at that very tick fires straight from above, and `watch` is not told.
    #[inline]
    pub fn advance_watched(&mut self, now: Time, budget: usize, mut watch: impl FnMut(Moved)) -> Progress {
        let target = self.core.scale.current(now).max(self.core.hand);
        if self.core.stop > target {
            self.core.hand = target;
            return Progress::Done;
        }
        self.turn(target, budget.max(1), &mut watch)
    }

    fn turn(&mut self, target: Tick, budget: usize, watch: &mut impl FnMut(Moved)) -> Progress {
        let Wheel { core, rules } = self;
        let mut budget = Budget { work: budget, ready: budget };
        while core.stop <= target {
            core.hand = core.hand.max(core.stop);
            match rules.settle(core, &mut budget, watch) {
                Ok(()) => {}
                Err(Cut::Budget) => return Progress::More,
                Err(Cut::Memory) => return Progress::OutOfMemory,
            }
            core.stop = rules.next_stop(core);
            if core.hand == target {
                break;
            }
        }
        core.hand = target;
        Progress::Done
    }

    /// Takes the next timer that an [`advance`](Wheel::advance) has made ready.
    ///
    /// Until it is popped such a timer is pending like any other: it can be cancelled, moved and looked at.
    #[inline]
    pub fn pop(&mut self) -> Option<Expired<T>> {
        let Wheel { core, rules } = self;
        while let Some((index, stamp)) = core.chunks.first(&core.slots[READY as usize].list) {
            core.chunks.drop_first(&mut core.slots[READY as usize].list, 1);
            let node = core.nodes.node(index);
            if node.at != crate::nodes::At::new(READY, stamp) {
                continue;
            }
            let (key, due) = (core.nodes.key(index), core.scale.time_or_max(node.due()));
            let value = core.nodes.remove(index)?;
            core.leave(rules, READY);
            return Some(Expired { key, due, value });
        }
        None
    }

    /// How many timers are ready to be popped.
    pub fn ready(&self) -> usize {
        self.core.ready()
    }
}

/// When there is something to do: the three ways to drive a wheel.
///
/// *Tick by tick*: advance at every tick. *Slot by slot*: advance at [`next_slot`](Wheel::next_slot). *By due
/// time*: advance at [`next_due`](Wheel::next_due). All three fire the same timers at the same ticks; the last
/// wakes up only to fire.
impl<T, K: Kind> Wheel<T, K> {
    /// The moment of the tick at which the next timer fires, exactly; the current tick's if one is due already,
    /// `None` if there is none that any clock will reach.
    ///
    /// It takes a look at one slot a level, as long as the earliest timer of each was not cancelled or moved.
    /// If it was, its slot is looked through: as many steps as the slot holds timers. A large slot is looked
    /// through once for thousands of such cancels.
    pub fn next_due(&mut self) -> Option<Time> {
        let tick = self.core.next_due(&self.rules)?;
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

/// Looking.
impl<T, K: Kind> Wheel<T, K> {
    /// The value of a pending timer.
    pub fn get(&self, key: Key) -> Option<&T> {
        self.core.nodes.value(self.core.nodes.find(key)?)
    }

    /// The value of a pending timer, to be changed.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.core.nodes.value_mut(self.core.nodes.find(key)?)
    }

    /// Whether the timer is pending.
    pub fn contains(&self, key: Key) -> bool {
        self.core.nodes.find(key).is_some()
    }

    /// The moment at which a pending timer fires: its deadline, rounded up to a tick. [`Time::MAX`] if that
    /// tick lies past the end of time.
    pub fn due(&self, key: Key) -> Option<Time> {
        let index = self.core.nodes.find(key)?;
        Some(self.core.scale.time_or_max(self.core.nodes.node(index).due()))
    }

    /// The pending timers with the moments at which they fire, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (Key, Time, &T)> {
        let scale = self.core.scale;
        self.core.nodes.iter().map(move |(key, due, value)| (key, scale.time_or_max(due), value))
    }

    /// How many timers are pending, ready ones included.
    #[inline]
    pub fn len(&self) -> usize {
        self.core.nodes.pending()
    }

    /// Whether none is pending.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The moment of the tick that the hand is on.
    pub fn now(&self) -> Time {
        self.core.scale.time_or_max(self.core.hand)
    }

    /// The moment of tick 0.
    pub fn start(&self) -> Time {
        self.core.scale.start()
    }

    /// The units of one tick.
    pub fn tick(&self) -> u64 {
        self.core.scale.tick()
    }

    /// The slot that a pending timer is in.
    pub fn place(&self, key: Key) -> Option<Place> {
        let node = self.core.nodes.node(self.core.nodes.find(key)?);
        let number = node.at.slot();
        Some(self.rules.place(self.core.slots[number as usize].level, number, node.due(), self.core.hand))
    }

    /// The slot that a timer with this deadline would be filed in now.
    pub fn place_of(&self, deadline: Time) -> Place {
        let (due, hand) = (self.core.scale.due(deadline), self.core.hand);
        if due <= hand { Place::Due } else { self.rules.place_of(due, hand) }
    }

    /// The occupied slots, level by level, in the order in which the hand meets them.
    pub fn occupied(&self) -> impl Iterator<Item = SlotView> {
        let Wheel { core, rules } = self;
        (0..rules.levels()).flat_map(move |level| {
            rules.met(level, core.hand).map(move |(number, _)| {
                let slot = &core.slots[number as usize];
                SlotView {
                    place: rules.slot_place(slot.level, number),
                    begin: core.scale.time_or_max(rules.begin(core, number)),
                    timers: slot.live as usize,
                }
            })
        })
    }

    /// The first and the last moment that a slot stands for in the turn in which the hand next meets it, in
    /// ticks. `None` for [`Place::Due`] and for a slot that the wheel does not have.
    pub fn range(&self, place: Place) -> Option<(Time, Time)> {
        let (first, last) = self.rules.range(place, self.core.hand)?;
        Some((self.core.scale.time_or_max(first), self.core.scale.time_or_max(last)))
    }

    /// The levels, lowest first, whether made or not. A hashed wheel has one.
    pub fn levels(&self) -> impl Iterator<Item = LevelView> {
        (0..self.rules.levels()).map(|level| self.rules.view(level))
    }
}

/// Memory.
impl<T, K: Kind> Wheel<T, K> {
    /// How many timers it can hold without asking for more memory for them.
    pub fn capacity(&self) -> usize {
        self.core.nodes.capacity()
    }

    /// Makes room for `additional` more timers.
    ///
    /// # Errors
    /// There is not so much memory; the wheel is as it was.
    pub fn reserve(&mut self, additional: usize) -> Result<(), OutOfMemory> {
        self.core.nodes.reserve(additional)?;
        self.core.chunks.reserve_references(additional)
    }

    /// The bytes of heap that it holds, beside what the values themselves own.
    pub fn memory(&self) -> usize {
        self.core.memory() + self.rules.memory()
    }

    /// Gives back the memory that the pending timers do not need. It takes as many steps as there are timers;
    /// keys stay as they are.
    ///
    /// # Errors
    /// There is not even the memory to do that; the wheel is as it was.
    pub fn shrink(&mut self) -> Result<(), OutOfMemory> {
        self.core.shrink()
    }

    /// Walks the whole wheel and names the first of its invariants that does not hold. For tests, and for the
    /// curious: it takes as many steps as there are slots and timers.
    ///
    /// # Errors
    /// The invariant that is broken, in words. That would be a defect of this crate.
    pub fn check(&self) -> Result<(), String> {
        self.core.check(&self.rules)
    }

    #[cfg(test)]
    pub(crate) fn limit_generations(&mut self, last: u32) {
        self.core.nodes.limit_generations(last);
    }
}
