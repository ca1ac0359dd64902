//! The runtime: one thread that carries out the effects of the shard.
//!
//! ```text
//!   callers ──▶ mailbox ──▶ turn of the shard ──▶ commit, load ──▶ next turn ──▶ answers ──▶ slots
//!                  ▲                │
//!                  └── alarms ◀─────┘ wake at
//! ```
//!
//! **Group commit**: requests that arrive during a commit collect in the mailbox. The next turn takes them, up to a
//! size limit, and they share one commit. The answers of a commit are sent by the turn after it, before the next commit
//! begins.
//!
//! **Failure**: a failed commit or load poisons the store. The thread answers every request that the shard has taken
//! with [`Failure::Unknown`], except receives and pushes, which keep waiting for the rest of their time. It retries
//! opening the store with backoff until that succeeds; meanwhile it answers requests with [`Failure::Unavailable`]. A
//! new shard then takes over from the old one. The backoff ends with the first commit, because a store may open and
//! still fail. If the store is fenced, the thread ends.
//!
//! **Virtual time**: under a [`VirtualClock`], time does not pass while the thread has work. Each post and each alarm
//! makes the clock wait until the thread is idle, so runs are deterministic.
//!
//! | file | owns |
//! |---|---|
//! | `mailbox.rs` | requests, until the thread takes them |
//! | `slot.rs` | the hand-over of one answer |
//! | `clocks.rs` | both clocks, and the alarms on them |
//! | `drive.rs` | the thread |
//! | `condition.rs` | health, notices, events, and damage found |
//! | `feed.rs` | broadcast to readers without blocking the thread |

mod clocks;
mod condition;
mod drive;
mod feed;
mod mailbox;
#[cfg(all(loom, test))]
mod models;
mod slot;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tourbillon::{Timer, VirtualClock};

use crate::shard::{Answer, Limits, Request, RequestId};
use crate::store::{Image, Op, ShardRow, Store, StoreError};
use crate::sync::{Mutex, lock};
use crate::values::Moment;
pub(crate) use clocks::Clocks;
pub(crate) use condition::Condition;
pub use condition::{Health, Notice};
use drive::Driver;
pub use feed::Heard;
pub(crate) use feed::Reader;
use mailbox::Mailbox;
pub(crate) use slot::Slot;

/// Called once with the answer to a request, on the runtime's thread. Must not block.
pub(crate) type Reply = Box<dyn FnOnce(Result<Answer, Failure>) + Send>;

/// Why a request was not answered by the shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Its commit failed: the request may or may not have taken effect.
    Unknown(Arc<str>),
    /// The store cannot be opened. The request had no effect.
    Unavailable(Arc<str>),
    /// A row that the request needs cannot be read. The request had no effect.
    Damaged(Arc<str>),
    /// Too many bytes wait to be committed. The request had no effect.
    Full,
    /// The runtime has stopped. The request had no effect.
    Stopped,
}

/// Why a store could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The store cannot be opened.
    Store(StoreError),
    /// A thread could not be started.
    Thread(std::io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Store(error) => write!(f, "the store was not opened: {error}"),
            OpenError::Thread(error) => write!(f, "a thread was not started: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

/// The thread, its mailbox and its clocks. Dropping it carries out the posted requests, then ends the thread.
pub(crate) struct Runtime {
    mailbox: Arc<Mailbox>,
    clocks: Clocks,
    thread: Mutex<Option<JoinHandle<()>>>,
    pub(crate) condition: Arc<Condition>,
    /// Under virtual time: whether a timer is armed that makes the clock wait for the thread.
    nudged: Arc<AtomicBool>,
}

impl Runtime {
    pub(crate) fn start(
        mut store: impl Store + Send + 'static,
        limits: Limits,
        clock: Option<&VirtualClock>,
    ) -> Result<Arc<Self>, OpenError> {
        let clocks = Clocks::new(clock).map_err(OpenError::Thread)?;
        let mut head = drive::contained(|| store.open()).map_err(OpenError::Store)?;
        if head.shard.name == 0 {
            head.shard.name = ShardRow::new_name();
            let named = [Op::Shard(head.shard)];
            drive::contained(|| store.commit(head.epoch, &named)).map_err(OpenError::Store)?;
        }
        let (mailbox, condition) =
            (Arc::new(Mailbox::new()), Arc::new(Condition::new(head.shard.name)));
        let driver =
            Driver::new(store, head, limits, mailbox.clone(), clocks.clone(), condition.clone());
        let thread = std::thread::Builder::new().name("tourbillon-durable".into());
        let thread = thread.spawn(move || driver.run()).map_err(OpenError::Thread)?;
        let thread = Mutex::new(Some(thread));
        let nudged = Arc::default();
        Ok(Arc::new(Runtime { mailbox, clocks, thread, condition, nudged }))
    }

    /// Posts a request.
    pub(crate) fn post(&self, request: Request, reply: Reply) -> RequestId {
        let id = self.mailbox.post(request, reply);
        // A swap, not a load: of two concurrent posts exactly one arms the timer, and only after its own request is in
        // the mailbox.
        if self.clocks.is_virtual() && !self.nudged.swap(true, Ordering::AcqRel) {
            let (mailbox, nudged) = (self.mailbox.clone(), self.nudged.clone());
            let wait = move |_: &tourbillon::Context<'_>| {
                nudged.store(false, Ordering::Release);
                mailbox.wait_idle();
            };
            // Arming fails only on a stopped timer, and this one is never stopped.
            drop(self.clocks.timer().arm(Duration::ZERO, wait));
        }
        id
    }

    /// Requests an image of the store as of a durable commit.
    pub(crate) fn image(&self, reply: impl FnOnce(Result<Image, Failure>) + Send + 'static) {
        let mut images = lock(&self.condition.images);
        if self.is_stopped() {
            drop(images);
            return reply(Err(Failure::Stopped));
        }
        images.push(Box::new(reply));
        drop(images);
        self.mailbox.wake();
    }

    /// Carries out the posted requests, then ends the thread. Later requests are refused.
    pub(crate) fn stop(&self) {
        self.mailbox.close();
        let thread = lock(&self.thread).take();
        // A reply may drop the last handle on the thread itself; the thread must not join itself.
        if let Some(thread) =
            thread.filter(|thread| thread.thread().id() != std::thread::current().id())
        {
            drop(thread.join());
        }
    }

    /// The wall clock, rounded up, so that a deadline computed from it is never early.
    pub(crate) fn now(&self) -> Moment {
        Moment::from(self.timer().wall_now())
    }

    /// The timer that runs callbacks on its driver: they must not block.
    pub(crate) fn timer(&self) -> &Timer {
        self.clocks.timer()
    }

    pub(crate) fn clock(&self) -> Option<&VirtualClock> {
        self.clocks.clock()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.mailbox.is_closed()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Runs a reply and contains its panic. A waker is foreign code and must not end a thread on which others depend.
pub(super) fn quietly(reply: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(reply)) {
        // The payload's own drop may panic.
        std::mem::forget(panic);
    }
}
