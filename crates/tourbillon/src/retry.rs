//! Jobs that may fail, and are retried until one succeeds, gives up or is cancelled.
//!
//! A retry is an ordinary timer whose callback arms itself again after each failure, as long as its [`Backoff`] allows.
//! It has exactly one outcome, which is reported once:
//!
//! | what happens | outcome | reported by |
//! |---|---|---|
//! | an attempt succeeds | success, even if cancelled during the attempt | the thread that runs it |
//! | an attempt fails, and the backoff or the job gives up | gave up | the thread that runs it |
//! | an attempt panics | panicked | the thread that runs it |
//! | it is cancelled between two attempts | cancelled | the thread that cancels |
//! | it is cancelled during an attempt that fails and would be retried | cancelled | the thread that runs it |
//! | the timer is stopped, or lacks memory to continue | stopped | the thread that stops it, or runs it |
//!
//! The listener is user code: it is called with no lock held, and its panics are contained.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tourbillon_wheel::Time;

use crate::backoff::Backoff;
use crate::contain::contain;
use crate::error::ScheduleError;
use crate::leases::State;
use crate::sync::{Condvar, Mutex, lock, wait};
use crate::timer::{Callback, Context, Timeout, Timer, TimerShard};

/// The outcome of a job that was [retried](Timer::retry).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retried<T, E> {
    /// An attempt succeeded with this value.
    Success(T),
    /// A limit of the backoff was reached, or the job itself gave up.
    GaveUp {
        /// The error of the last attempt.
        error: E,
        /// The number of attempts.
        tries: u32,
    },
    /// It was cancelled before an attempt succeeded.
    Cancelled,
    /// The timer was stopped, or lacked memory to continue, before an attempt succeeded.
    Stopped,
    /// An attempt panicked. The panic was reported and counted.
    Panicked,
}

/// One attempt of a job.
#[derive(Debug)]
pub struct Attempt {
    number: u32,
    last: Cell<bool>,
}

impl Attempt {
    /// The number of this attempt; the first is 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Makes this attempt the last one if it fails: for permanent errors.
    pub fn give_up(&self) {
        self.last.set(true);
    }
}

/// Retrying.
impl Timer {
    /// Runs `job` as soon as possible, and again after each failure, as `backoff` allows.
    ///
    /// The job never runs inside this call. A delay of zero counts as one tick. Use the handle to wait for the outcome,
    /// poll it, or cancel.
    ///
    /// The job continues if the handle is dropped.
    ///
    /// # Errors
    /// As [`schedule`](Timer::schedule).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Backoff, Retried, Timer};
    ///
    /// let timer = Timer::new();
    /// let backoff = Backoff::new(Duration::from_millis(5)).tries(4);
    /// let retry = timer.retry(backoff, |attempt| match attempt.number() {
    ///     3 => Ok("connected"),
    ///     _ => Err("refused"),
    /// })?;
    /// assert_eq!(retry.wait(), Retried::Success("connected"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn retry<T, E, J>(&self, backoff: Backoff, job: J) -> Result<Retry<T, E>, ScheduleError<J>>
    where
        T: Send + 'static,
        E: Send + 'static,
        J: FnMut(&Attempt) -> Result<T, E> + Send + 'static,
    {
        let slot = Arc::new(OutcomeCell { outcome: Mutex::new(None), told: Condvar::new() });
        let told = slot.clone();
        match self.retry_then(backoff, job, move |outcome| told.put(outcome)) {
            Ok(timeout) => Ok(Retry { slot, timeout }),
            Err(refused) => Err(refused.map(|(job, _)| job)),
        }
    }

