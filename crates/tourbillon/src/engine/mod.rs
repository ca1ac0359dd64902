//! The engine: shards, and the driver that turns them.
//!
//! ```text
//!   arm, cancel, move ──► shard 0 ┐  wheel + lock        driver: sleeps until the least of the shards' next
//!   (any thread)          shard 1 ├──── next ──────────► moments, makes ready what is due, and has it delivered
//!                         …       ┘  (signal.rs)         (to the pool, on its own thread, or to a handler)
//! ```
//!
//! Lock order: the quiet mutex, then the life of the engine, then a shard, then the key of a timer that can repeat or
//! the plan of one that waits for the wall clock. Nobody holds two shards.

pub(crate) mod context;
mod core;
pub(crate) mod counts;
mod driven;
mod driver;
pub(crate) mod face;
#[cfg(feature = "tracing")]
mod instances;
pub(crate) mod settings;
pub(crate) mod shard;
pub(crate) mod signal;
pub(crate) mod wheels;

pub use core::StartError;
pub(crate) use core::{Core, Deliver};
#[cfg(target_os = "linux")]
pub use driven::WakeFd;
pub use driven::{Driver, Turn};
