//! The operations, each as one run on new timers. The league adds rounds, medians and tables.

pub mod churn;
pub mod crowd;
pub mod life;
pub mod memory;

use std::time::Instant;

use crate::wheel::contestant::Contestant;
use crate::wheel::load::Load;

/// The harness's keys. `Option`, because one peer's keys are not `Copy`.
pub type Keys<C> = Vec<Option<<C as Contestant>::Key>>;

/// A contestant filled with the load's timers.
pub fn filled<C: Contestant>(load: &Load) -> (C, Keys<C>) {
    let mut timers = C::new(load.population);
    let mut keys = Vec::with_capacity(load.population);
    fill(&mut timers, &mut keys, load);
    (timers, keys)
}

/// Starts every timer of the load.
pub fn fill<C: Contestant>(timers: &mut C, keys: &mut Keys<C>, load: &Load) {
    for (payload, &due) in load.dues.iter().enumerate() {
        keys.push(Some(timers.start(due.into(), payload as u32)));
    }
}

/// Cancels all pending timers, because some contestants' keys must not be dropped.
pub fn close<C: Contestant>(mut timers: C, keys: Keys<C>) {
    for key in keys.into_iter().flatten() {
        timers.release(key);
    }
}

/// Nanoseconds since a moment.
pub fn nanos(since: Instant) -> f64 {
    since.elapsed().as_nanos() as f64
}