    /// As [`retry`](Timer::retry), but calls `then` once with the outcome.
    ///
    /// `then` runs on the thread of the last attempt, or on the thread that cancels or stops. The returned handle
    /// belongs to the next attempt: it cancels the retry or reschedules the attempt.
    ///
    /// # Errors
    /// As [`schedule`](Timer::schedule). The error holds both closures, and `then` is not called.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use tourbillon::{Backoff, Retried, Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let (sender, outcome) = mpsc::channel();
    /// let backoff = Backoff::new(Duration::from_secs(1)).within(Duration::from_secs(10));
    /// let failing = |_: &tourbillon::Attempt| Err::<(), _>("refused");
    /// timer.retry_then(backoff, failing, move |outcome| sender.send(outcome).unwrap())?;
    ///
    /// clock.advance(Duration::from_secs(60))?;
    /// // Attempts at 0, 1, 3 and 7 seconds; the next one would be at 15.
    /// assert_eq!(outcome.recv()?, Retried::GaveUp { error: "refused", tries: 4 });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn retry_then<T, E, J, L>(
        &self,
        backoff: Backoff,
        job: J,
        then: L,
    ) -> Result<Timeout, ScheduleError<(J, L)>>
    where
        T: 'static,
        E: 'static,
        J: FnMut(&Attempt) -> Result<T, E> + Send + 'static,
        L: FnOnce(Retried<T, E>) + Send + 'static,
    {
        self.retry_from(self.time(), backoff, job, then)
    }

    /// As [`retry_then`](Timer::retry_then), with the first attempt at `first`.
    pub(crate) fn retry_from<T, E, J, L>(
        &self,
        first: Time,
        backoff: Backoff,
        job: J,
        then: L,
    ) -> Result<Timeout, ScheduleError<(J, L)>>
    where
        T: 'static,
        E: 'static,
        J: FnMut(&Attempt) -> Result<T, E> + Send + 'static,
        L: FnOnce(Retried<T, E>) + Send + 'static,
    {
        let trying = Trying { backoff, closures: Some((job, then)), tries: 0, began: None };
        let armed = self.schedule_boxed(first, trying);
        armed.map_err(|error| error.map(|trying| trying.closures.expect("it has not run")))
    }
}

/// The handle of a job that is being [retried](Timer::retry). Dropping it changes nothing.
pub struct Retry<T, E> {
    slot: Arc<OutcomeCell<T, E>>,
    timeout: Timeout,
}

struct OutcomeCell<T, E> {
    outcome: Mutex<Option<Retried<T, E>>>,
    told: Condvar,
}

impl<T, E> OutcomeCell<T, E> {
    fn put(&self, outcome: Retried<T, E>) {
        *lock(&self.outcome) = Some(outcome);
        planted!("timer.outcome-wakes-nobody", (), self.told.notify_all());
    }
}

impl<T, E> Retry<T, E> {
    /// Cancels the retry: `true` means that no further attempt starts, `false` that the retry is already over.
    ///
    /// An attempt that is running finishes; if it succeeds, the outcome is success.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Backoff, Retried, Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let retry = timer.retry(Backoff::new(Duration::from_secs(1)), |_| Err::<(), _>("no"))?;
    /// clock.advance(Duration::from_secs(60))?;
    /// assert!(!retry.is_over());
    /// assert!(retry.cancel());
    /// assert_eq!(retry.wait(), Retried::Cancelled);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel(&self) -> bool {
        self.timeout.cancel()
    }

    /// Returns the handle of the next attempt, to cancel or reschedule it elsewhere.
    ///
    /// For example, reschedule it to now when the network is available again.
    pub fn timeout(&self) -> Timeout {
        self.timeout.clone()
    }

    /// Whether there is an outcome.
    pub fn is_over(&self) -> bool {
        planted!(
            "blind.retry-is-over-while-it-tries",
            !self.timeout.is_pending(),
            lock(&self.slot.outcome).is_some()
        )
    }

    /// Blocks until the outcome is known.
    ///
    /// A callback that calls this blocks its thread; on a timer with a single thread it would wait for itself.
    pub fn wait(self) -> Retried<T, E> {
        let mut outcome = lock(&self.slot.outcome);
        loop {
            match outcome.take() {
                Some(outcome) => return outcome,
                None => outcome = wait(&self.slot.told, outcome, None),
            }
        }
    }

    /// As [`wait`](Retry::wait), for at most `limit` of real time.
    ///
    /// # Errors
    /// The handle, if there is no outcome yet.
    pub fn wait_within(self, limit: Duration) -> Result<Retried<T, E>, Self> {
        let now = Instant::now();
        let end =
            planted!("timer.wait-within-max-panics", Some(now + limit), now.checked_add(limit));
        let mut outcome = lock(&self.slot.outcome);
        loop {
            if let Some(outcome) = outcome.take() {
                return Ok(outcome);
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                drop(outcome);
                return Err(self);
            }
            outcome = wait(&self.slot.told, outcome, left);
        }
    }

    /// Returns the outcome if it is known, without blocking.
    ///
    /// # Errors
    /// The handle, if there is no outcome yet.
    pub fn try_wait(self) -> Result<Retried<T, E>, Self> {
        self.wait_within(Duration::ZERO)
    }
}

