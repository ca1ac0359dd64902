//! How the chunks of a slot hang together: a ring, filled at its head and thinned out as its timers are cancelled.
//!
//! - The head takes new references. It is full when it gives way: to a chunk that is low, if one is known, or to a new
//!   one. The chunks of a ring have no order, so any of them may be its head.
//! - A chunk that is not the head is looked at when [`LOW`] references are left: it is the one to be filled next, until
//!   another is. It is looked at again with [`FEW`] left: they move to where there is room, and the chunk is free.
//! - So every chunk but the head has more than `FEW` references, and no cancel moves more than `FEW`. In a slot that is
//!   being looked through nothing moves: what is cancelled there meanwhile is thinned out with the next look.

use super::{Chunks, FEW, LEN, LOW, Link, Position, Word};
use crate::OutOfMemory;
use crate::held::Ring;
use crate::nodes::NONE;

impl Chunks {
    /// Begins the ring of a slot with its first reference.
    #[inline(always)]
    pub(crate) fn open(
        &mut self,
        ring: &mut Ring,
        slot: u32,
        node: u32,
    ) -> Result<Position, OutOfMemory> {
        let chunk = self.draw(slot)?;
        *ring = Ring { head: chunk, low: NONE };
        self.words[chunk as usize] = Word { refs: 1, over: 1 };
        self.set(chunk, 0, node);
        Ok(chunk * LEN)
    }

    /// Gives a ring whose head is full a head with a gap: one that is low, or a new chunk.
    pub(crate) fn widen(&mut self, ring: &mut Ring, slot: u32) -> Result<(), OutOfMemory> {
        let low = core::mem::replace(&mut ring.low, NONE);
        let here = self.links.get(low as usize).is_some_and(|link| link.owner == slot);
        if here && self.is_low(low) {
            self.lead(ring, low);
        } else {
            let chunk = self.draw(slot)?;
            self.link(chunk, ring.head);
            self.lead(ring, chunk);
        }
        Ok(())
    }

    /// Makes another chunk of a ring its head. That which was is full: it is one like any other from now on.
    fn lead(&mut self, ring: &mut Ring, chunk: u32) {
        self.words[ring.head as usize] = Word::new(u64::MAX, LOW);
        ring.head = chunk;
        self.unmark(chunk);
    }

    /// Files a reference in a ring, wherever there is room.
    pub(crate) fn add(
        &mut self,
        ring: &mut Ring,
        slot: u32,
        node: u32,
    ) -> Result<Position, OutOfMemory> {
        if let Some(position) = self.push(ring.head, node) {
            return Ok(position);
        }
        if ring.head == NONE {
            return self.open(ring, slot, node);
        }
        self.widen(ring, slot)?;
        self.push(ring.head, node).ok_or(OutOfMemory)
    }

    /// Takes one of the free chunks, as a ring of its own.
    #[inline]
    fn draw(&mut self, slot: u32) -> Result<u32, OutOfMemory> {
        self.reserve(1)?;
        let mut chunk = self.free;
        if chunk == NONE {
            chunk = self.fresh;
            self.fresh += 1;
        } else {
            self.free = self.links[chunk as usize].next;
        }
        self.free_len -= 1;
        self.links[chunk as usize] = Link { owner: slot, next: chunk, previous: chunk };
        Ok(chunk)
    }

    /// Nobody has to look at this chunk before it is empty.
    pub(crate) fn unmark(&mut self, chunk: u32) {
        self.words[chunk as usize] = Word::new(self.words[chunk as usize].refs, 0);
    }

    #[inline]
    fn is_low(&self, chunk: u32) -> bool {
        self.words[chunk as usize].refs.count_ones() <= LOW
    }

    pub(crate) fn is_empty(&self, chunk: u32) -> bool {
        self.words[chunk as usize].refs == 0
    }

    /// Links a chunk into the ring of a head.
    fn link(&mut self, chunk: u32, head: u32) {
        let tail = core::mem::replace(&mut self.links[head as usize].previous, chunk);
        self.links[tail as usize].next = chunk;
        let link = &mut self.links[chunk as usize];
        (link.next, link.previous) = (head, tail);
    }

    /// Takes a chunk out of its ring. Returns the next one of it, or `NONE`.
    #[inline]
    fn unlink(&mut self, chunk: u32) -> u32 {
        let Link { next, previous, .. } = self.links[chunk as usize];
        if next == chunk {
            return NONE;
        }
        self.links[previous as usize].next = next;
        self.links[next as usize].previous = previous;
        next
    }

    /// Takes a chunk that is empty out of its ring and frees it. Returns the next one of the ring, or `NONE`.
    #[inline]
    pub(crate) fn release(&mut self, chunk: u32) -> u32 {
        let next = self.unlink(chunk);
        self.words[chunk as usize] = Word::EMPTY;
        self.links[chunk as usize] = Link { next: self.free, ..Link::FREE };
        self.free = chunk;
        self.free_len += 1;
        next
    }

