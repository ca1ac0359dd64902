//! The workloads, each as one run on a new contestant. `crate::league` adds rounds, medians and tables.

pub mod churn;
pub mod elsewhere;
pub mod fire;
pub mod idle;
pub mod longest;
pub mod trace;
pub mod whole;

use std::time::Duration;

use crate::league::Turn;
use crate::rng::Rng;

/// Population sizes: a hundred thousand, and a million.
pub const MANY: usize = 100_000;
pub const MILLION: usize = 1_000_000;

/// The number of timed pairs in a churn.
pub fn pairs(turn: &Turn) -> usize {
    if turn.quick { 500_000 } else { 1_000_000 }
}

/// Delays of 60 to 125.5 s, in whole ms: nothing fires before it is cancelled.
pub struct Delays(Rng);

impl Delays {
    pub fn new(seed: usize) -> Self {
        Delays(Rng::new(seed as u64 + 1))
    }

    #[inline]
    pub fn next(&mut self) -> Duration {
        Duration::from_millis(60_000 + (self.0.next() >> 48))
    }
}
