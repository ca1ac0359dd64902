//! Pages to read: why it is built this way, how it compares, and where to find what you know from elsewhere.

/// For those who know Netty's `HashedWheelTimer`, Kafka's timer and purgatory, or the JDK's executors.
#[doc = include_str!("../docs/coming-from.md")]
pub mod coming_from {}

/// Beside others: which timer to take, and when to take another one.
#[doc = include_str!("../COMPARE.md")]
pub mod compare {}

/// Why it is built this way, with the numbers that chose it.
#[doc = include_str!("../DESIGN.md")]
pub mod design {}
