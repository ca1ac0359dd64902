//! Errors. Each message says what to do; [`Full`] contains the value that was refused.

use core::fmt;

/// The geometry of a new wheel is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GeometryError {
    /// The tick was zero.
    ZeroTick,
    /// The list of slots was empty.
    NoLevels,
    /// A level had too few or too many slots.
    Slots {
        /// The level, 1 being the lowest.
        level: usize,
        /// The requested number.
        slots: u32,
        /// The smallest number allowed; the largest is [`MAX_SLOTS`](crate::MAX_SLOTS).
        least: u32,
    },
}

impl fmt::Display for GeometryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GeometryError::ZeroTick => f.write_str("a tick of 0: it must be at least 1"),
            GeometryError::NoLevels => f.write_str("no slots: give at least one level"),
            GeometryError::Slots { level, slots, least } => {
                let most = crate::MAX_SLOTS;
                write!(f, "{slots} slots on level {level}: it must be {least} to {most}")
            }
        }
    }
}

impl core::error::Error for GeometryError {}

/// The wheel has no memory, or no index, for another timer. Contains the value; the wheel is unchanged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<T>(pub T);

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Full(..)")
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the wheel has no memory or no index for another timer: cancel some, or shed load",
        )
    }
}

impl<T> core::error::Error for Full<T> {}

/// Why a timer was not moved. The timer is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RescheduleError {
    /// The key's timer is not pending: it fired, was cancelled, or belongs to another wheel.
    NotPending,
    /// There is no memory to move the timer to an earlier slot, or out of the ready queue.
    ///
    /// The timer still fires at its old deadline.
    OutOfMemory,
}

impl fmt::Display for RescheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RescheduleError::NotPending => {
                "the timer is not pending: insert it again to run it again"
            }
            RescheduleError::OutOfMemory => {
                "no memory to move the timer: it keeps its old deadline"
            }
        })
    }
}

impl core::error::Error for RescheduleError {}

/// An allocation failed. No timer has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("out of memory: free some and try again, no timer has changed")
    }
}

impl core::error::Error for OutOfMemory {}
