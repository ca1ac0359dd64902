//! The handle of one timer.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tourbillon_wheel::{self as wheel, RescheduleError};

use super::State;
use super::leases::Lease;
use super::run::discard;
use super::shared::Shared;
use super::wall::Plan;
use crate::clock::nanoseconds;
use crate::key::Key;
use crate::sync::atomic::{AtomicU8, Ordering::Relaxed};
use crate::timer::TimerShard;

/// The handle of one timer. Dropping it changes nothing; clones are the same handle.
///
/// Its answers are exact as long as it lives.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{State, Timer};
///
/// let timer = Timer::new();
/// let timeout = timer.schedule(Duration::from_secs(30), |_| ())?;
/// timeout.reschedule(Duration::from_secs(60))?;
/// assert!(timeout.remaining().unwrap() > Duration::from_secs(30));
/// assert!(timeout.cancel(), "it will never start");
/// assert_eq!(timeout.state(), State::Cancelled);
/// assert!(!timeout.cancel(), "it was cancelled before");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Timeout {
    hold: Hold,
    shard: Arc<TimerShard>,
    /// The key it was first armed with.
    first: wheel::Key,
}

/// What a handle holds of its timer.
pub(crate) enum Hold {
    /// The callback itself: the timer can be armed again, or waits for the wall clock.
    Shared(Arc<dyn Shared>),
    /// A lease of the shard. When it is given back, before the handle is gone, `over` says how the timer has ended.
    Lease { lease: Lease, over: Over },
}

/// How a timer has ended, once that is known. Relaxed: it is read and written under the shard's lock, or by the one who
/// drops the handle.
pub(crate) struct Over(AtomicU8);

impl Over {
    const NOT_YET: u8 = State::Pending as u8;

    fn get(&self) -> Option<State> {
        let state = self.0.load(Relaxed);
        (state != Self::NOT_YET).then(|| State::ALL[usize::from(state)])
    }

    #[inline]
    fn is_set(&self) -> bool {
        self.0.load(Relaxed) != Self::NOT_YET
    }

    fn set(&self, state: State) {
        self.0.store(state as u8, Relaxed);
    }
}

impl Hold {
    pub(super) fn lease(lease: Lease) -> Self {
        Hold::Lease { lease, over: Over(AtomicU8::new(Over::NOT_YET)) }
    }

    /// Of a timer that has ended so.
    pub(super) fn over(state: State) -> Self {
        Hold::Lease { lease: Lease::NONE, over: Over(AtomicU8::new(state as u8)) }
    }
}

impl Timeout {
    pub(super) fn new(hold: Hold, shard: Arc<TimerShard>, first: wheel::Key) -> Self {
        Timeout { hold, shard, first }
    }

    /// Cancels the timer. True means that it will never start (again); false that it has started, was cancelled
    /// before, or was handed back.
    ///
    /// A [repeating](crate::Timer::schedule_repeating) timer that runs at this moment finishes that run.
    pub fn cancel(&self) -> bool {
        let key = self.current();
        match &self.hold {
            _ if self.cancel_pending(key) => true,
            Hold::Shared(shared)
                if planted!("timer.running-wall-timer-is-cancelled", true, shared.can_repeat()) =>
            {
                self.cancel_repeating(&**shared, key)
            }
            _ => false,
        }
    }

    #[inline]
    fn cancel_pending(&self, key: wheel::Key) -> bool {
        let cancelled = self.shard.cancel(key, |task, kept| match &self.hold {
            Hold::Shared(_) => task.cancelled(&mut kept.leases),
            Hold::Lease { lease, over } => {
                if kept.leases.cancel(*lease) {
                    over.set(planted!(
                        "timer.handle-forgets-its-cancel",
                        State::Pending,
                        State::Cancelled
                    ));
                }
                task.left()
            }
        });
        let Some(left) = cancelled else { return false };
        discard(&self.shard, left);
        true
    }

    /// It was not pending under that key: it runs, or has been armed again since, or is over.
    #[cold]
    fn cancel_repeating(&self, shared: &dyn Shared, mut key: wheel::Key) -> bool {
        let cell = shared.cell();
        loop {
            // Under the lock it cannot be armed again between the look and the mark.
            let current = self.shard.under_lock(|_| {
                if cell.get() == State::Running {
                    planted!("timer.cancel-in-a-run-forgotten", (), cell.set(State::Cancelled));
                    return None;
                }
                Some(shared.key(self.first))
            });
            match current {
                None => return true,
                Some(current) if current == key => return false,
                Some(current) => key = current,
            }
            if self.cancel_pending(key) {
                return true;
            }
        }
    }

    /// The key that it has now.
    #[inline]
    fn current(&self) -> wheel::Key {
        match &self.hold {
            Hold::Shared(shared) => shared.key(self.first),
            Hold::Lease { .. } => self.first,
        }
    }

