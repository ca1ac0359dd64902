//! A timer for [hyper](https://docs.rs/hyper), on any runtime: [`HyperTimer`].
//!
//! It uses nothing of Tourbillon but its public API: a [`Sleep`], its `reset`, `poll_elapsed` and `is_on`.

#![forbid(unsafe_code)]

/// The example of the README, run with the others.
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

/// A timer for hyper, on the default engine or on a [`Timer`] of yours: give it to a server's
/// or client's builder, whatever runtime it is on.
///
/// hyper's sleeps cannot fail. On a timer that was stopped they never end, and what they limit is not limited. Nor is
/// it on one that has no room or no thread for a sleep, until that is polled again and finds it.
///
/// # Panics
/// On the default engine, its sleeps as [`tourbillon::tasks::sleep`].
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
    /// The default engine if there is none. Not one sleep to copy: the threads of a server keep to their own shards.
    timer: Option<Timer>,
}

impl HyperTimer {
    /// On the default engine.
    pub fn new() -> Self {
        HyperTimer { timer: None }
    }
}

impl From<Timer> for HyperTimer {
    /// On a timer of yours.
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

/// Moves a sleep, if it is on the same engine: it stays where it is, and nothing is allocated.
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