impl<T, E> fmt::Debug for Retry<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry").field("is_over", &self.is_over()).finish_non_exhaustive()
    }
}

/// The callback of a retry.
struct Trying<J, L> {
    backoff: Backoff,
    /// The job and the listener, until there is an outcome.
    closures: Option<(J, L)>,
    /// The number of attempts made.
    tries: u32,
    /// When the first attempt started.
    began: Option<Time>,
}

impl<T, E, J, L> Callback for Trying<J, L>
where
    T: 'static,
    E: 'static,
    J: FnMut(&Attempt) -> Result<T, E> + Send + 'static,
    L: FnOnce(Retried<T, E>) + Send + 'static,
{
    fn call(&mut self, context: &Context<'_>) {
        let Some((job, _)) = &mut self.closures else { return };
        let first = *self.began.get_or_insert(planted!(
            "timer.time-before-the-first-try-counts",
            Time::new(context.started.units().saturating_sub(context.lateness().as_nanos() as u64)),
            context.started
        ));
        let began = planted!("timer.retry-counts-from-the-last-try", context.started, first);
        self.tries = self.tries.saturating_add(1);
        let attempt = Attempt { number: self.tries, last: Cell::new(false) };
        let outcome = match contain(context.shard, || job(&attempt)) {
            Some(Ok(value)) => Retried::Success(value),
            Some(Err(error)) => {
                let failed = planted!(
                    "more.time-that-a-try-takes-does-not-count",
                    context.started,
                    context.core.context.clock.now()
                );
                let elapsed = failed.units().saturating_sub(began.units());
                let delay = self.backoff.next_delay(Duration::from_nanos(elapsed));
                if let Some(delay) = delay.filter(|_| {
                    planted!("sixth.job-that-gives-up-is-tried-again", true, !attempt.last.get())
                }) {
                    // At least one tick: a virtual clock does not advance while something is due, so with no delay it
                    // never would.
                    let tick = Duration::from_nanos(context.core.context.tick);
                    let at_once =
                        planted!("timer.retry-without-delay-is-no-tick", false, delay.is_zero());
                    context.again(if at_once { tick } else { delay });
                    planted!("timer.error-drop-not-contained", drop(error), {
                        contain(context.shard, || drop(error));
                    });
                    return;
                }
                Retried::GaveUp { error, tries: self.tries }
            }
            None => Retried::Panicked,
        };
        self.tell(context.shard, outcome);
    }

    fn will_not_run(&mut self, state: State, shard: &TimerShard) {
        let cancelled = state == State::Cancelled;
        self.tell(shard, if cancelled { Retried::Cancelled } else { Retried::Stopped });
    }
}

impl<J, L> Trying<J, L> {
    /// Ends the retry: drops the job, then calls the listener, which may rely on that order.
    ///
    /// The caller contains a panic of the listener, as for every callback that runs or will not run.
    fn tell<T, E>(&mut self, shard: &TimerShard, outcome: Retried<T, E>)
    where
        L: FnOnce(Retried<T, E>),
    {
        let Some((job, then)) = self.closures.take() else { return };
        let drop_job = || {
            planted!(
                "fourth.job-whose-drop-panics-takes-the-outcome-along",
                Some(drop(job)),
                contain(shard, || drop(job))
            )
        };
        let tell = || then(outcome);
        planted!(
            "timer.outcome-before-the-job-is-dropped",
            {
                tell();
                drop_job();
            },
            {
                drop_job();
                tell();
            }
        );
    }
}
