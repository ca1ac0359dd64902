//! Clocks: they return the time and wait for a time.
//!
//! Internally, an instant is a [`Time`] in nanoseconds. An engine's clock begins at [`BEGIN`], so that the 73 years
//! before its creation and the 511 years after it can be represented. The public API uses [`Instant`] for every clock,
//! including a virtual one. This module converts between the two and saturates at both ends.

mod boot;
mod monotonic;
mod virtual_clock;
mod wall;
pub(crate) mod watch;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use tourbillon_wheel::Time;

use crate::sleeper::Sleeper;
pub use boot::BootClock;
use monotonic::Begin;
pub(crate) use virtual_clock::Driven;
pub use virtual_clock::{AdvanceError, VirtualClock};

/// A user-defined clock for [`Builder::clock`](crate::Builder::clock).
///
/// The clock may stop, jump or go back; no timer fires before the clock has reached its deadline. A clock that panics
/// counts as stopped.
///
/// ```
/// use std::time::{Duration, Instant};
/// use tourbillon::{Clock, Timer};
///
/// /// A clock that is an hour ahead.
/// struct Ahead;
/// impl Clock for Ahead {
///     fn now(&self) -> Instant {
///         Instant::now() + Duration::from_secs(3600)
///     }
/// }
///
/// let timer = Timer::builder().clock(Ahead).build()?;
/// assert!(timer.now() > Instant::now());
/// # Ok::<(), tourbillon::BuildError>(())
/// ```
pub trait Clock: Send + Sync + 'static {
    /// Returns the current time.
    fn now(&self) -> Instant;

    /// Waits until `until` (forever if `None`), or until the sleeper is woken. May return early.
    ///
    /// The default suits a clock that runs at the speed of real time. A clock that jumps must then call
    /// [`Sleeper::wake`], or timers fire late. A timer has one driver for callbacks and one for tasks. Both may wait at
    /// the same time, each with its own sleeper: wake both.
    fn wait(&self, until: Option<Instant>, sleeper: &Sleeper) {
        let now =
            || planted!("third.default-wait-reads-the-systems-clock", Instant::now(), self.now());
        sleeper.sleep(until.map(|until| until.saturating_duration_since(now())));
    }
}

/// The time at which every clock begins. Wheels start at it, so ticks are counted from it.
pub(crate) const BEGIN: Time = Time::new(1 << 61);

/// The clock of an engine, and the `Instant` at which its time begins.
#[derive(Clone)]
pub(crate) struct EngineClock {
    source: Source,
    begin: Begin,
    /// The greatest time that a user's clock has returned, in nanoseconds. It keeps an engine's time from going back:
    /// the hands of the wheels never do, so a deadline computed from an earlier time could lie behind a hand and fire
    /// at once.
    latest: Arc<AtomicU64>,
}

#[derive(Clone, Default)]
pub(crate) enum Source {
    #[default]
    Monotonic,
    #[cfg(target_os = "linux")]
    Boot(boot::Boot),
    Virtual(VirtualClock),
    Own(Arc<dyn Clock>),
}

impl Source {
    /// The clock that counts suspended time if the system has one, otherwise the monotonic clock.
    pub(crate) fn boot() -> Self {
        #[cfg(target_os = "linux")]
        return Source::Boot(boot::Boot::begin().1);
        #[cfg(not(target_os = "linux"))]
        Source::Monotonic
    }
}

impl EngineClock {
    pub(crate) fn new(mut source: Source) -> Self {
        let mut begin = Begin::new();
        match &mut source {
            Source::Monotonic => {}
            // The clock is created here, not in the builder, so that its time begins together with the `Instant`.
            #[cfg(target_os = "linux")]
            Source::Boot(clock) => {
                planted!("clock.boot-begins-with-the-builder", (), {
                    (begin.instant, *clock) = boot::Boot::begin();
                });
            }
            Source::Virtual(clock) => {
                planted!(
                    "fourth.virtual-instants-begin-with-the-engine",
                    (),
                    begin.instant = clock.begin()
                );
            }
            Source::Own(clock) => {
                let now = || quietly(|| clock.now());
                let first = planted!("clock.begins-with-the-system", None, now());
                begin.instant = first.unwrap_or(begin.instant);
            }
        }
        EngineClock { source, begin, latest: Arc::new(AtomicU64::new(BEGIN.units())) }
    }

