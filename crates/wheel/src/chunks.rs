//! The references in the slots: rings of chunks from one pool.
//!
//! ```text
//!   slot ──► [ head ] ⇄ [ oldest: 25 of 64 ] ⇄ [ 38 of 64 ] ⇄ [ 61 of 64 ] ⇄ back to the head
//!              ▲ added here       ▲ filled next          ▲ a cancel clears a bit
//! ```
//!
//! A reference is the index of a node: four bytes. The references of a chunk are read sequentially, and their nodes
//! independently of each other; in a linked list each read would wait for the node before. A node stores the position
//! of its reference: chunk `c` has the positions `64·c` to `64·c + 63`.
//!
//! Each chunk has a word with a bit for each valid reference. A cancel clears a bit and reads neither the slot nor the
//! reference. If it moved the slot's last reference into the gap instead, the node of that reference would need a new
//! position: one more cache miss.
//!
//! Chunks lie in pages of eight. Growing adds a page and copies no reference.
//!
//! The next timers of the slot fill the gaps ([`rings`]). If there are many chunks for few timers, nearly empty chunks
//! are merged before more are allocated (`timers::sweep`).

mod rings;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::OutOfMemory;
use crate::memory::{boxed, grow_by};
use crate::position::{LONE, NONE, Position};

/// The number of references in a chunk, four cache lines, and the most in one batch. With 32, chunks would be opened
/// and emptied twice as often, with a branch misprediction each time.
pub(crate) const CHUNK: usize = 64;
const LEN: u32 = CHUNK as u32;
/// Chunks in one page.
const PAGE: usize = 8;
/// A chunk with at most this many references is worth filling.
pub(crate) const LOW: u32 = 32;
/// A chunk with at most this many is worth emptying.
pub(crate) const FEW: usize = 16;

/// References in one page.
const PAGE_LEN: usize = PAGE * CHUNK;

type Page = [[u32; CHUNK]; PAGE];

/// How a chunk is linked to others.
#[derive(Clone, Copy)]
struct Link {
    /// The slot that it belongs to, or `NONE` if it is free.
    owner: u32,
    /// The next chunk of the ring, or of the list of free chunks.
    next: u32,
    previous: u32,
}

impl Link {
    const FREE: Link = Link { owner: NONE, next: NONE, previous: NONE };
}

pub(crate) struct Chunks {
    #[expect(clippy::vec_box, reason = "growing must not move the references")]
    pages: Vec<Box<Page>>,
    /// For each chunk, a bit for each valid reference.
    words: Vec<u64>,
    links: Vec<Link>,
    /// The first chunk of the list of free chunks that were used before, or `NONE`.
    free: u32,
    /// The first chunk that was never used; it and all after it are free.
    fresh: u32,
    free_len: usize,
    /// With fewer timers than this there are too many chunks: `FEW` for each chunk except one in each ring.
    least: usize,
    /// The chunk that the sweep examined last.
    look: u32,
}

impl Chunks {
    pub(crate) const fn new() -> Self {
        Chunks {
            pages: Vec::new(),
            words: Vec::new(),
            links: Vec::new(),
            free: NONE,
            fresh: 0,
            free_len: 0,
            least: 0,
            look: 0,
        }
    }

    /// A pool of `count` chunks, rounded up to a page.
    pub(crate) fn with_chunks(count: usize) -> Result<Self, OutOfMemory> {
        let mut pool = Chunks::new();
        pool.make(count)?;
        Ok(pool)
    }

    /// Ensures that `count` references can be inserted, whatever their slots.
    #[inline]
    pub(crate) fn reserve(&mut self, count: usize) -> Result<(), OutOfMemory> {
        if self.free_len >= count { Ok(()) } else { self.grow(count - self.free_len) }
    }

    /// Makes room for `count` more references that fill their chunks, and for a batch that cascades.
    pub(crate) fn reserve_references(&mut self, count: usize) -> Result<(), OutOfMemory> {
        self.make(self.missing(count))
    }

    fn missing(&self, references: usize) -> usize {
        (references.div_ceil(CHUNK) + CHUNK).saturating_sub(self.free_len)
    }

    /// The bytes that `reserve_references` would allocate.
    pub(crate) fn lacking(&self, references: usize) -> usize {
        self.missing(references).div_ceil(PAGE).saturating_mul(size_of::<Page>())
    }

    /// Makes at least `least` more chunks, with amortized growth of the tables.
    #[cold]
    fn grow(&mut self, least: usize) -> Result<(), OutOfMemory> {
        let chunks = least.next_multiple_of(PAGE);
        grow_by(&mut self.pages, chunks / PAGE)?;
        grow_by(&mut self.words, chunks)?;
        grow_by(&mut self.links, chunks)?;
        self.make(least)
    }

