//! Time that stands still until it is told to move.
//!
//! An engine on a virtual clock has no driver thread: [`advance`](VirtualClock::advance) drives it. It goes from one
//! moment at which something is due to the next, over all engines of the clock; at each it has the engines run what
//! is due and waits until it has run, wherever it runs. So what fires, at which moment, and what `now` reads
//! meanwhile are the same in every run.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use tourbillon_wheel::Time;

use super::{BEGIN, instant, nanoseconds, wall};
use crate::in_callback::{self, InCallback};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};

/// A clock for tests and simulations: an hour passes in microseconds, the same way every time.
///
/// Clones are the same clock, and any number of engines may share it.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{Timer, VirtualClock};
///
/// let clock = VirtualClock::new();
/// let timer = Timer::builder().clock(&clock).build()?;
/// let hour = timer.schedule(Duration::from_secs(3600), |_| ())?;
///
/// clock.advance(Duration::from_secs(3599))?;
/// assert!(hour.is_pending());
/// clock.advance(Duration::from_secs(1))?;
/// assert!(!hour.is_pending());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct VirtualClock {
    shared: Arc<Shared>,
}

struct Shared {
    begin: Instant,
    /// Nanoseconds since `begin`. Written by who advances, under `advancing`.
    now: AtomicU64,
    /// What the wall clock showed at `begin`, had nobody set it since: nanoseconds since 1970.
    wall: Mutex<i128>,
    advancing: Mutex<()>,
    engines: Mutex<Vec<Weak<dyn Driven>>>,
}

/// An engine as its virtual clock sees it.
pub(crate) trait Driven: Send + Sync {
    /// The moment of the next timer.
    fn next_due(&self) -> Option<Time>;
    /// Whether it is not for the clock to run what is due, but for an event loop.
    fn waits_for_its_loop(&self) -> bool {
        false
    }
    /// Runs what is due now, and returns when it has run.
    fn turn(self: Arc<Self>);
    /// The wall clock was set.
    fn wall_was_set(self: Arc<Self>) {}
}

/// Why a virtual clock did not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdvanceError {
    /// It was called inside a callback, whose end it would have to wait for.
    InsideCallback,
}

impl fmt::Display for AdvanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a callback cannot advance the clock that runs it: schedule a timer instead, or advance outside",
        )
    }
}

impl std::error::Error for AdvanceError {}

impl VirtualClock {
    /// A clock that stands at its beginning.
    pub fn new() -> Self {
        VirtualClock {
            shared: Arc::new(Shared {
                begin: Instant::now(),
                now: AtomicU64::new(BEGIN.units()),
                wall: Mutex::new(wall::YEAR_2000),
                advancing: Mutex::new(()),
                engines: Mutex::new(Vec::new()),
            }),
        }
    }

    /// The current time.
    pub fn now(&self) -> Instant {
        instant(self.shared.begin, self.time())
    }

