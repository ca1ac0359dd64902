//! A tokio runtime under virtual time.

use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::{Poll, Waker};

use tokio::runtime::{Builder, Runtime};

use crate::clock::VirtualClock;
use crate::sync::{Mutex, lock};

/// A current-thread runtime of tokio that moves this clock to the next deadline whenever all of its tasks wait, as
/// tokio's own paused clock does; the feature `tokio`.
///
/// The clock moves as long as something is pending on it, whoever that is for: a task of this runtime, a callback, a
/// thread. So a timer that repeats keeps it moving while the runtime waits for something else, such as a socket; and a
/// task that waits for [`Duration::MAX`](std::time::Duration::MAX) is never woken, since no clock comes there.
///
/// # Errors
/// The runtime could not be built.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{Timer, VirtualClock, tasks};
///
/// let clock = VirtualClock::new();
/// let timer = Timer::builder().clock(&clock).build()?;
/// let runtime = tasks::virtual_runtime(&clock)?;
/// runtime.block_on(async {
///     let other = tokio::spawn(timer.sleep(Duration::from_secs(7200)));
///     timer.sleep(Duration::from_secs(3600)).await?;
///     assert_eq!(clock.elapsed(), Duration::from_secs(3600));
///     other.await.unwrap()
/// })?;
/// assert_eq!(clock.elapsed(), Duration::from_secs(7200));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn virtual_runtime(clock: &VirtualClock) -> io::Result<Runtime> {
    let (clock, pulse) = (clock.clone(), Arc::new(Pulse::default()));
    let beats = pulse.clone();
    let park = move || {
        // Past what is due already and waits for its loop: this cannot wait for that to turn.
        let moved = clock.go(|| clock.next_step());
        if planted!("blind.runtime-never-parks", moved.is_ok(), moved == Ok(true)) {
            planted!("tasks.runtime-parks-after-a-move-for-others", (), beats.beat());
        }
    };
    let runtime = Builder::new_current_thread().enable_all().on_thread_park(park).build()?;
    runtime.spawn(pulse.wait());
    Ok(runtime)
}

/// A task of the runtime that is woken after each move of the clock. tokio calls the hook once before it parks: if the
/// move woke no other task of this runtime, it would park for ever with timers pending.
#[derive(Default)]
struct Pulse(Mutex<Option<Waker>>);

impl Pulse {
    fn wait(self: Arc<Self>) -> impl Future<Output = ()> + Send {
        poll_fn(move |context| {
            *lock(&self.0) = Some(context.waker().clone());
            Poll::Pending
        })
    }

    fn beat(&self) {
        let waker = lock(&self.0).take();
        waker.into_iter().for_each(Waker::wake);
    }
}
