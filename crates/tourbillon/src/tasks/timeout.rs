//! `Timeout`: a future and a limit on the time it may take.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use std::{fmt, io};

use pin_project_lite::pin_project;

use super::host::{Given, Global, Home};
use super::sleep::Sleep;
use crate::timer::Timer;

/// Limits a future to the given delay, on the default engine.
///
/// The output is the future's, or [`Elapsed`] if the future is not ready within the delay. The future is polled first:
/// if it is ready at once, the wheel is never touched, and if it is ready when the limit has passed, its output is
/// returned.
///
/// # Cancel safety
/// Dropping the `Timeout` drops the future and cancels the limit. When the limit passes, the future is dropped together
/// with the `Timeout`. What is lost then depends on the future; pass `&mut future` to keep it.
///
/// # Panics
/// As [`sleep`](super::sleep()), if the future is not ready at once.
///
/// ```
/// use std::future::{pending, ready};
/// use std::time::Duration;
/// use tourbillon::tasks::{self, Elapsed};
///
/// # futures_lite::future::block_on(async {
/// assert_eq!(tasks::timeout(Duration::from_secs(30), ready(7)).await, Ok(7));
/// assert_eq!(tasks::timeout(Duration::from_millis(5), pending::<()>()).await, Err(Elapsed));
/// # });
/// ```
#[inline]
pub fn timeout<F: IntoFuture>(after: Duration, future: F) -> Timeout<F::IntoFuture> {
    Timeout { future: future.into_future(), limit: Sleep::after(Global::here(), after) }
}

/// Limits a future to the given instant, on the default engine.
///
/// The output is the future's, or [`Elapsed`] if the future is not ready by that instant. In other respects this is
/// like [`timeout`].
#[inline]
pub fn timeout_at<F: IntoFuture>(at: impl Into<Instant>, future: F) -> Timeout<F::IntoFuture> {
    Timeout { future: future.into_future(), limit: Sleep::at(Global::here(), at.into()) }
}

/// Timeouts on this timer. The outer result is an error if the timer is stopped before the limit passes.
impl Timer {
    /// Limits a future to the given delay. Returns its output, or [`Elapsed`] if it is not ready by then.
    ///
    /// # Cancel safety
    /// As [`tasks::timeout`](crate::tasks::timeout()).
    ///
    /// ```
    /// use std::future::{pending, ready};
    /// use std::time::Duration;
    /// use tourbillon::tasks::{self, Elapsed};
    /// use tourbillon::{Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// tasks::block_on(&clock, async {
    ///     assert_eq!(timer.timeout(Duration::from_secs(1), ready(7)).await, Ok(Ok(7)));
    ///     let never = timer.timeout(Duration::from_secs(1), pending::<()>());
    ///     assert_eq!(never.await, Ok(Err(Elapsed)));
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn timeout<F>(&self, after: Duration, future: F) -> Timeout<F::IntoFuture, Given>
    where
        F: IntoFuture,
    {
        Timeout { future: future.into_future(), limit: Sleep::after(Given::on(self), after) }
    }

    /// Limits a future to the given instant. Returns its output, or [`Elapsed`] if it is not ready by then.
    ///
    /// # Cancel safety
    /// As [`tasks::timeout`](crate::tasks::timeout()).
    #[inline]
    pub fn timeout_at<F>(&self, at: impl Into<Instant>, future: F) -> Timeout<F::IntoFuture, Given>
    where
        F: IntoFuture,
    {
        Timeout { future: future.into_future(), limit: Sleep::at(Given::on(self), at.into()) }
    }
}

/// The error of a [`Timeout`] whose limit has passed before its future was ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it took too long: try again, or give it more time")
    }
}

impl std::error::Error for Elapsed {}

/// The kind of the error is [`TimedOut`](io::ErrorKind::TimedOut).
impl From<Elapsed> for io::Error {
    fn from(elapsed: Elapsed) -> Self {
        io::Error::new(
            planted!(
                "tasks.elapsed-is-another-io-error",
                io::ErrorKind::Other,
                io::ErrorKind::TimedOut
            ),
            elapsed,
        )
    }
}

pin_project! {
    /// A future with a limit on its time, returned by [`timeout`] and [`Timer::timeout`].
    ///
    /// # Cancel safety
    /// As [`timeout`].
    #[must_use = "a future does nothing until it is polled"]
    pub struct Timeout<F, H = Global>
    where
        H: Home,
    {
        #[pin]
        pub(super) future: F,
        pub(super) limit: Sleep<H>,
    }
}

impl<F, H: Home> Timeout<F, H> {
    /// The instant at which the limit passes.
    pub fn deadline(&self) -> Instant {
        self.limit.deadline()
    }

    /// Moves the limit to the given instant, as [`Sleep::reset`] does.
    pub fn reset(self: Pin<&mut Self>, at: impl Into<Instant>) {
        self.project().limit.reset(at);
    }

    /// Moves the limit to the given delay from now.
    ///
    /// ```
    /// use std::pin::pin;
    /// use std::time::Duration;
    /// use tourbillon::{Timer, VirtualClock, tasks};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let work = timer.sleep(Duration::from_secs(20));
    /// let mut limited = pin!(timer.timeout(Duration::from_secs(10), work));
    /// limited.as_mut().reset_after(Duration::from_secs(30));
    /// assert!(tasks::block_on(&clock, limited)??.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reset_after(self: Pin<&mut Self>, after: Duration) {
        let limit = self.project().limit;
        planted!(
            "tasks.timeout-reset-adds-to-the-old-limit",
            limit.move_to(limit.due() + crate::clock::nanoseconds(after)),
            limit.reset_after(after)
        );
    }

    /// Borrows the future.
    pub fn get_ref(&self) -> &F {
        &self.future
    }

    /// Borrows the future mutably. If it is pinned, use [`get_pin_mut`](Timeout::get_pin_mut).
    ///
    /// ```
    /// use std::future::{Ready, ready};
    /// use std::time::Duration;
    /// use tourbillon::tasks;
    ///
    /// let mut limited = tasks::timeout(Duration::from_secs(1), ready(1));
    /// *limited.get_mut() = ready(2);
    /// # futures_lite::future::block_on(async {
    /// assert_eq!(limited.await, Ok(2));
    /// # });
    /// ```
    pub fn get_mut(&mut self) -> &mut F {
        &mut self.future
    }

    /// Borrows the pinned future mutably.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut F> {
        self.project().future
    }

    /// Returns the future without the limit.
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F: Future, H: Home> Future for Timeout<F, H> {
    type Output = H::Output<Result<F::Output, Elapsed>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let parts = self.project();
        let polled = planted!(
            "tasks.a-timeout-prefers-its-limit",
            if parts.limit.due() > parts.limit.now() {
                parts.future.poll(context)
            } else {
                Poll::Pending
            },
            parts.future.poll(context)
        );
        if let Poll::Ready(output) = polled {
            return Poll::Ready(H::output(Ok(Ok(output))));
        }
        match parts.limit.poll_outcome(context.waker()) {
            Some(outcome) => {
                let over = outcome.map(|()| Err(Elapsed));
                Poll::Ready(H::output(planted!(
                    "tasks.a-stopped-timeout-has-elapsed",
                    Ok(Err(Elapsed)),
                    over
                )))
            }
            None => Poll::Pending,
        }
    }
}

impl<F, H: Home> fmt::Debug for Timeout<F, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout").field("deadline", &self.deadline()).finish_non_exhaustive()
    }
}
