//! A timer with a result: the value that its callback returned, or the reason why there is none.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::{Duration, Instant};

use crate::clock::nanoseconds;
use crate::contain::drop_quietly;
use crate::error::ScheduleError;
use crate::leases::State;
use crate::sync::{Condvar, Mutex, lock, wait};
use crate::timer::{Callback, Context, Timeout, Timer, TimerShard};

/// The reason why a timer has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoResult {
    /// It was cancelled.
    Cancelled,
    /// The timer was stopped before the callback started.
    Stopped,
    /// Its callback panicked.
    Panicked,
}

impl fmt::Display for NoResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoResult::Cancelled => "the timer was cancelled before it ran",
            NoResult::Stopped => "the engine was stopped before the timer ran",
            NoResult::Panicked => "the callback panicked: see on_panic",
        })
    }
}

impl std::error::Error for NoResult {}

/// Timers with a result.
impl Timer {
    /// As [`schedule`](Timer::schedule), but a thread or a task can wait for the callback's result.
    ///
    /// # Errors
    /// As [`schedule`](Timer::schedule).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{NoResult, Timer};
    ///
    /// let timer = Timer::new();
    /// let answer = timer.compute(Duration::from_millis(5), |_| 6 * 7)?;
    /// assert_eq!(answer.wait(), Ok(42));
    ///
    /// let never = timer.compute(Duration::from_secs(60), |_| "too late")?;
    /// assert!(never.timeout().cancel());
    /// assert_eq!(never.wait(), Err(NoResult::Cancelled));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compute<R, F>(
        &self,
        after: Duration,
        callback: F,
    ) -> Result<Scheduled<R>, ScheduleError<F>>
    where
        R: Send + 'static,
        F: FnOnce(&Context<'_>) -> R + Send + 'static,
    {
        let cell =
            Arc::new(Cell { state: Mutex::new(CellState::Waiting(None)), put: Condvar::new() });
        let computing = Computing { callback: Some(callback), cell: cell.clone() };
        match self.schedule_boxed(self.time() + nanoseconds(after), computing) {
            Ok(timeout) => Ok(Scheduled { cell, timeout }),
            Err(error) => {
                Err(error.map(|mut computing| computing.callback.take().expect("it has not run")))
            }
        }
    }
}

/// The handle of a timer with a result, and a future of that result.
///
/// Returned by [`Timer::compute`]. Dropping it does not cancel the timer: the callback runs, and its result is dropped.
///
/// # Cancel safety
/// The result is kept until a poll returns it, so dropping a `&mut` of this future loses nothing.
#[must_use = "the result can be waited for; without it there is Timer::schedule"]
pub struct Scheduled<R> {
    cell: Arc<Cell<R>>,
    timeout: Timeout,
}

struct Cell<R> {
    state: Mutex<CellState<R>>,
    put: Condvar,
}

enum CellState<R> {
    Waiting(Option<Waker>),
    Here(Result<R, NoResult>),
    Taken,
}

impl<R> Cell<R> {
    /// Stores the result, unless there is one already.
    fn put(&self, result: Result<R, NoResult>) {
        let mut state = lock(&self.state);
        let CellState::Waiting(waker) = &mut *state else {
            drop(state);
            return drop_quietly(result);
        };
        let waker = waker.take();
        *state = CellState::Here(result);
        let waker = planted!(
            "fifth.task-woken-under-the-lock-of-its-result",
            {
                waker.into_iter().for_each(Waker::wake);
                None
            },
            waker
        );
        drop(state);
        planted!("timer.result-wakes-no-thread", (), self.put.notify_all());
        // The waker of a waiting task. The caller contains its panics.
        planted!("timer.result-wakes-no-task", (), waker.into_iter().for_each(Waker::wake));
    }
}

impl<R> CellState<R> {
    fn take(&mut self) -> Option<Result<R, NoResult>> {
        match std::mem::replace(self, CellState::Taken) {
            CellState::Here(result) => Some(result),
            before => {
                *self = before;
                None
            }
        }
    }
}

impl<R> Scheduled<R> {
    /// The handle of the timer: cancel it, move it, or read its state.
    pub fn timeout(&self) -> &Timeout {
        &self.timeout
    }

