//! The driver: sleeps until a timer is due, makes due timers ready, and delivers them.
//!
//! The driver is a thread, a virtual clock, or the caller's event loop (`driven.rs`). It holds no lock while it
//! delivers. The budget bounds each pass over a shard, so a shard with many due timers delays the others by at most one
//! pass.

use std::sync::Arc;
use std::time::Duration;

use tourbillon_wheel::Time;

use super::core::{Core, Deliver};
use super::shard::Shard;
use super::signal::Rest;
use crate::clock::Driven;

/// How long a virtual clock waits before it again offers timers that an executor refused.
const PATIENCE: Duration = Duration::from_millis(1);

impl<D: Deliver> Core<D> {
    /// The body of the driver's thread.
    pub(super) fn drive(self: Arc<Self>) {
        loop {
            self.pass(self.context.clock.now());
            let rest = self.context.signal.rest(|until, sleeper| {
                self.context.clock.wait(Time::new(until), sleeper);
            });
            if planted!("engine.driver-outlives-the-stop", false, rest == Rest::Stopping) {
                break;
            }
        }
    }

    /// One pass over the shards that have something due.
    fn pass(self: &Arc<Self>, now: Time) {
        self.due(now).for_each(|shard| self.attend(shard, now));
    }

    /// The shards that have something due.
    pub(super) fn due(&self, now: Time) -> impl Iterator<Item = &Arc<Shard<D>>> {
        let is_due = move |shard: &&Arc<Shard<D>>| {
            let next = self.context.signal.next(shard.index);
            planted!("engine.due-now-is-not-due", next < now.units(), next <= now.units())
        };
        self.shards.iter().filter(is_due)
    }

    /// Makes due timers of the shard ready, as far as the budget allows, and delivers them.
    pub(super) fn attend(self: &Arc<Self>, shard: &Arc<Shard<D>>, now: Time) {
        shard.advance(now, self.budget);
        D::deliver(self, shard);
    }
}

impl<D: Deliver> Driven for Core<D> {
    fn next_due(&self) -> Option<Time> {
        let due = self.shards.iter().filter_map(|shard| shard.next_due());
        planted!("engine.clock-sees-one-shard", due.into_iter().next(), due.min())
    }

    fn waits_for_its_loop(&self) -> bool {
        self.context.signal.has_hook()
    }

    fn wall_was_set(self: Arc<Self>) {
        D::wall_was_set(&self);
    }

    fn turn(self: Arc<Self>) {
        if planted!("engine.clock-turns-for-the-loop", false, self.waits_for_its_loop()) {
            return;
        }
        planted!("third.nobody-tells-a-step-that-all-have-run", (), self.context.watch());
        self.pass(self.context.clock.now());
        // Check in this order: a thread counts as busy before it claims, so a timer that is no longer ready counts as
        // running.
        let none_ready = || self.shards.iter().all(|shard| shard.count_ready() == 0);
        let none_runs = || self.context.busy() == 0;
        let idle = || {
            planted!(
                "engine.advance-leaves-what-is-ready",
                none_ready() || none_runs(),
                none_ready() && none_runs()
            )
        };
        while !self.context.quiescence.wait_until(Some(PATIENCE), idle) {
            self.shards.iter().for_each(|shard| {
                planted!(
                    "fifth.refused-job-is-not-offered-again-in-an-advance",
                    (),
                    D::offer_again(&self, shard)
                );
            });
            planted!("fourth.advance-leaves-a-long-callback-behind", break, ());
        }
    }
}
