//! A nightly report in Berlin, and what each policy for missed runs does when nothing could run for some nights.
//!
//! ```text
//! cargo run -p tourbillon-durable --example nightly
//! ```

use std::sync::mpsc;
use std::time::Duration;

use tourbillon::VirtualClock;
use tourbillon_durable::values::Missed;
use tourbillon_durable::{Durable, NewTimer};

const DAY: Duration = Duration::from_secs(86_400);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = VirtualClock::new();
    let durable = Durable::builder().clock(&clock).memory()?;
    let reports = durable.queue("reports")?;
    for (key, missed) in [("skip", Missed::Skip), ("once", Missed::Once), ("all", Missed::All)] {
        let nightly = NewTimer::cron("30 2 * * *", "Europe/Berlin")?.missed(missed).key(key)?;
        reports.schedule(nightly).wait()?;
    }
    let (send, runs) = mpsc::channel();
    let _worker = reports.worker(1, move |run| {
        send.send(format!("{:>4}, run {}: for {}", run.key(), run.occurrence(), run.due()))?;
        Ok(())
    })?;

    println!("two nights:");
    clock.advance(2 * DAY)?;
    runs.try_iter().for_each(|run| println!("  {run}"));

    reports.pause().wait()?;
    clock.advance(3 * DAY)?;
    println!("three nights during which the queue was paused, and the one after:");
    reports.resume().wait()?;
    clock.advance(DAY)?;
    let runs: Vec<String> = runs.try_iter().collect();
    runs.iter().for_each(|run| println!("  {run}"));
    assert_eq!(runs.len(), 1 + 2 + 4, "skip, once, all");
    Ok(())
}
