//! Where a timer is: `L2[17]` on a hierarchical wheel, `[6]` on a hashed one.

use core::fmt;

use crate::Time;

/// The slot that holds a timer.
///
/// `Display` writes it as the documentation and the scenarios do.
///
/// ```
/// use tourbillon_wheel::Place;
///
/// assert_eq!(Place::Level { level: 2, slot: 17 }.to_string(), "L2[17]");
/// assert_eq!(Place::Ring { slot: 6, rounds: 3 }.to_string(), "[6]");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Already due: it fires with the next advance.
    Due,
    /// A slot of a hierarchical wheel. Levels count from 1, the lowest; slots from 0.
    Level {
        /// The level, 1 being the lowest.
        level: u32,
        /// The slot of that level.
        slot: u32,
    },
    /// A slot of a hashed wheel.
    Ring {
        /// The slot.
        slot: u32,
        /// The full turns that the hand still makes before the turn in which the timer fires.
        rounds: u64,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.slot() {
            Some(slot) => slot.fmt(f),
            None => f.write_str("due"),
        }
    }
}

/// The name of a slot: a [`Place`] without its rounds.
///
/// ```
/// use tourbillon_wheel::Slot;
///
/// assert_eq!(Slot::Level { level: 2, slot: 17 }.to_string(), "L2[17]");
/// assert_eq!(Slot::Ring { slot: 6 }.to_string(), "[6]");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// A slot of a hierarchical wheel. Levels count from 1, the lowest; slots from 0.
    Level {
        /// The level, 1 being the lowest.
        level: u32,
        /// The slot of that level.
        slot: u32,
    },
    /// A slot of a hashed wheel.
    Ring {
        /// The slot.
        slot: u32,
    },
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slot::Level { level, slot } => write!(f, "L{level}[{slot}]"),
            Slot::Ring { slot } => write!(f, "[{slot}]"),
        }
    }
}

impl Place {
    /// The slot; `None` for [`Place::Due`].
    pub fn slot(self) -> Option<Slot> {
        match self {
            Place::Due => None,
            Place::Level { level, slot } => Some(Slot::Level { level, slot }),
            Place::Ring { slot, .. } => Some(Slot::Ring { slot }),
        }
    }
}

/// One occupied slot, as [`Wheel::occupied`](crate::Wheel::occupied) lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotView {
    /// Which slot.
    pub slot: Slot,
    /// The moment at which the hand next meets the slot.
    pub begin: Time,
    /// How many pending timers belong in it.
    pub timers: usize,
}

/// One level of a wheel, as [`Wheel::levels`](crate::Wheel::levels) lists them, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelView {
    /// How many slots it has.
    pub slots: u32,
    /// How many ticks one of its slots covers.
    pub ticks_a_slot: u64,
    /// Whether a timer has needed it yet. A level that is not made takes no memory.
    pub made: bool,
}
