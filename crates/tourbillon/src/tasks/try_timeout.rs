//! `TryTimeout`: a limit on a fallible future, with one error type for both failures.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;

use super::host::{Given, Global, Home, SleepError};
use super::timeout::{Elapsed, Timeout, timeout, timeout_at};
use crate::timer::Timer;

/// As [`timeout`], for a fallible future: one `?` handles the future's own error and the timeout.
///
/// The future's error type must implement `From<Elapsed>`, as [`io::Error`](std::io::Error) does, with the kind
/// [`TimedOut`](std::io::ErrorKind::TimedOut), and `Box<dyn Error>` does.
///
/// # Cancel safety
/// As [`timeout`].
///
/// # Panics
/// As [`timeout`].
///
/// ```
/// use std::io;
/// use std::time::Duration;
/// use tourbillon::tasks;
///
/// async fn read() -> io::Result<usize> {
///     std::future::pending().await
/// }
///
/// # futures_lite::future::block_on(async {
/// let read = tasks::try_timeout(Duration::from_millis(5), read()).await;
/// assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
/// # });
/// ```
#[inline]
pub fn try_timeout<F: IntoFuture>(after: Duration, future: F) -> TryTimeout<F::IntoFuture> {
    TryTimeout { limited: timeout(after, future) }
}

/// Timeouts of fallible futures on this timer.
impl Timer {
    /// As [`timeout`](Timer::timeout), for a fallible future: one `?` handles all errors.
    ///
    /// These are the future's own error, the timeout, and the stop of the timer.
    ///
    /// ```
    /// use std::io;
    /// use std::time::Duration;
    /// use tourbillon::{Timer, VirtualClock, tasks};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let read = timer.try_timeout(Duration::from_secs(5), std::future::pending::<io::Result<usize>>());
    /// assert_eq!(tasks::block_on(&clock, read)?.unwrap_err().kind(), io::ErrorKind::TimedOut);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_timeout<F>(&self, after: Duration, future: F) -> TryTimeout<F::IntoFuture, Given>
    where
        F: IntoFuture,
    {
        TryTimeout { limited: self.timeout(after, future) }
    }
}

/// Time limits as methods of futures, on the default engine.
///
/// ```
/// use std::future::{pending, ready};
/// use std::io;
/// use std::time::{Duration, Instant};
/// use tourbillon::tasks::{Elapsed, TimeoutExt};
///
/// # futures_lite::future::block_on(async {
/// let soon = Duration::from_millis(5);
/// assert_eq!(ready(7).timeout(soon).await, Ok(7));
/// assert_eq!(pending::<()>().timeout_at(Instant::now() + soon).await, Err(Elapsed));
/// let read = pending::<io::Result<usize>>().try_timeout(soon).await;
/// assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
/// # });
/// ```
pub trait TimeoutExt: IntoFuture + Sized {
    /// As [`timeout`](super::timeout()).
    fn timeout(self, after: Duration) -> Timeout<Self::IntoFuture> {
        timeout(after, self)
    }

    /// As [`timeout_at`].
    fn timeout_at(self, at: impl Into<Instant>) -> Timeout<Self::IntoFuture> {
        planted!(
            "sixth.limit-by-method-reads-the-systems-clock",
            timeout(at.into().saturating_duration_since(Instant::now()), self),
            timeout_at(at, self)
        )
    }

    /// As [`try_timeout`].
    fn try_timeout(self, after: Duration) -> TryTimeout<Self::IntoFuture> {
        try_timeout(after, self)
    }
}

impl<F: IntoFuture> TimeoutExt for F {}

pin_project! {
    /// A fallible future with a limit on its time, and one error type for both failures.
    ///
    /// Returned by [`try_timeout`] and [`Timer::try_timeout`].
    #[must_use = "a future does nothing until it is polled"]
    pub struct TryTimeout<F, H = Global>
    where
        H: Home,
    {
        #[pin]
        limited: Timeout<F, H>,
    }
}

impl<F, H: Home> TryTimeout<F, H> {
    /// Converts into a [`Timeout`], whose output is two nested results: that of the limit, and that of the future.
    pub fn into_inner(self) -> Timeout<F, H> {
        self.limited
    }
}

impl<F, T, E> Future for TryTimeout<F, Global>
where
    F: Future<Output = Result<T, E>>,
    E: From<Elapsed>,
{
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().limited.poll(context).map(|limited| limited?)
    }
}

impl<F, T, E> Future for TryTimeout<F, Given>
where
    F: Future<Output = Result<T, E>>,
    E: From<Elapsed> + From<SleepError>,
{
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().limited.poll(context).map(|limited| limited??)
    }
}

impl<F, H: Home> fmt::Debug for TryTimeout<F, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TryTimeout").field("deadline", &self.limited.deadline()).finish()
    }
}
