//! Orders that are cancelled if they are not paid in time. Kill it and start it again: nothing is lost.
//!
//! ```text
//! cargo run -p tourbillon-durable --example orders -- DIRECTORY
//! ```
//!
//! Input lines: `order KEY SECONDS`, `paid KEY`, `quit`. Output lines, each printed once its change is durable:
//! `placed KEY`, `paid KEY` or `too late KEY`, and `cancelled KEY` when the time is up.

use std::io::{BufRead, Write};
use std::time::Duration;

use tourbillon_durable::{Cancelled, Durable, NewTimer, Queue, Refused};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&std::env::args().nth(1).unwrap_or_else(|| "orders-data".into()))
}

/// Takes orders until the input ends.
pub fn run(directory: &str) -> Result<(), Box<dyn std::error::Error>> {
    let durable = Durable::open(directory)?;
    let unpaid = durable.queue("unpaid")?;
    let _worker = unpaid.worker(4, |order| Ok(say(&format!("cancelled {}", order.key()))?))?;
    say("ready")?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["order", key, seconds] => place(&unpaid, key, Duration::from_secs(seconds.parse()?))?,
            ["paid", key] => match unpaid.cancel(key).wait()? {
                Cancelled::Cancelled => say(&format!("paid {key}"))?,
                _ => say(&format!("too late {key}"))?,
            },
            ["quit"] => break,
            _ => say("order KEY SECONDS, paid KEY, or quit")?,
        }
    }
    Ok(())
}

/// Places an order. Idempotent: a client that got no answer repeats the call, and the key prevents a second order.
fn place(unpaid: &Queue, key: &str, limit: Duration) -> Result<(), Box<dyn std::error::Error>> {
    match unpaid.schedule(NewTimer::after(limit).key(key)?).wait() {
        Err(error) if !matches!(error.reason, Refused::KeyTaken(..)) => Err(error.into()),
        _ => Ok(say(&format!("placed {key}"))?),
    }
}

fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
