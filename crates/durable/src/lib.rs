//! Durable timers: everything is in a store, the near future is in a wheel, and the wheel does the last mile.
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
//! 1. **Acknowledged is durable**: once a receipt resolves, kill -9 or a power cut loses nothing of it.
//! 2. **Never early** by the wall clock. If that clock is set, timers follow it.
//! 3. **At least once**: what is due is handed out until it is acknowledged, cancelled, or out of attempts.
//! 4. **A cancel is definite**, and so is an ack.
//! 5. **One at a time**: while a lease runs nobody else is handed that occurrence, also across a restart.
//! 6. **Counts are exact** and read no timer. **Memory is bounded**, whatever is pending.
//!
//! # Inside
//! From the bottom up; arrows point up only.
//!
//! | module | what it holds |
//! |---|---|
//! | [`values`] | what callers write and read: names, moments, lengths, retry, recurrence |
//! | [`bucket`] | how the future is cut into tables and counters |
//! | [`record`] | what is stored of a timer, and where |
//! | [`store`] | the trait of a store: commit a list, load a page |
//! | [`codec`] | the binary form of what is stored |
//! | [`memory`] | a store in memory that can lose what was not synced |
//! | [`import`] | rows into an empty store, for repairs and for loading a dump |
//! | [`disk`] | a store in a directory, on redb |
//! | `dump` | one state of a store as lines of JSON, with the feature `json` |
//! | [`conformance`] | what every store must do, as one suite |
//! | [`message`] | what is asked of a shard, and what it answers |
//! | [`shard`] | the pure state machine: requests, loaded pages and both clocks in, effects out |
//! | `runtime` | one thread that carries the effects out, with group commit |
//! | `face` | what is at the top of this crate: [`Durable`], [`Queue`], [`Delivery`] |
//!
//! `cargo run --release -p sim -- durable --seeds 1000` runs the shard against a disk, clocks and clients from a seed;
//! `cargo run --release -p sim -- planted`, built with `RUSTFLAGS="--cfg planted"`, shows it catch the planted faults.

#![forbid(unsafe_code)]

/// The examples of the README of the repository, run with the others.
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
