//! The engine of tasks: what lies in its wheels are wakers, and what it delivers is their call.
//!
//! No allocation a sleep, and no state beside the wheel: whether a sleep is over is whether its waker is still there.
//! The driver claims what is ready in batches under the shard's lock, and wakes with empty hands. A waker is foreign
//! code in each of its parts: it is cloned, woken and dropped with none of our locks held, and its panics end here.

mod watermark;

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use tourbillon_wheel::Time;

use crate::contain::contain;
use crate::engine::face::{Face, Kept};
use crate::engine::settings::Settings;
use crate::engine::shard::{Shard, Taken};
use crate::engine::{Core, Deliver};
use crate::sync::{Mutex, lock};
pub(crate) use watermark::{Told, Watermark};

pub(crate) type TaskCore = Core<Wakers>;
pub(crate) type TaskShard = Shard<Wakers>;

/// How wakers are woken: on the driver's thread.
pub(crate) struct Wakers {
    /// Kept for its memory. The driver alone takes it.
    batch: Mutex<VecDeque<Taken<Waker>>>,
}

impl Wakers {
    /// An engine of tasks. It starts with its first timer.
    pub(crate) fn engine(settings: Settings) -> Arc<TaskCore> {
        let core = Core::new(settings, Wakers { batch: Mutex::new(VecDeque::new()) });
        for shard in &core.shards {
            let _never_set_before = shard.shown.engine.set(Arc::downgrade(&core));
        }
        core
    }
}

impl Face for Wakers {
    type Value = Waker;
    type Kept = AllDue;
    type Shown = Watermark;
    type Given = ();

    #[inline]
    fn arm(_waker: &mut Waker, _kept: &mut AllDue) -> Option<()> {
        Some(())
    }

    #[inline]
    fn show(
        watermark: &Watermark,
        AllDue(kept): &mut AllDue,
        all_due: Option<bool>,
        hand: Option<Time>,
    ) {
        *kept = all_due.unwrap_or(*kept);
        let all_due = planted!("engine.cut-pass-tells", true, *kept);
        watermark.show(hand.filter(|_| all_due));
    }
}

/// Whether the last pass has made ready all that was due.
pub(crate) struct AllDue(bool);

impl Default for AllDue {
    fn default() -> Self {
        AllDue(true)
    }
}

impl Kept for AllDue {}

impl Deliver for Wakers {
    fn deliver(core: &Arc<TaskCore>, shard: &Arc<TaskShard>) {
        if !shard.has_ready() {
            return;
        }
        let _at_work = core.context.work();
        // Out of its mutex while they are woken: foreign code runs with empty hands.
        let mut batch = std::mem::take(&mut *lock(&core.delivery.batch));
        let most =
            planted!("tasks.half-of-a-large-batch-is-left", core.budget.div_ceil(2), core.budget);
        let spent = shard.claim_batch(core.context.clock.now(), most, &mut batch);
        while let Some(taken) = batch.pop_front() {
            let wake = |waker: Waker| {
                planted!("tasks.a-claimed-waker-is-not-woken", drop(waker), waker.wake());
            };
            planted!("tasks.a-panicking-waker-ends-the-driver", wake(taken.value), {
                contain(shard, || wake(taken.value));
            });
        }
        *lock(&core.delivery.batch) = batch;
        if spent {
            shard.release();
        }
    }

    fn abandon(core: &TaskCore) {
        hand_back(core);
    }
}

/// Stops the engine and wakes all tasks, which find that it was stopped.
pub(crate) fn hand_back(core: &TaskCore) {
    for (shard, taken) in core.stop().unwrap_or_default() {
        let wake = || planted!("tasks.a-stop-wakes-no-task", drop(taken.value), taken.value.wake());
        let woken = contain(&core.shards[shard], wake);
        planted!(
            "tasks.a-panicking-waker-ends-the-loop-at-stop",
            if woken.is_none() {
                break;
            },
            _ = woken
        );
    }
}
