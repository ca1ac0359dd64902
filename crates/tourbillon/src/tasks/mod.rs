//! Timers for async tasks on any runtime, with the feature `tasks`.
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
//! The functions here use the *default engine*: it starts with its first timer, has one thread, and never stops. For
//! each function, [`Timer`](crate::Timer) has a method that uses an engine of your own, with its own clock, tick and
//! limits. Such an engine may be stopped, so the methods return a `Result`: never an early success, and never a hang.
//!
//! | default engine | your own `Timer` | returns |
//! |---|---|---|
//! | [`sleep`], [`sleep_until`] | [`Timer::sleep`], [`Timer::sleep_until`] | [`Sleep`] |
//! | [`timeout`](timeout()), [`timeout_at`] | [`Timer::timeout`], [`Timer::timeout_at`] | [`Timeout`] |
//! | [`try_timeout`](try_timeout()) | [`Timer::try_timeout`] | [`TryTimeout`] |
//! | [`interval`](interval()), [`interval_at`] | [`Timer::interval`], [`Timer::interval_at`] | [`Interval`] |
//! | [`DelayQueue::new`] | [`Timer::delay_queue`] | [`DelayQueue`] |
//!
//! Sleeping tasks are [counted](crate::Timer::counts) with the timers of their engine. A stop wakes them with the error
//! and counts them as handed back. They are not listed among the [pending](crate::Timer::pending) and
//! [unfired](crate::Unfired) timers, which have callbacks. The first task of a `Timer` starts a driver for tasks,
//! separate from the driver of the callbacks, so that a blocking callback delays no task.
//!
//! # Laziness
//! A future arms nothing before a poll that has to wait: a [`timeout`](timeout()) whose future is ready at once costs
//! one reading of the clock. Arming stores the task's waker in the wheel, without an allocation or shared state.
//! Dropping the future removes the waker.
//!
//! # Cancel safety
//! | dropped before it is ready | what is lost |
//! |---|---|
//! | [`Sleep`] | nothing; the sleep is cancelled |
//! | [`Timeout`] | its future, and what dropping that loses; pass `&mut future` to keep the future |
//! | [`Interval::tick`] | no tick |
//! | [`DelayQueue::next`], and as a stream | no item |
//!
//! The driver's thread calls wakers with no lock of this crate held. A panic of a waker is contained and counted. A
//! blocked worker of your runtime delays only its own tasks.
//!
//! # Virtual time
//! On a [`VirtualClock`](crate::VirtualClock), time passes only on request, on any runtime and any number of threads:
//! [`advance`](crate::VirtualClock::advance) returns once the wakers of all due timers were called. The tasks
//! themselves run when their runtime schedules them; the delays that they arm then count from the new time.
//!
//! *Auto-advance* is a jump to the next deadline whenever everything is idle. It is available where one place can see
//! whether any work is left:
//! - [`block_on`] runs one future, which may contain an executor, on one thread: when that future waits, all work
//!   waits.
//! - tokio's current-thread runtime calls a hook when its thread becomes idle. With the feature `tokio`,
//!   `virtual_runtime` builds a runtime whose hook moves the clock.
//!
//! Code that calls the functions of this module, and takes no timer as an argument, can be tested in the same way: in a
//! [`scope`](scope()), under [`with_timer`], or with [`replace_default`] for the whole process, the functions use the
//! test's timer. In a `#[tokio::test]`, `pause` does all of this in one line. [`Instant`] follows the clock.
//!
//! Elsewhere there is no auto-advance. With several threads, a thread that parks cannot know whether another thread is
//! about to arm an earlier timer; and a runtime without such a hook, such as smol's, does not report that it is idle.
//! With these runtimes, advance the clock explicitly, or run the executor inside [`block_on`].
//!
//! # hyper and quinn
//! The crates `tourbillon-hyper` and `tourbillon-quinn` give hyper and quinn these timers and their clock. To write an
//! adapter for another library, use a [`Sleep`] and its [`poll_elapsed`](Sleep::poll_elapsed), as these crates do.
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
