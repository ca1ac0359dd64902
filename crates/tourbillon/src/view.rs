//! Looking at an engine without touching it: copies, made when asked for.

use std::time::Instant;

use tourbillon_wheel::SlotView;

use crate::engine::{Core, Deliver};
use crate::key::Key;

/// A pending timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pending {
    /// Its key.
    pub key: Key,
    /// When it is to run.
    pub deadline: Instant,
}

/// What the wheels of an engine held, one shard after the other.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// The shards.
    pub shards: Vec<ShardView>,
}

/// What the wheel of one shard held.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ShardView {
    /// Where its hand was: it moves when something is due, not with every tick.
    pub hand: Instant,
    /// The bytes it held.
    pub memory: usize,
    /// The occupied slots, level by level, in the order in which the hand meets them.
    pub slots: Vec<SlotView>,
}

impl Snapshot {
    /// The occupied slots of all shards.
    pub fn slots(&self) -> impl Iterator<Item = &SlotView> {
        self.shards.iter().flat_map(|shard| &shard.slots)
    }

    /// The bytes that the wheels held.
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
        ShardView { hand: core.context.clock.instant(hand), memory, slots }
    });
    Snapshot { shards: shards.collect() }
}
