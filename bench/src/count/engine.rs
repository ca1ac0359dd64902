//! The engine operations that `bench instructions` counts, with 10 k timers pending, on the default clock.
//!
//! The counts include reading the clock, which valgrind executes too. The driver thread sleeps throughout, because no
//! timer is due before the end and no new timer is the earliest. The row that fires timers turns the engine on its own
//! thread, so no driver thread runs there either.

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use tourbillon::tasks::{self, Sleep};
use tourbillon::{Driver, Engine, Timer};

/// The number of pending timers.
const PENDING: usize = 10_000;
const HOUR: Duration = Duration::from_secs(3600);

/// The delay of a timer that is scheduled and cancelled. It is later than the pending ones, so the driver is not woken.
fn delay(nth: usize) -> Duration {
    2 * HOUR + Duration::from_millis((nth % 60_000) as u64)
}

pub(super) fn by_handle(iterations: usize) {
    let timer = Timer::new();
    let _pending: Vec<_> = (0..PENDING)
        .map(|nth| timer.schedule(HOUR + delay(nth) / 60, |_| ()).expect("room"))
        .collect();
    for nth in 0..iterations {
        assert!(timer.schedule(delay(nth), |_| ()).expect("room").cancel(), "it was pending");
    }
}

pub(super) fn by_key(iterations: usize) {
    let timer = Timer::new();
    for nth in 0..PENDING {
        timer.arm(HOUR + delay(nth) / 60, |_| ()).expect("room");
    }
    for nth in 0..iterations {
        let key = timer.arm(delay(nth), |_| ()).expect("room");
        assert!(timer.cancel(key), "it was pending");
    }
}

pub(super) fn typed(iterations: usize) {
    let engine: Engine<u64> = Timer::builder().deliver(|_batch| ()).expect("defaults");
    for nth in 0..PENDING {
        engine.schedule(HOUR + delay(nth) / 60, 0).expect("room");
    }
    for nth in 0..iterations {
        let key = engine.schedule(delay(nth), nth as u64).expect("room");
        assert!(engine.cancel(key).is_some(), "it was pending");
    }
}

pub(super) fn sleep(iterations: usize) {
    let mut context = Context::from_waker(Waker::noop());
    let mut pending: Vec<Sleep> =
        (0..PENDING).map(|nth| tasks::sleep(HOUR + delay(nth) / 60)).collect();
    for sleep in &mut pending {
        assert!(pin!(sleep).poll(&mut context).is_pending());
    }
    for nth in 0..iterations {
        let mut sleep = tasks::sleep(delay(nth));
        assert!(pin!(&mut sleep).poll(&mut context).is_pending());
        drop(black_box(sleep));
    }
}

/// Fires timers that are due within 10 ms, 10 k on each engine.
///
/// The shorter run fills as many engines as the longer one.
pub(super) fn fire(iterations: usize, prepared: usize) {
    let engines: Vec<(Timer, Driver)> = (0..prepared.max(iterations) / PENDING)
        .map(|_| {
            let (timer, driver) = Timer::builder().build_driven().expect("defaults");
            for nth in 0..PENDING {
                let due = Duration::from_micros(1 + nth as u64);
                timer.arm(due, |_| ()).expect("room");
            }
            (timer, driver)
        })
        .collect();
    std::thread::sleep(Duration::from_millis(20));
    for (timer, mut driver) in engines.into_iter().take(iterations / PENDING) {
        let mut ran = 0;
        while ran < PENDING {
            ran += driver.turn().ran;
        }
        drop((timer, driver));
    }
}
