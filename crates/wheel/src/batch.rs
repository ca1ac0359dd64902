//! Taking timers out of a slot, a chunk at a time.
//!
//! The nodes of a chunk are read before anything is done with any of them, or independently of each other, so
//! that the memory answers for all of them at once. What is taken is in no slot: it must be filed again or be
//! made ready.

use crate::chunks::{CHUNK, READY};
use crate::nodes::NONE;
use crate::rules::Rules;
use crate::shared::Core;
use crate::tick::Tick;

/// The first timers of a slot with their due ticks, copied: reading the nodes of a whole batch before acting on
/// any lets the memory answer for all of them at once.
pub(crate) struct Batch {
    nodes: [u32; CHUNK],
    due: [Tick; CHUNK],
    number: u32,
    chunk: u32,
    /// The references of the chunk that are not in the batch.
    rest: u64,
    pub(crate) len: usize,
    /// The latest of the due ticks.
    pub(crate) last: Tick,
}

impl Batch {
    pub(crate) const fn new() -> Self {
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

    /// Whether nothing stays in its chunk.
    #[inline]
    pub(crate) fn takes_all(&self) -> bool {
        self.rest == 0
    }

    #[inline]
    pub(crate) fn get(&self, nth: usize) -> (u32, Tick) {
        (self.nodes[nth % CHUNK], self.due[nth % CHUNK])
    }
}

impl<T> Core<T> {
    /// Copies the first timers of a ring of a slot into the batch, at most `most` of them.
    #[inline]
    pub(crate) fn look(&mut self, number: u32, head: u32, most: usize) {
        let batch = &mut self.batch;
        (batch.number, batch.chunk, batch.last) = (number, head, 0);
        (batch.len, batch.rest) = self.chunks.first(head, most, &mut batch.nodes);
        for (&node, due) in batch.nodes.iter().zip(&mut batch.due).take(batch.len) {
            *due = self.nodes.node(node).due();
            batch.last = batch.last.max(*due);
        }
    }

    /// Takes the batch out of its slot. Every timer of it must be filed again.
    #[inline]
    pub(crate) fn take(&mut self, rules: &mut impl Rules) {
        let Batch { number, chunk, rest, .. } = self.batch;
        self.keep(rules, number, chunk, rest);
    }

    /// Lets only these references of a chunk count, and frees it if there are none.
    #[inline]
    fn keep(&mut self, rules: &mut impl Rules, number: u32, chunk: u32, refs: u64) {
        if refs == 0 {
            self.release(rules, number, chunk);
        } else {
            self.chunks.leave(chunk, refs);
        }
    }

    /// Makes a timer that is in no slot ready to be popped. Room must have been reserved.
    #[inline]
    pub(crate) fn file_ready(&mut self, index: u32, due: Tick) {
        let node = self.nodes.node_mut(index);
        node.position = READY;
        self.ready.push(index, node.generation(), due);
    }

    /// Makes the timers of a chunk of a slot that are due at the hand ready, having looked at `most` at most.
    /// True if some stay there because they were moved to later. Room for a chunk must have been reserved.
    #[inline]
    pub(crate) fn ripen(
        &mut self,
        rules: &mut impl Rules,
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
            // It is pending. To ask reads the value too, which may lie in another cache line: the memory answers for
            // all of them together, and not for one after the other when they are popped.
            if due <= self.hand && node.is_pending() {
                node.position = READY;
                self.ready.push(index, node.generation(), due);
            } else {
                late |= 1 << bit;
            }
        }
        let kept = planted!("wheel.budget-drops-the-rest", late, refs | late);
        self.keep(rules, number, chunk, kept);
        late != 0
    }
}
