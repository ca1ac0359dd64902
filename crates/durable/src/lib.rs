//! Durable timers: all timers are in a store, and a timing wheel fires those of the near future.
//!
//! An order that is cancelled if it is not paid within 30 minutes:
//!
//! ```
//! # use std::time::Duration;
//! # use tourbillon_durable::{Durable, NewTimer};
//! # let clock = tourbillon::VirtualClock::new();
//! # let cancel_order = |key: &str| assert_eq!(key, "order-18");
//! # let directory = std::env::temp_dir().join(format!("orders-{}", std::process::id()));
//! let durable = Durable::open(&directory)?;
//! # drop(durable);
//! # std::fs::remove_dir_all(&directory)?;
//! # let durable = Durable::builder().clock(&clock).memory()?;
//! let unpaid = durable.queue("unpaid")?;
//! // Orders come in. Each timer is durable when its receipt resolves.
//! for order in ["order-17", "order-18"] {
//!     unpaid.schedule(NewTimer::after(Duration::from_secs(30 * 60)).key(order)?).wait()?;
//! }
//! // One is paid.
//! unpaid.cancel("order-17").wait()?;
//! // The other is not: its timer is handed out until a handler has succeeded.
//! let worker = unpaid.worker(4, move |order| Ok(cancel_order(order.key())))?;
//! # clock.advance(Duration::from_secs(1801))?;
//! # assert_eq!(unpaid.count().wait()?, Some(Default::default()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it promises
//! 1. **Acknowledged is durable**: once a receipt resolves, neither kill -9 nor a power cut loses what it reports.
//! 2. **Never early** by the wall clock. If that clock is set, timers follow it.
//! 3. **At least once**: a due timer is handed out until it is acknowledged, cancelled, or out of attempts.
//! 4. **A cancel is definite**, and so is an ack.
//! 5. **One at a time**: while a lease runs, its occurrence is not handed out again, even across a restart.
//! 6. **Counts are exact** and read no timer. **Memory is bounded**, however many timers are pending.
//!
//! # Inside
//! From the bottom up; a module uses only modules above it in this table.
//!
//! | module | what it holds |
//! |---|---|
//! | [`values`] | what callers write and read: names, moments, spans, retry, recurrence |
//! | [`bucket`] | how the future is divided into tables and counters |
//! | [`record`] | what is stored of a timer, and where |
//! | [`store`] | the trait of a store: commit a list, load a page |
//! | [`codec`] | the binary form of stored rows |
//! | [`memory`] | a store in memory that can lose unsynced writes |
//! | [`import`] | writes rows into an empty store, for repairs and for loading a dump |
//! | [`disk`] | a store in a directory, on redb |
//! | [`message`] | the requests to a shard, and its answers |
//! | `dump` | one state of a store as lines of JSON, with the feature `json` |
//! | [`conformance`] | a test suite for any store |
//! | [`shard`] | the pure state machine: requests, loaded pages and both clocks in, effects out |
//! | `runtime` | one thread that carries out the effects, with group commit |
//! | `face` | the public interface: [`Durable`], [`Queue`], [`Delivery`] |
//!
//! `cargo run --release -p sim -- durable --seeds 1000` runs the shard against a simulated disk, clocks and clients
//! from a seed; `cargo run --release -p sim -- planted`, built with `RUSTFLAGS="--cfg planted"`, shows it catch the
//! planted faults.

#![forbid(unsafe_code)]

/// The examples of the repository's README, run as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[macro_use]
mod planted;

pub mod bucket;
pub mod codec;
pub mod conformance;
pub mod disk;
#[cfg(feature = "json")]
pub mod dump;
mod face;
pub mod import;
mod lateness;
pub mod memory;
pub mod message;
mod pace;
pub mod record;
mod runtime;
pub mod shard;
pub mod store;
mod sync;
pub mod values;

pub use face::*;
pub use message::{Change, FarOff, Lateness, Limits, Stats};
pub use runtime::{Health, Heard, Notice, OpenError};
pub use store::Settings;
pub use values::{
    Cancelled, Conflict, Content, Counts, Cursor, Event, Filter, Happened, Many, NewTimer, Outcome,
    Payload, Scheduled, Secret, Settled, Stale, State, Token, View, Webhook, When,
};
