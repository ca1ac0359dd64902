//! How much is done in a run: enough for a figure that holds, or for a look.

use std::time::Duration;

use super::figure::Row;

#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Plan {
    pub quick: bool,
    /// Instead of the rows' own numbers of rounds.
    pub rounds: Option<u16>,
}

impl Plan {
    pub fn rounds(&self, row: Row) -> usize {
        let default = match (row, self.quick) {
            // All contestants rest at the same time, and what is counted does not vary.
            (Row::Idle, _) => 1,
            (Row::Fire | Row::Lateness | Row::Later, true) => 1,
            (Row::Fire | Row::Lateness | Row::Later, false) | (_, true) => 2,
            _ => 3,
        };
        if row == Row::Idle { default } else { self.rounds.map_or(default, usize::from) }
    }

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