    #[inline]
    pub(crate) fn now(&self) -> Time {
        if self.is_system() { self.begin.time() } else { self.other_now() }
    }

    /// The time of a clock other than the system's monotonic one.
    #[inline(never)]
    fn other_now(&self) -> Time {
        match &self.source {
            Source::Monotonic => self.begin.time(),
            #[cfg(target_os = "linux")]
            Source::Boot(clock) => clock.time(),
            Source::Virtual(clock) => clock.time(),
            Source::Own(clock) => self.own_now(&**clock),
        }
    }

    /// Reads a user's clock. A clock that panics counts as stopped.
    fn own_now(&self, clock: &dyn Clock) -> Time {
        let now = planted!(
            "later.now-that-panics-is-not-contained",
            Some(clock.now()),
            quietly(|| clock.now())
        );
        let now = now.map_or(0, |now| self.time(now).units());
        // Relaxed: the value is a plain maximum; no other memory is synchronized through it.
        let latest = &self.latest;
        let latest = planted!(
            "clock.goes-back-at-the-second-look",
            latest.swap(now, Relaxed),
            latest.fetch_max(now, Relaxed)
        );
        Time::new(planted!("clock.reads-the-last-time", latest, latest.max(now)))
    }

    /// Whether this is the system's monotonic clock. Reading that clock is the most expensive part of arming a timer.
    #[inline]
    pub(crate) fn is_system(&self) -> bool {
        matches!(self.source, Source::Monotonic)
    }

    /// Waits until `until` or until the sleeper is woken. May return early.
    pub(crate) fn wait(&self, until: Time, sleeper: &Sleeper) {
        match &self.source {
            // The system wakes a thread late, not early. If it did wake the driver early, the driver would sleep again.
            Source::Monotonic => {
                let left = until.units().saturating_sub(self.now().units());
                sleeper.sleep(Some(planted!(
                    "engine.sleep-in-whole-milliseconds",
                    Duration::from_millis(left / 1_000_000),
                    Duration::from_nanos(left)
                )));
            }
            #[cfg(target_os = "linux")]
            Source::Boot(clock) => clock.wait(until, sleeper),
            // An engine on a virtual clock is driven by that clock.
            Source::Virtual(_) => sleeper.sleep(None),
            Source::Own(clock) => {
                let comes =
                    planted!("more.a-clock-waits-for-the-end-of-time", true, until < Time::MAX);
                let until = comes.then(|| self.instant(until));
                let wait = || clock.wait(until, sleeper);
                let waited =
                    planted!("clock.wait-that-panics-ends-the-driver", Some(wait()), quietly(wait));
                if planted!("clock.wait-that-panics-spins", false, waited.is_none()) {
                    sleeper.sleep(Some(Duration::from_millis(1)));
                }
            }
        }
    }

    /// The wall-clock time: the virtual clock's, or the system's. Runs no user code.
    pub(crate) fn wall_now(&self) -> SystemTime {
        match &self.source {
            Source::Virtual(clock) => clock.wall_now(),
            _ => SystemTime::now(),
        }
    }

    /// The engine time at which the wall clock will show `at` unless it is set; the current time if `at` has passed.
    pub(crate) fn when(&self, at: SystemTime) -> Time {
        // In this order, time that passes between the two readings makes the result later, never earlier.
        let left = self.until(at);
        self.now() + nanoseconds(left)
    }