    /// Makes at least `least` more chunks.
    fn make(&mut self, least: usize) -> Result<(), OutOfMemory> {
        let pages = least.div_ceil(PAGE);
        // Positions must stay below the special values.
        if pages > LONE as usize / CHUNK / PAGE - self.pages.len() {
            return Err(OutOfMemory);
        }
        self.pages.try_reserve_exact(pages).map_err(|_| OutOfMemory)?;
        self.words.try_reserve_exact(pages * PAGE).map_err(|_| OutOfMemory)?;
        self.links.try_reserve_exact(pages * PAGE).map_err(|_| OutOfMemory)?;
        for _ in 0..pages {
            self.pages.push(boxed(|| [NONE; CHUNK])?);
            self.words.extend_from_slice(&[0; PAGE]);
            self.links.extend_from_slice(&[Link::FREE; PAGE]);
            self.free_len += PAGE;
        }
        Ok(())
    }

    /// Inserts a reference in the lowest gap of the head of a ring. `None` if the head is full or there is no ring.
    #[inline(always)]
    pub(crate) fn push(&mut self, head: u32, node: u32) -> Option<Position> {
        let word = self.words.get_mut(head as usize)?;
        if *word == u64::MAX {
            return None;
        }
        let bit = word.trailing_ones();
        *word |= 1 << (bit % LEN);
        let position = head * LEN + bit;
        self.set(position, node);
        Some(position)
    }

    #[inline(always)]
    fn set(&mut self, position: Position, node: u32) {
        let page = self.pages[position as usize / PAGE_LEN].as_flattened_mut();
        page[position as usize % PAGE_LEN] = node;
    }

    /// The slot of a position, or an invalid number.
    #[inline(always)]
    pub(crate) fn owner(&self, position: Position) -> u32 {
        let link = self.links.get((position / LEN) as usize);
        link.map_or(position.wrapping_sub(LONE), |link| link.owner)
    }

    /// Removes a reference. Returns true if it was the last of its chunk, or was in no chunk.
    #[inline(always)]
    pub(crate) fn remove(&mut self, position: Position) -> bool {
        let Some(word) = self.words.get_mut((position / LEN) as usize) else { return true };
        *word &= !(1 << (position % LEN));
        *word == 0
    }

    /// Copies the first references of a chunk, at most `most`. Returns their number and the bits of the others.
    #[inline]
    pub(crate) fn first(&self, chunk: u32, most: usize, copy: &mut [u32; CHUNK]) -> (usize, u64) {
        let (nodes, mut refs) = self.content(chunk);
        if refs == u64::MAX && most >= CHUNK {
            *copy = *nodes;
            return (CHUNK, 0);
        }
        let mut len = 0;
        while refs != 0 && len < most {
            copy[len % CHUNK] = nodes[refs.trailing_zeros() as usize % CHUNK];
            refs &= refs - 1;
            len += 1;
        }
        (len, refs)
    }

    /// The references of a chunk, and a bit for each valid one.
    #[inline]
    pub(crate) fn content(&self, chunk: u32) -> (&[u32; CHUNK], u64) {
        let page = &self.pages[chunk as usize / PAGE];
        (&page[chunk as usize % PAGE], self.words[chunk as usize])
    }

    /// Keeps only the references `refs` of a chunk, at least one.
    pub(crate) fn leave(&mut self, chunk: u32, refs: u64) {
        self.words[chunk as usize] = refs;
    }

    /// The valid references of a chunk, each with its position.
    pub(crate) fn of_chunk(&self, chunk: u32) -> impl Iterator<Item = (Position, u32)> {
        let (nodes, mut refs) = self.content(chunk);
        core::iter::from_fn(move || {
            let bit = (refs != 0).then(|| refs.trailing_zeros())?;
            refs &= refs - 1;
            Some((chunk * LEN + bit, nodes[bit as usize % CHUNK]))
        })
    }

    pub(crate) fn memory(&self) -> usize {
        self.pages.len() * size_of::<Page>()
            + self.pages.capacity() * size_of::<Box<Page>>()
            + self.words.capacity() * size_of::<u64>()
            + self.links.capacity() * size_of::<Link>()
    }

    /// The number of references in all chunks, counted for `check`.
    pub(crate) fn bits(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// With fewer timers than this there are too many chunks.
    #[inline]
    pub(crate) fn least(&self) -> usize {
        self.least
    }

    /// Chunks that are in no ring.
    pub(crate) fn free_len(&self) -> usize {
        self.free_len
    }

    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }
}
