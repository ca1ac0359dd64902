//! The engine: shards, and the driver that runs them.
//!
//! ```text
//!   arm, cancel, reschedule ─► shard 0 ┐  wheel + lock    driver: sleeps until the least `next` of the shards,
//!   (any thread)               shard 1 ├──── next ──────► makes due timers ready, and delivers them
//!                              …       ┘  (signal.rs)     (to the pool, on its own thread, or to a handler)
//! ```
//!
//! Lock order, outermost first: the mutex of `Quiescence`, `Core::life`, a shard, the plan of a timer that waits for
//! the wall clock, the registry of these timers. A pool's mutex is taken before a shard's lock. No thread holds the
//! locks of two shards.

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
