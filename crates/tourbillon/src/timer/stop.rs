//! Starting and stopping a timer, and the timers that a stop hands back.

use std::time::{Duration, Instant};

use super::payload::Task;
use super::{Timer, TimerCore, TimerShard, Unfired};
use crate::contain::contain;
use crate::engine::StartError;
use crate::engine::shard::Taken;
use crate::key::Key;
use crate::leases::State;
use crate::stopped::Stopped;
use crate::sync::lock;

/// The next runs of timers that were running during a stop, each with its shard's number.
pub(super) type Interrupted = Vec<(usize, Taken<Task>)>;

impl Timer {
    /// Starts the driver now instead of with the first timer. Does nothing if the driver runs already.
    ///
    /// # Errors
    /// If the timer was stopped, or the thread could not be started.
    ///
    /// ```
    /// use tourbillon::{StartError, Timer};
    ///
    /// let timer = Timer::new();
    /// timer.start()?;
    /// timer.start()?;
    /// timer.stop();
    /// assert!(matches!(timer.start(), Err(StartError::Stopped)));
    /// # Ok::<(), StartError>(())
    /// ```
    pub fn start(&self) -> Result<(), StartError> {
        self.core().start()
    }

    /// Stops the timer and hands back every timer that has not started, each once.
    ///
    /// No timer starts after this, and scheduling is refused. The call waits until all running callbacks have ended,
    /// except a callback that makes the call, and also hands back the next runs of those that repeat. A second stop
    /// returns only the next runs of callbacks that were still running when the first stop returned.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::Timer;
    ///
    /// let timer = Timer::new();
    /// timer.schedule(Duration::from_secs(60), |_| println!("at last"))?;
    /// let unfired = timer.stop();
    /// assert_eq!(unfired.len(), 1);
    /// unfired.into_iter().for_each(|timer| timer.run());
    /// assert!(timer.schedule(Duration::ZERO, |_| ()).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stop(&self) -> Vec<Unfired> {
        self.stop_and_wait(None).unfired
    }

    /// As [`stop`](Timer::stop), but waits no longer than `limit` of real time.
    pub fn stop_within(&self, limit: Duration) -> Stopped<Unfired> {
        self.stop_and_wait(Some(limit))
    }

    /// Refuses new timers, runs the pending timers at their deadlines, and stops when none is left.
    ///
    /// If `limit` of real time passes first, it stops then, and hands back the pending timers, as [`stop`](Timer::stop)
    /// does.
    ///
    /// A repeating timer whose next run is pending runs once more and then ends. Sleeping tasks are waited for too. The
    /// call needs time to pass: under a [`VirtualClock`](crate::VirtualClock), another thread must advance the clock;
    /// if called inside a callback, the other callbacks need another thread to run on. Callbacks that shut down
    /// or stop the same timer do not wait for each other.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::Timer;
    ///
    /// let timer = Timer::new();
    /// let soon = timer.schedule(Duration::from_millis(5), |context| {
    ///     assert!(context.timer().schedule(Duration::ZERO, |_| ()).is_err(), "nothing new");
    /// })?;
    /// let late = timer.schedule(Duration::from_secs(3600), |_| ())?;
    /// let ended = timer.shutdown_within(Duration::from_millis(200));
    /// assert!(soon.has_started());
    /// assert!(ended.unfired.iter().any(|unfired| unfired.is_of(&late)));
    /// assert!(timer.is_stopped());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shutdown_within(&self, limit: Duration) -> Stopped<Unfired> {
        let (core, tasks) = (self.core(), &self.core().delivery.tasks);
        let end = Instant::now().checked_add(limit);
        let left = || end.map(|end| end.saturating_duration_since(Instant::now()));
        planted!("timer.shutdown-takes-new-timers", (), core.refuse());
        tasks.refuse();
        let asleep =
            || planted!("timer.shutdown-cuts-sleeps-short", true, tasks.wait_until_idle(left()));
        // Both before the first wait, because a callback and a waker of the same timer must not wait for each other.
        let guards = (core.shut_down(), tasks.shut_down());
        let _idle = core.wait_until_idle(left()) && asleep();
        drop(guards);
        self.stop_and_wait(planted!("fifth.shutdown-outwaits-its-limit", None, left()))
    }

    fn stop_and_wait(&self, limit: Option<Duration>) -> Stopped<Unfired> {
        let (core, tasks) = (self.core(), &self.core().delivery.tasks);
        let end = planted!(
            "timer.stop-within-max-panics",
            limit.map(|limit| Instant::now() + limit),
            limit.and_then(|limit| Instant::now().checked_add(limit))
        );
        let mut first = core.stop();
        // Done before the wait, because a running callback may be waiting for a task, or for a timer to end.
        planted!(
            "later.stop-waits-before-it-wakes-the-tasks",
            {
                core.wait_for_silence(limit);
                tasks.stop();
            },
            tasks.stop()
        );
        for (shard, taken) in first.iter_mut().flatten() {
            let shard = &core.shards[*shard];
            if planted!(
                "timer.stop-tells-no-operation",
                matches!(taken.value, Task::Alarm(_)),
                false
            ) {
                continue;
            }
            planted!("timer.stop-tells-no-retry", None, {
                contain(shard, || taken.value.will_not_run(State::HandedBack, shard))
            });
        }
        // If callbacks and wakers of the same timer stop it, only the first stop waits, so that they do not wait for
        // each other.
        let outside = || core.depth() + tasks.depth() == 0;
        let wait = planted!(
            "timer.two-stops-from-inside-wait-for-each-other",
            true,
            first.is_some() || outside()
        );
        let left = || {
            planted!(
                "later.stop-within-counts-its-limit-twice",
                limit,
                end.map(|end| end.saturating_duration_since(Instant::now()))
            )
        };
        let finished = wait && core.wait_for_silence(left()) && tasks.wait_for_silence(left());
        let interrupted = planted!(
            "blind.second-stop-has-lost-the-late",
            lock(&core.delivery.interrupted).take(),
            lock(&core.delivery.interrupted).as_mut().map(std::mem::take)
        );
        let all = first.into_iter().chain(interrupted).flatten();
        let unfired = all.map(|(shard, taken)| Unfired {
            key: Key::new(shard, taken.key),
            deadline: taken.deadline,
            task: Some(taken.value),
            core: core.clone(),
        });
        Stopped { unfired: unfired.collect(), finished }
    }

    /// Whether the timer was stopped.
    pub fn is_stopped(&self) -> bool {
        self.core().is_stopped()
    }
}

/// Keeps the next run of a timer that ran during a stop, for `stop` to return.
///
/// Returns the task if the engine was not stopped, the timer was cancelled during the run, or the last `Timer` was
/// dropped.
pub(super) fn hand_back(
    core: &TimerCore,
    shard: &TimerShard,
    mut taken: Taken<Task>,
) -> Option<Task> {
    let is_kept = core.is_stopped() && lock(&core.delivery.interrupted).is_some();
    if !is_kept || !shard.end(taken.key, true) {
        return Some(taken.value);
    }
    planted!("blind.interrupted-retry-hears-nothing", None, {
        contain(shard, || taken.value.will_not_run(State::HandedBack, shard))
    });
    match &mut *lock(&core.delivery.interrupted) {
        Some(interrupted) => interrupted.push((shard.index, taken)),
        None => return Some(taken.value),
    }
    None
}
