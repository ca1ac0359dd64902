//! Operations of a sleep for adapters to other libraries.

use std::task::{Context, Poll};

use super::Sleep;
use crate::tasks::host::{Given, Home};
use crate::timer::Timer;

/// For adapters.
impl Sleep<Given> {
    /// Whether it is on the given timer.
    ///
    /// An adapter should check this before it moves a sleep that a caller passes in: a sleep on another timer may have
    /// another clock, and must be replaced by a new one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::Timer;
    ///
    /// let (one, other) = (Timer::new(), Timer::new());
    /// let sleep = one.sleep(Duration::from_secs(1));
    /// assert!(sleep.is_on(&one.clone()) && !sleep.is_on(&other));
    /// ```
    pub fn is_on(&self, timer: &Timer) -> bool {
        self.home.shares(&Given::on(timer))
    }
}

/// For adapters.
impl<H: Home> Sleep<H> {
    /// Polls it for an adapter to a trait that cannot return an error.
    ///
    /// It is ready only once its deadline has passed. On a timer that was stopped it is pending forever. If the timer
    /// is full or its thread cannot be started, the next poll tries again.
    ///
    /// # Panics
    /// As [`sleep`](crate::tasks::sleep()), on the default engine.
    ///
    /// ```
    /// use std::pin::Pin;
    /// use std::task::{Context, Poll};
    /// use std::time::Instant;
    /// use tourbillon::tasks::{Home, Sleep};
    ///
    /// /// The timer trait of some library, whose timers cannot fail.
    /// trait LibraryTimer {
    ///     fn reset(&mut self, at: Instant);
    ///     fn poll(&mut self, context: &mut Context<'_>) -> Poll<()>;
    /// }
    ///
    /// struct Adapter<H: Home>(Sleep<H>);
    ///
    /// impl<H: Home> LibraryTimer for Adapter<H> {
    ///     fn reset(&mut self, at: Instant) {
    ///         self.0.reset(at);
    ///     }
    ///     fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
    ///         self.0.poll_elapsed(context)
    ///     }
    /// }
    /// ```
    pub fn poll_elapsed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match self.poll_outcome(context.waker()) {
            Some(Ok(())) => Poll::Ready(()),
            Some(Err(wrong)) => {
                let _on_the_default_engine_a_panic = H::output::<()>(Err(wrong));
                planted!(
                    "tasks.a-sleep-that-cannot-fail-is-ready-instead",
                    Poll::Ready(()),
                    Poll::Pending
                )
            }
            None => Poll::Pending,
        }
    }
}
