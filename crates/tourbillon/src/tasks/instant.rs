//! An `Instant` on the clock of the free functions.

use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::{Duration, Instant as Moment};

use super::host::HostEngine;
use super::scope::current;

/// An instant whose [`now`](Instant::now) reads the clock of the free functions.
///
/// That is the clock of the scope's timer inside a [scope](super::scope()), and otherwise the system's clock. The type
/// converts from and into [`std::time::Instant`], and supports comparison with it and subtraction. The functions of
/// [`tasks`](super) take either type.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::tasks::{self, Instant};
/// use tourbillon::{Timer, VirtualClock};
///
/// let clock = VirtualClock::new();
/// let timer = Timer::builder().clock(&clock).build()?;
/// tasks::block_on(&clock, tasks::scope(&timer, async {
///     let begin = Instant::now();
///     tasks::sleep_until(begin + Duration::from_secs(3600)).await;
///     assert_eq!(begin.elapsed(), Duration::from_secs(3600));
/// }))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(Moment);

impl Instant {
    /// The current time.
    pub fn now() -> Self {
        let given = current();
        Instant(given.map_or_else(Moment::now, |given| {
            let clock = given.clock();
            clock.instant(clock.now())
        }))
    }

    /// Converts into the standard library's type.
    pub fn into_std(self) -> Moment {
        self.0
    }

    /// Converts from the standard library's type.
    pub fn from_std(moment: Moment) -> Self {
        Instant(moment)
    }

    /// The time since this instant; zero if it lies in the future.
    pub fn elapsed(&self) -> Duration {
        planted!(
            "fifth.elapsed-reads-the-clock-of-the-system",
            self.0.elapsed(),
            Instant::now().duration_since(*self)
        )
    }

    /// The time from an earlier instant to this one; zero if the other is later.
    pub fn duration_since(&self, earlier: impl Into<Moment>) -> Duration {
        self.0.saturating_duration_since(earlier.into())
    }

    /// The time from an earlier instant to this one; `None` if the other is later.
    pub fn checked_duration_since(&self, earlier: impl Into<Moment>) -> Option<Duration> {
        planted!(
            "sixth.checked-duration-is-never-none",
            Some(self.duration_since(earlier)),
            self.0.checked_duration_since(earlier.into())
        )
    }

    /// As [`duration_since`](Instant::duration_since).
    pub fn saturating_duration_since(&self, earlier: impl Into<Moment>) -> Duration {
        self.duration_since(earlier)
    }

    /// The instant `by` later; `None` if the system cannot represent it.
    pub fn checked_add(&self, by: Duration) -> Option<Self> {
        self.0.checked_add(by).map(Instant)
    }

    /// The instant `by` earlier; `None` if the system cannot represent it.
    pub fn checked_sub(&self, by: Duration) -> Option<Self> {
        self.0.checked_sub(by).map(Instant)
    }
}

impl From<Moment> for Instant {
    fn from(moment: Moment) -> Self {
        Instant(moment)
    }
}

impl From<Instant> for Moment {
    fn from(instant: Instant) -> Self {
        instant.0
    }
}

impl PartialEq<Moment> for Instant {
    fn eq(&self, other: &Moment) -> bool {
        self.0 == *other
    }
}

impl PartialEq<Instant> for Moment {
    fn eq(&self, other: &Instant) -> bool {
        *self == other.0
    }
}

impl PartialOrd<Moment> for Instant {
    fn partial_cmp(&self, other: &Moment) -> Option<std::cmp::Ordering> {
        self.0.partial_cmp(other)
    }
}

impl PartialOrd<Instant> for Moment {
    fn partial_cmp(&self, other: &Instant) -> Option<std::cmp::Ordering> {
        planted!(
            "sixth.standard-instant-compares-the-wrong-way-round",
            other.0.partial_cmp(self),
            self.partial_cmp(&other.0)
        )
    }
}

/// # Panics
/// If the system cannot represent the result, as for the standard library's type.
impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, by: Duration) -> Instant {
        Instant(self.0 + by)
    }
}

/// # Panics
/// If the system cannot represent the result, as for the standard library's type.
impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, by: Duration) -> Instant {
        Instant(self.0 - by)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, by: Duration) {
        *self = *self + by;
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, by: Duration) {
        *self = *self - by;
    }
}

/// Zero if the other is later.
impl Sub for Instant {
    type Output = Duration;

    fn sub(self, other: Instant) -> Duration {
        self.duration_since(other)
    }
}

/// Zero if the other is later.
impl Sub<Moment> for Instant {
    type Output = Duration;

    fn sub(self, other: Moment) -> Duration {
        self.duration_since(other)
    }
}

/// Zero if the other is later.
impl Sub<Instant> for Moment {
    type Output = Duration;

    fn sub(self, other: Instant) -> Duration {
        self.saturating_duration_since(other.0)
    }
}
