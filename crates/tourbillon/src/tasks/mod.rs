//! Tasks.

mod block_on;
mod home;
mod sleep;
mod timeout;
pub(crate) mod wakers;

pub use block_on::block_on;
pub use home::{Given, Global, Home, SleepError};
pub use sleep::{Sleep, sleep, sleep_until};
pub use timeout::{Elapsed, Timeout, timeout, timeout_at};
