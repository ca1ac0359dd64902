//! The disk space of cancelled timers is released while scheduling continues.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use super::face::{Face, Spread, text};
use super::line::Lines;
use super::{BATCH, DAY, Run, Timer, now};

/// About a month away.
const MONTH: (u64, u64) = (28 * DAY, 32 * DAY);
/// How long it may take after the last cancel, in seconds.
const LIMIT: f64 = 300.0;
/// The pause between two watched calls to schedule.
const PAUSE: Duration = Duration::from_millis(10);

pub(super) fn run(run: &Run<'_>) -> Result<Lines, String> {
    let mut lines = Lines::new("10 M a month away, 9 M cancelled, 1 M more");
    // With fewer timers the file would be too small to be compacted.
    let million = if run.quick { 50_000 } else { 1_000_000 };
    let small = {
        let store = run.place.next()?;
        let face = Face::open(store.path())?;
        face.fill(2 * million, MONTH, 0)?;
        store.bytes()
    };
    let store = run.place.next()?;
    let face = Face::open(store.path())?;
    face.fill(10 * million, MONTH, 0)?;
    let full = store.bytes();
    let (stop, longest) = (AtomicBool::new(false), AtomicU64::new(0));
    // Schedules one timer at a time throughout, to measure the longest pause.
    let watch = || {
        while !stop.load(Relaxed) {
            let begin = Instant::now();
            let timer = Timer { generation: 0, due: now() + MONTH.0, key: None }.timer();
            face.queue.schedule(timer).wait().map_err(text)?;
            longest.fetch_max(begin.elapsed().as_micros() as u64, Relaxed);
            thread::sleep(PAUSE);
        }
        Ok::<(), String>(())
    };
    let work = || {
        // In the order of scheduling, except for one in ten.
        let mut spread = Spread::new(now(), MONTH, 0);
        let made = (0..10 * million as u64).map(|_| spread.next());
        let mut gone = made.filter(|timer| !timer.generation.is_multiple_of(10));
        let begin = Instant::now();
        loop {
            let keys: Vec<String> = gone.by_ref().take(BATCH).map(|timer| timer.name()).collect();
            if keys.is_empty() {
                break;
            }
            face.cancel(&keys)?;
        }
        let (rate, end) = (9.0 * million as f64 / begin.elapsed().as_secs_f64(), Instant::now());
        face.fill(million, MONTH, 0)?;
        let limit = Duration::from_secs_f64(if run.quick { LIMIT / 30.0 } else { LIMIT });
        while store.bytes() > 2.0 * small && end.elapsed() < limit {
            thread::sleep(Duration::from_millis(100));
        }
        Ok::<_, String>((rate, end.elapsed()))
    };
    let (rate, spent) = thread::scope(|scope| {
        let watcher = scope.spawn(watch);
        let worked = work();
        stop.store(true, Relaxed);
        watcher.join().map_err(|_| "a panic")??;
        worked
    })?;
    lines.say("cancelled", rate, "/s");
    lines.say("bytes of 10 M timers", full / 1e6, "MB");
    lines.say("bytes of 2 M timers", small / 1e6, "MB");
    lines.say("bytes in the end", store.bytes() / 1e6, "MB");
    lines.at_most("bytes in the end / of 2 M timers", store.bytes() / small, "", 2.0);
    lines.at_most("after the last cancel", spent.as_secs_f64(), "s", LIMIT);
    let pause = longest.into_inner() as f64 / 1e3;
    lines.at_most("longest pause of a schedule", pause, "ms", 100.0);
    Ok(lines)
}
