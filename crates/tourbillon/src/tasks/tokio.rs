//! tokio runtimes under virtual time.

use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::scope::Inside;
use crate::clock::VirtualClock;
use crate::sync::{Mutex, lock};
use crate::timer::Timer;

/// Builds a current-thread tokio runtime that moves this clock while it is idle.
///
/// Whenever all of its tasks wait, the clock moves to the next deadline, as tokio's own paused clock does for tokio's
/// timers. Needs the feature `tokio`.
///
/// The clock moves as long as anything is pending on it, be it a task of this runtime, a callback or a thread. So a
/// repeating timer keeps the clock moving while the runtime waits for something else, such as a socket. A task that
/// waits for [`Duration::MAX`](std::time::Duration::MAX) is never woken, because no clock reaches that time.
///
/// # Errors
/// If the runtime cannot be built.
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
        // Steps past timers that are due but left to an event loop: this thread cannot wait for that loop.
        let moved = planted!(
            "sixth.virtual-runtime-waits-for-an-event-loop",
            clock.advance_to_next(),
            clock.go(|| clock.next_step())
        );
        if planted!("blind.virtual-runtime-never-parks", true, moved == Ok(true)) {
            planted!("tasks.runtime-parks-after-a-move-for-others", (), beats.beat());
        }
    };
    let runtime = Builder::new_current_thread().enable_all().on_thread_park(park).build()?;
    runtime.spawn(pulse.wait());
    Ok(runtime)
}

/// A task of the runtime that is woken after each move of the clock.
///
/// It is needed because tokio calls the hook once before it parks: if the move woke no other task of this runtime, the
/// runtime would park forever with timers pending.
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

/// Gives the free functions on this thread virtual time.
///
/// Time jumps to the next deadline whenever all tasks wait, as with tokio's own `pause` for tokio's timers. Meant for a
/// `#[tokio::test]`, with or without `start_paused`.
///
/// Virtual time ends when the returned guard is dropped. `pause` also pauses tokio's own clock, because that detects
/// when all tasks wait. tokio's timers see one millisecond pass for each step of this clock, whatever the step's
/// length, so a test should not mix the two kinds of timers.
///
/// While all tasks wait for something other than time, such as another thread, the runtime does not sleep, but polls
/// for the next step and uses a whole core. A [`virtual_runtime`] sleeps in that case.
///
/// # Panics
/// Outside a current-thread tokio runtime that has time enabled.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::time::Duration;
/// use tourbillon::tasks::{self, Instant};
///
/// // #[tokio::test]
/// // async fn an_hour() {
/// let _paused = tasks::pause();
/// let begin = Instant::now();
/// let other = tokio::spawn(tasks::sleep(Duration::from_secs(7200)));
/// tasks::sleep(Duration::from_secs(3600)).await;
/// assert_eq!(begin.elapsed(), Duration::from_secs(3600));
/// other.await.unwrap();
/// assert_eq!(begin.elapsed(), Duration::from_secs(7200));
/// // }
/// # }
/// ```
pub fn pause() -> Paused {
    if planted!("fourth.pause-panics-in-a-paused-runtime", true, !is_paused()) {
        tokio::time::pause();
    }
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).build().expect("the defaults are in range");
    let mover = tokio::spawn(move_when_idle(clock.clone()));
    Paused { inside: Inside::enter(&timer), clock, timer, mover }
}

/// The guard of [`pause`].
///
/// While it lives, the free functions on this thread have virtual time.
#[derive(Debug)]
#[must_use = "dropped at once, it has no effect"]
pub struct Paused {
    #[expect(dead_code, reason = "its drop ends the scope")]
    inside: Inside,
    clock: VirtualClock,
    timer: Timer,
    mover: JoinHandle<()>,
}

impl Paused {
    /// The clock of the free functions.
    pub fn clock(&self) -> &VirtualClock {
        &self.clock
    }

    /// The timer that replaces the default engine.
    pub fn timer(&self) -> &Timer {
        &self.timer
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        planted!("tasks.pause-outlives-its-guard", (), self.mover.abort());
    }
}

/// Whether tokio's clock is paused.
fn is_paused() -> bool {
    let (before, begin) = (tokio::time::Instant::now(), Instant::now());
    while begin.elapsed() < Duration::from_micros(10) {}
    tokio::time::Instant::now() == before
}

/// Steps the clock whenever tokio's paused clock jumps to this function's sleep, that is, when no task can run.
async fn move_when_idle(clock: VirtualClock) {
    loop {
        tokio::time::sleep(Duration::from_millis(1)).await;
        // The error is ignored: inside a callback that runs a runtime, the callback's own clock cannot move.
        let _ = clock.go(|| clock.next_step());
    }
}
