//! The public interface as a caller sees it, under virtual time. Only `real.rs`, `opening.rs` and parts of `closing.rs`
//! use real time.

mod closing;
mod conditions;
mod consuming;
mod discard;
#[cfg(feature = "json")]
mod dumping;
mod failing;
mod many;
mod opening;
mod real;
mod scheduling;
mod stats;
mod tokens;
mod waiting;
mod watching;
mod webhooks;
mod workers;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tourbillon::VirtualClock;
use tourbillon_durable::{Delivery, Durable, Limits, NewTimer, Queue};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Timers in memory under a virtual clock, and a queue of them.
pub(crate) fn memory() -> (VirtualClock, Durable, Queue) {
    memory_with(Limits::default())
}

pub(crate) fn memory_with(limits: Limits) -> (VirtualClock, Durable, Queue) {
    let clock = VirtualClock::new();
    let durable = Durable::builder().clock(&clock).limits(limits).memory().unwrap();
    let queue = durable.queue("orders").unwrap();
    (clock, durable, queue)
}

pub(crate) fn seconds(seconds: u64) -> NewTimer {
    NewTimer::after(Duration::from_secs(seconds))
}

/// Receives every timer that is due now.
pub(crate) fn take(queue: &Queue) -> Vec<Delivery> {
    queue.receive(100, Duration::ZERO).wait().unwrap()
}

/// Polls a future once, whether it is ready or not.
pub(crate) fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}
