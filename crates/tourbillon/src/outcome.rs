//! A timer with a result: what its callback returned, or why it did not run.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::{Duration, Instant};

use crate::clock::nanoseconds;
use crate::contain::drop_quietly;
use crate::error::ScheduleError;
use crate::sync::{Condvar, Mutex, lock, wait};
use crate::timer::{Callback, Context, State, Timeout, Timer, TimerShard};

/// Why a timer has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoResult {
    /// It was cancelled.
    Cancelled,
    /// The timer was stopped before it started.
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

impl Timer {
    /// [`schedule`](Timer::schedule) for a callback whose result is wanted: it can be waited for, by a thread or a
    /// task.
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

/// The handle of a timer with a result, and the future of it. [`Timer::compute`] makes one. Dropping it changes
/// nothing: the result is dropped when it is there.
///
/// # Cancel safety
/// The result stays until a poll gives it: dropped earlier, a `&mut` of this loses nothing.
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
    /// The first result counts.
    fn put(&self, result: Result<R, NoResult>) {
        let mut state = lock(&self.state);
        let CellState::Waiting(waker) = &mut *state else {
            drop(state);
            return drop_quietly(result);
        };
        let waker = waker.take();
        *state = CellState::Here(result);
        drop(state);
        planted!("timer.result-wakes-no-thread", (), self.put.notify_all());
        // Of a task that waits, maybe. The caller contains what it does.
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
    /// The handle of the timer, to cancel it, move it, or ask for its state.
    pub fn timeout(&self) -> &Timeout {
        &self.timeout
    }

    /// Whether the result is here, or is known not to come.
    pub fn is_over(&self) -> bool {
        !matches!(*lock(&self.cell.state), CellState::Waiting(_))
    }

    /// Waits for the result. A callback that does so keeps a thread from running others; on a timer with a single
    /// thread it would wait for itself.
    ///
    /// # Errors
    /// The callback will not run, or has panicked.
    ///
    /// # Panics
    /// If a poll has given the result before.
    pub fn wait(self) -> Result<R, NoResult> {
        match self.wait_until(None) {
            Ok(result) => result,
            Err(_) => unreachable!("it has no limit"),
        }
    }

    /// [`wait`](Scheduled::wait) no longer than `limit`, of real time.
    ///
    /// # Errors
    /// The handle, if the result is not here yet.
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
        // A limit that no clock reaches is none.
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
    /// If it is polled again after it was ready.
    fn poll(self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Self::Output> {
        // A waker's code is foreign: cloned before the lock, and the one that is not kept dropped after it.
        let mut waker = Some(context.waker().clone());
        let mut state = lock(&self.cell.state);
        let result = state.take();
        if let (None, CellState::Waiting(kept)) = (&result, &mut *state) {
            std::mem::swap(kept, &mut waker);
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

/// The callback, and where its result goes.
struct Computing<F, R> {
    /// There until it runs.
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
        // It has run: its result is there, or its drop says that it has panicked.
        if state == State::Fired {
            return;
        }
        let cancelled = state == State::Cancelled;
        let why = if cancelled { NoResult::Cancelled } else { NoResult::Stopped };
        self.cell.put(Err(planted!("timer.no-result-is-always-a-stop", NoResult::Stopped, why)));
    }
}

/// Without a word until now, its callback has panicked.
impl<F, R> Drop for Computing<F, R> {
    fn drop(&mut self) {
        planted!("timer.panic-leaves-who-waits", (), self.cell.put(Err(NoResult::Panicked)));
    }
}
