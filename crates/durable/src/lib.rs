//! Durable timers: everything is in a store, the near future is in a wheel, and the wheel does the last mile.
//!
//! This is the inside of the crate, from the bottom up; arrows point up only. The face, with threads and a clock, is
//! not here yet.
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
//! | [`conformance`] | what every store must do, as one suite |
//! | [`shard`] | the pure state machine: requests, loaded pages and both clocks in, effects out |
//!
//! `cargo run --release -p sim -- durable --seeds 1000` runs the shard against a disk, clocks and clients from a seed;
//! `cargo run --release -p sim -- planted`, built with `RUSTFLAGS="--cfg planted"`, shows it catch twelve faults.

#![forbid(unsafe_code)]

#[macro_use]
mod planted;

pub mod bucket;
pub mod codec;
pub mod conformance;
pub mod disk;
pub mod import;
pub mod memory;
pub mod record;
pub mod shard;
pub mod store;
pub mod values;
