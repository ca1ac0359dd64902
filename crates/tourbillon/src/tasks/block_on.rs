//! Running one future on the current thread, under a virtual clock that jumps whenever the future waits.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::clock::{AdvanceError, VirtualClock};
use crate::sync::{Condvar, Mutex, lock, wait};

/// Runs a future here, and whenever it waits has the clock [jump](VirtualClock::advance_to_next) to the next deadline:
/// a test of hours takes microseconds, and takes the same way every time.
///
/// The future is all there is, so when it waits and was not woken, everything is idle. Several tasks are one future: a
/// join of them, or a single-threaded executor's `run`, as of
/// [`async_executor`](https://docs.rs/async-executor). Work on other threads cannot be seen from here: the clock does
/// not wait for it, nor for an [event loop](crate::Driver) to run what is due there. When nothing is pending on the
/// clock, the thread sleeps until another one wakes the future. So it does for a sleep of
/// [`Duration::MAX`](std::time::Duration::MAX), which no clock reaches.
///
/// # Errors
/// Inside a callback of an engine on this clock; the future is dropped then.
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
                // Past what is due already and waits for its loop: this cannot wait for that to turn.
                clock.go(|| clock.next_step())
            );
            if !moved? {
                notifier.listen();
                break;
            }
        }
    }
}

/// Whether the future was woken since it was last polled.
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