    /// A chunk that is not the head of its ring has come down to its mark: it is to be filled, or, if only a few
    /// references are left, they are to be filed anew. Returns those; the chunk is free then.
    pub(crate) fn thin(&mut self, ring: &mut Ring, chunk: u32) -> Option<[u32; FEW as usize]> {
        let refs = self.words[chunk as usize].refs;
        if refs.count_ones() > FEW {
            self.words[chunk as usize] = Word::new(refs, FEW);
            ring.low = chunk;
            return None;
        }
        if self.words[ring.head as usize].refs == u64::MAX {
            // It has the room that the head has not.
            self.lead(ring, chunk);
            return None;
        }
        let mut few = [NONE; FEW as usize];
        for ((_, node), copy) in self.of_chunk(chunk).zip(&mut few) {
            *copy = node;
        }
        self.release(chunk);
        Some(few)
    }

    /// The chunks of a ring, from its head on.
    pub(crate) fn ring(&self, head: u32) -> impl Iterator<Item = u32> {
        let first = (head != NONE).then_some(head);
        core::iter::successors(first, move |&chunk| {
            let next = self.links[chunk as usize].next;
            (next != head).then_some(next)
        })
    }

    /// How many references a ring has.
    pub(crate) fn count(&self, head: u32) -> usize {
        self.ring(head).map(|chunk| self.words[chunk as usize].refs.count_ones() as usize).sum()
    }

    /// Walks a ring and returns how many chunks it has. A `strict` one has no chunk that should have been thinned.
    /// For `check` alone.
    pub(crate) fn check(&self, head: u32, slot: u32, strict: bool) -> Result<usize, &'static str> {
        let mut count = 0;
        for chunk in self.ring(head) {
            let Link { owner, next, .. } = self.links[chunk as usize];
            if owner != slot {
                return Err("a chunk does not know its slot");
            }
            if next as usize >= self.len() || self.links[next as usize].previous != chunk {
                return Err("a chunk does not lead back to the one before it");
            }
            let Word { refs, over } = self.words[chunk as usize];
            let refs = refs.count_ones();
            if refs == 0 {
                return Err("a chunk is empty");
            }
            let marks = if strict && chunk != head { &[FEW, LOW][..] } else { &[0, FEW, LOW] };
            if over == 0 || !marks.iter().any(|mark| over + mark == refs) {
                return Err("a chunk is not counted right");
            }
            count += 1;
            if count > self.len() {
                return Err("a ring does not close");
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// A ring, and where the reference to each node is.
    struct Model {
        pool: Chunks,
        ring: Ring,
        positions: Vec<Option<Position>>,
    }

    impl Model {
        fn add(&mut self, node: u32) {
            let position = self.pool.add(&mut self.ring, 7, node).unwrap();
            self.positions[node as usize] = Some(position);
        }

        fn remove(&mut self, node: u32) {
            let position = self.positions[node as usize].take().unwrap();
            let chunk = position / LEN;
            if !self.pool.remove(position) {
                return;
            }
            if self.pool.is_empty(chunk) {
                let next = self.pool.release(chunk);
                let head = &mut self.ring.head;
                *head = if *head == chunk { next } else { *head };
            } else if self.ring.head == chunk {
                self.pool.unmark(chunk);
            } else if let Some(few) = self.pool.thin(&mut self.ring, chunk) {
                few.into_iter().for_each(|node| self.add(node));
            }
        }

        fn check(&self) {
            let chunks = self.pool.check(self.ring.head, 7, true).unwrap();
            assert_eq!(chunks + self.pool.free_len(), self.pool.len());
            let refs = self.pool.ring(self.ring.head).flat_map(|chunk| self.pool.of_chunk(chunk));
            let mut count = 0;
            for (position, node) in refs {
                assert_eq!(self.positions[node as usize], Some(position));
                assert_eq!(self.pool.owner(position), 7);
                count += 1;
            }
            assert_eq!(count, self.positions.iter().flatten().count());
            assert_eq!(count, self.pool.count(self.ring.head));
            assert!(chunks <= 1 + count / (FEW as usize + 1), "{chunks} chunks for {count}");
        }
    }

    #[test]
    fn a_ring_is_thinned_out_whatever_the_order() {
        const NODES: u32 = 1000;
        // Strides that have no factor in common with the number of nodes: every node once.
        for stride in [1, 3, 7, 31, 33, 77, 501, 999] {
            let positions = (0..NODES).map(|_| None).collect();
            let mut model = Model { pool: Chunks::new(), ring: Ring::NONE, positions };
            (0..NODES).for_each(|node| model.add(node));
            let chunks = model.pool.len() - model.pool.free_len();
            assert_eq!(chunks, NODES.div_ceil(LEN) as usize, "the chunks are full");
            model.check();
            for n in 0..NODES {
                model.remove(n * stride % NODES);
                model.check();
                // Now and then some come back, into the gaps.
                if n % 5 == 0 {
                    model.add(n * stride % NODES);
                    model.check();
                }
            }
            // A chunk is drawn only when none is known to be low.
            assert!(model.pool.fresh <= 2 + NODES / (LOW + 1), "gaps are filled");
            (0..NODES).step_by(5).for_each(|n| model.remove(n * stride % NODES));
            assert_eq!((model.ring.head, model.pool.free_len()), (NONE, model.pool.len()));
        }
    }
}