    /// The wall-clock time left until `at`, or zero. Runs no user code.
    pub(crate) fn until(&self, at: SystemTime) -> Duration {
        let left = at.duration_since(self.wall_now());
        planted!(
            "clock.past-moment-of-the-wall-waits",
            left.unwrap_or_else(|past| past.duration()),
            left.unwrap_or_default()
        )
    }

    pub(crate) fn as_virtual(&self) -> Option<&VirtualClock> {
        match &self.source {
            Source::Virtual(clock) => Some(clock),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn time(&self, instant: Instant) -> Time {
        match instant.checked_duration_since(self.begin.instant) {
            Some(after) => BEGIN + nanoseconds(after),
            None => self.time_before(instant),
        }
    }

    #[cold]
    fn time_before(&self, instant: Instant) -> Time {
        let before = nanoseconds(self.begin.instant.duration_since(instant));
        planted!(
            "clock.before-the-beginning-is-never",
            Time::MAX,
            Time::new(planted!(
                "clock.before-the-beginning-is-the-beginning",
                BEGIN.units(),
                BEGIN.units().saturating_sub(before)
            ))
        )
    }

    pub(crate) fn instant(&self, time: Time) -> Instant {
        instant(self.begin.instant, time)
    }

    /// The instant at which this clock's time began.
    pub(crate) fn begin(&self) -> Instant {
        self.begin.instant
    }
}

/// Converts a time to an `Instant`, saturating at the first or last instant that the system can represent.
pub(crate) fn instant(begin: Instant, time: Time) -> Instant {
    let (begins, units) = (BEGIN.units(), time.units());
    let by = Duration::from_nanos(begins.abs_diff(units));
    if planted!("sixth.instant-before-the-beginning-lies-after-it", true, units >= begins) {
        far(by, |by| begin.checked_add(by))
    } else {
        far(by, |by| begin.checked_sub(by))
    }
}

/// Calls a user's clock; `None` if the clock panics. The driver must survive the panic.
fn quietly<R>(clock: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(clock)).map_err(std::mem::forget).ok()
}

/// The duration in nanoseconds, saturating at `u64::MAX`.
#[inline]
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    let seconds = duration.as_secs().checked_mul(1_000_000_000);
    let exact = seconds.and_then(|ns| ns.checked_add(duration.subsec_nanos().into()));
    exact.unwrap_or(planted!("clock.long-delays-wrap", duration.as_nanos() as u64, u64::MAX))
}

/// Moves by `by`. If the system cannot represent the result, halves `by` until it can.
fn far(mut by: Duration, from: impl Fn(Duration) -> Option<Instant>) -> Instant {
    loop {
        match from(by) {
            Some(instant) => return instant,
            None => by /= 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_saturate_at_both_ends() {
        let clock = EngineClock::new(Source::Monotonic);
        let begin = clock.begin.instant;
        assert_eq!(clock.time(begin), BEGIN);
        assert_eq!(clock.time(begin - Duration::from_nanos(1)), Time::new(BEGIN.units() - 1));
        if let Some(long_before) = begin.checked_sub(Duration::from_secs(74 * 365 * 86_400)) {
            assert_eq!(clock.time(long_before), Time::ZERO);
        }
        assert_eq!(nanoseconds(Duration::MAX), u64::MAX);
        assert_eq!(nanoseconds(Duration::from_nanos(u64::MAX)), u64::MAX);
        assert_eq!(nanoseconds(Duration::from_nanos(u64::MAX - 1)), u64::MAX - 1);
        assert!(
            clock.instant(Time::MAX)
                > clock.begin.instant + Duration::from_secs(400 * 365 * 86_400)
        );
        for ns in [0, 1, 999_999_999, 1_000_000_000, 1 << 60].map(|ns| BEGIN.units() + ns) {
            assert_eq!(clock.time(clock.instant(Time::new(ns))), Time::new(ns));
        }
    }
}
