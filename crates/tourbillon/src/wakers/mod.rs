//! The engine of tasks: its wheels hold wakers, and it delivers them by waking.
//!
//! A sleep allocates nothing. All of its state in the engine is its waker in the wheel: once that is gone, the sleep is
//! over. The driver claims ready wakers in batches under the shard's lock and wakes them without it. Wakers are user
//! code: they are cloned, woken and dropped with no lock held, and their panics are contained.

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

/// Delivers wakers by waking them on the driver's thread.
pub(crate) struct Wakers {
    /// The batch, kept so that its memory is reused. Only the driver takes it.
    batch: Mutex<VecDeque<Taken<Waker>>>,
}

impl Wakers {
    /// Creates an engine of tasks. It starts with its first timer.
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

/// Whether the last pass made every due timer ready.
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
        let _at_work = planted!("blind.waker-is-not-at-work", None, Some(core.context.work()));
        // Taken out of its mutex: wakers run with no lock held.
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

/// Stops the engine and wakes all tasks, which then find it stopped.
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