    /// Whether the outcome is known: a result, or the reason why there is none.
    pub fn is_over(&self) -> bool {
        planted!(
            "fourth.result-that-was-taken-is-not-over",
            matches!(*lock(&self.cell.state), CellState::Here(_)),
            !matches!(*lock(&self.cell.state), CellState::Waiting(_))
        )
    }

    /// Blocks until the outcome is known.
    ///
    /// A callback that calls this blocks its thread; on a timer with a single thread it would wait for itself.
    ///
    /// # Errors
    /// If the callback will not run, or has panicked.
    ///
    /// # Panics
    /// If a poll has already returned the result.
    pub fn wait(self) -> Result<R, NoResult> {
        match self.wait_until(None) {
            Ok(result) => result,
            Err(_) => unreachable!("it has no limit"),
        }
    }

    /// As [`wait`](Scheduled::wait), for at most `limit` of real time.
    ///
    /// # Errors
    /// Returns the handle if the outcome is not known yet.
    ///
    /// # Panics
    /// As [`wait`](Scheduled::wait).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::Timer;
    ///
    /// let timer = Timer::new();
    /// let late = timer.compute(Duration::from_secs(60), |_| ())?;
    /// let late = late.wait_within(Duration::from_millis(1)).unwrap_err();
    /// assert!(!late.is_over());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait_within(self, limit: Duration) -> Result<Result<R, NoResult>, Self> {
        // `None`, for a limit that no clock reaches, means no limit.
        self.wait_until(Instant::now().checked_add(limit))
    }

    fn wait_until(self, end: Option<Instant>) -> Result<Result<R, NoResult>, Self> {
        let mut state = lock(&self.cell.state);
        loop {
            if let Some(result) = state.take() {
                return Ok(result);
            }
            assert!(!matches!(*state, CellState::Taken), "its result was taken");
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                drop(state);
                return Err(self);
            }
            state = wait(&self.cell.put, state, left);
        }
    }
}

impl<R> Future for Scheduled<R> {
    type Output = Result<R, NoResult>;

    /// # Panics
    /// If polled again after it was ready.
    fn poll(self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Self::Output> {
        // Wakers are user code: the new one is cloned before the lock is taken, and the unused one is dropped after the
        // lock is released.
        let mut waker = Some(context.waker().clone());
        let mut state = lock(&self.cell.state);
        let result = state.take();
        if let (None, CellState::Waiting(kept)) = (&result, &mut *state) {
            if planted!("timer.result-wakes-only-the-first-task", kept.is_none(), true) {
                std::mem::swap(kept, &mut waker);
            }
        }
        let taken = matches!(*state, CellState::Taken) && result.is_none();
        drop(state);
        drop_quietly(waker);
        assert!(!taken, "polled after it was ready");
        result.map_or(Poll::Pending, Poll::Ready)
    }
}

impl<R> fmt::Debug for Scheduled<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduled").field("is_over", &self.is_over()).finish_non_exhaustive()
    }
}

/// The callback, and the cell for its result.
struct Computing<F, R> {
    /// `Some` until it runs.
    callback: Option<F>,
    cell: Arc<Cell<R>>,
}

impl<R, F> Callback for Computing<F, R>
where
    R: Send + 'static,
    F: FnOnce(&Context<'_>) -> R + Send + 'static,
{
    fn call(&mut self, context: &Context<'_>) {
        if let Some(callback) = self.callback.take() {
            self.cell.put(Ok(callback(context)));
        }
    }

    fn can_repeat(&self) -> bool {
        false
    }

    fn will_not_run(&mut self, state: State, _shard: &TimerShard) {
        // The callback has run: either its result is stored, or its drop reports the panic.
        if planted!("sixth.panicked-computation-says-stopped", false, state == State::Fired) {
            return;
        }
        let cancelled = state == State::Cancelled;
        let why = if cancelled { NoResult::Cancelled } else { NoResult::Stopped };
        self.cell.put(Err(planted!("timer.no-result-is-always-a-stop", NoResult::Stopped, why)));
    }
}

/// If there is no result by now, the callback has panicked.
impl<F, R> Drop for Computing<F, R> {
    fn drop(&mut self) {
        planted!("timer.panic-leaves-who-waits", (), self.cell.put(Err(NoResult::Panicked)));
    }
}
