//! The face: durable timers in one process, for threads and for tasks.
//!
//! | file | owns |
//! |---|---|
//! | `queue.rs` | scheduling, cancelling, looking |
//! | `many.rs` | lists, many timers at once, settings |
//! | `new_timer.rs` | what a timer is made with |
//! | `receipt.rs` | answers that are on their way |
//! | `receive.rs` | receiving, and the stream |
//! | `push.rs` | the hook for delivery agents |
//! | `delivery.rs` | what a taker holds |
//! | `worker.rs` | handlers |
//! | `typed.rs` | payloads by serde |
//! | `watch.rs` | events, notices and health |
//! | `error.rs` | what can go wrong |

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

/// Durable timers on one store. A handle: clones are the same timers.
///
/// When the last handle, queue, delivery and worker is dropped, what was asked for is carried out and the store is
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
    /// Timers in that directory, which is made if it is not there. One process at a time has it.
    ///
    /// # Errors
    /// Another process has the directory, it cannot be read or written, or a newer version has written it; or a thread
    /// could not be started.
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

    /// Settings other than the defaults.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A queue. It is made by its first timer.
    ///
    /// # Errors
    /// The name is not 1 to 64 of `a-z A-Z 0-9 . _ -`.
    pub fn queue(&self, name: &str) -> Result<Queue, ValueError> {
        Ok(Queue::new(self.runtime.clone(), QueueName::new(name)?))
    }

    /// Every queue that a timer or a setting has made.
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

    /// The name of the store: 16 of `0-9 a-f`, random, and the same as long as the store is there. With it a generation
    /// and an occurrence are a name in the whole world.
    pub fn name(&self) -> String {
        let name = self.runtime.condition.name;
        ShardRow { name, ..ShardRow::default() }.name()
    }

    /// One state of the store, as of a moment between this call and the receipt's. Read at leisure: what changes
    /// meanwhile is not in it. With the feature `json`, `dump::Dump` writes it as lines.
    pub fn image(&self) -> Receipt<Image> {
        let (receipt, slot) = Receipt::new();
        self.runtime.image(move |image| drop(slot.fill(image.map_err(Error::from))));
        receipt
    }

    /// The wall clock that decides what is due, rounded up to a millisecond.
    pub fn now(&self) -> Moment {
        self.runtime.now()
    }

    /// Carries out what was asked for, and closes the store, whatever other handles there are: their requests are
    /// answered [`Error::Stopped`]. Leases run on.
    pub fn close(self) {
        self.runtime.stop();
    }

    /// Whether it was [closed](Durable::close), or another process has taken the store over.
    pub fn is_closed(&self) -> bool {
        self.runtime.is_stopped()
    }
}

impl Builder {
    /// A virtual clock: time passes when it is advanced. The system's clocks if not set.
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

    /// What may be held in memory.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Timers in that directory, as [`Durable::open`].
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

    /// Timers on a store of your own.
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
