//! Sleep, timeout, interval and delay queue for tasks, on any async runtime; the feature `tasks`.
//!
//! ```
//! use std::time::Duration;
//! use tourbillon::tasks::{self, Elapsed};
//!
//! # futures_lite::future::block_on(async {
//! tasks::sleep(Duration::from_millis(5)).await;
//! let answer = tasks::timeout(Duration::from_millis(5), std::future::pending::<u32>()).await;
//! assert_eq!(answer, Err(Elapsed));
//! # });
//! ```
//!
//! # Two engines
//! The functions here use the *default engine*: it starts with its first timer, has one thread, and never stops. Each
//! has a twin among the methods of [`Timer`](crate::Timer), for an engine of your own, with its clock, tick and limits.
//! That one may be stopped, so what the twins give is a result: never an early success, and never a hang.
//!
//! | default engine | `Timer` of yours | gives |
//! |---|---|---|
//! | [`sleep`], [`sleep_until`] | [`Timer::sleep`], [`Timer::sleep_until`] | [`Sleep`] |
//! | [`timeout`](timeout()), [`timeout_at`] | [`Timer::timeout`], [`Timer::timeout_at`] | [`Timeout`] |
//! | [`try_timeout`](try_timeout()) | [`Timer::try_timeout`] | [`TryTimeout`] |
//! | [`interval`](interval()), [`interval_at`] | [`Timer::interval`], [`Timer::interval_at`] | [`Interval`] |
//! | [`DelayQueue::new`] | [`Timer::delay_queue`] | [`DelayQueue`] |
//!
//! Tasks that sleep are [counted](crate::Timer::counts) with the timers of their engine, and a stop counts them as
//! handed back; it wakes them, to find the error. They are not among the [pending](crate::Timer::pending) and the
//! [unfired](crate::Unfired), which have callbacks. The first task of a `Timer` starts a driver for tasks, apart from
//! that of its callbacks, so that callbacks that block delay no task.
//!
//! # Laziness
//! Nothing is armed before a poll that has to wait: a [`timeout`](timeout()) whose future is ready at once costs a
//! reading of the clock. What is armed is the task's waker itself, in the wheel: no allocation, nothing to share.
//! Dropping takes it out.
//!
//! # Cancel safety
//! | dropped before it is ready | loses |
//! |---|---|
//! | [`Sleep`] | nothing; it is cancelled |
//! | [`Timeout`] | what its future loses; give it `&mut future` to go on with that |
//! | [`Interval::tick`] | no tick |
//! | [`DelayQueue::next`], and as a stream | no item |
//!
//! Wakers are called on the driver's thread, with none of our locks held. One that panics is contained, and counted. A
//! worker of your runtime that is blocked keeps its own tasks waiting, and no others.
//!
//! # Virtual time
//! On a [`VirtualClock`](crate::VirtualClock) time passes when it is told to, on any runtime and any number of
//! threads: [`advance`](crate::VirtualClock::advance) returns when the wakers of everything that became due were
//! called. The tasks themselves run when their runtime comes to it: what they arm then is counted from the new time.
//!
//! *Auto-advance*, a jump to the next deadline whenever everything is idle, needs somebody who knows that everything
//! is:
//! - [`block_on`] runs one future, and an executor inside of it, on one thread: when that waits, all of it does.
//! - tokio's current-thread runtime tells when its thread has nothing to do: with the feature `tokio`,
//!   `virtual_runtime` builds one that moves the clock then.
//!
//! Code that calls the functions here, and knows of no timer, is tested so too: in a [`scope`](scope()), under
//! [`with_timer`], or with [`replace_default`] for the whole process, they use a timer of the test's. In a
//! `#[tokio::test]`, `pause` does all of it with one line. [`Instant`] follows the clock.
//!
//! Elsewhere there is none. On several threads one that parks knows nothing of the others, which may be about to arm an
//! earlier timer; and a runtime without such a hook, smol's for one, tells nobody. There, advance by hand, or run its
//! executor inside [`block_on`].
//!
//! # hyper and quinn
//! The crates `tourbillon-hyper` and `tourbillon-quinn` give these timers and their clock to hyper and to quinn. An
//! adapter for another library takes a [`Sleep`] and its [`poll_elapsed`](Sleep::poll_elapsed), as they do.
//!
//! [`Timer::sleep`]: crate::Timer::sleep
//! [`Timer::sleep_until`]: crate::Timer::sleep_until
//! [`Timer::timeout`]: crate::Timer::timeout
//! [`Timer::timeout_at`]: crate::Timer::timeout_at
//! [`Timer::try_timeout`]: crate::Timer::try_timeout
//! [`Timer::interval`]: crate::Timer::interval
//! [`Timer::interval_at`]: crate::Timer::interval_at
//! [`Timer::delay_queue`]: crate::Timer::delay_queue

mod block_on;
mod delay_queue;
mod host;
mod instant;
mod interval;
mod scope;
mod sleep;
mod streak;
mod timeout;
#[cfg(feature = "tokio")]
mod tokio;
mod try_timeout;

#[cfg(feature = "tokio")]
pub use self::tokio::{Paused, pause, virtual_runtime};
pub use block_on::block_on;
pub use delay_queue::{DelayQueue, Expired, QueueKey};
pub use host::{Given, Global, Home, SleepError};
pub use instant::Instant;
pub use interval::{Interval, interval, interval_at};
pub use scope::{Replaced, Scope, advance, replace_default, scope, with_timer};
pub use sleep::{Sleep, sleep, sleep_until};
pub use timeout::{Elapsed, Timeout, timeout, timeout_at};
pub use try_timeout::{TimeoutExt, TryTimeout, try_timeout};
