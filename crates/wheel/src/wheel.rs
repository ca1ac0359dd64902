//! STUB: signatures only.
use crate::*;
use core::marker::PhantomData;

/// Kind marker.
pub enum Hierarchical {}
/// Kind marker.
pub enum Hashed {}

/// What is due, one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expired<T> { /** key, already stale */ pub key: Key, /** the moment of the tick it was due at */ pub due: Time, /** value */ pub value: T }

/// How far an advance came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Progress {
    /// The hand is at `now`; everything due was made ready to pop.
    Done,
    /// The budget was used up: pop what is ready and call again.
    More,
    /// Handing down could not get memory; nothing was lost; call again later.
    OutOfMemory,
}

/// A timer was handed down a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Moved { /** key */ pub key: Key, /** from */ pub from: Place, /** to */ pub to: Place }

/// A wheel.
pub struct Wheel<T, L> { _x: PhantomData<(T, L)> }
/// The hierarchical wheel.
pub type HierarchicalWheel<T> = Wheel<T, Hierarchical>;
/// The hashed wheel.
pub type HashedWheel<T> = Wheel<T, Hashed>;

/// most slots a level
pub const MAX_SLOTS: u32 = 1 << 20;

impl<T> HierarchicalWheel<T> {
    /// default geometry (256 slots a level), tick 1
    pub fn new(start: Time) -> Self { todo!() }
    /// tick and slots
    pub fn with_levels(start: Time, tick: u64, slots: &[u32]) -> Result<Self, GeometryError> { todo!() }
}
impl<T> HashedWheel<T> {
    /// 512 slots, tick 1
    pub fn new(start: Time) -> Self { todo!() }
    /// tick and slots
    pub fn with_slots(start: Time, tick: u64, slots: u32) -> Result<Self, GeometryError> { todo!() }
}
/// Sealed: which kind of wheel.
pub trait Layout {}
impl Layout for Hierarchical {}
impl Layout for Hashed {}

#[allow(unused)]
impl<T, L: Layout> Wheel<T, L> {
    /// insert; a past deadline is due at once (fires with the next advance)
    pub fn insert(&mut self, deadline: Time, value: T) -> Result<Key, Full<T>> { todo!() }
    /// cancel
    pub fn cancel(&mut self, key: Key) -> Option<T> { todo!() }
    /// move
    pub fn reschedule(&mut self, key: Key, deadline: Time) -> Result<(), RescheduleError> { todo!() }
    /// get
    pub fn get(&self, key: Key) -> Option<&T> { todo!() }
    /// get_mut
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> { todo!() }
    /// pending?
    pub fn contains(&self, key: Key) -> bool { todo!() }
    /// The moment it fires: its deadline rounded up to a tick (Time::MAX if its tick lies past the end of time)
    pub fn due(&self, key: Key) -> Option<Time> { todo!() }
    /// pending, in no order
    pub fn iter(&self) -> impl Iterator<Item = (Key, Time, &T)> { core::iter::empty() }
    /// Moves the hand to the tick of `now`, hands down, makes due timers ready to pop in order of tick. Stops with `More` once
    /// `budget` timers are ready (ready() counts those not yet popped) or `budget` timers were handed down in this call.
    /// At one tick all handing down comes before any timer of it is made ready.
    pub fn advance(&mut self, now: Time, budget: usize) -> Progress { todo!() }
    /// The same, telling `watch` of each timer handed down to a lower level (not of those that became due straight away)
    pub fn advance_watched(&mut self, now: Time, budget: usize, watch: impl FnMut(Moved)) -> Progress { todo!() }
    /// The next ready timer. Until popped a ready timer is pending: cancel, reschedule, get work on it
    pub fn pop(&mut self) -> Option<Expired<T>> { todo!() }
    /// how many are ready
    pub fn ready(&self) -> usize { todo!() }
    /// exact next due: moment of the tick at which the next timer fires (the hand's tick if already due); None if none ever will
    pub fn next_due(&mut self) -> Option<Time> { todo!() }
    /// O(1), never later than next_due
    pub fn next_due_bound(&self) -> Option<Time> { todo!() }
    /// when the hand next meets an occupied slot of any level (its begin), or the current tick if something is due
    pub fn next_slot(&self) -> Option<Time> { todo!() }
    /// where it is now
    pub fn place(&self, key: Key) -> Option<Place> { todo!() }
    /// where a timer with that deadline would be filed now
    pub fn place_of(&self, deadline: Time) -> Place { todo!() }
    /// the first and last moment (ticks) that the slot covers in the turn in which the hand next meets it
    pub fn range(&self, place: Place) -> Option<(Time, Time)> { todo!() }
    /// occupied slots
    pub fn occupied(&self) -> impl Iterator<Item = SlotView> { core::iter::empty() }
    /// levels, lowest first (all that are needed to cover u64)
    pub fn levels(&self) -> impl Iterator<Item = LevelView> { core::iter::empty() }
    /// the moment of the current tick
    pub fn now(&self) -> Time { todo!() }
    /// start
    pub fn start(&self) -> Time { todo!() }
    /// units a tick
    pub fn tick(&self) -> u64 { todo!() }
    /// pending
    pub fn len(&self) -> usize { todo!() }
    /// none pending
    pub fn is_empty(&self) -> bool { todo!() }
    /// room for so many without another allocation for nodes
    pub fn capacity(&self) -> usize { todo!() }
    /// pre-size
    pub fn reserve(&mut self, additional: usize) -> Result<(), OutOfMemory> { todo!() }
    /// bytes of heap held
    pub fn memory(&self) -> usize { todo!() }
    /// give back
    pub fn shrink(&mut self) { todo!() }
    /// drop all
    pub fn clear(&mut self) { todo!() }
    /// names the first broken invariant
    pub fn check(&self) -> Result<(), alloc::string::String> { todo!() }
}
