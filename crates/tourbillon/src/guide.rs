//! The guide: one page for each task.

/// Which type to use, and where callbacks run.
#[doc = include_str!("../docs/guide/choosing.md")]
pub mod choosing {}

/// Timeouts on requests, and idle limits on connections.
#[doc = include_str!("../docs/guide/timeouts.md")]
pub mod timeouts {}

/// Fixed rate, fixed delay, retry with backoff, cron.
#[doc = include_str!("../docs/guide/repeating.md")]
///
#[doc = include_str!("../docs/pictures/repeating.svg")]
///
#[doc = include_str!("../docs/guide/repeating-examples.md")]
pub mod repeating {}

/// Values that can be taken when they are due.
#[doc = include_str!("../docs/guide/queues.md")]
pub mod queues {}

/// Requests that complete when a condition holds, or expire.
#[doc = include_str!("../docs/guide/operations.md")]
pub mod operations {}

/// Virtual time: tests in which hours pass in microseconds.
#[doc = include_str!("../docs/guide/testing.md")]
pub mod testing {}

/// For users of `tokio::time`: each name, each difference, and how to test.
#[cfg(feature = "tokio")]
#[doc = include_str!("../docs/coming-from-tokio.md")]
pub mod coming_from_tokio {}

/// A wheel in your own event loop.
#[doc = include_str!("../docs/guide/wheels.md")]
///
#[doc = include_str!("../docs/pictures/cascade.svg")]
pub mod wheels {}

/// Callbacks on your own threads.
#[doc = include_str!("../docs/guide/executors.md")]
pub mod executors {}