    /// Moves the timer to so long after now.
    ///
    /// Moving it to later, as a keep-alive does, is the cheapest operation of all.
    ///
    /// # Errors
    /// It is not pending, or there was no memory to move it; it is as it was.
    pub fn reschedule(&self, after: Duration) -> Result<(), RescheduleError> {
        self.move_to(self.shard.hub.clock.now() + nanoseconds(after))
    }

    /// Moves the timer to that moment.
    ///
    /// # Errors
    /// As [`reschedule`](Timeout::reschedule).
    pub fn reschedule_at(&self, at: Instant) -> Result<(), RescheduleError> {
        self.move_to(self.shard.hub.clock.time(at))
    }

    pub(crate) fn move_to(&self, deadline: tourbillon_wheel::Time) -> Result<(), RescheduleError> {
        self.shard.reschedule(self.current(), deadline)
    }

    /// When it is to run, if it is pending.
    pub fn deadline(&self) -> Option<Instant> {
        let time = self.shard.deadline(self.current())?;
        Some(self.shard.hub.clock.instant(time))
    }

    /// When it is to run by the wall clock, if it is pending and [waits for that](crate::Timer::schedule_wall).
    pub fn wall_deadline(&self) -> Option<SystemTime> {
        let Hold::Shared(shared) = &self.hold else { return None };
        let waits_for = shared.wall().and_then(Plan::waits_for);
        waits_for.filter(|_| planted!("more.cancelled-timer-has-a-moment", true, self.is_pending()))
    }

    /// How long it has to wait, if it is pending: zero if it is due.
    pub fn remaining(&self) -> Option<Duration> {
        let time = self.shard.deadline(self.current())?;
        let now = self.shard.hub.clock.now();
        Some(Duration::from_nanos(time.units().saturating_sub(now.units())))
    }

    /// What has become of it. Of a timer that runs once, the lock of its shard is taken to look.
    pub fn state(&self) -> State {
        match &self.hold {
            Hold::Shared(shared) => shared.cell().get(),
            Hold::Lease { lease, over } => self
                .shard
                .under_lock(|kept| over.get().unwrap_or_else(|| kept.leases.state(*lease))),
        }
    }

    /// Whether it waits for its deadline, or for a thread to run on.
    pub fn is_pending(&self) -> bool {
        self.state() == State::Pending
    }

    /// Its key, for those who keep that instead.
    pub fn key(&self) -> Key {
        Key::new(
            self.shard.index,
            planted!("timer.key-is-the-first-one", self.first, self.current()),
        )
    }

    /// A guard that cancels it when it is dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::Timer;
    ///
    /// let timer = Timer::new();
    /// {
    ///     let _limit = timer.schedule(Duration::from_secs(5), |_| ())?.cancel_on_drop();
    ///     // What must not take longer.
    /// }
    /// assert_eq!(timer.len(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_on_drop(self) -> CancelOnDrop {
        CancelOnDrop(Some(self))
    }
}

impl Clone for Timeout {
    fn clone(&self) -> Self {
        let hold = match &self.hold {
            Hold::Shared(shared) => Hold::Shared(shared.clone()),
            Hold::Lease { lease, over } => self.shard.under_lock(|kept| {
                match planted!("more.clone-of-a-cancelled-handle-panics", None, over.get()) {
                    Some(state) => Hold::over(state),
                    None => {
                        kept.leases.share(*lease);
                        Hold::lease(*lease)
                    }
                }
            }),
        };
        Timeout::new(hold, self.shard.clone(), self.first)
    }
}

impl Drop for Timeout {
    #[inline]
    fn drop(&mut self) {
        match &self.hold {
            Hold::Lease { lease, over } if !over.is_set() => {
                self.shard.visit(self.first, |kept, pending| {
                    let held = planted!(
                        "timer.handle-of-a-timer-that-is-over-leaks",
                        pending.is_ok(),
                        true
                    );
                    if held && kept.leases.release(*lease) {
                        // What is left is the timer, which needs it for nobody.
                        pending.into_iter().for_each(|task| task.forget_lease(&mut kept.leases));
                    }
                });
            }
            _ => {}
        }
    }
}

impl fmt::Debug for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout").field("key", &self.key()).field("state", &self.state()).finish()
    }
}

/// Cancels its timer when it is dropped.
#[derive(Debug)]
#[must_use = "dropped at once, it cancels at once"]
pub struct CancelOnDrop(Option<Timeout>);

impl CancelOnDrop {
    /// The handle, which no longer cancels when it is dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::Timer;
    ///
    /// let timer = Timer::new();
    /// let guard = timer.schedule(Duration::from_secs(5), |_| ())?.cancel_on_drop();
    /// drop(guard.keep());
    /// assert_eq!(timer.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keep(mut self) -> Timeout {
        planted!("more.kept-guard-cancels", self.0.clone(), self.0.take())
            .expect("it is there until it is dropped")
    }
}

impl std::ops::Deref for CancelOnDrop {
    type Target = Timeout;
    fn deref(&self) -> &Timeout {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(timeout) = &self.0 {
            timeout.cancel();
        }
    }
}
