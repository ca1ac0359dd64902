//! Starting and stopping a timer, and what a stop hands back.

use std::time::{Duration, Instant};

use super::payload::Task;
use super::{State, Timer, TimerCore, TimerShard, Unfired};
use crate::contain::contain;
use crate::engine::StartError;
use crate::engine::shard::Taken;
use crate::key::Key;
use crate::stopped::Stopped;
use crate::sync::lock;

/// The next runs of timers that ran during a stop, each with its shard.
pub(super) type Interrupted = Vec<(usize, Taken<Task>)>;

impl Timer {
    /// Starts the driver now instead of with the first timer. Once it runs, this does nothing.
    ///
    /// # Errors
    /// The timer was stopped, or the thread could not be started.
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

    /// Stops the timer and hands back every timer that has not started, each once. Nothing starts after this, and
    /// scheduling is refused. It waits until the callbacks that run have ended, except the one that it is called from,
    /// and hands back the next run of those that were to run again. A second stop returns nothing but the next run of
    /// what still ran when the first one returned.
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

    /// [`stop`](Timer::stop) that waits no longer than `limit`, of real time.
    pub fn stop_within(&self, limit: Duration) -> Stopped<Unfired> {
        self.stop_and_wait(Some(limit))
    }

    /// Refuses new timers, runs those that are pending at their time, and stops when none is left, or when `limit`, of
    /// real time, has passed; what is pending then is handed back, as by [`stop`](Timer::stop).
    ///
    /// A timer that repeats runs once more, if a run is pending, and then ends. Tasks that sleep are waited for too.
    /// The wait is for time to pass: under a [`VirtualClock`](crate::VirtualClock) somebody else has to advance it, and
    /// inside a callback the others need a thread of their own.
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
        let _idle = core.wait_until_idle(left()) && tasks.wait_until_idle(left());
        self.stop_and_wait(left())
    }

    fn stop_and_wait(&self, limit: Option<Duration>) -> Stopped<Unfired> {
        let (core, tasks) = (self.core(), &self.core().delivery.tasks);
        let end = planted!(
            "timer.stop-within-max-panics",
            limit.map(|limit| Instant::now() + limit),
            limit.and_then(|limit| Instant::now().checked_add(limit))
        );
        let mut first = core.stop();
        // Before the wait: a callback that runs may wait for a task, or to hear of a timer.
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
        // A callback and a waker are inside of the same timer, and must not wait for each other.
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

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.core().is_stopped()
    }
}

/// Keeps the next run of a timer that ran while the engine was stopped, for `stop` to return. It comes back if the
/// engine was not stopped, the timer was cancelled meanwhile, or the last `Timer` is dropped.
pub(super) fn hand_back(
    core: &TimerCore,
    shard: &TimerShard,
    mut taken: Taken<Task>,
) -> Option<Task> {
    let is_kept = core.is_stopped() && lock(&core.delivery.interrupted).is_some();
    if !is_kept || !shard.end(taken.key, true) {
        return Some(taken.value);
    }
    contain(shard, || taken.value.will_not_run(State::HandedBack, shard));
    match &mut *lock(&core.delivery.interrupted) {
        Some(interrupted) => interrupted.push((shard.index, taken)),
        None => return Some(taken.value),
    }
    None
}
