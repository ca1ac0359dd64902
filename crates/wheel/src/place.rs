//! Where a timer is, in the words of the drawings: `L2[17]` on a hierarchical wheel, `[6]` on a hashed one.

use core::fmt;

use crate::Time;

/// The slot that holds a timer.
///
/// `Display` writes it the way the documentation and the scenarios do.
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
        match self {
            Place::Due => f.write_str("due"),
            Place::Level { level, slot } => write!(f, "L{level}[{slot}]"),
            Place::Ring { slot, .. } => write!(f, "[{slot}]"),
        }
    }
}

/// One occupied slot, as [`Wheel::occupied`](crate::Wheel::occupied) lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotView {
    /// Which slot. On a hashed wheel `rounds` is 0.
    pub place: Place,
    /// The moment at which the hand next meets the slot.
    pub begin: Time,
    /// How many pending timers it holds.
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
    /// Whether it has been needed yet. A level that has not takes no memory.
    pub made: bool,
}
