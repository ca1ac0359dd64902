//! Inspection of a shard: counts, slots, memory, and a check of its invariants.

use tourbillon_wheel::{Key, SlotView, Time};

use super::{Filed, Shard};
use crate::contain::{OnPanic, Panics};
use crate::engine::counts::{Counts, Lateness};
use crate::engine::face::{Face, Kept};
use crate::sync::lock;

impl<F: Face> Shard<F> {
    pub(crate) fn counts(&self) -> Counts {
        lock(&self.state).counts()
    }

    pub(crate) fn add_lateness(&self, sum: &mut Lateness) {
        sum.add(&lock(&self.state).lateness);
    }

    pub(crate) fn for_each(&self, mut each: impl FnMut(Key, Time)) {
        let pending = |entry: &Filed<F>| !F::is_running(&entry.value);
        lock(&self.state).wheel.for_each(|key, entry| {
            if planted!("blind.what-runs-is-listed-as-pending", true, pending(entry)) {
                each(key, entry.deadline);
            }
        });
    }

    pub(crate) fn view(&self) -> (Time, usize, Vec<SlotView>) {
        let state = lock(&self.state);
        let kept = planted!("third.memory-of-handles-is-not-told", 0, state.kept.memory());
        let memory = state.wheel.memory() + kept;
        let mut slots = state.wheel.occupied();
        if planted!("engine.what-runs-is-in-a-slot", false, state.running > 0) {
            state.wheel.leave_out(&mut slots, |entry| F::is_running(&entry.value));
        }
        (state.wheel.now(), memory, slots)
    }

    pub(crate) fn shrink(&self) {
        let mut state = lock(&self.state);
        state.wheel.shrink();
        planted!("engine.shrink-keeps-the-leases", (), state.kept.shrink());
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let state = lock(&self.state);
        state.wheel.check()?;
        state.kept.check()?;
        state.counts().check()
    }
}

impl<F: Face> Panics for Shard<F> {
    fn count_panic(&self) {
        lock(&self.state).counts.panicked += 1;
    }

    fn on_panic(&self) -> Option<&OnPanic> {
        self.context.on_panic.as_ref()
    }
}
