//! Operations on the whole population: their time per timer, and the longest call of another thread meanwhile.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use tourbillon::Timer;

use super::Delays;
use crate::league::{Readings, Turn};

/// The range of the deadlines of timers that fire.
const DUE: Duration = Duration::from_millis(20);

pub fn verbs(turn: &Turn) -> Result<Readings, String> {
    let timers = turn.column.timers;
    let timer = filled(timers)?;
    let mut readings = Vec::new();
    let mut longest = 0.0_f64;
    let mut verb = |name: &'static str, verb: &(dyn Fn() + Sync)| {
        let (spent, waited) = beside(&timer, verb);
        readings.push((name, spent.as_nanos() as f64 / timers as f64));
        longest = longest.max(waited.as_nanos() as f64 / 1000.0);
    };
    verb("whole-snapshot", &|| drop(black_box(timer.snapshot())));
    verb("whole-pending", &|| drop(black_box(timer.pending())));
    verb("whole-shrink", &|| timer.shrink());
    verb("whole-stop", &|| drop(timer.stop()));
    readings.push(("whole-wait", longest));
    readings.push(("longest-turn", driver(timers)?));
    Ok(readings)
}

fn filled(timers: usize) -> Result<Timer, String> {
    let timer = Timer::new();
    let mut delays = Delays::new(0);
    for _ in 0..timers {
        timer.arm(delays.next(), |_| ()).map_err(|wrong| wrong.to_string())?;
    }
    Ok(timer)
}

/// How long the operation takes, and the longest that another thread took to schedule and cancel meanwhile.
fn beside(timer: &Timer, verb: &(dyn Fn() + Sync)) -> (Duration, Duration) {
    // Relaxed: the flag ends a loop and synchronizes nothing.
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !over.load(Relaxed) {
                let begin = Instant::now();
                // `arm` is refused after a stop.
                if let Ok(key) = timer.arm(Duration::from_secs(60), |_| ()) {
                    timer.cancel(key);
                }
                longest = longest.max(begin.elapsed());
                thread::sleep(Duration::from_micros(50));
            }
            longest
        });
        thread::sleep(Duration::from_millis(2));
        let begin = Instant::now();
        verb();
        let spent = begin.elapsed();
        over.store(true, Relaxed);
        (spent, other.join().unwrap_or(Duration::MAX))
    })
}

/// The longest pass of a driver when all timers are due, at its default budget, in µs.
fn driver(timers: usize) -> Result<f64, String> {
    let (timer, mut driver) =
        Timer::builder().on_driver().build_driven().map_err(|wrong| wrong.to_string())?;
    for nth in 0..timers {
        let due = Duration::from_nanos(nth as u64 % DUE.as_nanos() as u64);
        timer.arm(due, |_| ()).map_err(|wrong| wrong.to_string())?;
    }
    thread::sleep(2 * DUE);
    let (mut ran, mut longest) = (0, Duration::ZERO);
    while ran < timers {
        let begin = Instant::now();
        ran += driver.turn().ran;
        longest = longest.max(begin.elapsed());
    }
    Ok(longest.as_nanos() as f64 / 1000.0)
}
