//! `Timer`: runs closures at their deadlines.

mod callback;
mod context;
mod executor;
mod face;
mod inline;
mod inspect;
mod payload;
mod pool;
mod repeat;
mod run;
mod stop;
mod timeout;
mod unfired;
mod wakers;
pub(crate) mod wall;

use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use tourbillon_wheel::{RescheduleError, Time};

use crate::clock::nanoseconds;
use crate::contain::contain;
use crate::engine::settings::Settings;
use crate::engine::shard::Shard;
use crate::engine::{Core, Deliver, Driver};
use crate::error::ScheduleError;
use crate::key::Key;
use crate::leases::{Lease, State};
use crate::sync::Mutex;
use callback::Again;
pub(crate) use callback::Callback;
pub use context::Context;
pub(crate) use executor::Where;
pub use executor::{Executor, Job};
use executor::{Run, Tickets};
use face::Records;
pub use inspect::Activity;

pub(crate) use payload::Alarm;
pub(crate) use payload::Task;
use pool::Pool;
pub use repeat::Repeat;
use stop::Interrupted;
pub use timeout::{CancelOnDrop, Timeout};
pub use unfired::Unfired;
use wakers::Tasks;
use wall::Registry;

/// Runs closures at their deadlines. Clones share the same timer, and any thread may use it.
///
/// - **Never early**, not by a nanosecond of its clock; less than a tick late, plus the time the system takes to wake a
///   thread.
/// - **Exactly once**: a timer starts, is cancelled, or is handed back by [`stop`]; one of the three, once.
/// - **No needless wake-ups**: no thread wakes up unless a timer is due, with [two exceptions](crate#what-it-promises).
/// - A callback may panic, block, schedule, cancel, stop the timer, or drop its last clone.
///
/// | to | use |
/// |---|---|
/// | run a closure once | [`schedule`], [`schedule_at`]; [`arm`] by key; [`compute`] for its result |
/// | run it repeatedly | [`repeat`], [`schedule_repeating`]; [`retry`] until it succeeds |
/// | follow the wall clock | [`schedule_wall`], [`schedule_wall_every`]; `schedule_cron` (feature `calendar`) |
/// | cancel or move | the [`Timeout`] that was returned; [`cancel`] and [`reschedule`] by key |
/// | wait in a task | `sleep`, `timeout`, `interval`, `delay_queue` (feature `tasks`) |
/// | inspect | [`len`], [`pending`], [`counts`], [`lateness`], [`snapshot`] |
/// | stop | [`shutdown_within`], [`stop`] |
///
/// Dropping the last clone stops the engine: pending timers are dropped and counted as handed back. The drop does not
/// wait for running callbacks.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{Timer, VirtualClock};
///
/// let clock = VirtualClock::new();
/// let timer = Timer::builder().clock(&clock).build()?;
/// let (done, fired) = std::sync::mpsc::channel();
///
/// timer.schedule(Duration::from_millis(20), move |_| done.send("time is up").unwrap())?;
/// let other = timer.schedule(Duration::from_secs(30), |_| unreachable!())?;
/// other.cancel();
///
/// clock.advance(Duration::from_secs(60))?;
/// assert_eq!(fired.recv(), Ok("time is up"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`schedule`]: Timer::schedule
/// [`schedule_at`]: Timer::schedule_at
/// [`arm`]: Timer::arm
/// [`compute`]: Timer::compute
/// [`repeat`]: Timer::repeat
/// [`schedule_repeating`]: Timer::schedule_repeating
/// [`retry`]: Timer::retry
/// [`schedule_wall`]: Timer::schedule_wall
/// [`schedule_wall_every`]: Timer::schedule_wall_every
/// [`cancel`]: Timer::cancel
/// [`reschedule`]: Timer::reschedule
/// [`len`]: Timer::len
/// [`pending`]: Timer::pending
/// [`counts`]: Timer::counts
/// [`lateness`]: Timer::lateness
/// [`snapshot`]: Timer::snapshot
/// [`shutdown_within`]: Timer::shutdown_within
/// [`stop`]: Timer::stop
#[derive(Clone)]
pub struct Timer {
    owner: Arc<TimerOwner>,
}

