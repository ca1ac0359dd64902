//! The references in the slots: lists of small arrays, out of one pool.
//!
//! ```text
//!            ┌─ taken from here
//!   slot ──► [ 32 references ] ⇄ [ 32 ] ⇄ [ 7 of 32 ] ◄── filed here
//! ```
//!
//! A reference is the index of a node: four bytes. A batch of them is read as a stream and their nodes are
//! touched independently of each other, which is what a list of nodes can never do. A node knows the position
//! of its reference, so it is taken out in O(1): the last reference of the list fills the gap. Every reference
//! is to a pending timer; what was cancelled holds nothing.
//!
//! All chunks lie in one array, chunk `c` at `32·c`, and a position is an index into it. Links and owners are
//! beside it, and a list knows its two ends, so that filing a reference waits for nothing to be read.

use alloc::vec::Vec;

use crate::nodes::NONE;
use crate::{OutOfMemory, grow_by};

/// References in one chunk, two cache lines, and the most in one batch.
pub(crate) const CHUNK: usize = 32;
const LEN: u32 = CHUNK as u32;

/// Where the reference to a node is, or one of two words for where it is not.
pub(crate) type Position = u32;
/// The position of a vacant node.
pub(crate) const NOWHERE: Position = NONE;
/// The position of a timer that is ready to be popped: it is in no slot any more.
pub(crate) const READY: Position = NONE - 1;

/// One list of chunks. All but the first and the last are full.
#[derive(Clone, Copy)]
pub(crate) struct List {
    /// The position of the first reference, `NOWHERE` if there is none.
    head: Position,
    /// The position after the last reference. At a multiple of 32 the last chunk is full, or there is none.
    tail: Position,
}

impl List {
    pub(crate) const EMPTY: List = List { head: NOWHERE, tail: 0 };

    /// Whether the next reference needs another chunk.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.tail % LEN == 0
    }

    /// The positions of the references in the first chunk. The list must not be empty.
    #[inline]
    fn first(&self) -> core::ops::Range<usize> {
        let end = (self.head / LEN + 1) * LEN;
        let end = if self.tail > self.head && self.tail < end { self.tail } else { end };
        self.head as usize..end as usize
    }
}

/// What there is to know of a chunk beside its references.
#[derive(Clone, Copy)]
struct Chunk {
    /// The slot that it belongs to, or `NONE` if it is free.
    owner: u32,
    /// The next chunk of the list, or of the free ones.
    next: u32,
    previous: u32,
}

pub(crate) struct Chunks {
    refs: Vec<u32>,
    chunks: Vec<Chunk>,
    free: u32,
    free_len: usize,
}

impl Chunks {
    pub(crate) fn new() -> Self {
        Chunks { refs: Vec::new(), chunks: Vec::new(), free: NONE, free_len: 0 }
    }

    /// A pool of so many chunks, and no more.
    pub(crate) fn with_chunks(count: usize) -> Result<Self, OutOfMemory> {
        let mut pool = Chunks::new();
        pool.chunks.try_reserve_exact(count).map_err(|_| OutOfMemory)?;
        pool.refs.try_reserve_exact(count * CHUNK).map_err(|_| OutOfMemory)?;
        pool.grow(count)?;
        Ok(pool)
    }

    /// Makes sure that `count` references can be filed, whatever the lists they go to.
    #[inline]
    pub(crate) fn reserve(&mut self, count: usize) -> Result<(), OutOfMemory> {
        if self.free_len >= count { Ok(()) } else { self.grow(count) }
    }

    /// Makes room for so many more references, if they fill their chunks, and for a batch on its way down.
    pub(crate) fn reserve_references(&mut self, count: usize) -> Result<(), OutOfMemory> {
        let missing = (count.div_ceil(CHUNK) + CHUNK).saturating_sub(self.free_len);
        let refs = missing.checked_mul(CHUNK).ok_or(OutOfMemory)?;
        self.refs.try_reserve_exact(refs).map_err(|_| OutOfMemory)?;
        self.chunks.try_reserve_exact(missing).map_err(|_| OutOfMemory)
    }

    #[cold]
    fn grow(&mut self, count: usize) -> Result<(), OutOfMemory> {
        while self.free_len < count {
            let index = self.chunks.len() as u32;
            // Positions end before the words for where a reference is not.
            if index >= READY / LEN {
                return Err(OutOfMemory);
            }
            grow_by(&mut self.refs, CHUNK)?;
            grow_by(&mut self.chunks, 1)?;
            self.refs.resize(self.refs.len() + CHUNK, NONE);
            self.chunks.push(Chunk { owner: NONE, next: self.free, previous: NONE });
            self.free = index;
            self.free_len += 1;
        }
        Ok(())
    }

    /// Files a reference at the end of the list of a slot, or returns `None` for want of memory.
    #[inline(always)]
    pub(crate) fn push(&mut self, list: &mut List, slot: u32, node: u32) -> Option<Position> {
        if list.is_full() {
            self.append(list, slot).ok()?;
        }
        let position = list.tail;
        self.refs[position as usize] = node;
        list.tail = position + 1;
        Some(position)
    }

