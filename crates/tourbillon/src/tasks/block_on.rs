//! Runs a future on the current thread, under a virtual clock that jumps whenever the future waits.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::clock::{AdvanceError, VirtualClock};
use crate::sync::{Condvar, Mutex, lock, wait};

/// Runs a future; whenever it waits, the clock [jumps](VirtualClock::advance_to_next) to the next deadline.
///
/// A test that spans hours takes microseconds, and every run is the same.
///
/// Only this future runs on the thread, so if it is pending and was not woken, everything is idle. To run several
/// tasks, combine them into one future: join them, or pass the `run` of a single-threaded executor such as
/// [`async_executor`](https://docs.rs/async-executor). `block_on` does not see work on other threads: the clock does
/// not wait for that work, nor for an [event loop](crate::Driver) that has due timers to run. When nothing is pending
/// on the clock, the thread blocks until another thread wakes the future. It also blocks for a sleep of
/// [`Duration::MAX`](std::time::Duration::MAX), which no clock reaches.
///
/// # Errors
/// If called inside a callback of an engine on this clock; the future is dropped.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{Timer, VirtualClock, tasks};
///
/// let clock = VirtualClock::new();
/// let timer = Timer::builder().clock(&clock).build()?;
/// let slow = async {
///     timer.sleep(Duration::from_secs(90)).await
/// };
/// let limited = timer.timeout(Duration::from_secs(60), slow);
/// assert!(tasks::block_on(&clock, limited)??.is_err(), "too slow");
/// assert_eq!(clock.elapsed(), Duration::from_secs(60));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn block_on<F: Future>(clock: &VirtualClock, future: F) -> Result<F::Output, AdvanceError> {
    let notifier = Arc::new(Notifier { notified: Mutex::new(false), condvar: Condvar::new() });
    let waker = Waker::from(notifier.clone());
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Ok(output);
        }
        while planted!("tasks.block-on-jumps-though-it-was-woken", true, !notifier.was_rung()) {
            let moved = planted!(
                "more.block-on-waits-for-an-event-loop",
                clock.advance_to_next(),
                // Steps past due timers that only an event loop runs: this thread cannot wait for that loop.
                clock.go(|| clock.next_step())
            );
            if !moved? {
                notifier.listen();
                break;
            }
        }
    }
}

/// Records whether the future was woken since its last poll.
struct Notifier {
    notified: Mutex<bool>,
    condvar: Condvar,
}

impl Notifier {
    fn was_rung(&self) -> bool {
        let mut notified = lock(&self.notified);
        planted!("tasks.block-on-never-forgets-a-wake", *notified, std::mem::take(&mut *notified))
    }

    fn listen(&self) {
        let mut notified = lock(&self.notified);
        while !*notified {
            notified = wait(&self.condvar, notified, None);
        }
        *notified = false;
    }
}

impl Wake for Notifier {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        *lock(&self.notified) = true;
        planted!("tasks.block-on-is-deaf-while-it-listens", (), self.condvar.notify_one());
    }
}