/// Shared by the clones of a timer: the last clone to be dropped stops the engine.
struct TimerOwner {
    core: Arc<TimerCore>,
}

impl Drop for TimerOwner {
    fn drop(&mut self) {
        Callbacks::abandon(&self.core);
    }
}

pub(crate) type TimerCore = Core<Callbacks>;
pub(crate) type TimerShard = Shard<Callbacks>;

/// The state of a timer beside its engine: where callbacks run, the owner, and the timers that wait for the wall clock.
pub(crate) struct Callbacks {
    run: Run,
    owner: OnceLock<Weak<TimerOwner>>,
    pub(crate) wall: Arc<Registry>,
    pub(crate) tasks: Tasks,
    /// The next runs of repeating timers that ran during a stop, until a stop returns them.
    ///
    /// `None` once the last `Timer` is dropped.
    interrupted: Mutex<Option<Interrupted>>,
}

impl Timer {
    pub(crate) fn with(settings: Settings, run: Where) -> Self {
        let run = match run {
            Where::Driver => Run::Driver,
            Where::Pool(most) => Run::Pool(Pool::new(most, &settings.name, settings.spawn.clone())),
            Where::Own(executor) => Run::Own(executor, Tickets::new(settings.shards)),
        };
        let (wall, tasks) = (Registry::new(), Tasks::new(&settings));
        let interrupted = Mutex::new(Some(Vec::new()));
        let callbacks = Callbacks { run, owner: OnceLock::new(), wall, tasks, interrupted };
        let core = Core::new(settings, callbacks);
        let owner = Arc::new(TimerOwner { core });
        let known = owner.core.delivery.owner.set(Arc::downgrade(&owner));
        debug_assert!(known.is_ok(), "a core has one owner");
        Timer { owner }
    }

    pub(crate) fn with_driver(settings: Settings) -> (Self, Driver) {
        let timer = Timer::with(settings, Where::Driver);
        let driver = Driver::new(timer.core().clone());
        (timer, driver)
    }

    /// The timer of a callback. If the last clone was dropped, the returned timer is a stopped one.
    fn of(core: &Arc<TimerCore>) -> Self {
        let owner = core.delivery.owner.get().and_then(Weak::upgrade);
        let owner = planted!("more.timer-of-a-context-stops-it", None, owner);
        Timer { owner: owner.unwrap_or_else(|| Arc::new(TimerOwner { core: core.clone() })) }
    }
}

