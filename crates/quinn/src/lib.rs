//! Timers and a clock for a runtime of [quinn](https://docs.rs/quinn): [`QuinnRuntime`].
//!
//! It uses nothing of Tourbillon but its public API: a [`Sleep`], its `reset` and `poll_elapsed`.

#![forbid(unsafe_code)]

/// The example of the README, run with the others.
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

/// A runtime of quinn with another's tasks and sockets and Tourbillon's timers and clock, on
/// the default engine or on a [`Timer`] of yours.
///
/// quinn's timers cannot fail. On a timer that was stopped they never end, and connections are not limited by them. Nor
/// are they on one that has no room or no thread for a timer, until that is polled again and finds it.
///
/// # Panics
/// On the default engine, its timers as [`tourbillon::tasks::sleep`].
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
    /// The default engine if there is none.
    timer: Option<Timer>,
}

impl QuinnRuntime {
    /// With timers on the default engine.
    pub fn new(inner: Arc<dyn Runtime>) -> Self {
        QuinnRuntime { inner, timer: None }
    }

    /// With timers, and the clock, of a timer of yours.
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
