//! A wheel of either kind, so that a shard works with both.

use tourbillon_wheel::{
    Expired, Full, GeometryError, HashedWheel, HierarchicalWheel, Key, Progress, RescheduleError,
    SlotView, Time,
};

/// A wheel with a greater capacity than this releases its memory when it becomes empty.
const CROWD: usize = 1 << 14;

/// The kind of wheel, and its slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Geometry {
    Hierarchical(Vec<u32>),
    Hashed(u32),
}

#[expect(
    clippy::large_enum_variant,
    reason = "there is one a shard, and a box would cost every operation"
)]
pub(crate) enum AnyWheel<T> {
    Hierarchical(HierarchicalWheel<T>),
    Hashed(HashedWheel<T>),
}

macro_rules! on {
    ($any:expr, $wheel:ident => $do:expr) => {
        match $any {
            AnyWheel::Hierarchical($wheel) => $do,
            AnyWheel::Hashed($wheel) => $do,
        }
    };
}

impl<T> AnyWheel<T> {
    pub(crate) fn new(geometry: &Geometry, start: Time, tick: u64) -> Result<Self, GeometryError> {
        Ok(match geometry {
            Geometry::Hierarchical(slots) => {
                AnyWheel::Hierarchical(HierarchicalWheel::with_levels(start, tick, slots)?)
            }
            Geometry::Hashed(slots) => {
                AnyWheel::Hashed(HashedWheel::with_slots(start, tick, *slots)?)
            }
        })
    }

    #[inline]
    pub(crate) fn insert(&mut self, deadline: Time, value: T) -> Result<Key, Full<T>> {
        on!(self, wheel => wheel.insert(deadline, value))
    }

    #[inline]
    pub(crate) fn cancel(&mut self, key: Key) -> Option<T> {
        on!(self, wheel => wheel.cancel(key))
    }

    #[inline]
    pub(crate) fn reschedule(&mut self, key: Key, to: Time) -> Result<(), RescheduleError> {
        on!(self, wheel => wheel.reschedule(key, to))
    }

    pub(crate) fn advance(&mut self, now: Time, budget: usize) -> Progress {
        on!(self, wheel => wheel.advance(now, budget))
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Expired<T>> {
        on!(self, wheel => wheel.pop())
    }

    /// The timer that `pop` would take.
    pub(crate) fn peek(&mut self) -> Option<(Key, &T)> {
        on!(self, wheel => wheel.peek())
    }

    /// Visits the values of the ready timers, at most `most`, in the order in which `pop` takes them.
    pub(crate) fn show_ready(&self, most: usize, show: impl FnMut(&T)) {
        on!(self, wheel => wheel.iter_ready().take(most).for_each(show));
    }

    #[inline]
    pub(crate) fn ready(&self) -> usize {
        on!(self, wheel => wheel.ready())
    }

    pub(crate) fn next_due(&mut self) -> Option<Time> {
        on!(self, wheel => wheel.next_due())
    }

    /// A lower bound of [`next_due`](AnyWheel::next_due), in O(1).
    #[inline]
    pub(crate) fn next_due_bound(&self) -> Option<Time> {
        on!(self, wheel => wheel.next_due_bound())
    }

    pub(crate) fn upcoming(&mut self) -> Option<Time> {
        planted!(
            "engine.driver-spins-while-the-pool-is-busy",
            self.next_due(),
            on!(self, wheel => wheel.upcoming())
        )
    }

    pub(crate) fn due(&self, key: Key) -> Option<Time> {
        on!(self, wheel => wheel.due(key))
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        on!(self, wheel => wheel.get(key))
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        on!(self, wheel => wheel.get_mut(key))
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        on!(self, wheel => wheel.len())
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        on!(self, wheel => wheel.capacity())
    }

    pub(crate) fn now(&self) -> Time {
        on!(self, wheel => wheel.now())
    }

    pub(crate) fn memory(&self) -> usize {
        on!(self, wheel => wheel.memory())
    }

    /// Whether the wheel is empty after a peak, so that the peak's memory can be freed.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        let crowd = planted!("engine.crowd-memory-kept", usize::MAX, CROWD);
        self.len() == 0 && self.capacity() > crowd
    }

    /// Reserves memory for `additional` timers. `false` if there is none.
    pub(crate) fn reserve(&mut self, additional: usize) -> bool {
        on!(self, wheel => wheel.reserve(additional).is_ok())
    }

    /// Frees memory that no pending timer needs. Does nothing if shrinking itself lacks memory.
    pub(crate) fn shrink(&mut self) {
        let _ = on!(self, wheel => wheel.shrink());
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        on!(self, wheel => wheel.iter().map(|(key, ..)| key).collect())
    }

    pub(crate) fn for_each(&self, mut each: impl FnMut(Key, &T)) {
        on!(self, wheel => wheel.iter().for_each(|(key, _, value)| each(key, value)));
    }

    pub(crate) fn occupied(&self) -> Vec<SlotView> {
        on!(self, wheel => wheel.occupied().collect())
    }

    /// Subtracts the timers for which `is_out` holds from the slots that [`occupied`](AnyWheel::occupied) returned.
    pub(crate) fn leave_out(&self, slots: &mut Vec<SlotView>, is_out: impl Fn(&T) -> bool) {
        on!(self, wheel => {
            for (key, ..) in wheel.iter().filter(|(.., value)| is_out(value)) {
                let slot = wheel.place(key).and_then(|place| place.slot());
                let view = slots.iter_mut().find(|view| Some(view.slot) == slot);
                view.into_iter().for_each(|view| view.timers -= 1);
            }
        });
        slots.retain(|view| {
            planted!("fifth.slot-with-nothing-but-what-runs-is-shown", true, view.timers > 0)
        });
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        on!(self, wheel => wheel.check())
    }
}
