//! Timers and a clock for a [quinn](https://docs.rs/quinn) runtime: [`QuinnRuntime`].
//!
//! It uses only Tourbillon's public API: a [`Sleep`], its `reset` and `poll_elapsed`.

#![forbid(unsafe_code)]

/// The README's example, run as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

use std::future::Future;
use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use quinn::{AsyncTimer, AsyncUdpSocket, Runtime};

use tourbillon::Timer;
use tourbillon::tasks::{Home, Instant as Now, Sleep, sleep_until};

/// A quinn runtime with the tasks and sockets of another runtime, and Tourbillon's timers and clock.
///
/// The timers are on the default engine or on your own [`Timer`].
///
/// quinn's timers cannot fail. On a timer that was stopped, they never fire, so connections have no timeouts. If
/// [`Timer`] is full or cannot start its thread, a later poll tries again to arm them.
///
/// # Panics
/// On the default engine, its timers panic as [`tourbillon::tasks::sleep`] does.
///
/// ```
/// use std::sync::Arc;
/// use tourbillon_quinn::QuinnRuntime;
///
/// # fn example(inner: Arc<dyn quinn::Runtime>) {
/// // The inner one is quinn::default_runtime() or TokioRuntime; this goes to quinn::Endpoint::new.
/// let runtime: Arc<dyn quinn::Runtime> = Arc::new(QuinnRuntime::new(inner));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct QuinnRuntime {
    inner: Arc<dyn Runtime>,
    /// `None` for the default engine.
    timer: Option<Timer>,
}

impl QuinnRuntime {
    /// Wraps a runtime, with timers on the default engine.
    pub fn new(inner: Arc<dyn Runtime>) -> Self {
        QuinnRuntime { inner, timer: None }
    }

    /// Wraps a runtime, with the timers and the clock of your own [`Timer`].
    pub fn with_timer(inner: Arc<dyn Runtime>, timer: Timer) -> Self {
        QuinnRuntime { inner, timer: Some(timer) }
    }
}

impl Runtime for QuinnRuntime {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        match &self.timer {
            None => Box::pin(QuinnTimer(sleep_until(at))),
            Some(timer) => Box::pin(QuinnTimer(timer.sleep_until(at))),
        }
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.inner.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        self.inner.wrap_udp_socket(socket)
    }

    fn now(&self) -> Instant {
        self.timer.as_ref().map_or_else(|| Now::now().into_std(), Timer::now)
    }
}

#[derive(Debug)]
struct QuinnTimer<H: Home>(Sleep<H>);

impl<H: Home> AsyncTimer for QuinnTimer<H> {
    fn reset(mut self: Pin<&mut Self>, at: Instant) {
        self.0.reset(at);
    }

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.poll_elapsed(context)
    }
}