    /// The time since its beginning.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.passed())
    }

    /// Moves time on by so much, and runs everything that becomes due on the way, each at its own moment; returns
    /// when all of it has run. Timers that callbacks arm meanwhile run too if they are due within the same span.
    ///
    /// A callback that arms a timer with no delay, which does the same, and so on without end, never lets time go
    /// on.
    ///
    /// # Errors
    /// Inside a callback of an engine on this clock. Nothing has happened then.
    pub fn advance(&self, by: Duration) -> Result<(), AdvanceError> {
        planted!(
            "clock.two-advances-overlap",
            self.advance_to(self.time() + nanoseconds(by)),
            self.go(|| Some(self.time() + nanoseconds(by))).map(|_| ())
        )
    }

    /// Moves time on to the moment of the next timer and runs what is due then. Answers whether there was one.
    ///
    /// It sees the timers of an engine that an [event loop turns](crate::Driver), too, and leaves them to the loop:
    /// that is to turn before the next call, which otherwise finds them due still, and does not go past them.
    ///
    /// # Errors
    /// As [`advance`](VirtualClock::advance).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{AdvanceError, Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let own = clock.clone();
    /// timer.schedule(Duration::from_secs(90), move |_| {
    ///     assert_eq!(own.advance(Duration::from_secs(1)), Err(AdvanceError::InsideCallback));
    /// })?;
    /// assert!(clock.advance_to_next()?);
    /// assert_eq!(clock.elapsed(), Duration::from_secs(90));
    /// assert!(!clock.advance_to_next()?, "nothing is pending");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advance_to_next(&self) -> Result<bool, AdvanceError> {
        self.go(|| self.next_due())
    }

    /// [`advance`](VirtualClock::advance) to that moment; to no other, however many do so.
    pub(crate) fn advance_to(&self, to: Time) -> Result<(), AdvanceError> {
        self.go(|| Some(to)).map(|_| ())
    }

    /// The time of its wall clock. It begins at 2000-01-01T00:00:00Z and moves with [`advance`](VirtualClock::advance).
    pub fn wall_now(&self) -> SystemTime {
        let begin = *lock(&self.shared.wall);
        wall::system_time(begin + i128::from(self.passed()))
    }

    /// Sets its wall clock, forward or back; no time passes. The timers that
    /// [wait for the wall clock](crate::Timer::schedule_wall) follow it, and this returns when all that became due by
    /// it has run. (Between two ticks of its timer it becomes due at the next one.)
    ///
    /// # Errors
    /// As [`advance`](VirtualClock::advance).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let hour = Duration::from_secs(3600);
    /// let timeout = timer.schedule_wall(clock.wall_now() + hour, |_| ())?;
    ///
    /// clock.set_wall(clock.wall_now() - hour)?;
    /// clock.advance(hour)?;
    /// assert!(timeout.is_pending(), "set back, it waits");
    /// clock.set_wall(clock.wall_now() + hour)?;
    /// assert!(!timeout.is_pending(), "set forward, it runs");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_wall(&self, to: SystemTime) -> Result<(), AdvanceError> {
        let set = || {
            let now = self.time();
            let passed = planted!("clock.wall-set-as-of-the-beginning", 0, self.passed());
            *lock(&self.shared.wall) = wall::since_1970(to) - i128::from(passed);
            let told = planted!("later.set-wall-tells-one-engine", 1, usize::MAX);
            self.engines().into_iter().take(told).for_each(|engine| engine.wall_was_set());
            Some(now)
        };
        self.go(set).map(|_| ())
    }

    /// Sets the wall clock and tells nobody: a test plays the watch.
    #[cfg(all(test, any(feature = "calendar", shuttle)))]
    pub(crate) fn poke_wall(&self, to: SystemTime) {
        *lock(&self.shared.wall) = wall::since_1970(to) - i128::from(self.passed());
    }

    pub(crate) fn go(&self, to: impl FnOnce() -> Option<Time>) -> Result<bool, AdvanceError> {
        if in_callback::any_on(self.id()) {
            return Err(AdvanceError::InsideCallback);
        }
        // Two threads that advance take turns, and each adds its own span.
        let _alone = lock(&self.shared.advancing);
        // An executor, or what wakes a loop, that would advance the clock gets an error, as a callback does.
        let _in_callback =
            InCallback::enter(0, planted!("clock.executor-that-advances-hangs", 0, self.id()));
        let Some(target) = to() else { return Ok(false) };
        loop {
            match self.next_step().filter(|&next| next <= target) {
                Some(next) => {
                    self.set(planted!("clock.jumps-over-the-steps", target, next));
                    self.engines().into_iter().for_each(|engine| engine.turn());
                }
                // One more look after the last step: who came to wait meanwhile has read the time before it.
                None if planted!(
                    "clock.no-look-after-the-last-step",
                    {
                        self.set(target);
                        true
                    },
                    self.time() >= target
                ) =>
                {
                    return Ok(true);
                }
                None => self.set(target),
            }
        }
    }

    /// Never back: what is overdue runs now.
    fn set(&self, now: Time) {
        let (shown, now) = (&self.shared.now, now.units());
        planted!("clock.goes-back-to-what-is-overdue", shown.store(now, Ordering::Release), {
            shown.fetch_max(now, Ordering::Release);
        });
    }

    fn next_due(&self) -> Option<Time> {
        self.engines().iter().filter_map(|engine| engine.next_due()).min()
    }

    /// The next moment to stop at. What is due in an engine that waits for its loop does not hold up the others.
    pub(crate) fn next_step(&self) -> Option<Time> {
        let now = self.time();
        let next = |engine: &Arc<dyn Driven>| {
            let ours =
                || planted!("clock.a-loop-holds-up-the-others", true, !engine.waits_for_its_loop());
            engine.next_due().filter(|&next| next > now || ours())
        };
        self.engines().iter().filter_map(next).min()
    }

    fn engines(&self) -> Vec<Arc<dyn Driven>> {
        let mut engines = lock(&self.shared.engines);
        forget_gone(&mut engines);
        engines.iter().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn attach(&self, engine: Weak<dyn Driven>) {
        let mut engines = lock(&self.shared.engines);
        // A clock that nobody advances must not keep the memory of every engine that it ever had.
        if engines.len() == engines.capacity() {
            forget_gone(&mut engines);
        }
        engines.push(engine);
    }

    pub(crate) fn begin(&self) -> Instant {
        self.shared.begin
    }

    /// What tells one virtual clock from another.
    pub(crate) fn id(&self) -> usize {
        Arc::as_ptr(&self.shared) as usize
    }

    /// Nanoseconds since its beginning.
    fn passed(&self) -> u64 {
        self.time().units() - BEGIN.units()
    }

    /// The current time, as engines see it.
    #[inline]
    pub(crate) fn time(&self) -> Time {
        Time::new(self.shared.now.load(Ordering::Acquire))
    }
}

fn forget_gone(engines: &mut Vec<Weak<dyn Driven>>) {
    let alive = |engine: &Weak<dyn Driven>| engine.strong_count() > 0;
    planted!("clock.dead-engines-kept", (), engines.retain(alive));
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualClock").field("elapsed", &self.elapsed()).finish()
    }
}
