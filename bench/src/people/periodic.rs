//! Repeating timers: the CPU time of the whole process, a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use tourbillon::{Builder, Repeat, Timer};

use super::{Row, Run};
use crate::system;

pub fn rows(quick: bool) -> Vec<Row> {
    let watch = Duration::from_secs(if quick { 1 } else { 3 });
    // A hundred thousand runs a second, and ten thousand.
    [(1000, 10), (10_000, 1000)].map(|(timers, period)| row(timers, period, watch)).into()
}

fn row(timers: u64, period: u64, watch: Duration) -> Row {
    let title =
        format!("{timers} timers that repeat every {period} ms: CPU ns of the process a run");
    let period = Duration::from_millis(period);
    let ours = |make: fn() -> Builder| -> Run {
        Box::new(move || {
            let timer = make().build().map_err(|wrong| wrong.to_string())?;
            let runs = Arc::new(AtomicU64::new(0));
            for n in 0..timers {
                let count = runs.clone();
                let first = period.mul_f64(n as f64 / timers as f64);
                let repeat = Repeat::every(period).first(first);
                timer
                    .repeat(repeat, move |_| _ = count.fetch_add(1, Relaxed))
                    .map_err(|wrong| wrong.to_string())?;
            }
            watched(&runs, period, watch)
        })
    };
    let mut contestants = Vec::new();
    #[cfg(feature = "peers")]
    contestants.push(("scheduled-thread-pool, a thread a core", pool(timers, period, watch)));
    contestants.extend([
        ("tourbillon, pool", ours(Timer::builder)),
        ("tourbillon, on the driver", ours(|| Timer::builder().on_driver())),
    ]);
    Row { titles: vec![title], contestants }
}

#[cfg(feature = "peers")]
fn pool(timers: u64, period: Duration, watch: Duration) -> Run {
    use scheduled_thread_pool::{OnPoolDropBehavior, ScheduledThreadPool};
    Box::new(move || {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let builder = ScheduledThreadPool::builder().num_threads(threads);
        let pool = builder.on_drop_behavior(OnPoolDropBehavior::DiscardPendingScheduled).build();
        let runs = Arc::new(AtomicU64::new(0));
        for n in 0..timers {
            let count = runs.clone();
            let first = period.mul_f64(n as f64 / timers as f64);
            pool.execute_at_fixed_rate(first, period, move || _ = count.fetch_add(1, Relaxed));
        }
        watched(&runs, period, watch)
    })
}

/// The CPU time of a run, once all of them have begun. The harness sleeps meanwhile.
fn watched(runs: &AtomicU64, period: Duration, watch: Duration) -> Result<Vec<f64>, String> {
    let cpu = || system::process_cpu().ok_or("this system does not tell the CPU time");
    thread::sleep(period + Duration::from_millis(100));
    let (before, began) = (runs.load(Relaxed), cpu()?);
    thread::sleep(watch);
    let (ran, spent) = (runs.load(Relaxed) - before, cpu()? - began);
    if ran == 0 {
        return Err("nothing ran".to_owned());
    }
    Ok(vec![spent.as_nanos() as f64 / ran as f64])
}
