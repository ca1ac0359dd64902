//! Copies of an engine's state, made on request, for inspection.

use std::time::Instant;

use tourbillon_wheel::SlotView;

use crate::engine::{Core, Deliver};
use crate::key::Key;

/// A pending timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pending {
    /// The key of the timer.
    pub key: Key,
    /// The deadline as it was given: the timer fires at the first tick that is not before it.
    pub deadline: Instant,
}

/// The contents of an engine's wheels, shard by shard, when the snapshot was taken.
///
/// The shards are copied one after the other: timers may fire or be armed in between.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// One view for each shard.
    pub shards: Vec<ShardView>,
}

/// The contents of one shard's wheel.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ShardView {
    /// The position of the wheel's hand. It moves when something is due, not on every tick.
    pub hand: Instant,
    /// The bytes that the shard's wheel and its handles' records hold.
    pub memory: usize,
    /// The occupied slots, level by level, in the order in which the hand meets them.
    pub slots: Vec<SlotView>,
}

impl Snapshot {
    /// The occupied slots of all shards.
    pub fn slots(&self) -> impl Iterator<Item = &SlotView> {
        let shown = planted!("blind.slots-of-one-shard", 1, usize::MAX);
        self.shards.iter().take(shown).flat_map(|shard| &shard.slots)
    }

    /// The bytes held by all shards.
    pub fn memory(&self) -> usize {
        let each = self.shards.iter().map(|shard| shard.memory);
        planted!("view.memory-of-one-shard", each.max().unwrap_or(0), each.sum())
    }
}

pub(crate) fn pending<D: Deliver>(core: &Core<D>) -> Vec<Pending> {
    let mut all = Vec::new();
    for shard in &core.shards {
        shard.for_each(|key, deadline| {
            let deadline = core.context.clock.instant(deadline);
            let index = planted!("view.pending-names-the-first-shard", 0, shard.index);
            all.push(Pending { key: Key::new(index, key), deadline });
        });
    }
    all
}

pub(crate) fn snapshot<D: Deliver>(core: &Core<D>) -> Snapshot {
    let shards = core.shards.iter().map(|shard| {
        let (hand, memory, slots) = shard.view();
        let hand =
            planted!("fourth.snapshot-shows-the-clock-as-the-hand", core.context.clock.now(), hand);
        ShardView { hand: core.context.clock.instant(hand), memory, slots }
    });
    Snapshot { shards: shards.collect() }
}
