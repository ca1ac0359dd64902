//! Cascades the timers of a slot, or makes them ready, one chunk at a time.
//!
//! The cache misses of a chunk's nodes overlap: a cascade reads all nodes before it moves any, and firing reads them
//! independently of each other. A timer that is taken out is in no slot until it is reinserted or made ready.

use super::{Content, Timers};
use crate::budget::{Budget, Cut};
use crate::chunks::CHUNK;
use crate::geometry::Geometry;
use crate::position::{NONE, READY};
use crate::tick::Tick;
use crate::{Key, OutOfMemory};

/// A copy of the first timers of a slot with their due ticks.
pub(super) struct Batch {
    nodes: [u32; CHUNK],
    due: [Tick; CHUNK],
    number: u32,
    chunk: u32,
    /// The references of the chunk that are not in the batch.
    rest: u64,
    len: usize,
    /// The latest of the due ticks.
    last: Tick,
}

impl Batch {
    pub(super) const fn new() -> Self {
        Batch {
            nodes: [NONE; CHUNK],
            due: [0; CHUNK],
            number: NONE,
            chunk: NONE,
            rest: 0,
            len: 0,
            last: 0,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Makes the batch consist of one timer.
    fn set_one(&mut self, node: u32, due: Tick) {
        (self.nodes[0], self.due[0], self.len) = (node, due, 1);
    }

    #[inline]
    pub(super) fn get(&self, nth: usize) -> (u32, Tick) {
        (self.nodes[nth % CHUNK], self.due[nth % CHUNK])
    }
}

/// Cascading.
impl<T> Timers<T> {
    /// Moves the only timer of a slot, or a batch of its ring, to where it belongs now. See [`Timers::cascaded`].
    pub(crate) fn cascade(
        &mut self,
        geometry: &mut impl Geometry,
        number: u32,
        budget: &mut Budget,
    ) -> Result<(), Cut> {
        match self.content(number) {
            Content::Nothing => unreachable!("a slot that is marked holds a timer"),
            Content::One(node) => {
                budget.work()?;
                let due = self.refile_only(geometry, number, node)?;
                budget.spend(1);
                self.batch.set_one(node, due);
                Ok(())
            }
            Content::Ring(head) => self.cascade_ring(geometry, number, head, budget),
        }
    }

    /// The timers that the last cascade moved, and their due ticks.
    pub(crate) fn cascaded(&self) -> impl Iterator<Item = (Key, Tick)> {
        let timers = (0..self.batch.len).map(|nth| self.batch.get(nth));
        timers.map(|(node, due)| (self.nodes.key(node), due))
    }

    /// Moves a batch from the head chunk of a slot to the slots where its timers now belong.
    #[inline]
    fn cascade_ring(
        &mut self,
        geometry: &mut impl Geometry,
        number: u32,
        head: u32,
        budget: &mut Budget,
    ) -> Result<(), Cut> {
        let work = budget.work()?;
        self.look(number, head, planted!("wheel.more-than-the-budget", work.max(CHUNK), work));
        planted!(
            "wheel.taken-before-there-is-room",
            {
                self.take(geometry);
                self.prepare_batch(geometry)?;
            },
            {
                self.prepare_batch(geometry)?;
                self.take(geometry);
            }
        );
        budget.spend(self.batch.len);
        let all = self.batch.len;
        for nth in 0..planted!("wheel.lost-when-handed-down", all.min(31), all) {
            let (node, due) = self.batch.get(nth);
            self.refile(geometry, node, due);
        }
        Ok(())
    }

    /// Ensures that the whole batch can be inserted, before any of it moves.
    #[inline]
    fn prepare_batch(&mut self, geometry: &mut impl Geometry) -> Result<(), OutOfMemory> {
        // The batch's own chunk will be free if no reference stays there.
        self.chunks.reserve(self.batch.len - usize::from(self.batch.rest == 0))?;
        if !geometry.is_made(self.batch.last, self.hand) {
            for nth in 0..self.batch.len {
                self.make_level(geometry, self.batch.get(nth).1)?;
            }
        }
        Ok(())
    }

    /// Copies the first timers of a ring into the batch, at most `most`.
    #[inline]
    pub(super) fn look(&mut self, number: u32, head: u32, most: usize) {
        let batch = &mut self.batch;
        (batch.number, batch.chunk, batch.last) = (number, head, 0);
        (batch.len, batch.rest) = self.chunks.first(head, most, &mut batch.nodes);
        for (&node, due) in batch.nodes.iter().zip(&mut batch.due).take(batch.len) {
            *due = self.nodes.node(node).due();
            batch.last = batch.last.max(*due);
        }
    }

    /// Removes the batch from its slot. The caller must reinsert every timer of the batch or make it ready.
    #[inline]
    pub(super) fn take(&mut self, geometry: &mut impl Geometry) {
        let Batch { number, chunk, rest, .. } = self.batch;
        self.keep(geometry, number, chunk, rest);
    }

    /// Keeps only the references `refs` of a chunk, and frees the chunk if there are none.
    #[inline]
    fn keep(&mut self, geometry: &mut impl Geometry, number: u32, chunk: u32, refs: u64) {
        if refs == 0 {
            self.release(geometry, number, chunk);
        } else {
            self.chunks.leave(chunk, refs);
        }
    }
}

/// Firing.
impl<T> Timers<T> {
    /// Makes the due timers of a slot ready, within the budget. Timers that were moved to later are reinserted, so no
    /// timer of another turn stays here.
    #[inline]
    pub(crate) fn fire(
        &mut self,
        geometry: &mut impl Geometry,
        number: u32,
        budget: &mut Budget,
    ) -> Result<(), Cut> {
        loop {
            match self.content(number) {
                Content::Nothing => return Ok(()),
                Content::One(node) => {
                    budget.room(self.ready.len())?;
                    return Ok(self.settle_only(geometry, number, node, budget)?);
                }
                Content::Ring(head) => {
                    let room = budget.room(self.ready.len())?;
                    self.ready.reserve(CHUNK, &mut self.nodes)?;
                    if self.make_chunk_ready(geometry, number, head, room) {
                        self.cascade_ring(geometry, number, head, budget)?;
                    }
                }
            }
        }
    }

    /// Makes the only timer of a slot ready if it is due, or reinserts it if it was moved to later.
    #[inline(always)]
    pub(super) fn settle_only(
        &mut self,
        geometry: &mut impl Geometry,
        number: u32,
        node: u32,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        let due = self.nodes.node(node).due();
        if due <= self.hand {
            self.ready.reserve(1, &mut self.nodes)?;
            self.leave(geometry, number);
            self.make_ready(node, due);
        } else {
            self.refile_only(geometry, number, node)?;
            budget.spend(1);
        }
        Ok(())
    }

    /// Makes a timer ready that is in no slot. Room must have been reserved.
    #[inline]
    pub(super) fn make_ready(&mut self, index: u32, due: Tick) {
        let node = self.nodes.node_mut(index);
        node.set_position(READY);
        self.ready.push(index, node.generation(), due);
    }

    /// Makes the due timers of a chunk ready, examining at most `most` timers. Returns whether some stay because they
    /// were moved to later. Room for a chunk must have been reserved.
    #[inline]
    fn make_chunk_ready(
        &mut self,
        geometry: &mut impl Geometry,
        number: u32,
        chunk: u32,
        most: usize,
    ) -> bool {
        let (nodes, mut refs) = self.chunks.content(chunk);
        let (mut late, mut looked) = (0_u64, 0);
        while refs != 0 && looked < most {
            let bit = refs.trailing_zeros();
            refs &= refs - 1;
            looked += 1;
            let index = nodes[bit as usize % CHUNK];
            let node = self.nodes.node_mut(index);
            let due = node.due();
            // `is_pending` is always true here. It prefetches the value, which may be in another cache line: the misses
            // of a whole chunk overlap here, while those of single pops would not.
            if due <= self.hand && node.is_pending() {
                node.set_position(READY);
                self.ready.push(index, node.generation(), due);
            } else {
                late |= 1 << bit;
            }
        }
        let kept = planted!("wheel.budget-drops-the-rest", late, refs | late);
        self.keep(geometry, number, chunk, kept);
        late != 0
    }
}
