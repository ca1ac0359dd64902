//! Time, and the only place that rounds it.
//!
//! A [`Time`] is a reading of the caller's clock in the caller's own unit. A wheel counts in ticks: tick `k`
//! is at `start + k · tick`. **A deadline rounds up, a clock reading rounds down**, so a timer is never early, and
//! less than one tick late. Rounding both the same way would fire up to one tick early.
//!
//! ```text
//!   start       start+tick   start+2·tick
//!     |------------|------------|------
//!     0      ^     1            2          ticks
//!            a deadline at ^ is due at tick 1; a clock that reads ^ is in tick 0
//! ```
//!
//! Nothing here wraps: a deadline before `start` is due at tick 0, and a tick past the end of time has no [`Time`].

use core::fmt;
use core::num::NonZeroU64;

use crate::GeometryError;

/// A moment on the caller's clock, in the caller's unit: a wheel never reads a clock and never names a unit.
///
/// ```
/// use tourbillon_wheel::Time;
///
/// let now = Time::from(1_000);
/// assert_eq!(now + 50, Time::from(1_050));
/// assert_eq!(Time::MAX + 1, Time::MAX, "time saturates, it never wraps");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The beginning of time.
    pub const ZERO: Time = Time(0);
    /// The end of time.
    pub const MAX: Time = Time(u64::MAX);

    /// The moment `units` after the beginning of time.
    pub const fn new(units: u64) -> Self {
        Time(units)
    }

    /// The units between the beginning of time and this moment.
    pub const fn units(self) -> u64 {
        self.0
    }
}

impl From<u64> for Time {
    fn from(units: u64) -> Self {
        Time(units)
    }
}

impl From<Time> for u64 {
    fn from(time: Time) -> Self {
        time.0
    }
}

/// `units` later; saturates at [`Time::MAX`].
impl core::ops::Add<u64> for Time {
    type Output = Time;
    fn add(self, units: u64) -> Time {
        Time(self.0.saturating_add(units))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A count of ticks since the wheel's start. Used only inside the crate: callers use [`Time`].
pub(crate) type Tick = u64;

/// Converts moments to ticks and back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    start: u64,
    /// Units per tick.
    tick: NonZeroU64,
}

impl Scale {
    pub(crate) fn new(start: Time, tick: u64) -> Result<Self, GeometryError> {
        let tick = NonZeroU64::new(tick).ok_or(GeometryError::ZeroTick)?;
        Ok(Scale { start: start.0, tick })
    }

    /// The tick at which a deadline is due: the first tick that is not before the deadline.
    #[inline]
    pub(crate) fn due(self, deadline: Time) -> Tick {
        let units = deadline.0.saturating_sub(self.start);
        if self.tick.get() == 1 { units } else { divide_up(units, self.tick) }
    }

    /// The current tick: the last tick that is not after `now`.
    #[inline]
    pub(crate) fn current(self, now: Time) -> Tick {
        let units = now.0.saturating_sub(self.start);
        if self.tick.get() == 1 { units } else { divide_down(units, self.tick) }
    }

    /// The moment of a tick, or `None` if it lies past the end of time.
    #[inline]
    pub(crate) fn time(self, tick: Tick) -> Option<Time> {
        tick.checked_mul(self.tick())?.checked_add(self.start).map(Time)
    }

    /// The moment of a tick, or the end of time.
    #[inline]
    pub(crate) fn time_or_max(self, tick: Tick) -> Time {
        if self.tick.get() == 1 {
            return Time(tick.saturating_add(self.start));
        }
        self.time(tick).unwrap_or(Time::MAX)
    }

    pub(crate) fn start(self) -> Time {
        Time(self.start)
    }

    pub(crate) fn tick(self) -> u64 {
        self.tick.get()
    }
}

// Inlined: otherwise every start of a timer would save its registers for a call.
#[inline]
fn divide_up(units: u64, tick: NonZeroU64) -> Tick {
    let down = units / tick;
    planted!("wheel.deadline-rounds-down", down, down + u64::from(units % tick > 0))
}

// Not inlined: ticks of one unit are the common case, and a division is slow anyway.
#[inline(never)]
fn divide_down(units: u64, tick: NonZeroU64) -> Tick {
    units / tick
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_rounds_up_and_a_clock_rounds_down() {
        let scale = Scale::new(Time(1000), 10).unwrap();
        for (units, due, current) in
            [(0, 0, 0), (1000, 0, 0), (1001, 1, 0), (1009, 1, 0), (1010, 1, 1)]
        {
            assert_eq!(scale.due(Time(units)), due, "due of {units}");
            assert_eq!(scale.current(Time(units)), current, "current of {units}");
        }
    }

    #[test]
    fn the_end_of_time_has_no_tick_that_a_clock_can_reach() {
        let scale = Scale::new(Time(7), 10).unwrap();
        let due = scale.due(Time::MAX);
        assert_eq!(due, scale.current(Time::MAX) + 1);
        assert_eq!(scale.time(due), None);
        assert_eq!(scale.time_or_max(due), Time::MAX);
    }
}
