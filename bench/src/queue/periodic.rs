//! Repeating timers: the CPU time of the whole process per run of a timer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use tourbillon::{Builder, Repeat, Timer};

use crate::league::{Readings, Turn};
use crate::{counting, system};

/// A load: 100 k runs per second from a thousand timers, or 10 k from ten thousand.
struct Load {
    timers: u64,
    period: Duration,
    watch: Duration,
    runs: Arc<AtomicU64>,
}

impl Load {
    fn of(turn: &Turn) -> Self {
        counting::stop();
        let timers = turn.column.timers as u64;
        let period = Duration::from_millis(if timers <= 1000 { 10 } else { 1000 });
        let watch = Duration::from_secs(if turn.quick { 1 } else { 2 });
        Load { timers, period, watch, runs: Arc::default() }
    }

    /// When timer `n` runs first. The first runs are spread over a period.
    fn first(&self, n: u64) -> Duration {
        self.period.mul_f64(n as f64 / self.timers as f64)
    }

    /// Measures the CPU time per run, after all timers have run once. The harness sleeps meanwhile.
    fn watched(&self) -> Result<Readings, String> {
        let cpu = || system::process_cpu().ok_or("this system does not tell the CPU time");
        thread::sleep(self.period + Duration::from_millis(100));
        let (before, began) = (self.runs.load(Relaxed), cpu()?);
        thread::sleep(self.watch);
        let (ran, spent) = (self.runs.load(Relaxed) - before, cpu()? - began);
        if ran == 0 {
            return Err("nothing ran".to_owned());
        }
        Ok(vec![("repeat-cpu", spent.as_nanos() as f64 / ran as f64)])
    }
}

pub fn pool(turn: &Turn) -> Result<Readings, String> {
    ours(turn, Timer::builder())
}

pub fn driver(turn: &Turn) -> Result<Readings, String> {
    ours(turn, Timer::builder().on_driver())
}

fn ours(turn: &Turn, builder: Builder) -> Result<Readings, String> {
    let load = Load::of(turn);
    let timer = builder.build().map_err(|wrong| wrong.to_string())?;
    for n in 0..load.timers {
        let count = load.runs.clone();
        let repeat = Repeat::every(load.period).first(load.first(n));
        timer
            .repeat(repeat, move |_| _ = count.fetch_add(1, Relaxed))
            .map_err(|wrong| wrong.to_string())?;
    }
    load.watched()
}

#[cfg(feature = "peers")]
pub fn peer(turn: &Turn) -> Result<Readings, String> {
    use scheduled_thread_pool::{OnPoolDropBehavior, ScheduledThreadPool};
    let load = Load::of(turn);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let builder = ScheduledThreadPool::builder().num_threads(threads);
    let pool = builder.on_drop_behavior(OnPoolDropBehavior::DiscardPendingScheduled).build();
    for n in 0..load.timers {
        let count = load.runs.clone();
        let run = move || _ = count.fetch_add(1, Relaxed);
        pool.execute_at_fixed_rate(load.first(n), load.period, run);
    }
    load.watched()
}
