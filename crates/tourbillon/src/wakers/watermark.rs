//! The watermark of a shard: every timer that is due by then was claimed. Readable without the lock, for tasks, whose
//! every poll asks.

use std::sync::{OnceLock, Weak};

use tourbillon_wheel::Time;

use super::TaskCore;
use crate::engine::StartError;
use crate::engine::signal::{NEVER, Padded};
use crate::sync::atomic::{AtomicU64, Ordering};

/// What a shard tells of a timer [without its lock](Watermark::tell).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Claimed,
    /// It was not claimed, or is being claimed just now.
    Pending,
    /// Ask under the lock.
    Nothing,
}

pub(crate) struct Watermark {
    /// Everything that was filed due by then has been claimed. `NEVER` while that is not so, and after a stop.
    claimed: Padded<AtomicU64>,
    /// The engine, for a future that knows its shard alone.
    pub(super) engine: OnceLock<Weak<TaskCore>>,
}

impl Default for Watermark {
    fn default() -> Self {
        Watermark { claimed: Padded(AtomicU64::new(0)), engine: OnceLock::new() }
    }
}

impl Watermark {
    /// Starts the engine, if it is still there.
    #[cold]
    pub(crate) fn start(&self) -> Result<(), StartError> {
        let engine = self.engine.get().and_then(Weak::upgrade);
        engine.map_or(Err(StartError::Stopped), |engine| engine.start())
    }

    /// What can be told without the lock of a timer with this deadline that was filed, and not claimed then. For an
    /// engine that claims in batches. It reads what the driver alone writes, twice a pass in which something is due:
    ///
    /// | the driver, under the lock | `claimed` says |
    /// |---|---|
    /// | makes ready what is due | nothing |
    /// | claims, and something due is left | nothing |
    /// | claims the last that is due | all that is due by now was claimed |
    ///
    /// Who was woken by a claim sees what was written before: nothing, or that it was claimed; never that it is
    /// pending.
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

    /// Says up to when everything was claimed, or that it is not to be said. The lock is held.
    #[inline]
    pub(super) fn show(&self, claimed: Option<Time>) {
        let claimed = match claimed {
            Some(claimed) => claimed.units(),
            None => planted!("engine.told-before-a-pass-stands", return, NEVER),
        };
        // Release pairs with the look in `tell`.
        self.claimed.0.store(claimed, Ordering::Release);
    }
}
