//! How the chunks of a slot hang together: a ring, filled at its head.
//!
//! The head takes new references. When it is full the next chunk of the ring takes its place if it is worth filling, or
//! else a new one that comes behind that. So the head goes round, and the next one is about that which was filled
//! longest ago, and has lost the most since. The tempting alternative, the new one comes before it, asks the same one
//! again and again if that holds timers that stay.

use super::{Chunks, FEW, LEN, LOW, Link, Position};
use crate::OutOfMemory;
use crate::position::NONE;

impl Chunks {
    /// Begins the ring of a slot with its first reference.
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

    /// Gives a ring whose head is full a head with gaps: the next chunk, or a new one.
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

    /// Files a reference in a ring, wherever there is room.
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
        if next != NONE {
            self.least -= FEW;
        }
        self.words[chunk as usize] = 0;
        self.links[chunk as usize] = Link { next: self.free, ..Link::FREE };
        self.free = chunk;
        self.free_len += 1;
        next
    }

    /// The chunk that is to be looked at next, and the slot that it belongs to, or `NONE`.
    pub(crate) fn next_look(&mut self) -> (u32, u32) {
        self.look = if self.look as usize + 1 < self.len() { self.look + 1 } else { 0 };
        (self.look, self.links[self.look as usize].owner)
    }

    /// Takes the references out of a chunk that is not the head of its ring and has no more than a few, and frees it.
    /// They are to be filed anew; there are none if the chunk has become the head of the ring instead.
    pub(crate) fn take_few(&mut self, head: &mut u32, chunk: u32) -> Option<[u32; FEW]> {
        let most = planted!("wheel.never-swept", 0, FEW);
        if *head == chunk || self.words[chunk as usize].count_ones() as usize > most {
            return None;
        }
        let mut few = [NONE; FEW];
        if self.words[*head as usize] == u64::MAX {
            // It has the room that the head has not.
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

    /// How many references a ring has.
    pub(crate) fn count(&self, head: u32) -> usize {
        self.ring(head).map(|chunk| self.words[chunk as usize].count_ones() as usize).sum()
    }

    /// Walks a ring and returns how many chunks it has. For `check` alone.
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
