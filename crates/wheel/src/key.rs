//! Keys, by which a caller identifies a timer.
//!
//! A key is the index of the timer's node, the generation of that node, and the number of its wheel. A node's
//! generation increases each time a timer leaves it, and a node that has used its last generation is never used
//! again, so a stale key stays stale forever. Wheel numbers are unique in a process, so a key of another wheel is
//! always refused.

use core::num::NonZeroU64;
use core::sync::atomic::Ordering;

/// Identifies one timer of one wheel, forever.
///
/// A key is a small `Copy` value. Once its timer has fired, or was cancelled or cleared, every method of the wheel
/// refuses the key forever. A key of another wheel is refused as well.
///
/// ```
/// use tourbillon_wheel::{HierarchicalWheel, Time};
///
/// let mut wheel = HierarchicalWheel::new(Time::ZERO);
/// let key = wheel.insert(Time::from(10), "hello").unwrap();
/// assert_eq!(wheel.cancel(key), Some("hello"));
/// assert_eq!(wheel.cancel(key), None, "gone");
/// assert_eq!(size_of::<Option<tourbillon_wheel::Key>>(), 16);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    wheel: WheelId,
    name: Name,
}

impl Key {
    #[inline]
    pub(crate) fn new(wheel: WheelId, name: Name) -> Self {
        Key { wheel, name }
    }

    #[inline]
    pub(crate) fn wheel(self) -> WheelId {
        self.wheel
    }

    #[inline]
    pub(crate) fn name(self) -> Name {
        self.name
    }

    #[inline]
    pub(crate) fn index(self) -> u32 {
        self.name.index()
    }
}

/// The part of a key that identifies a timer within its wheel: generation in the upper half, node index in the lower
/// half. It is one word, so that a key is two words, which are returned in registers; three would not be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name(u64);

impl Name {
    /// The name of no timer.
    pub(crate) const NONE: Name = Name(u64::MAX);

    #[inline]
    pub(crate) fn from_bits(bits: u64) -> Self {
        Name(bits)
    }

    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) const fn new(index: u32, generation: u32) -> Self {
        Name((generation as u64) << 32 | index as u64)
    }

    #[inline]
    pub(crate) fn index(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The name that the next timer of the same node will have: the generation is one higher. No key has the last
    /// generation, so the addition never has to wrap.
    #[inline]
    pub(crate) fn next(self) -> Self {
        Name(self.0.wrapping_add(1 << 32))
    }
}

impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Key({}:{}v{})", self.wheel.0, self.index(), self.name.generation())
    }
}

/// The number of a wheel, unique in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct WheelId(NonZeroU64);

#[cfg(target_has_atomic = "64")]
mod counter {
    pub(super) type Counter = core::sync::atomic::AtomicU64;
    pub(super) type Number = u64;
}
// Without 64-bit atomics there are four billion numbers. Creating a wheel takes one, and so does shrinking an empty
// wheel; when no number is left, both panic instead of reusing one.
#[cfg(not(target_has_atomic = "64"))]
mod counter {
    pub(super) type Counter = core::sync::atomic::AtomicU32;
    pub(super) type Number = u32;
}

impl WheelId {
    /// A number that no other wheel has.
    #[allow(clippy::useless_conversion, reason = "it is one only where there are 64-bit atomics")]
    pub(crate) fn unique() -> Self {
        static LAST: counter::Counter = counter::Counter::new(0);
        // Relaxed: the number only has to be unique; no other memory is synchronized through it.
        let last = LAST
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last: counter::Number| {
                last.checked_add(1)
            })
            .expect("more wheels than numbers to name them");
        WheelId(NonZeroU64::MIN.saturating_add(last.into()))
    }
}
