//! The public interface: durable timers in one process, for threads and for async tasks.
//!
//! | file | owns |
//! |---|---|
//! | `queue.rs` | scheduling, cancelling, reading |
//! | `many.rs` | lists, bulk operations, settings |
//! | `new_timer.rs` | the description of a new timer |
//! | `receipt.rs` | pending answers |
//! | `receive.rs` | receiving, and the stream |
//! | `push.rs` | the hook for delivery agents |
//! | `delivery.rs` | a delivery and its settling |
//! | `worker.rs` | workers that run a handler |
//! | `typed.rs` | payloads by serde |
//! | `watch.rs` | events, notices and health |
//! | `error.rs` | errors |

mod delivery;
mod error;
mod many;
mod new_timer;
mod push;
mod queue;
mod receipt;
mod receive;
#[cfg(feature = "serde")]
mod typed;
mod watch;
mod worker;

use std::path::Path;
use std::sync::Arc;

use tourbillon::VirtualClock;

use crate::disk::DiskStore;
use crate::memory::MemoryStore;
use crate::message::{Answer, Request};
use crate::runtime::{Failure, OpenError, Runtime};
use crate::shard::Limits;
use crate::store::{Image, ShardRow, Store};
use crate::values::{Moment, QueueName, ValueError};
pub use delivery::{Delivery, Nack, Outcomes};
pub use error::{Error, Refused, ScheduleError};
pub use many::Page;
pub use queue::Queue;
pub use receipt::Receipt;
pub use receive::{Deliveries, Receive};
pub use watch::Watch;
pub use worker::Worker;

/// Durable timers on one store. A handle: clones share the same timers.
///
/// When the last handle, queue, delivery and worker is dropped, pending requests are carried out and the store is
/// closed.
#[derive(Clone)]
pub struct Durable {
    runtime: Arc<Runtime>,
}

/// Settings, made by [`Durable::builder`].
#[derive(Clone, Debug, Default)]
pub struct Builder {
    clock: Option<VirtualClock>,
    limits: Limits,
}

impl Durable {
    /// Opens the timers in that directory, which is created if it does not exist. One process at a time can hold it.
    ///
    /// # Errors
    /// Another process holds the directory, or it cannot be read or written; a newer version has written it; or a
    /// thread could not be started.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, OpenError> {
        Durable::builder().open(directory)
    }

    /// Timers in memory, which end with the process.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn memory() -> Result<Self, OpenError> {
        Durable::builder().memory()
    }

    /// Starts building with non-default settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A handle of a queue. The queue is created by its first timer or setting.
    ///
    /// # Errors
    /// The name is not 1 to 64 characters of `a-z A-Z 0-9 . _ -`, or it is `.` or `..`.
    pub fn queue(&self, name: &str) -> Result<Queue, ValueError> {
        Ok(Queue::new(self.runtime.clone(), QueueName::new(name)?))
    }

    /// The names of all queues that a timer or a setting has created.
    pub fn queues(&self) -> Receipt<Vec<QueueName>> {
        let (receipt, slot) = Receipt::new();
        let reply = move |answer: Result<Answer, Failure>| {
            let names = answer.map_err(Error::from).map(|answer| match answer {
                Answer::Queues(names) => names,
                other => unreachable!("a question for queues was answered with {other:?}"),
            });
            drop(slot.fill(names));
        };
        self.runtime.post(Request::Queues, Box::new(reply));
        receipt
    }

    /// The name of the store: 16 hexadecimal digits, random and permanent.
    ///
    /// Store name, generation and occurrence together are globally unique.
    pub fn name(&self) -> String {
        let name = self.runtime.condition.name;
        ShardRow { name, ..ShardRow::default() }.name()
    }

    /// An image of the store, as of a moment between this call and the receipt's resolution.
    ///
    /// Later changes are not in it, even if reading it takes long. With the feature `json`, `dump::Dump` writes it as
    /// lines.
    pub fn image(&self) -> Receipt<Image> {
        let (receipt, slot) = Receipt::new();
        self.runtime.image(move |image| drop(slot.fill(image.map_err(Error::from))));
        receipt
    }

    /// The wall clock that decides which timers are due, rounded up to a millisecond.
    pub fn now(&self) -> Moment {
        self.runtime.now()
    }

    /// Carries out pending requests, then closes the store.
    ///
    /// Later requests by other handles are answered with [`Error::Stopped`]. Leases keep running.
    pub fn close(self) {
        self.runtime.stop();
    }

    /// Whether it was [closed](Durable::close), or another process has taken over the store.
    pub fn is_closed(&self) -> bool {
        self.runtime.is_stopped()
    }
}

impl Builder {
    /// Uses a virtual clock, whose time passes only when it is advanced. The default is the system's clocks.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::VirtualClock;
    /// use tourbillon_durable::{Durable, NewTimer};
    ///
    /// let clock = VirtualClock::new();
    /// let durable = Durable::builder().clock(&clock).memory()?;
    /// let jobs = durable.queue("jobs")?;
    /// jobs.schedule(NewTimer::cron("0 9 * * MON", "UTC")?.key("weekly")?).wait()?;
    /// let (send, runs) = std::sync::mpsc::channel();
    /// let worker = jobs.worker(1, move |job| Ok(send.send(job.due())?))?;
    ///
    /// clock.advance(Duration::from_secs(366 * 86_400))?;
    /// assert_eq!(runs.try_iter().count(), 52);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clock(mut self, clock: &VirtualClock) -> Self {
        self.clock = Some(clock.clone());
        self
    }

    /// Limits the memory that timers may take.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Opens the timers in that directory, as [`Durable::open`].
    ///
    /// # Errors
    /// As [`Durable::open`].
    pub fn open(self, directory: impl AsRef<Path>) -> Result<Durable, OpenError> {
        self.with_store(DiskStore::new(directory))
    }

    /// Timers in memory, which end with the process.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn memory(self) -> Result<Durable, OpenError> {
        self.with_store(MemoryStore::new())
    }

    /// Timers on a custom store.
    ///
    /// # Errors
    /// The store cannot be opened, or a thread could not be started.
    pub fn with_store(self, store: impl Store + Send + 'static) -> Result<Durable, OpenError> {
        let runtime = Runtime::start(store, self.limits, self.clock.as_ref())?;
        Ok(Durable { runtime })
    }
}

impl std::fmt::Debug for Durable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Durable")
    }
}
