//! The chunks of a slot form a ring, filled at its head.
//!
//! The head takes new references. When it is full, the next chunk of the ring becomes the head if it is worth filling;
//! otherwise a new chunk is inserted behind it. So the head moves around the ring, and the next chunk is roughly the
//! one that was filled longest ago and has lost the most references since. If the new chunk were inserted before it,
//! the same chunk would be examined again and again while its timers stay.

use super::{Chunks, FEW, LEN, LOW, Link, Position};
use crate::OutOfMemory;
use crate::position::NONE;

impl Chunks {
    /// Opens the ring of a slot with its first reference.
    #[inline(always)]
    pub(crate) fn open(
        &mut self,
        head: &mut u32,
        slot: u32,
        node: u32,
    ) -> Result<Position, OutOfMemory> {
        let chunk = self.draw(slot)?;
        *head = chunk;
        self.words[chunk as usize] = 1;
        self.set(chunk * LEN, node);
        Ok(chunk * LEN)
    }

    /// Replaces a full head: by the next chunk if it is worth filling, otherwise by a new chunk.
    fn widen(&mut self, head: &mut u32, slot: u32) -> Result<(), OutOfMemory> {
        let next = self.links[*head as usize].next;
        if self.words[next as usize].count_ones() <= LOW {
            *head = next;
            return Ok(());
        }
        let chunk = self.draw(slot)?;
        self.least += FEW;
        let behind = core::mem::replace(&mut self.links[next as usize].next, chunk);
        self.links[behind as usize].previous = chunk;
        let link = &mut self.links[chunk as usize];
        (link.next, link.previous) = (behind, next);
        *head = chunk;
        Ok(())
    }

    /// Inserts a reference in a ring, with a new chunk if needed.
    pub(crate) fn add(
        &mut self,
        head: &mut u32,
        slot: u32,
        node: u32,
    ) -> Result<Position, OutOfMemory> {
        if let Some(position) = self.push(*head, node) {
            return Ok(position);
        }
        if *head == NONE {
            return self.open(head, slot, node);
        }
        self.widen(head, slot)?;
        self.push(*head, node).ok_or(OutOfMemory)
    }

    /// Takes a free chunk from the pool and makes it a ring of its own.
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

    /// Removes a chunk from its ring. Returns the next one, or `NONE`.
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

    /// Removes an empty chunk from its ring and frees it. Returns the next one of the ring, or `NONE`.
    #[inline]
    pub(crate) fn release(&mut self, chunk: u32) -> u32 {
        let next = self.unlink(chunk);
        if next != NONE {
            self.least -= FEW;
        }
        self.words[chunk as usize] = 0;
        self.links[chunk as usize] = Link { next: self.free, ..Link::FREE };
        self.free = chunk;
        self.free_len += 1;
        next
    }

    /// The next chunk for the sweep to examine, and its slot or `NONE`.
    pub(crate) fn next_look(&mut self) -> (u32, u32) {
        self.look = if self.look as usize + 1 < self.len() { self.look + 1 } else { 0 };
        (self.look, self.links[self.look as usize].owner)
    }

    /// Frees a chunk with at most `FEW` references that is not the head, and returns them; they must be reinserted. If
    /// the head is full, the chunk becomes the head instead, and none are returned.
    pub(crate) fn take_few(&mut self, head: &mut u32, chunk: u32) -> Option<[u32; FEW]> {
        let most = planted!("wheel.never-swept", 0, FEW);
        if *head == chunk || self.words[chunk as usize].count_ones() as usize > most {
            return None;
        }
        let mut few = [NONE; FEW];
        if self.words[*head as usize] == u64::MAX {
            // The chunk has room, and the head has none.
            *head = chunk;
            return Some(few);
        }
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

    /// The number of references in a ring.
    pub(crate) fn count(&self, head: u32) -> usize {
        self.ring(head).map(|chunk| self.words[chunk as usize].count_ones() as usize).sum()
    }

    /// Checks a ring and returns its number of chunks.
    pub(crate) fn check(&self, head: u32, slot: u32) -> Result<usize, &'static str> {
        let mut count = 0;
        for chunk in self.ring(head) {
            let Link { owner, next, .. } = self.links[chunk as usize];
            if owner != slot {
                return Err("a chunk does not know its slot");
            }
            if next as usize >= self.len() || self.links[next as usize].previous != chunk {
                return Err("a chunk does not lead back to the one before it");
            }
            if self.words[chunk as usize] == 0 {
                return Err("a chunk is empty");
            }
            count += 1;
            if count > self.len() {
                return Err("a ring does not close");
            }
        }
        Ok(count)
    }
}
