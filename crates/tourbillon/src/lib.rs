//! A timer engine: millions of timers, O(1) each, never early, no wake-ups while nothing is due.
//!
//! ```
//! use std::sync::mpsc;
//! use std::time::{Duration, Instant};
//! use tourbillon::Timer;
//!
//! let timer = Timer::new();
//! let (sender, receiver) = mpsc::channel();
//! let began = Instant::now();
//! timer.schedule(Duration::from_millis(20), move |_| sender.send(began.elapsed()).unwrap())?;
//! let limit = timer.schedule(Duration::from_secs(30), |_| println!("no answer"))?;
//!
//! assert!(receiver.recv()? >= Duration::from_millis(20), "never early");
//! assert!(limit.cancel(), "it will never run");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What to use
//! | you have | take |
//! |---|---|
//! | a closure to run later | [`Timer::schedule`]: a handle, [`Timeout`], with cancel, reschedule and state |
//! | a closure whose result you need | [`Timer::compute`]: a result to wait for or to await |
//! | millions of closures | [`Timer::arm`]: a `Copy` [`Key`] instead of the handle |
//! | a closure for each of your own keys | [`KeyedTimer`] |
//! | a closure to run repeatedly | [`Timer::repeat`]; [`Timer::schedule_repeating`] if the closure decides when |
//! | a job that may fail | [`Timer::retry`], with a [`Backoff`] |
//! | a moment of the wall clock | [`Timer::schedule_wall`]: it follows the clock when the clock is set |
//! | a fixed period of the wall clock | [`Timer::schedule_wall_every`] |
//! | a cron expression | [`Timer::schedule_cron`], with the feature `calendar` |
//! | values instead of closures | [`Engine`]: batches of `T` for one handler, without an allocation per timer |
//! | values that threads wait for | [`DelayQueue`] |
//! | a request that waits for a condition, with a time limit | [`Purgatory`] |
//! | async tasks, on any runtime | [`tasks`], a feature: `sleep`, `timeout`, `interval`, `DelayQueue` |
//! | an event loop of your own | [`Builder::build_driven`]: the loop turns the timers |
//! | a data structure that contains timers | the wheels themselves: [`wheel`] |
//! | a test, or a simulation | a [`VirtualClock`] for any of these |
//!
//! The [guide] has a page for each task. If you know Netty, Kafka or the JDK, see [`about::coming_from`]; if you know
//! tokio, see [`guide::coming_from_tokio`]. There is also a [comparison](about::compare) with other timers, and the
//! [design](about::design) with its reasons.
//!
//! # Features
//! None is on by default.
//!
//! - `tasks`: timers for async tasks, on any runtime.
//! - `tokio`: tests on tokio under virtual time; includes `tasks`.
//! - `calendar`: cron expressions in time zones, with the types of [jiff 0.2](https://docs.rs/jiff/0.2), re-exported as
//!   `tourbillon::jiff`.
//! - `tracing`: a warning when a program has more engines than it can need.
//!
//! # What it promises
//! 1. **Never early.** No timer runs before its deadline, by even a nanosecond of its clock.
//! 2. **Less than one tick late**, plus the time that the machine takes to wake a thread, as long as callbacks return
//!    promptly or the pool has a free thread. [`Timer::lateness`] reports how late timers were.
//! 3. **Exactly once.** A timer fires, is cancelled, or is handed back by [`stop`](Timer::stop): one of the three,
//!    once.
//! 4. **The result of a cancel is reliable.** `true` means that the callback will never start. `false` means that it
//!    has started, that the timer was cancelled or handed back before, or that the handle is stale.
//! 5. **No needless wake-ups.** The driver wakes up only for a timer that is due: it does not tick, and neither a
//!    cascade nor scheduling a later timer wakes it. There are two exceptions. If the timer that the driver sleeps for
//!    is cancelled or moved to later, the driver may wake once at the old time. And if the system does not report that
//!    its wall clock was set (Linux does), the clock is read every 30 s while a timer [waits for
//!    it](Timer::schedule_wall).
//! 6. **Any delay, any uptime**: from zero to `Duration::MAX`, for centuries. Nothing wraps, nothing panics.
//! 7. **O(1)** to schedule, cancel and reschedule, however many timers are pending. Time that passes costs nothing. (A
//!    [hashed](Builder::hashed) wheel also examines the timers of later turns in the slots where something is due.)
//! 8. **Bounded**: the work of one pass, and the number of pending timers if you set a [limit](Builder::limit). If many
//!    timers of one shard are due at once, these may be late, but they delay other timers by at most one pass. The
//!    memory of a cancelled timer is reused by the next. The memory of a peak is freed when no timer is left, or by
//!    [`shrink`](Timer::shrink).
//! 9. **Your code cannot break it.** A callback may panic, block, schedule, cancel itself or others, stop the timer, or
//!    drop the last handle.
//! 10. **Stale handles are safe.** A stale handle answers "no" forever, and never reaches another timer.
//! 11. **Virtual time is deterministic.** Under a [`VirtualClock`], every run has the same timers fire at the same
//!     moments, with the same values of `now`, as long as your program is deterministic between advances.
//! 12. **Everything is counted**, in [`Counts`]: `armed = fired + cancelled + handed back + pending`.
//!
//! # How it works
//! Timers are kept in [wheels](wheel). Each *shard* has one wheel under its own lock, and each thread schedules on one
//! shard. One *driver* sleeps until the earliest deadline of all shards; only an earlier deadline wakes it before. It
//! makes due timers *ready*. Their callbacks run on a pool of threads that start when they are first needed, on the
//! driver's thread, or on an executor of yours.
//!
//! A ready timer has not started yet. It stays in the wheel until the thread that will run it *claims* it, and until
//! then it can be cancelled, moved and handed back. Callbacks, and drops of your values, run with no lock of the engine
//! held.
//!

