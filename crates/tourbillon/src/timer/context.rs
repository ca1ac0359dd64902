//! The context that a callback receives.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tourbillon_wheel::{self as wheel, Time};

use super::wall::Plan;
use super::{Timeout, Timer, TimerCore, TimerShard};
use crate::clock::nanoseconds;
use crate::key::Key;
use crate::leases::{Lease, State};

/// A callback's access to the timer that runs it.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{Timer, VirtualClock};
///
/// let clock = VirtualClock::new();
/// let timer = Timer::builder().clock(&clock).build()?;
/// timer.schedule(Duration::from_millis(250), |context| {
///     assert_eq!(context.lateness(), Duration::ZERO);
///     // Schedule another callback on the same timer.
///     context.timer().schedule(Duration::from_secs(1), |_| ()).unwrap();
/// })?;
/// clock.advance(Duration::from_secs(1))?;
/// assert_eq!(timer.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Context<'a> {
    pub(crate) core: &'a Arc<TimerCore>,
    pub(crate) shard: &'a Arc<TimerShard>,
    pub(super) key: wheel::Key,
    pub(super) held: Held,
    pub(super) deadline: Time,
    pub(crate) started: Time,
    /// When to arm the timer again after this run, if the callback asked for it.
    pub(super) again: Cell<Option<Time>>,
    /// Whether the timer can be armed again.
    pub(crate) may_repeat: bool,
    /// The timer's plan, if it waited for the wall clock.
    pub(crate) plan: Option<&'a Arc<Plan>>,
}

/// How the timer's handles refer to it.
pub(super) enum Held {
    /// The timer has no handle.
    ByKey,
    /// By this lease; `NONE` if no handle was left when the timer started.
    ///
    /// If the timer stays in the wheel while it runs, the mark in the wheel has the lease.
    Lease(Cell<Lease>),
    /// The timer was handed back, and the user runs its callback.
    HandedBack,
}

impl Context<'_> {
    /// The timer that runs the callback. It may have been stopped.
    pub fn timer(&self) -> Timer {
        Timer::of(self.core)
    }

    /// The key with which the timer was armed. It is already stale, unless the timer can be armed again.
    pub fn key(&self) -> Key {
        Key::new(self.shard.index, self.key)
    }

    /// The timer's handle; `None` if it was [armed by key](Timer::arm), or there is no room for another handle.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{State, Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let timeout = timer.schedule(Duration::from_secs(1), |context| {
    ///     assert_eq!(context.timeout().unwrap().state(), State::Running);
    /// })?;
    /// clock.advance(Duration::from_secs(1))?;
    /// assert_eq!((timeout.state(), timer.counts().panicked), (State::Fired, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn timeout(&self) -> Option<Timeout> {
        let (lease, over) = match &self.held {
            Held::ByKey => return None,
            Held::Lease(own) => self.share_lease(own)?,
            Held::HandedBack => planted!(
                "sixth.handed-back-run-has-no-handle",
                return None,
                (Lease::NONE, Some(State::HandedBack))
            ),
        };
        Some(Timeout::new(self.shard.clone(), self.key, lease, over))
    }

    /// Shares the lease with a further handle. Also returns how the timer ended, if it has ended.
    ///
    /// `None` if the timer has no lease and there is no room for one.
    fn share_lease(&self, own: &Cell<Lease>) -> Option<(Lease, Option<State>)> {
        self.shard.visit(self.key, |kept, mark| {
            let mut lease = own.get();
            let held = match mark {
                Ok(mark) => mark.lease()?,
                // A timer that can be armed again is in the wheel while it runs, unless it was cancelled.
                Err(_)
                    if planted!(
                        "blind.handle-after-a-cancel-in-the-run-says-running",
                        false,
                        self.may_repeat
                    ) =>
                {
                    return Some((Lease::NONE, Some(State::Cancelled)));
                }
                Err(_) => &mut lease,
            };
            if held.is_held() {
                planted!(
                    "timer.handle-taken-in-the-run-is-not-counted",
                    (),
                    kept.leases.share(*held)
                );
            } else {
                let state = planted!(
                    "timer.handle-made-in-the-run-says-pending",
                    State::Pending,
                    State::Running
                );
                *held = kept.leases.open(state)?;
            }
            let lease = *held;
            own.set(lease);
            lease.is_held().then_some((lease, None))
        })
    }

    /// The deadline of this run, as it was given. The run starts at the first tick not before it.
    pub fn deadline(&self) -> Instant {
        self.core.context.clock.instant(self.deadline)
    }

    /// The wall-clock time that the timer [waited for](Timer::schedule_wall), if any.
    pub fn wall_deadline(&self) -> Option<SystemTime> {
        self.plan?.runs_for()
    }

    /// How long after its deadline the callback was started, including the time from the deadline to its tick.
    pub fn lateness(&self) -> Duration {
        let started = planted!(
            "third.lateness-grows-while-it-runs",
            self.core.context.clock.now(),
            self.started
        );
        Duration::from_nanos(started.units().saturating_sub(self.deadline.units()))
    }

    /// Arms the timer again when the callback returns, to run after the given delay from now. Its handles stay valid.
    ///
    /// Only a timer that [repeats](Timer::schedule_repeating) can be armed again; for any other timer this does nothing
    /// and returns `false`. If called several times, the last call counts. `true` does not promise a run: a panic of
    /// the callback, a cancel or a stop ends the timer nevertheless.
    pub fn again(&self, after: Duration) -> bool {
        let now = planted!(
            "timer.again-counts-from-the-start",
            self.started,
            self.core.context.clock.now()
        );
        self.set_again(now + nanoseconds(after))
    }

    /// As [`again`](Context::again), at the given instant.
    pub fn again_at(&self, at: Instant) -> bool {
        self.set_again(self.core.context.clock.time(at))
    }

    pub(crate) fn set_again(&self, at: Time) -> bool {
        if planted!(
            "timer.first-again-counts",
            self.may_repeat && !self.wants_again(),
            self.may_repeat
        ) {
            self.again.set(Some(at));
        }
        planted!("fifth.timer-that-cannot-repeat-says-it-will", true, self.may_repeat)
    }

    pub(crate) fn wants_again(&self) -> bool {
        self.again.get().is_some()
    }
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Context");
        debug.field("key", &self.key()).field("lateness", &self.lateness()).finish_non_exhaustive()
    }
}
