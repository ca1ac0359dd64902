//! Background reading: the design, a comparison, and guides for users of other timers.

/// For users of Netty's, Kafka's and the JDK's timers: each name there, and its name here.
#[doc = include_str!("../docs/coming-from.md")]
pub mod coming_from {}

/// A comparison with other timers: which one to choose, and when to choose another.
#[doc = include_str!("../COMPARE.md")]
pub mod compare {}

/// The design and its reasons, with the measurements behind them.
#[doc = include_str!("../DESIGN.md")]
pub mod design {}
