//! Running one callback: the claim, the call with empty hands, and what comes after.

use std::cell::Cell;
use std::sync::Arc;

use tourbillon_wheel::{Key, Time};

use super::State;
use super::TimerCore;
use super::context::{Context, Held};
use super::shared::Shared;
use super::stop::hand_back;
use super::task::{Named, Once, Task};
use crate::contain::contain;
use crate::engine::shard::{Refused, Taken};
use crate::timer::TimerShard;

/// Claims a ready timer of the shard and runs it here, for a thread that is at work. `false` if there was none.
#[inline]
pub(super) fn run_one(core: &Arc<TimerCore>, shard: &Arc<TimerShard>) -> bool {
    if !shard.has_ready() {
        return false;
    }
    let now = core.hub.clock.now();
    let Some((taken, spent)) = shard.claim(now) else { return false };
    run(core, shard, taken, now);
    if spent {
        // After the callback, which was due before.
        shard.release();
    }
    true
}

fn run(core: &Arc<TimerCore>, shard: &Arc<TimerShard>, taken: Taken<Task>, now: Time) {
    let Taken { key, deadline, value } = taken;
    let may_repeat = value.can_repeat();
    let context = |held| Context {
        core,
        shard,
        key,
        held,
        deadline,
        started: now,
        again: Cell::new(None),
        may_repeat,
    };
    match value {
        Task::Once(Once { callback, named: Named::ByKey, .. }) => {
            contain(shard, || callback.run(&context(Held::Nothing)));
        }
        Task::Once(Once { callback, lease, .. }) => {
            let context = context(Held::Lease(Cell::new(lease)));
            contain(shard, || callback.run(&context));
            if let Some(lease) = context.lease() {
                let end = planted!("timer.end-not-told-to-handles", State::Running, State::Fired);
                shard.under_lock(|kept| kept.leases.end(lease, end));
            }
        }
        Task::Alarm(alarm) => {
            contain(shard, || alarm.ring());
        }
        Task::Shared(shared) => {
            let context = context(Held::Shared(&shared));
            let again = contain(shard, || shared.run(&context));
            let again = again.unwrap_or(planted!("timer.panicked-run-is-armed-again", true, false));
            match context.again.get() {
                Some(at) if again => arm_again(core, shard, shared, key, at),
                _ => end(shard, &*shared),
            }
        }
    }
}

/// The callback will not run again.
fn end(shard: &TimerShard, shared: &dyn Shared) {
    if planted!("timer.wall-timer-gives-two-places-back", true, shared.can_repeat()) {
        // Its handles may be cancelling it at this moment.
        shard.under_lock(|_| shared.cell().fired());
        // The place that it kept while it ran.
        shard.hub.give_back(planted!(
            "engine.limit-kept-when-cancelled-in-run",
            usize::from(shared.cell().get() != State::Cancelled),
            1
        ));
    } else {
        shared.cell().fired();
    }
}

fn arm_again(
    core: &Arc<TimerCore>,
    shard: &Arc<TimerShard>,
    shared: Arc<dyn Shared>,
    key: Key,
    at: Time,
) {
    let task = Task::Shared(shared.clone());
    let running = || shared.cell().get() == State::Running;
    let mark = |key| {
        shared.rearm(key);
        if let Some(plan) = shared.wall() {
            plan.armed();
        }
    };
    let armed = shard.rearm(at, task, running, mark);
    match armed {
        Ok(()) => {
            if let Some(plan) = shared.wall() {
                plan.settle(core);
            }
        }
        Err(Refused::Stopped(_)) if hand_back(core, shard, &shared, key, at) => {}
        Err(Refused::New(task) | Refused::Stopped(task) | Refused::Full(task)) => {
            planted!(
                "timer.cancelled-in-run-keeps-its-place",
                shared.cell().fired(),
                end(shard, &*shared)
            );
            planted!(
                "timer.retry-that-cannot-go-on-says-nothing",
                std::mem::forget(task),
                discard(shard, task)
            );
        }
    }
}

/// Drops what is left of a callback that will not run, with no lock held.
#[inline]
pub(super) fn discard(shard: &TimerShard, left: impl Into<Option<Task>>) {
    if let Some(task) = left.into() {
        planted!("timer.drop-of-a-callback-not-contained", task.discard(shard), {
            contain(shard, || task.discard(shard));
        });
    }
}
