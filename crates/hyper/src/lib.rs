//! A timer for [hyper](https://docs.rs/hyper) on any runtime: [`HyperTimer`].
//!
//! It uses only Tourbillon's public API: a [`Sleep`], its `reset`, `poll_elapsed` and `is_on`.

#![forbid(unsafe_code)]

/// The README's example, run as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt;

use tourbillon::Timer;
use tourbillon::tasks::{Global, Home, Instant as Now, Sleep, sleep, sleep_until};

/// A timer for hyper, on the default engine or on your own [`Timer`].
///
/// Pass it to the builder of a server or client, on any runtime.
///
/// hyper's sleeps cannot fail. On a timer that was stopped, a sleep never ends, so the timeout that it implements never
/// expires. If the timer is full or cannot start its thread, a later poll tries again to arm the sleep.
///
/// # Panics
/// On the default engine, its sleeps panic as [`tourbillon::tasks::sleep`] does.
///
/// ```
/// use hyper::rt::Timer as _;
/// use std::time::{Duration, Instant};
/// use tourbillon_hyper::HyperTimer;
///
/// let timer = HyperTimer::new();
/// // http1::Builder::new().timer(timer).header_read_timeout(Duration::from_secs(30))
/// # futures_lite::future::block_on(async {
/// let deadline = timer.now() + Duration::from_millis(10);
/// timer.sleep_until(deadline).await;
/// assert!(Instant::now() >= deadline);
/// # });
/// ```
#[derive(Clone, Debug, Default)]
pub struct HyperTimer {
    /// `None` for the default engine.
    ///
    /// A timer rather than a prototype sleep to copy, so that each thread of a server uses its own shard.
    timer: Option<Timer>,
}

impl HyperTimer {
    /// Creates a timer on the default engine.
    pub fn new() -> Self {
        HyperTimer { timer: None }
    }
}

impl From<Timer> for HyperTimer {
    /// Creates a timer on your own [`Timer`].
    fn from(timer: Timer) -> Self {
        HyperTimer { timer: Some(timer) }
    }
}

impl rt::Timer for HyperTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn rt::Sleep>> {
        match &self.timer {
            None => Box::pin(HyperSleep(sleep(duration))),
            Some(timer) => Box::pin(HyperSleep(timer.sleep(duration))),
        }
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        match &self.timer {
            None => Box::pin(HyperSleep(sleep_until(deadline))),
            Some(timer) => Box::pin(HyperSleep(timer.sleep_until(deadline))),
        }
    }

    fn now(&self) -> Instant {
        self.timer.as_ref().map_or_else(|| Now::now().into_std(), Timer::now)
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn rt::Sleep>>, new_deadline: Instant) {
        let moved = match &self.timer {
            None => reset(sleep.as_mut(), new_deadline, |_: &Sleep<Global>| true),
            Some(timer) => reset(sleep.as_mut(), new_deadline, |sleep| sleep.is_on(timer)),
        };
        if !moved {
            *sleep = self.sleep_until(new_deadline);
        }
    }
}

/// Moves a sleep in place, without an allocation, if it is on the same engine.
fn reset<H: Home>(
    sleep: Pin<&mut (dyn rt::Sleep + 'static)>,
    at: Instant,
    ours: impl FnOnce(&Sleep<H>) -> bool,
) -> bool {
    let sleep = sleep.downcast_mut_pin::<HyperSleep<H>>().filter(|sleep| ours(&sleep.0));
    sleep.map(|mut sleep| sleep.0.reset(at)).is_some()
}

struct HyperSleep<H: Home>(Sleep<H>);

impl<H: Home> rt::Sleep for HyperSleep<H> {}

impl<H: Home> Future for HyperSleep<H> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.poll_elapsed(context)
    }
}
