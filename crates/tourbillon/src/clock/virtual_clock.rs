//! A virtual clock: time stands still until the caller advances it.
//!
//! An engine on a virtual clock has no driver thread: [`advance`](VirtualClock::advance) drives it, unless the caller's
//! event loop does. It steps through the moments at which a timer is due, across all engines of the clock. At each step
//! it makes the engines run the due timers, and waits until these have run, on whatever thread. So every run has the
//! same timers fire at the same moments, with the same values of `now`.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use tourbillon_wheel::Time;

use super::{BEGIN, instant, nanoseconds, wall};
use crate::in_callback::{self, InCallback};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};

/// A clock for tests and simulations: an hour passes in microseconds, and every run is the same.
///
/// Clones share the same time, and any number of engines may use it.
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
    /// The current [`Time`] in nanoseconds. Written only under `advancing`.
    now: AtomicU64,
    /// The wall-clock time at `begin` according to the current setting, in nanoseconds since 1970.
    wall: Mutex<i128>,
    advancing: Mutex<()>,
    engines: Mutex<Vec<Weak<dyn Driven>>>,
}

/// What a virtual clock needs of an engine, or of a queue.
pub(crate) trait Driven: Send + Sync {
    /// When the next timer is due.
    fn next_due(&self) -> Option<Time>;
    /// Whether an event loop, not the clock, runs the due timers.
    fn waits_for_its_loop(&self) -> bool {
        false
    }
    /// Runs the timers that are due now, and returns when they have run. Does nothing if an event loop runs them. A
    /// queue wakes the threads that wait to take, and returns when these have taken what is due.
    fn turn(self: Arc<Self>);
    /// Called when the wall clock was set.
    fn wall_was_set(self: Arc<Self>) {}
}

/// Why a virtual clock did not advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdvanceError {
    /// The call was made inside a callback, for which it would have to wait.
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
    /// Creates a clock at the beginning of its time.
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

    /// Returns the current time.
    pub fn now(&self) -> Instant {
        instant(self.shared.begin, self.time())
    }

    /// Returns the time since the clock's beginning.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.passed())
    }

    /// Advances time by `by`, running each timer at its own moment. Returns when all due timers have run.
    ///
    /// Timers that callbacks arm during the call run too if they are due within the same span.
    ///
    /// If every callback arms another timer without a delay, time never advances and this call never returns.
    ///
    /// # Errors
    /// If called inside a callback of an engine on this clock. Time has then not advanced.
    pub fn advance(&self, by: Duration) -> Result<(), AdvanceError> {
        planted!(
            "clock.two-advances-overlap",
            self.advance_to(self.time() + nanoseconds(by)),
            self.go(|| Some(self.time() + nanoseconds(by))).map(|_| ())
        )
    }

    /// Advances time to the next timer and runs the timers due then. Returns whether there was one.
    ///
    /// A timer of an engine that an [event loop drives](crate::Driver) counts as the next timer too, but only the loop
    /// runs it. Turn the loop before the next call: otherwise the timer is still due, and the call does not advance
    /// beyond it.
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
        self.go(|| {
            planted!(
                "fourth.next-goes-past-what-waits-for-its-loop",
                self.next_step(),
                self.next_due()
            )
        })
    }

    /// As [`advance`](VirtualClock::advance), but to an absolute time, so concurrent calls do not add up.
    pub(crate) fn advance_to(&self, to: Time) -> Result<(), AdvanceError> {
        self.go(|| Some(to)).map(|_| ())
    }

    /// Returns the wall-clock time. It begins at 2000-01-01T00:00:00Z and advances with the clock.
    pub fn wall_now(&self) -> SystemTime {
        let begin = *lock(&self.shared.wall);
        wall::system_time(begin + i128::from(self.passed()))
    }

    /// Sets the wall clock, forward or back; no time passes.
    ///
    /// Timers that [wait for the wall clock](crate::Timer::schedule_wall) follow it. The call returns when all timers
    /// that became due have run. A timer whose moment lies between two ticks becomes due at the next tick.
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
        planted!(
            "fourth.refused-setting-of-the-wall-is-made",
            *lock(&self.shared.wall) = wall::since_1970(to) - i128::from(self.passed()),
            ()
        );
        let set = || {
            let now = self.time();
            let passed = planted!("clock.wall-set-as-of-the-beginning", 0, self.passed());
            *lock(&self.shared.wall) = wall::since_1970(to) - i128::from(passed);
            let told = planted!("later.set-wall-tells-one-engine", 1, usize::MAX);
            self.engines().into_iter().take(told).for_each(|engine| engine.wall_was_set());
            planted!("fifth.set-wall-runs-nothing", None, Some(now))
        };
        self.go(set).map(|_| ())
    }

    /// Sets the wall clock without notifying the engines: the test notifies them instead of the watch.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn poke_wall(&self, to: SystemTime) {
        *lock(&self.shared.wall) = wall::since_1970(to) - i128::from(self.passed());
    }

    /// Advances to the time that `to` returns, step by step; returns `false` if it returns none. `to` is called once no
    /// other call advances.
    pub(crate) fn go(&self, to: impl FnOnce() -> Option<Time>) -> Result<bool, AdvanceError> {
        if in_callback::any_on(self.id()) {
            return Err(AdvanceError::InsideCallback);
        }
        // If two threads advance, the second waits for the first; both spans are added.
        let _alone = lock(&self.shared.advancing);
        // Like a callback, an executor or a wake hook gets an error if it tries to advance the clock.
        let _in_callback =
            InCallback::enter(0, planted!("clock.executor-that-advances-hangs", 0, self.id()));
        let Some(target) = to() else { return Ok(false) };
        loop {
            match self.next_step().filter(|&next| next <= target) {
                Some(next) => {
                    self.set(planted!("clock.jumps-over-the-steps", target, next));
                    self.engines().into_iter().for_each(|engine| engine.turn());
                }
                // Look once more after the last step: a thread that began to wait during it may have read the earlier
                // time.
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

    /// Sets the time, but never to an earlier time: an overdue timer runs now.
    fn set(&self, now: Time) {
        let (shown, now) = (&self.shared.now, now.units());
        planted!("clock.goes-back-to-what-is-overdue", shown.store(now, Ordering::Release), {
            shown.fetch_max(now, Ordering::Release);
        });
    }

    /// When the next timer is due, whoever runs it.
    fn next_due(&self) -> Option<Time> {
        self.engines().iter().filter_map(|engine| engine.next_due()).min()
    }

    /// The next moment to step to: as [`next_due`](VirtualClock::next_due), but skips overdue timers that only an event
    /// loop runs, so that they do not hold up the others.
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
        // A clock that is never advanced must not accumulate dead engines.
        if engines.len() == engines.capacity() {
            forget_gone(&mut engines);
        }
        engines.push(engine);
    }

    pub(crate) fn begin(&self) -> Instant {
        self.shared.begin
    }

    /// Identifies this clock among others.
    pub(crate) fn id(&self) -> usize {
        Arc::as_ptr(&self.shared) as usize
    }

    /// Nanoseconds since the clock's beginning.
    fn passed(&self) -> u64 {
        self.time().units() - BEGIN.units()
    }

    /// The current time as engines see it. Acquire pairs with the Release in `set`: a thread that reads the new time
    /// sees every write made before it was set.
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
