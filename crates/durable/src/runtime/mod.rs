//! The runtime: one thread that carries out what the shard decides.
//!
//! ```text
//!   callers ──▶ mailbox ──▶ turn of the shard ──▶ commit, load ──▶ next turn ──▶ answers ──▶ slots
//!                  ▲                │
//!                  └── alarms ◀─────┘ wake at
//! ```
//!
//! **Group commit**: while one commit is written, requests gather in the mailbox; the next turn takes them all, and
//! they share one commit. Answers of a commit leave with the turn after it, before the next commit begins.
//!
//! **Failure**: after a failed commit or load the store is poisoned. Every request that the shard has taken is answered
//! [`Failure::Unknown`], except for those who wait for deliveries: they keep waiting. The shard is dropped, and the
//! store is opened anew, again and again until that succeeds; meanwhile requests are answered
//! [`Failure::Unavailable`].
//!
//! **Virtual time**: under a [`VirtualClock`] time does not pass while the thread has something to do. Each post and
//! each alarm makes the clock wait until the thread is idle, so a run is the same every time.
//!
//! | file | owns |
//! |---|---|
//! | `mailbox.rs` | requests, until they are taken |
//! | `slot.rs` | the hand-over of one answer |
//! | `clocks.rs` | both clocks, and the alarms on them |
//! | `drive.rs` | the thread |
//! | `condition.rs` | what it tells those who watch it |
//! | `feed.rs` | how they are told, without waiting for them |

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

/// Called once with the answer to a request, on the runtime's thread. It must not block.
pub(crate) type Reply = Box<dyn FnOnce(Result<Answer, Failure>) + Send>;

/// Why a request was not answered by the shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It was in a commit that failed: it happened, or not.
    Unknown(Arc<str>),
    /// The store cannot be opened: nothing happened.
    Unavailable(Arc<str>),
    /// A row that it needs cannot be read: nothing happened.
    Damaged(Arc<str>),
    /// Too much waits to be committed: nothing happened.
    Full,
    /// The runtime has stopped: nothing happened.
    Stopped,
}

/// Why a store could not be brought to life.
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

/// The thread, its mailbox and its clocks. Dropping it carries out what was posted, and ends the thread.
pub(crate) struct Runtime {
    mailbox: Arc<Mailbox>,
    clocks: Clocks,
    thread: Mutex<Option<JoinHandle<()>>>,
    pub(crate) condition: Arc<Condition>,
    /// Under virtual time: the clock will wait for the thread before it moves on.
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
        // A swap, and not a load: of two posts at once one arms the timer, after its request is in the mailbox.
        if self.clocks.is_virtual() && !self.nudged.swap(true, Ordering::AcqRel) {
            let (mailbox, nudged) = (self.mailbox.clone(), self.nudged.clone());
            let wait = move |_: &tourbillon::Context<'_>| {
                nudged.store(false, Ordering::Release);
                mailbox.wait_idle();
            };
            // Refused only by a timer that was stopped, and this one is not.
            drop(self.clocks.timer().arm(Duration::ZERO, wait));
        }
        id
    }

    /// Asks for a state of the store, as of a commit that is durable.
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

    /// Ends the thread when it has carried out what was posted. Later requests are refused.
    pub(crate) fn stop(&self) {
        self.mailbox.close();
        let thread = lock(&self.thread).take();
        // The last handle may be dropped by a reply, on the thread itself.
        if let Some(thread) =
            thread.filter(|thread| thread.thread().id() != std::thread::current().id())
        {
            drop(thread.join());
        }
    }

    /// The wall clock, rounded up: what is counted from here is never early.
    pub(crate) fn now(&self) -> Moment {
        Moment::from(self.timer().wall_now())
    }

    /// The timer whose callbacks must not block.
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

/// Gives an answer. The waker of a task is foreign code: its panic must not end the thread that others wait for.
pub(super) fn quietly(reply: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(reply)) {
        // What it carries may panic when it is dropped.
        std::mem::forget(panic);
    }
}
