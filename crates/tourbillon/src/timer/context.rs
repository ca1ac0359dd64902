//! What a callback is given.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tourbillon_wheel::{self as wheel, Time};

use super::leases::Lease;
use super::wall::Plan;
use super::{State, Timeout, Timer, TimerCore, TimerShard};
use crate::clock::nanoseconds;
use crate::key::Key;

/// What a callback may know and do while it runs.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{Timer, VirtualClock};
///
/// let clock = VirtualClock::new();
/// let timer = Timer::builder().clock(&clock).build()?;
/// timer.schedule(Duration::from_millis(250), |context| {
///     assert_eq!(context.lateness(), Duration::ZERO);
///     // Another one, on the same timer.
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
    pub(super) again: Cell<Option<Time>>,
    /// Whether the timer can be armed again.
    pub(crate) may_repeat: bool,
    /// When it runs by the wall clock, if it waited for that.
    pub(crate) plan: Option<&'a Arc<Plan>>,
}

/// What a handle of the timer holds.
pub(super) enum Held {
    /// It has none.
    ByKey,
    /// `NONE` if no handle was left when it started. If the timer stays in the wheel while it runs, its mark there has
    /// the lease.
    Lease(Cell<Lease>),
    /// It was handed back, and is run by hand.
    HandedBack,
}

impl Context<'_> {
    /// The timer that runs the callback. It may have been stopped.
    pub fn timer(&self) -> Timer {
        Timer::of(self.core)
    }

    /// The key that it was armed with. It is stale now, unless the timer can be armed again.
    pub fn key(&self) -> Key {
        Key::new(self.shard.index, self.key)
    }

    /// Its handle, unless it was [armed by key](Timer::arm).
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
            Held::HandedBack => (Lease::NONE, Some(State::HandedBack)),
        };
        Some(Timeout::new(self.shard.clone(), self.key, lease, over))
    }

    /// The lease, for another handle; or how the timer has ended. `None` if there is no lease, and no room for one.
    fn share_lease(&self, own: &Cell<Lease>) -> Option<(Lease, Option<State>)> {
        self.shard.visit(self.key, |kept, mark| {
            let mut lease = own.get();
            let held = match mark {
                Ok(mark) => mark.lease()?,
                // One that can be armed again is in the wheel while it runs, unless it was cancelled.
                Err(_) if self.may_repeat => {
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
            } else if kept.leases.has_room() {
                let state = planted!(
                    "timer.handle-made-in-the-run-says-pending",
                    State::Pending,
                    State::Running
                );
                *held = kept.leases.open(state);
            }
            let lease = *held;
            own.set(lease);
            lease.is_held().then_some((lease, None))
        })
    }

    /// When it was to run.
    pub fn deadline(&self) -> Instant {
        self.core.context.clock.instant(self.deadline)
    }

    /// The moment of the wall clock that it waited for, if it [waited for one](Timer::schedule_wall).
    pub fn wall_deadline(&self) -> Option<SystemTime> {
        self.plan?.runs_for()
    }

    /// How long after its deadline it was started.
    pub fn lateness(&self) -> Duration {
        let started = planted!(
            "third.lateness-grows-while-it-runs",
            self.core.context.clock.now(),
            self.started
        );
        Duration::from_nanos(started.units().saturating_sub(self.deadline.units()))
    }

    /// Arms the timer again, to run so long after now; its handles stay good. Only for one that was
    /// [scheduled to repeat](Timer::schedule_repeating); for any other it does nothing and answers `false`. The last
    /// call counts.
    pub fn again(&self, after: Duration) -> bool {
        let now = planted!(
            "timer.again-counts-from-the-start",
            self.started,
            self.core.context.clock.now()
        );
        self.set_again(now + nanoseconds(after))
    }

    /// As [`again`](Context::again), at that moment.
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
        self.may_repeat
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
