//! Jobs that may fail and are tried again, until they succeed, give up, or are told to.
//!
//! A retry is a timer like any other, whose callback arms itself again after each failure as long as its [`Backoff`]
//! says. It has one outcome, which is told once:
//!
//! | what happens | outcome | told by |
//! |---|---|---|
//! | a try succeeds | success, also if it was cancelled meanwhile | who runs it |
//! | a try fails, and the backoff or the job itself gives up | gave up | who runs it |
//! | a try panics | panicked | who runs it |
//! | it is cancelled between two tries | cancelled | who cancels |
//! | it is cancelled during a try that then fails, and would have been made again | cancelled | who runs it |
//! | the timer is stopped, or has no memory to go on | stopped | who stops, or runs it |
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
use crate::sync::{Condvar, Mutex, lock, wait};
use crate::timer::{Callback, Context, State, Timeout, Timer, TimerShard};

/// What became of a job that was [tried](Timer::retry) until it succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retried<T, E> {
    /// A try succeeded, with this.
    Success(T),
    /// The limits of the backoff are reached, or the job gave up by itself.
    GaveUp {
        /// What the last try failed with.
        error: E,
        /// How many tries there were.
        tries: u32,
    },
    /// It was cancelled before a try succeeded.
    Cancelled,
    /// The timer was stopped, or had no memory to go on, before a try succeeded.
    Stopped,
    /// A try panicked. The panic was reported and counted as any other.
    Panicked,
}

/// One try of a job.
#[derive(Debug)]
pub struct Attempt {
    number: u32,
    last: Cell<bool>,
}

impl Attempt {
    /// The number of this try; the first is 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Should this try fail, there is no other: for an error that will not go away.
    pub fn give_up(&self) {
        self.last.set(true);
    }
}

/// Retrying.
impl Timer {
    /// Runs `job` now, where callbacks run and never inside this call, and again after each failure, as often and as
    /// late as `backoff` says. A delay of zero counts as one tick. The handle waits for the outcome, looks
    /// at it, or cancels.
    ///
    /// Dropping the handle changes nothing: the job goes on.
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

    /// [`retry`](Timer::retry) that calls `then` with the outcome, once: on the thread of the last try, or of who
    /// cancels or stops. The handle is that of the next try: it cancels, and moves it.
    ///
    /// # Errors
    /// As [`schedule`](Timer::schedule). Both closures come back, and `then` is not called.
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
    /// // At 0, 1, 3 and 7 seconds; the next would have been at 15.
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

    /// [`retry_then`](Timer::retry_then) from that time on.
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

/// The handle of a job that is [tried](Timer::retry) until it succeeds. Dropping it changes nothing.
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
    /// Cancels it. True means that no further try starts; false that it is over. A try that runs at this moment
    /// finishes, and if it succeeds that is the outcome.
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

    /// The handle of the next try, for others to cancel it, or to move it: to now, for example, when the network is
    /// back.
    pub fn timeout(&self) -> Timeout {
        self.timeout.clone()
    }

    /// Whether there is an outcome.
    pub fn is_over(&self) -> bool {
        lock(&self.slot.outcome).is_some()
    }

    /// Waits for the outcome. A callback that does so keeps a thread from running others; on a timer with a single
    /// thread it would wait for itself.
    pub fn wait(self) -> Retried<T, E> {
        let mut outcome = lock(&self.slot.outcome);
        loop {
            match outcome.take() {
                Some(outcome) => return outcome,
                None => outcome = wait(&self.slot.told, outcome, None),
            }
        }
    }

    /// [`wait`](Retry::wait) no longer than `limit`, of real time.
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

    /// The outcome, if there is one: the look that never blocks.
    ///
    /// # Errors
    /// The handle, if there is none yet.
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
    /// The job, and who hears of the outcome: there until there is one.
    closures: Option<(J, L)>,
    /// Tries that were made.
    tries: u32,
    /// When the first of them started.
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
        let first = *self.began.get_or_insert(context.started);
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
                if let Some(delay) = delay.filter(|_| !attempt.last.get()) {
                    // A virtual clock stands still while something is due: with no delay at all, for ever.
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
    /// It is over. What the job held goes first: who hears of the outcome may count on that.
    fn tell<T, E>(&mut self, shard: &TimerShard, outcome: Retried<T, E>)
    where
        L: FnOnce(Retried<T, E>),
    {
        let Some((job, then)) = self.closures.take() else { return };
        let drop_job = || contain(shard, || drop(job));
        let tell = || {
            planted!(
                "later.panic-of-a-listener-comes-out-of-a-stop",
                Some(then(outcome)),
                contain(shard, || then(outcome))
            )
        };
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
