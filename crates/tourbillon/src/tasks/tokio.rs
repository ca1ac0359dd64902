//! A tokio runtime under virtual time.

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
        if moved == Ok(true) {
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

/// Has the free functions of this thread use virtual time, and moves it to the next deadline whenever all tasks of the
/// runtime wait: what tokio's own `pause` is for tokio's timers. For a `#[tokio::test]`, with or without
/// `start_paused`.
///
/// It ends when what it returns is dropped. tokio's own clock is paused with it, and tells when everything waits; its
/// timers see a millisecond pass for each step of this clock, whatever the step, so a test should not mix the two.
///
/// # Panics
/// Outside of a current-thread runtime of tokio that has its time enabled.
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
    if !is_paused() {
        tokio::time::pause();
    }
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).build().expect("the defaults are in range");
    let mover = tokio::spawn(move_when_idle(clock.clone()));
    Paused { inside: Inside::enter(&timer), clock, timer, mover }
}

/// Virtual time for the free functions of this thread. [`pause`] makes one.
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

    /// The timer in the place of the default engine.
    pub fn timer(&self) -> &Timer {
        &self.timer
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        self.mover.abort();
    }
}

/// Whether tokio's clock stands still.
fn is_paused() -> bool {
    let (before, begin) = (tokio::time::Instant::now(), Instant::now());
    while begin.elapsed() < Duration::from_micros(10) {}
    tokio::time::Instant::now() == before
}

/// tokio's paused clock goes on, to this sleep, when no task can run.
async fn move_when_idle(clock: VirtualClock) {
    loop {
        tokio::time::sleep(Duration::from_millis(1)).await;
        // Nobody is told of an error: a callback that runs a runtime cannot move its own clock.
        let _ = clock.go(|| clock.next_step());
    }
}
