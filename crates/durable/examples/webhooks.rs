//! Webhooks with retries, under virtual time: one hour in which the receiver is down for a while.
//!
//! ```text
//! cargo run -p tourbillon-durable --example webhooks
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tourbillon::VirtualClock;
use tourbillon_durable::values::{Retry, Span};
use tourbillon_durable::{Change, Conflict, Durable, Nack, NewTimer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = VirtualClock::new();
    let durable = Durable::builder().clock(&clock).memory()?;
    let hooks = durable.queue("webhooks")?;
    // At most 5 a second and 2 at once; after 6 attempts a hook is given up and can be redriven.
    let retry = Retry { attempts: 6, first: Span::from_secs(10), ..Retry::default() };
    let change = Change {
        retry: Some(retry.into()),
        rate: Some(Some(5)),
        concurrency: Some(Some(2)),
        ..Change::default()
    };
    hooks.set(change).wait()?;

    let down_until = durable.now() + Span::from_secs(120);
    let attempts = Arc::new(AtomicU64::new(0));
    let (receiver, count, now) = (down_until, attempts.clone(), durable.clone());
    let worker = hooks.worker(2, move |hook| {
        count.fetch_add(1, SeqCst);
        post(hook.payload(), now.now() >= receiver).map_err(Nack::because)
    })?;

    let orders =
        (1..=20).map(|order| NewTimer::after(Duration::ZERO).payload(format!("order {order}")));
    hooks.schedule_all(orders.collect(), Conflict::Refuse).wait()?;
    clock.advance(Duration::from_secs(3600))?;

    let counts = hooks.count().wait()?.unwrap_or_default();
    println!("{} attempts for 20 hooks; dead: {}", attempts.load(SeqCst), counts.dead);
    assert_eq!((counts.scheduled, counts.due, counts.delivering, counts.dead), (0, 0, 0, 0));
    assert!(worker.shutdown(Duration::from_secs(5)));
    Ok(())
}

/// Simulates an HTTP client.
fn post(_body: &[u8], up: bool) -> Result<(), String> {
    if up { Ok(()) } else { Err("503 Service Unavailable".into()) }
}
