//! Rows of one store with ten million pending timers: memory and disk space, counts, pages, and cancels.
//!
//! One timer in ten has a key. They are spread over thirty days.

use std::time::{Duration, Instant};

use tourbillon_durable::values::Moment;
use tourbillon_durable::{Cursor, Filter};

use super::child::Running;
use super::face::{Face, Spread, text};
use super::line::Lines;
use super::place::{self, Store};
use super::{BATCH, DAY, Row, Run, Timer, now};
use crate::rng::Rng;

/// From an hour to thirty days.
pub(super) const MONTH: (u64, u64) = (3_600_000, 30 * DAY);

pub(super) fn run(run: &Run<'_>, rows: &[Row], show: &mut impl FnMut(Lines)) -> Result<(), String> {
    let wanted = [Row::Pending, Row::Counts, Row::Pages, Row::Cancel];
    if !wanted.iter().any(|row| rows.contains(row)) {
        return Ok(());
    }
    let (count, store) = (run.scaled(10_000_000), run.place.next()?);
    let mut lines = Lines::new("10 M pending");
    let clock = fill(&store, count, &mut lines)?;
    if rows.contains(&Row::Pending) {
        show(lines);
    }
    let face = Face::open(store.path())?;
    // Waits until the window is loaded.
    face.queue.count().wait().map_err(text)?;
    if rows.contains(&Row::Counts) {
        show(counts(&face)?);
    }
    if rows.contains(&Row::Pages) {
        show(pages(&face)?);
    }
    if rows.contains(&Row::Cancel) {
        show(cancel(&face, count, clock)?);
    }
    Ok(())
}

/// Fills the store in a process that is killed, and opens it in another. Returns the first process's clock.
fn fill(store: &Store, count: usize, lines: &mut Lines) -> Result<u64, String> {
    let mut child = Running::start("fill", store.path(), count)?;
    let (clock, _) = child.figure("clock")?;
    let (spent, _) = child.figure("seconds")?;
    let (filled, _) = child.figure("memory")?;
    let (peak, _) = child.figure("peak")?;
    child.figure("done")?;
    let bytes = store.bytes() / count as f64;
    // The timers inserted last have a delay of a second: they are due when the next process starts.
    std::thread::sleep(Duration::from_secs(1));
    child.kill()?;
    let mut child = Running::start("first", store.path(), 0)?;
    let (delivered, first) = child.figure("delivered")?;
    let (opened, _) = child.figure("memory")?;
    child.figure("done")?;
    child.kill()?;
    if delivered < 1.0 {
        return Err("nothing was delivered after kill -9".to_owned());
    }
    lines.say("scheduled in batches of 1000", count as f64 / spent, "/s");
    lines.at_most("memory when all are scheduled", filled, "MiB", 300.0);
    lines.say("the same, at most", peak, "MiB");
    lines.at_most("memory when opened again", opened, "MiB", 300.0);
    lines.at_most("bytes on disk a timer", bytes, "B", 200.0);
    lines.at_most("kill -9, process start to first delivery", first.as_secs_f64(), "s", 2.0);
    Ok(clock as u64)
}

fn counts(face: &Face) -> Result<Lines, String> {
    let mut lines = Lines::new("counts and a forecast at 10 M");
    let count = longest(|| face.queue.count().wait().map(drop).map_err(text))?;
    lines.at_most("counts, longest of 20", count, "ms", 5.0);
    let day = || {
        let begin = face.durable.now();
        let end = Moment::from_millis(begin.millis() + DAY);
        face.queue.forecast(begin, end, 24).wait().map(drop).map_err(text)
    };
    lines.at_most("forecast of a day by hours, longest of 20", longest(day)?, "ms", 5.0);
    Ok(lines)
}

fn longest(mut work: impl FnMut() -> Result<(), String>) -> Result<f64, String> {
    let mut longest = 0.0_f64;
    for _ in 0..20 {
        let begin = Instant::now();
        work()?;
        longest = longest.max(begin.elapsed().as_secs_f64() * 1e3);
    }
    Ok(longest)
}

fn pages(face: &Face) -> Result<Lines, String> {
    let mut lines = Lines::new("a page of 100 at 10 M");
    let page = |filter: Filter, after: Option<Cursor>| {
        let begin = Instant::now();
        let page = face.queue.list(filter, after, 100).wait().map_err(text)?;
        Ok::<_, String>((begin.elapsed().as_secs_f64() * 1e3, page))
    };
    let mut by_key = 0.0_f64;
    for digit in 0..16 {
        by_key = by_key.max(page(Filter::prefix(format!("order-{digit:x}")), None)?.0);
    }
    lines.at_most("by key prefix, longest of 16", by_key, "ms", 50.0);
    let from = |millis: u64| Filter { from: Moment::from_millis(millis), ..Filter::default() };
    let (mut near, mut cursor) = (0.0_f64, None);
    for _ in 0..5 {
        let (spent, found) = page(from(0), cursor)?;
        near = near.max(spent);
        cursor = found.next;
    }
    lines.at_most("by time, near window, longest of 5", near, "ms", 50.0);
    // A whole day, ten days ahead.
    let begin = (now() / DAY + 10) * DAY;
    let (day, end) = (Moment::from_millis(begin), Moment::from_millis(begin + DAY));
    let rows = face.queue.forecast(day, end, 1).wait().map_err(text)?;
    let rows = rows.first().map_or(0, |piece| piece.2) as f64;
    place::forget_peak();
    let (before, _) = place::memory();
    let (cold, first) = page(from(begin), None)?;
    let grown = place::memory().1 - before;
    lines.say("timers of a cold bucket", rows, "");
    lines.say("its first page", cold, "ms");
    // A bucket of a few rows is read almost at once, so its rate would mean nothing.
    let rate = cold / 1e3 / (rows.max(100_000.0) / 1e6);
    lines.at_most("its first page, a million timers", rate, "s", 1.0);
    lines.at_most("memory that it takes", grown, "MiB", 64.0);
    let (mut warm, mut cursor) = (0.0_f64, first.next);
    for _ in 0..5 {
        let (spent, found) = page(from(begin), cursor)?;
        warm = warm.max(spent);
        cursor = found.next;
    }
    lines.at_most("its next pages, longest of 5", warm, "ms", 50.0);
    Ok(lines)
}

/// Cancels a hundred thousand timers of each kind, in random order.
fn cancel(face: &Face, count: usize, clock: u64) -> Result<Lines, String> {
    let mut lines = Lines::new("cancel in batches of 1000, 10 M pending");
    let mut spread = Spread::new(clock, MONTH, 10);
    let all = (0..count).map(|_| spread.next()).step_by((count / 1_000_000).max(1) | 1);
    let (chosen, assigned): (Vec<Timer>, Vec<Timer>) = all.partition(|timer| timer.key.is_some());
    for (what, timers) in [("by assigned key", assigned), ("by key", chosen)] {
        let mut keys: Vec<String> = timers.iter().map(Timer::name).collect();
        Rng::new(2).shuffle(&mut keys);
        keys.truncate(100_000);
        let begin = Instant::now();
        for batch in keys.chunks(BATCH) {
            face.cancel(batch)?;
        }
        let rate = keys.len() as f64 / begin.elapsed().as_secs_f64();
        lines.at_least(what, rate, "/s", 50_000.0);
    }
    Ok(lines)
}
