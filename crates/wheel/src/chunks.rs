//! The references in the slots: lists of small arrays, out of one pool.
//!
//! ```text
//!   slot ──► ┌ 24 references ┐ ──► ┌ 24 ┐ ──► ┌ 7 of 24 ┐ ◄── filed here
//!            └ taken from here ┘    └────┘      └─────────┘
//! ```
//!
//! A reference is the index of a node and a stamp: five bytes. A chunk is two cache lines, so a batch of
//! references is read as a stream and their nodes are touched independently of each other, which is what a
//! list of nodes can never do. A slot that empties gives its whole list back in one step.

use crate::OutOfMemory;
use crate::nodes::NONE;
use crate::segments::Segments;

/// References in one chunk, and so the most in one batch.
pub(crate) const CHUNK: usize = 24;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Chunk {
    nodes: [u32; CHUNK],
    stamps: [u8; CHUNK],
    /// The next chunk of the list, or of the free ones.
    next: u32,
    /// The first reference that was not taken, and the end of those that were filed.
    start: u8,
    end: u8,
}

const EMPTY: Chunk = Chunk { nodes: [0; CHUNK], stamps: [0; CHUNK], next: NONE, start: 0, end: 0 };

/// One list of chunks.
#[derive(Clone, Copy)]
pub(crate) struct List {
    head: u32,
    tail: u32,
    /// How many chunks it holds. All but the first and the last are full.
    pub(crate) chunks: u32,
}

impl List {
    pub(crate) const EMPTY: List = List { head: NONE, tail: NONE, chunks: 0 };
}

/// Up to a chunk of references, copied out.
#[derive(Clone, Copy)]
pub(crate) struct Refs {
    pub(crate) nodes: [u32; CHUNK],
    pub(crate) stamps: [u8; CHUNK],
    pub(crate) len: usize,
}

pub(crate) struct Chunks {
    chunks: Segments<Chunk, 12>,
    free: u32,
    free_len: usize,
}

impl Chunks {
    pub(crate) fn new() -> Self {
        Chunks { chunks: Segments::new(), free: NONE, free_len: 0 }
    }

    /// Makes sure that `count` references can be filed, whatever the lists they go to.
    #[inline]
    pub(crate) fn reserve(&mut self, count: usize) -> Result<(), OutOfMemory> {
        if self.free_len >= count { Ok(()) } else { self.grow(count) }
    }

    /// Makes room for so many more references, if they fill their chunks, and for a batch on its way down.
    pub(crate) fn reserve_references(&mut self, count: usize) -> Result<(), OutOfMemory> {
        self.chunks.reserve((count.div_ceil(CHUNK) + CHUNK).saturating_sub(self.free_len))
    }

    #[cold]
    fn grow(&mut self, count: usize) -> Result<(), OutOfMemory> {
        while self.free_len < count {
            let index = u32::try_from(self.chunks.len())
                .ok()
                .filter(|&index| index != NONE)
                .ok_or(OutOfMemory)?;
            self.chunks.push(Chunk { next: self.free, ..EMPTY })?;
            self.free = index;
            self.free_len += 1;
        }
        Ok(())
    }

    /// Files a reference at the end. Room must have been reserved.
    #[inline]
    pub(crate) fn push(&mut self, list: &mut List, node: u32, stamp: u8) {
        if list.tail == NONE || self.chunks[list.tail as usize].end as usize == CHUNK {
            self.append(list);
        }
        let chunk = &mut self.chunks[list.tail as usize];
        let end = chunk.end as usize;
        chunk.nodes[end] = node;
        chunk.stamps[end] = stamp;
        chunk.end += 1;
    }

    #[inline(never)]
    fn append(&mut self, list: &mut List) {
        let index = self.free;
        let chunk = &mut self.chunks[index as usize];
        self.free = chunk.next;
        self.free_len -= 1;
        (chunk.next, chunk.start, chunk.end) = (NONE, 0, 0);
        match list.tail {
            NONE => list.head = index,
            tail => self.chunks[tail as usize].next = index,
        }
        list.tail = index;
        list.chunks += 1;
    }