// If a feature is enabled, its items are linked; otherwise the links lead to the list of features.
#![cfg_attr(feature = "calendar", doc = "[`Timer::schedule_cron`]: Timer::schedule_cron")]
#![cfg_attr(not(feature = "calendar"), doc = "[`Timer::schedule_cron`]: #features")]
#![cfg_attr(feature = "tasks", doc = "[`tasks`]: mod@tasks")]
#![cfg_attr(not(feature = "tasks"), doc = "[`tasks`]: #features")]
#![cfg_attr(feature = "tokio", doc = "[`guide::coming_from_tokio`]: guide::coming_from_tokio")]
#![cfg_attr(not(feature = "tokio"), doc = "[`guide::coming_from_tokio`]: #features")]
#![deny(unsafe_code)]

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[macro_use]
mod planted;

pub mod about;
mod backoff;
mod builder;
mod clock;
mod contain;
#[cfg(feature = "calendar")]
mod cron;
mod engine;
mod error;
pub mod guide;
mod in_callback;
mod key;
mod key_table;
mod keyed;
mod leases;
mod missed;
#[cfg(target_os = "linux")]
mod notifier;
mod ordered;
mod outcome;
mod purgatory;
mod queue;
mod retry;
mod sleeper;
mod spawn;
mod stopped;
mod sync;
#[cfg(feature = "tasks")]
pub mod tasks;
mod timer;
mod typed;
mod view;
#[cfg(feature = "tasks")]
mod wakers;

pub use backoff::{Backoff, Jitter};
pub use builder::{AnyClock, Builder};
pub use clock::{AdvanceError, BootClock, Clock, VirtualClock};
#[cfg(feature = "calendar")]
pub use cron::{Cron, CronError};
#[cfg(target_os = "linux")]
pub use engine::WakeFd;
pub use engine::counts::{Counts, Lateness};
pub use engine::{Driver, StartError, Turn};
pub use error::{BuildError, ScheduleError};
#[cfg(feature = "calendar")]
pub use jiff;
pub use key::Key;
pub use keyed::KeyedTimer;
pub use leases::State;
pub use missed::Missed;
pub use outcome::{NoResult, Scheduled};
pub use purgatory::{
    Delayed, DelayedOperation, Operation, Outcome, Purgatory, Wait, WaitError, WatchError, Watched,
};
pub use queue::{DelayQueue, PutError, TakeError, Taker};
pub use retry::{Attempt, Retried, Retry};
pub use sleeper::Sleeper;
pub use stopped::Stopped;
pub use timer::{Activity, CancelOnDrop, Context, Executor, Job, Repeat, Timeout, Timer, Unfired};
#[doc(inline)]
pub use tourbillon_wheel as wheel;
pub use tourbillon_wheel::RescheduleError;
pub use typed::{Batch, Engine, Fired};
pub use view::{Pending, ShardView, Snapshot};

#[cfg(all(loom, test))]
mod models;

#[cfg(all(shuttle, test))]
mod schedules;