    /// Adds a chunk to a list whose last one is full.
    #[inline(never)]
    fn append(&mut self, list: &mut List, slot: u32) -> Result<(), OutOfMemory> {
        self.reserve(1)?;
        let index = self.free;
        self.free = self.chunks[index as usize].next;
        self.free_len -= 1;
        let previous = if list.head == NOWHERE { NONE } else { (list.tail - 1) / LEN };
        match self.chunks.get_mut(previous as usize) {
            Some(chunk) => chunk.next = index,
            None => list.head = index * LEN,
        }
        self.chunks[index as usize] = Chunk { owner: slot, next: NONE, previous };
        list.tail = index * LEN;
        Ok(())
    }

    /// The slot that a position belongs to, or `NONE`.
    #[inline(always)]
    pub(crate) fn owner(&self, position: Position) -> u32 {
        self.chunks.get((position / LEN) as usize).map_or(NONE, |chunk| chunk.owner)
    }

    /// Takes a reference out: the last one fills the gap. Returns the node of the one that moved there, which
    /// is the node that leaves if it was the last itself.
    #[inline(always)]
    pub(crate) fn remove(&mut self, list: &mut List, position: Position) -> u32 {
        let last = list.tail - 1;
        let moved = self.refs[last as usize];
        self.refs[position as usize] = moved;
        list.tail = last;
        if last % LEN == 0 || last == list.head {
            self.drop_last(list);
        }
        moved
    }

    /// Gives back the last chunk, which has become empty.
    #[inline(never)]
    fn drop_last(&mut self, list: &mut List) {
        let index = list.tail / LEN;
        if list.tail == list.head {
            *list = List::EMPTY;
        } else {
            let previous = self.chunks[index as usize].previous;
            self.chunks[previous as usize].next = NONE;
            list.tail = (previous + 1) * LEN;
        }
        self.release(index);
    }

    /// The first references of a list that is not empty: at most `most` of them, and one chunk.
    #[inline]
    pub(crate) fn first(&self, list: &List, most: usize) -> &[u32] {
        let first = list.first();
        &self.refs[first.start..first.end.min(first.start.saturating_add(most))]
    }

    /// Takes out the first `count` references, which must be in the first chunk.
    #[inline]
    pub(crate) fn drop_first(&mut self, list: &mut List, count: usize) {
        let (index, end) = (list.head / LEN, list.first().end);
        list.head += count as u32;
        if (list.head as usize) < end {
            return;
        }
        let next = self.chunks[index as usize].next;
        *list = if next == NONE { List::EMPTY } else { List { head: next * LEN, ..*list } };
        if let Some(chunk) = self.chunks.get_mut(next as usize) {
            chunk.previous = NONE;
        }
        self.release(index);
    }

    fn release(&mut self, index: u32) {
        self.chunks[index as usize] = Chunk { owner: NONE, next: self.free, previous: NONE };
        self.free = index;
        self.free_len += 1;
    }

    /// Walks a list that is not empty, a chunk at a time, with the position of the first reference of each.
    pub(crate) fn for_each(&self, list: &List, mut visit: impl FnMut(&[u32], Position)) {
        let mut rest = *list;
        loop {
            let first = rest.first();
            let next = self.chunks[first.start / CHUNK].next;
            visit(&self.refs[first.clone()], first.start as Position);
            if next == NONE {
                return;
            }
            rest.head = next * LEN;
        }
    }

    pub(crate) fn memory(&self) -> usize {
        self.refs.capacity() * size_of::<u32>() + self.chunks.capacity() * size_of::<Chunk>()
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
    fn what_is_filed_comes_out_in_order_and_the_chunks_come_back() {
        let mut pool = Chunks::new();
        let (mut a, mut b) = (List::EMPTY, List::EMPTY);
        let mut positions = Vec::new();
        for n in 0..100 {
            pool.reserve(2).unwrap();
            pool.push(&mut a, 1, n).unwrap();
            positions.push(pool.push(&mut b, 2, n).unwrap());
        }
        let mut out = Vec::new();
        while out.len() < 100 {
            let count = pool.first(&a, 11).len();
            out.extend_from_slice(pool.first(&a, 11));
            pool.drop_first(&mut a, count);
        }
        assert!(out.iter().copied().eq(0..100));
        assert!(positions.iter().all(|&position| pool.owner(position) == 2));
        // From the front, from the back and from between, until nothing is left.
        let mut left: Vec<u32> = (0..100).collect();
        for n in [0, 99, 50, 31, 32, 33].into_iter().chain(0..100) {
            if let Some(at) = left.iter().position(|&node| node == n) {
                left.swap_remove(at);
                let moved = pool.remove(&mut b, positions[n as usize]);
                positions[moved as usize] = positions[n as usize];
            }
            let mut seen = Vec::new();
            if !left.is_empty() {
                pool.for_each(&b, |nodes, _| seen.extend_from_slice(nodes));
            }
            seen.sort_unstable();
            left.sort_unstable();
            assert_eq!(seen, left);
        }
        assert_eq!(pool.free_len(), pool.len());
    }
}