    /// Copies the first references, at most `most` of them and one chunk.
    #[inline]
    pub(crate) fn peek(&self, list: &List, most: usize) -> Refs {
        if list.head == NONE {
            return Refs { nodes: [0; CHUNK], stamps: [0; CHUNK], len: 0 };
        }
        self.copy(list.head, most)
    }

    #[inline]
    fn copy(&self, index: u32, most: usize) -> Refs {
        let chunk = &self.chunks[index as usize];
        let (start, end) = (chunk.start as usize, chunk.end as usize);
        let mut refs =
            Refs { nodes: chunk.nodes, stamps: chunk.stamps, len: (end - start).min(most) };
        if start > 0 {
            refs.nodes.copy_within(start..end, 0);
            refs.stamps.copy_within(start..end, 0);
        }
        refs
    }

    /// The first reference alone.
    #[inline]
    pub(crate) fn first(&self, list: &List) -> Option<(u32, u8)> {
        if list.head == NONE {
            return None;
        }
        let chunk = &self.chunks[list.head as usize];
        let start = chunk.start as usize;
        Some((chunk.nodes[start], chunk.stamps[start]))
    }

    /// Takes out the first `count` references, which must be in the first chunk.
    #[inline]
    pub(crate) fn drop_first(&mut self, list: &mut List, count: usize) {
        if count == 0 {
            return;
        }
        let chunk = &mut self.chunks[list.head as usize];
        chunk.start += count as u8;
        debug_assert!(chunk.start <= chunk.end);
        if chunk.start == chunk.end {
            let index = list.head;
            list.head = chunk.next;
            chunk.next = self.free;
            self.free = index;
            self.free_len += 1;
            list.chunks -= 1;
            if list.head == NONE {
                list.tail = NONE;
            }
        }
    }

    /// Empties a list, however long, in O(1).
    #[inline]
    pub(crate) fn clear(&mut self, list: &mut List) {
        if list.head == NONE {
            return;
        }
        self.chunks[list.tail as usize].next = self.free;
        self.free = list.head;
        self.free_len += list.chunks as usize;
        *list = List::EMPTY;
    }

    /// Walks a list, a chunk at a time.
    pub(crate) fn for_each(&self, list: &List, mut visit: impl FnMut(&Refs)) {
        let mut index = list.head;
        while index != NONE {
            visit(&self.copy(index, CHUNK));
            index = self.chunks[index as usize].next;
        }
    }

    pub(crate) fn memory(&self) -> usize {
        self.chunks.memory()
    }

    /// Chunks that are in no list. For `check` alone.
    pub(crate) fn free_len(&self) -> usize {
        self.free_len
    }

    pub(crate) fn len(&self) -> usize {
        self.chunks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_two_cache_lines() {
        assert_eq!(size_of::<Chunk>(), 128);
    }

    #[test]
    fn what_is_filed_comes_out_in_order_and_the_chunks_come_back() {
        let mut pool = Chunks::new();
        let (mut a, mut b) = (List::EMPTY, List::EMPTY);
        for n in 0..100 {
            pool.reserve(2).unwrap();
            pool.push(&mut a, n, n as u8);
            pool.push(&mut b, n + 1000, 7);
        }
        let mut out = alloc::vec::Vec::new();
        while a.chunks > 0 {
            let refs = pool.peek(&a, 10);
            out.extend_from_slice(&refs.nodes[..refs.len]);
            pool.drop_first(&mut a, refs.len);
        }
        assert!(out.iter().copied().eq(0..100));
        let mut seen = 0;
        pool.for_each(&b, |refs| seen += refs.len);
        assert_eq!(seen, 100);
        pool.clear(&mut b);
        assert_eq!(pool.free_len(), pool.len());
    }
}
