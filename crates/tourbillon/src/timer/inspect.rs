//! Inspecting a timer: pending timers, counts, and the contents of its wheels. Nothing here changes a timer;
//! [`shrink`](Timer::shrink) only frees memory.

use std::time::Instant;

use super::Timer;
use super::executor::Run;
use crate::engine::counts::{Counts, Lateness};
use crate::view::{Pending, Snapshot};

/// The activity of a timer's callbacks, from [`Timer::activity`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Activity {
    /// The number of threads that run callbacks. A thread also counts between one callback and the next.
    pub running: usize,
    /// The number of callbacks that have ended. Exact while no thread runs callbacks; otherwise an estimate, which may
    /// fall.
    pub completed: u64,
    /// The number of threads of the pool, including sleeping ones. Zero without a pool.
    pub threads: usize,
}

/// Inspection.
impl Timer {
    /// The current time of the timer's clock.
    pub fn now(&self) -> Instant {
        self.core().context.clock.instant(self.time())
    }

    /// The number of pending timers, including sleeping tasks.
    pub fn len(&self) -> usize {
        self.counts().pending as usize
    }

    /// Whether no timer is pending.
    pub fn is_empty(&self) -> bool {
        planted!(
            "fifth.timer-on-which-only-tasks-sleep-is-empty",
            self.pending().is_empty(),
            self.len() == 0
        )
    }

    /// The pending timers, in no particular order. Sleeping tasks are not among them.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::Timer;
    ///
    /// let timer = Timer::new();
    /// let key = timer.arm(Duration::from_secs(9), |_| ())?;
    /// let pending = timer.pending();
    /// assert_eq!((pending.len(), pending[0].key), (1, key));
    /// assert_eq!(Some(pending[0].deadline), timer.deadline(key));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pending(&self) -> Vec<Pending> {
        crate::view::pending(self.core())
    }

    /// The counts of all operations.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::Timer;
    ///
    /// let timer = Timer::new();
    /// for _ in 0..10 {
    ///     timer.schedule(Duration::from_secs(60), |_| ())?.cancel();
    /// }
    /// timer.schedule(Duration::from_secs(60), |_| ())?;
    /// let counts = timer.counts();
    /// assert_eq!((counts.armed, counts.cancelled, counts.pending), (11, 10, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn counts(&self) -> Counts {
        let mut counts = self.core().counts();
        counts.add(self.core().delivery.tasks.counts());
        counts
    }

    /// The current activity of its callbacks.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).pool(2).build()?;
    /// timer.schedule(Duration::from_secs(1), |context| {
    ///     assert_eq!(context.timer().activity().running, 1);
    /// })?;
    /// clock.advance(Duration::from_secs(1))?;
    /// let activity = timer.activity();
    /// assert_eq!((activity.running, activity.completed), (0, 1));
    /// assert!(activity.threads >= 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn activity(&self) -> Activity {
        let core = self.core();
        // In this order, a callback that starts in between counts as completed too early. In the other order, it would
        // make a completed callback uncounted.
        let running = core.context.busy();
        let counts =
            planted!("timer.woken-task-is-a-completed-callback", self.counts(), core.counts());
        let completed = counts.fired.saturating_sub(planted!(
            "timer.running-callback-is-completed",
            0,
            running as u64
        ));
        let threads = match &core.delivery.run {
            Run::Pool(pool) => pool.threads(),
            Run::Driver | Run::Own(..) => 0,
        };
        Activity { running, completed, threads }
    }

    /// How late its timers were, each measured from its deadline, even from a deadline that was past when scheduled.
    pub fn lateness(&self) -> Lateness {
        let mut lateness = self.core().lateness();
        planted!(
            "timer.lateness-without-tasks",
            (),
            self.core().delivery.tasks.add_lateness(&mut lateness)
        );
        lateness
    }

    /// The contents of its wheels, slot by slot. Computed on request; it costs nothing otherwise.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::Timer;
    ///
    /// let timer = Timer::new();
    /// timer.schedule(Duration::from_secs(9), |_| ())?;
    /// let timers: usize = timer.snapshot().slots().map(|slot| slot.timers).sum();
    /// assert_eq!(timers, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = crate::view::snapshot(self.core());
        planted!(
            "third.snapshot-without-tasks",
            (),
            self.core().delivery.tasks.add_view(&mut snapshot)
        );
        snapshot
    }

    /// Releases the memory of an earlier peak.
    pub fn shrink(&self) {
        self.core().shards.iter().for_each(|shard| shard.shrink());
        planted!("timer.shrink-without-tasks", (), self.core().delivery.tasks.shrink());
    }

    /// Walks its wheels and reports the first broken invariant. For tests.
    ///
    /// # Errors
    /// The broken invariant, which is a bug in this crate.
    pub fn check(&self) -> Result<(), String> {
        self.core().shards.iter().try_for_each(|shard| shard.check())?;
        self.core().delivery.tasks.check()
    }
}