/// Scheduling.
impl Timer {
    /// Runs `callback` once after the given delay, never earlier.
    ///
    /// With a delay of zero, it runs as soon as possible, but never inside this call.
    ///
    /// # Errors
    /// If the timer was stopped or is full, or its driver could not be started. The error holds the callback.
    pub fn schedule<F>(&self, after: Duration, callback: F) -> Result<Timeout, ScheduleError<F>>
    where
        F: FnOnce(&Context<'_>) + Send + 'static,
    {
        self.schedule_time(self.time() + nanoseconds(after), callback)
    }

    /// Runs `callback` once at the given instant, never earlier; as soon as possible if the instant has passed.
    ///
    /// # Errors
    /// As [`schedule`](Timer::schedule).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::Timer;
    ///
    /// let timer = Timer::new();
    /// let at = timer.now() + Duration::from_secs(90);
    /// let timeout = timer.schedule_at(at, |_| ())?;
    /// assert_eq!(timeout.deadline(), Some(at));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schedule_at<F>(&self, at: Instant, callback: F) -> Result<Timeout, ScheduleError<F>>
    where
        F: FnOnce(&Context<'_>) + Send + 'static,
    {
        self.schedule_time(self.core().context.clock.time(at), callback)
    }

    /// Runs `callback` after the given delay, and again as often as it calls [`Context::again`].
    ///
    /// # Errors
    /// As [`schedule`](Timer::schedule).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{State, Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let mut delay = Duration::from_secs(1);
    /// let attempts = timer.schedule_repeating(delay, move |context| {
    ///     // The attempt failed: wait twice as long before the next attempt.
    ///     delay *= 2;
    ///     context.again(delay);
    /// })?;
    /// clock.advance(Duration::from_secs(1 + 2 + 4))?;
    /// assert_eq!(timer.counts().fired, 3);
    /// assert!(attempts.cancel());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schedule_repeating<F>(
        &self,
        after: Duration,
        callback: F,
    ) -> Result<Timeout, ScheduleError<F>>
    where
        F: FnMut(&Context<'_>) + Send + 'static,
    {
        let armed = self.schedule_boxed(self.time() + nanoseconds(after), Again(callback));
        armed.map_err(|error| error.map(|again| again.0))
    }

    /// As [`schedule_repeating`](Timer::schedule_repeating), with the first run at the given instant.
    ///
    /// # Errors
    /// As [`schedule`](Timer::schedule).
    pub fn schedule_repeating_at<F>(
        &self,
        at: Instant,
        callback: F,
    ) -> Result<Timeout, ScheduleError<F>>
    where
        F: FnMut(&Context<'_>) + Send + 'static,
    {
        let armed = self.schedule_boxed(self.core().context.clock.time(at), Again(callback));
        armed.map_err(|error| error.map(|again| again.0))
    }

    /// As [`schedule`](Timer::schedule), but returns a `Copy` key instead of a handle: for millions of timers.
    ///
    /// # Errors
    /// As [`schedule`](Timer::schedule).
    pub fn arm<F>(&self, after: Duration, callback: F) -> Result<Key, ScheduleError<F>>
    where
        F: FnOnce(&Context<'_>) + Send + 'static,
    {
        self.arm_time(self.time() + nanoseconds(after), callback)
    }

    /// As [`arm`](Timer::arm), at the given instant.
    ///
    /// # Errors
    /// As [`schedule`](Timer::schedule).
    pub fn arm_at<F>(&self, at: Instant, callback: F) -> Result<Key, ScheduleError<F>>
    where
        F: FnOnce(&Context<'_>) + Send + 'static,
    {
        self.arm_time(self.core().context.clock.time(at), callback)
    }

    #[inline]
    fn schedule_time<F>(&self, at: Time, callback: F) -> Result<Timeout, ScheduleError<F>>
    where
        F: FnOnce(&Context<'_>) + Send + 'static,
    {
        let armed = self.schedule_task(at, Task::once(callback, Lease::NONE));
        armed.map_err(|error| error.map(Task::give_back))
    }

    /// Schedules a callback that may run again, or waits for the wall clock.
    pub(crate) fn schedule_boxed<C: Callback + 'static>(
        &self,
        at: Time,
        callback: C,
    ) -> Result<Timeout, ScheduleError<C>> {
        let armed = self.schedule_task(at, Task::Boxed(Box::new(callback), Lease::NONE));
        armed.map_err(|error| error.map(Task::give_back))
    }

    /// Schedules a task. Not generic over the callback, so it is compiled only once.
    fn schedule_task(&self, at: Time, task: Task) -> Result<Timeout, ScheduleError<Task>> {
        let shard = self.core().own_shard();
        match self.core().arm(shard, at, task) {
            Ok((key, lease)) => Ok(Timeout::new(shard.clone(), key, lease, None)),
            Err(error) => Err(error),
        }
    }

    #[inline]
    pub(crate) fn arm_time<F>(&self, at: Time, callback: F) -> Result<Key, ScheduleError<F>>
    where
        F: FnOnce(&Context<'_>) + Send + 'static,
    {
        let armed = self.arm_task(at, Task::once(callback, Lease::BY_KEY));
        armed.map_err(|error| error.map(Task::give_back))
    }

    /// As [`schedule_task`](Timer::schedule_task), without a handle.
    fn arm_task(&self, at: Time, task: Task) -> Result<Key, ScheduleError<Task>> {
        let shard = self.core().own_shard();
        match self.core().arm(shard, at, task) {
            Ok((key, _)) => Ok(Key::new(shard.index, key)),
            Err(error) => Err(error),
        }
    }
}

/// Operations by key.
impl Timer {
    /// Cancels a timer. `true` means that it never starts.
    ///
    /// `false` means that it has started, was already cancelled or handed back, or belongs to another engine.
    pub fn cancel(&self, key: Key) -> bool {
        let settle = |task: &mut Task, kept: &mut Records| {
            if planted!(
                "timer.cancelled-by-key-in-a-run-says-running",
                !matches!(task, Task::Running(_)),
                true
            ) {
                task.mark_ended(State::Cancelled, &mut kept.leases);
            }
        };
        let shards = &self.core().shards;
        let shard = planted!(
            "timer.foreign-key-panics",
            Some(&shards[key.shard()]),
            shards.get(key.shard())
        );
        let Some(shard) = shard else { return false };
        let Some(task) = shard.cancel(key.inner(), settle) else { return false };
        task.discard(
            planted!(
                "fifth.retry-cancelled-by-key-says-stopped",
                State::HandedBack,
                State::Cancelled
            ),
            shard,
        );
        true
    }

    /// Moves a timer's deadline to the given delay from now.
    ///
    /// # Errors
    /// If the timer is not pending, or memory is exhausted. It then keeps its deadline.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let idle = timer.arm(Duration::from_secs(30), |_| ())?;
    /// clock.advance(Duration::from_secs(29))?;
    /// timer.reschedule(idle, Duration::from_secs(30))?;
    /// clock.advance(Duration::from_secs(29))?;
    /// assert!(timer.is_pending(idle));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reschedule(&self, key: Key, after: Duration) -> Result<(), RescheduleError> {
        self.move_to(key, self.time() + nanoseconds(after))
    }

    /// Moves a timer's deadline to the given instant.
    ///
    /// # Errors
    /// As [`reschedule`](Timer::reschedule).
    pub fn reschedule_at(&self, key: Key, at: Instant) -> Result<(), RescheduleError> {
        self.move_to(key, self.core().context.clock.time(at))
    }

    #[inline]
    pub(crate) fn move_to(&self, key: Key, at: Time) -> Result<(), RescheduleError> {
        self.core().reschedule(key, at)
    }

    /// Whether the timer is pending.
    pub fn is_pending(&self, key: Key) -> bool {
        self.deadline(key).is_some()
    }

    /// The timer's deadline, if it is pending.
    pub fn deadline(&self, key: Key) -> Option<Instant> {
        self.core().deadline(key)
    }
}

impl Timer {
    /// Arms an alarm, for another front-end of the engine.
    pub(crate) fn arm_alarm(
        &self,
        after: Duration,
        alarm: Arc<dyn Alarm>,
    ) -> Result<Key, ScheduleError<()>> {
        let at = self.time() + nanoseconds(after);
        self.arm_task(at, Task::Alarm(alarm)).map_err(ScheduleError::reason)
    }

    /// Runs user code with no lock held, for another front-end. `None` if it panicked.
    ///
    /// The panic is counted and reported.
    #[inline]
    pub(crate) fn contain<R>(&self, foreign: impl FnOnce() -> R) -> Option<R> {
        contain(&*self.core().shards[0], foreign)
    }

    #[inline]
    pub(crate) fn core(&self) -> &Arc<TimerCore> {
        &self.owner.core
    }

    #[inline]
    pub(crate) fn time(&self) -> Time {
        self.core().context.clock.now()
    }
}

impl std::fmt::Debug for Timer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timer").field("counts", &self.counts()).finish_non_exhaustive()
    }
}
