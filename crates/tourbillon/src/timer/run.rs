//! Running one callback: the claim, the call with no lock held, and the end.

use std::cell::Cell;
use std::sync::Arc;

use tourbillon_wheel::{Key, Time};

use super::callback::Callback;
use super::context::{Context, Held};
use super::payload::Task;
use super::stop::hand_back;
use super::{TimerCore, TimerShard};
use crate::contain::contain;
use crate::engine::shard::{Claimed, Taken};
use crate::leases::{Lease, State};

/// Claims a ready timer of the shard and runs it on this thread, which must count as busy. `false` if there was none.
#[inline]
pub(super) fn run_one(core: &Arc<TimerCore>, shard: &Arc<TimerShard>) -> bool {
    if !shard.has_ready() {
        return false;
    }
    let now = core.context.clock.now();
    let Some(Claimed { taken, spent, stays }) = shard.claim(now) else { return false };
    let Taken { key, deadline, value } = taken;
    let context = |lease, plan| Context {
        core,
        shard,
        key,
        held: if lease == Lease::BY_KEY { Held::ByKey } else { Held::Lease(Cell::new(lease)) },
        deadline,
        started: now,
        again: Cell::new(None),
        may_repeat: stays,
        plan,
    };
    match value {
        Task::Once(callback, lease) => {
            let context = context(lease, None);
            contain(shard, || callback.run(&context));
            planted!(
                "sixth.handle-taken-in-the-run-says-running-for-ever",
                if lease.is_held() {
                    end_lease(shard, &context);
                },
                end_lease(shard, &context)
            );
        }
        Task::Boxed(mut callback, lease) => {
            let plan = callback.plan().cloned();
            let context = context(lease, plan.as_ref());
            let ran = contain(shard, || callback.call(&context));
            let again = context.again.get();
            let panics = planted!("timer.panicked-run-is-armed-again", again, None);
            match if ran.is_some() { again } else { panics } {
                Some(at) if stays => arm_again(&context, callback, at),
                _ => {
                    planted!(
                        "timer.ended-before-its-captures-are-dropped",
                        {
                            let _ended = stays && shard.end(key, false);
                        },
                        ()
                    );
                    // Captured values are dropped before the handles show that the timer has ended.
                    planted!("timer.second-panic-hides-the-first", drop(callback), {
                        contain(shard, || {
                            // A callback that called `again`, but could not stay in the wheel for lack of memory, must
                            // report its end.
                            callback.will_not_run(State::Fired, shard);
                            drop(callback);
                        });
                    });
                    if stays {
                        shard.end(key, false);
                    } else {
                        end_lease(shard, &context);
                    }
                }
            }
        }
        Task::Alarm(alarm) => {
            contain(shard, || alarm.notify());
        }
        Task::Running(_) => debug_assert!(false, "a mark is never due"),
    }
    if planted!("fifth.fired-crowd-keeps-its-memory", false, spent) {
        // Released after the callback ran, so as not to delay it.
        shard.release();
    }
    true
}

/// Marks a timer that has left the wheel as fired, in the [lease](crate::leases) that its handles read.
#[inline]
fn end_lease(shard: &TimerShard, context: &Context<'_>) {
    if let Held::Lease(lease) = &context.held {
        if lease.get().is_held() {
            let end = planted!("timer.end-not-told-to-handles", State::Running, State::Fired);
            shard.under_lock(|kept| kept.leases.end(lease.get(), end));
        }
    }
}

/// Arms a timer again that ran and stayed in the wheel.
///
/// If that fails, either `stop` returns the timer's next run to its caller, or the timer has ended.
fn arm_again(context: &Context<'_>, callback: Box<dyn Callback>, at: Time) {
    let Context { core, shard, key, plan, .. } = *context;
    planted!(
        "wall.registry-left-after-the-first-run",
        plan.into_iter().for_each(|plan| plan.leave()),
        ()
    );
    match shard.rearm(key, at, Task::Boxed(callback, Lease::NONE)) {
        Ok(()) => plan.into_iter().for_each(|plan| plan.settle(core)),
        Err(task) => not_armed(core, shard, key, at, task),
    }
}

#[cold]
fn not_armed(core: &TimerCore, shard: &TimerShard, key: Key, at: Time, task: Task) {
    let Some(task) = hand_back(core, shard, Taken { key, deadline: at, value: task }) else {
        return;
    };
    let ended = shard.end(key, false);
    let state = if planted!("blind.retry-cancelled-in-a-try-says-stopped", true, ended) {
        State::Fired
    } else {
        State::Cancelled
    };
    planted!(
        "timer.retry-that-cannot-go-on-says-nothing",
        std::mem::forget(task),
        task.discard(state, shard)
    );
}
