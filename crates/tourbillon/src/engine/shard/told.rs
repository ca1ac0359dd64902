//! What a shard tells of one of its timers: without its lock, and if that is not enough, under it. For tasks, whose
//! every poll asks.

use tourbillon_wheel::{Key, Time};

use super::{Phase, Shard, State};
use crate::engine::signal::NEVER;
use crate::sync::atomic::Ordering;
use crate::sync::lock;

/// What a shard tells of a timer [without its lock](Shard::tell).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Claimed,
    /// It was not claimed, or is being claimed just now.
    Pending,
    /// Ask under the lock.
    Nothing,
}

/// Why a timer that nobody has cancelled is not pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    Fired,
    /// It was handed back, or it had fired before the engine was stopped.
    Stopped,
}

impl<T> Shard<T> {
    /// Shows the value of a pending timer under the lock. If it is not pending, says whether the engine was stopped.
    #[inline]
    pub(crate) fn visit<R>(&self, key: Key, visit: impl FnOnce(&mut T) -> R) -> Result<R, Gone> {
        let mut state = lock(&self.state);
        let stopped =
            planted!("engine.stopped-sleep-looks-over", false, state.phase == Phase::Stopped);
        let gone = if stopped { Gone::Stopped } else { Gone::Fired };
        state.wheel.get_mut(key).map(|entry| visit(&mut entry.value)).ok_or(gone)
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
    pub(super) fn tell_all(&self, state: &State<T>) {
        // A pass may come after the stop: what that has said stands.
        let open = state.phase != Phase::Stopped;
        let open = planted!("engine.pass-after-a-stop-tells", true, open);
        let all_due = planted!("engine.cut-pass-tells", true, state.all_due);
        let told = open && all_due && state.wheel.ready() == 0;
        // Release pairs with the look in `tell`.
        let claimed = if told {
            state.wheel.now().units()
        } else {
            planted!("engine.told-before-a-pass-stands", return, NEVER)
        };
        self.claimed.0.store(claimed, Ordering::Release);
    }
}
