//! A timer engine: millions of timers, O(1) each, never early, silent while nothing is due.
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
//! | one whose result is wanted | [`Timer::compute`]: a result to wait for or to await |
//! | millions of them | [`Timer::arm`]: a `Copy` [`Key`] instead of the handle |
//! | one for each of your own keys | [`KeyedTimer`] |
//! | one to run again and again | [`Timer::repeat`]; or [`Timer::schedule_repeating`], if it decides when |
//! | a job that may fail | [`Timer::retry`], with a [`Backoff`] |
//! | a moment of the wall clock, or of a time zone | [`Timer::schedule_wall`]: it follows the clock when that is set |
//! | the same again and again | [`Timer::schedule_wall_every`] |
//! | a cron expression | `Timer::schedule_cron`, with the feature `calendar` |
//! | values, and no closure at all | [`Engine`]: batches of `T` for one handler, no allocation a timer |
//! | values that threads wait for | [`DelayQueue`] |
//! | a request that waits for a condition, but not for ever | [`Purgatory`] |
//! | async tasks, on any runtime | `tasks`, a feature: `sleep`, `timeout`, `interval`, `DelayQueue` |
//! | an event loop that should turn the timers itself | [`Builder::build_driven`] |
//! | a wheel for something else altogether | the wheels themselves: [`wheel`] |
//! | a test, or a simulation | a [`VirtualClock`] for any of them |
//!
//! The [guide] has a page for each task. Coming from [Netty, Kafka or the JDK](about::coming_from), or from tokio
//! (`guide::coming_from_tokio`, with the feature `tokio`)? Why it is built [this way](about::design), and how it
//! compares [with others](about::compare).
//!
//! # What it promises
//! 1. **Never early.** No timer runs before its deadline, by even a nanosecond of its clock.
//! 2. **Less than one tick late**, plus the time the machine takes to wake a thread, while callbacks return promptly or
//!    the pool has a free thread. [`Timer::lateness`] says how late it was.
//! 3. **Exactly once.** Fired, cancelled, or handed back by [`stop`](Timer::stop): one of the three, once.
//! 4. **Cancel tells the truth.** True means that it will never start. False means that it has started, was cancelled
//!    before, was handed back, or that the handle is stale.
//! 5. **Silence is free.** No timer due, no wake-up: no ticking, none to hand timers down, none for scheduling a later
//!    timer. Two exceptions: if the timer that the driver sleeps for is cancelled or moved to later, the driver may
//!    wake once at the old time and sleep again; and where the system does not say when its wall clock is set (Linux
//!    does), that clock is read every 30 s while a timer [waits for it](Timer::schedule_wall).
//! 6. **Any delay, any uptime**: from zero to `Duration::MAX`, for centuries. Nothing wraps, nothing panics.
//! 7. **O(1)** to schedule, cancel and reschedule, whatever the population; what passes of time costs nothing. (A
//!    [hashed](Builder::hashed) wheel also pays for the timers of later turns in the slots where something is due.)
//! 8. **Bounded.** Pending timers, if you set a [limit](Builder::limit), and the work of one pass. A crowded moment
//!    makes its own timers late, others by one pass at most. What was cancelled is used by the next timers; the memory
//!    of a crowd is given back when the last of it has gone, or by [`shrink`](Timer::shrink).
//! 9. **Your code cannot break it.** A callback may panic, block, schedule, cancel itself or others, stop the timer, or
//!    drop the last handle.
//! 10. **Handles never lie.** A stale one answers "no", for ever, and never reaches another timer.
//! 11. **Time can be yours.** Under a [`VirtualClock`] what fires, at which moment, and what `now` reads are the same
//!     in every run, for a program that is itself deterministic between advances.
//! 12. **Everything is counted**: [`Counts`]. `armed = fired + cancelled + handed back + pending`.
//!
//! # How it works
//! Timers live in [wheels](wheel), one in each *shard*, under a lock of its own; a thread keeps to its own shard. One
//! *driver* sleeps until the earliest deadline of all shards and is woken only for an earlier one. What is due it makes
//! ready, and has it run: by a pool of threads that start when they are first needed, on its own thread, or by an
//! executor of yours.
//!
//! Taking out is not firing: a timer that is ready stays in the wheel until the thread that runs it claims it, so until
//! that moment it can be cancelled, moved, and handed back. Callbacks and drops of your values run with none of
//! our locks held.

#![deny(unsafe_code)]

/// The example of the README, run with the others.
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
pub use key::Key;
pub use keyed::KeyedTimer;
pub use missed::Missed;
pub use outcome::{NoResult, Scheduled};
pub use purgatory::{
    Delayed, DelayedOperation, Operation, Outcome, Purgatory, Wait, WaitError, WatchError, Watched,
};
pub use queue::{DelayQueue, PutError, TakeError, Taker};
pub use retry::{Attempt, Retried, Retry};
pub use sleeper::Sleeper;
pub use stopped::Stopped;
pub use timer::{
    Activity, CancelOnDrop, Context, Executor, Job, Repeat, State, Timeout, Timer, Unfired,
};
pub use tourbillon_wheel as wheel;
pub use tourbillon_wheel::RescheduleError;
pub use typed::{Batch, Engine, Fired};
pub use view::{Pending, ShardView, Snapshot};

#[cfg(all(loom, test))]
mod models;

#[cfg(all(shuttle, test))]
mod schedules;
