//! The watermark of a shard: every timer due by this time has been claimed. Readable without the lock.
//!
//! Every poll of a task reads it.

use std::sync::{OnceLock, Weak};

use tourbillon_wheel::Time;

use super::TaskCore;
use crate::engine::StartError;
use crate::engine::signal::{NEVER, Padded};
use crate::sync::atomic::{AtomicU64, Ordering};

/// What the [watermark](Watermark::tell) shows about a timer without the shard's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Claimed,
    /// Not claimed, or being claimed at this moment.
    Pending,
    /// Unknown: check under the lock.
    Nothing,
}

pub(crate) struct Watermark {
    /// Every timer due by this time has been claimed. `NEVER` while no such time is known, and after a stop.
    claimed: Padded<AtomicU64>,
    /// The engine, for a future that has only a reference to its shard.
    pub(super) engine: OnceLock<Weak<TaskCore>>,
}

impl Default for Watermark {
    fn default() -> Self {
        Watermark { claimed: Padded(AtomicU64::new(0)), engine: OnceLock::new() }
    }
}

impl Watermark {
    /// Starts the engine, if it still exists.
    #[cold]
    pub(crate) fn start(&self) -> Result<(), StartError> {
        let engine = self.engine.get().and_then(Weak::upgrade);
        engine.map_or(Err(StartError::Stopped), |engine| engine.start())
    }

    /// Returns, without the lock, what is known about a timer that was armed with this deadline.
    ///
    /// For an engine that claims in batches. The driver writes `claimed` twice in each pass in which something is due;
    /// a stop sets it to `NEVER` for good:
    ///
    /// | the driver, under the lock | `claimed` |
    /// |---|---|
    /// | makes due timers ready | `NEVER` |
    /// | claims some; more are ready | `NEVER` |
    /// | claims the last one | the current time of the wheel |
    ///
    /// A task that was woken by a claim sees at least what was written before it: `Nothing` or `Claimed`, never
    /// `Pending`.
    #[inline]
    pub(crate) fn tell(&self, deadline: Time) -> Told {
        let deadline = deadline.units();
        match self.claimed.0.load(Ordering::Acquire) {
            NEVER => Told::Nothing,
            claimed
                if planted!(
                    "engine.sleep-due-just-now-hangs",
                    deadline < claimed,
                    deadline <= claimed
                ) =>
            {
                Told::Claimed
            }
            _ => Told::Pending,
        }
    }

    /// Publishes the watermark, or `NEVER` for `None`. The caller holds the lock.
    #[inline]
    pub(super) fn show(&self, claimed: Option<Time>) {
        let claimed = match claimed {
            Some(claimed) => claimed.units(),
            None => planted!("engine.told-before-a-pass-stands", return, NEVER),
        };
        // Release pairs with the Acquire load in `tell`.
        self.claimed.0.store(claimed, Ordering::Release);
    }
}
