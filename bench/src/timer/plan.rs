//! How much is done in a run: enough for a figure that holds, or for a look.

use std::time::Duration;

/// How much of each workload is done.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub quick: bool,
}

impl Plan {
    /// Pairs of a churn that are timed.
    pub fn pairs(&self) -> usize {
        if self.quick { 500_000 } else { 1_000_000 }
    }

    /// How long a contestant at rest is watched.
    pub fn watch(&self) -> Duration {
        Duration::from_secs(if self.quick { 2 } else { 10 })
    }

    /// Timers that fire to be timed, 100 k a second.
    pub fn watched(&self) -> u64 {
        if self.quick { 100_000 } else { 200_000 }
    }
}
