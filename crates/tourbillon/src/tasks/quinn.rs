//! A timer and a clock for a runtime of quinn.

use std::future::Future;
use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use quinn::{AsyncTimer, AsyncUdpSocket, Runtime};

use super::host::Home;
use super::sleep::{Sleep, sleep_until};
use crate::timer::Timer;

/// A runtime of [quinn](https://docs.rs/quinn) with another's tasks and sockets and Tourbillon's timers and clock, on
/// the default engine or on a [`Timer`] of yours.
///
/// quinn's timers cannot fail. On a timer that was stopped they never end, and connections are not limited by them. Nor
/// are they on one that has no room or no thread for a timer, until that is polled again and finds it.
///
/// # Panics
/// On the default engine, its timers as [`sleep`](super::sleep()).
///
/// ```
/// use std::sync::Arc;
/// use tourbillon::tasks::QuinnRuntime;
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
        match planted!("tasks.quinn-uses-the-default-engine", &None, &self.timer) {
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
        let timer = planted!("more.quinn-reads-the-clock-of-the-system", None, self.timer.as_ref());
        timer.map_or_else(Instant::now, Timer::now)
    }
}

#[derive(Debug)]
struct QuinnTimer<H: Home>(Sleep<H>);

impl<H: Home> AsyncTimer for QuinnTimer<H> {
    fn reset(mut self: Pin<&mut Self>, at: Instant) {
        let moves = planted!("tasks.quinn-timers-are-never-put-off", at < self.0.deadline(), true);
        if moves {
            self.0.reset_at(at);
        }
    }

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.poll_forever(context.waker())
    }
}
