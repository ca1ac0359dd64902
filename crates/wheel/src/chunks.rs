//! The references in the slots: rings of small arrays, out of one pool.
//!
//! ```text
//!   slot ──► [ head ] ⇄ [ oldest: 25 of 64 ] ⇄ [ 38 of 64 ] ⇄ [ 61 of 64 ] ⇄ back to the head
//!              ▲ filed here       ▲ filled next          ▲ cancelled: a bit
//! ```
//!
//! A reference is the index of a node: four bytes. A batch of them is read as a stream and their nodes are
//! touched independently of each other, which is what a list of nodes can never do. A node knows the position
//! of its reference: chunk `c` has the positions from `64·c` on.
//!
//! Beside each chunk stands its word: which of its 64 references count. So cancelling clears a bit; it reads no slot
//! and no reference, and nobody waits for it. The tempting alternative, the last reference of the slot fills the gap,
//! has to tell a second node where its reference is: one more cache miss.
//!
//! Chunks lie in pages of eight. Growing makes another page: it copies no reference, however many there are.
//!
//! Gaps are filled by what is filed next ([`rings`] says how), and if there are many chunks for few timers, those that
//! hold little are emptied when others are wanted (`timers::sweep` says how).

mod rings;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::OutOfMemory;
use crate::memory::{boxed, grow_by};
use crate::position::{LONE, NONE, Position};

/// References in one chunk, four cache lines, and the most in one batch. With 32 a chunk is opened and emptied
/// twice as often, and each time surprises the processor.
pub(crate) const CHUNK: usize = 64;
const LEN: u32 = CHUNK as u32;
/// Chunks in one page.
const PAGE: usize = 8;
/// A chunk with no more than so many references is worth filling.
pub(crate) const LOW: u32 = 32;
/// A chunk with no more than so many is worth emptying.
pub(crate) const FEW: usize = 16;

/// References in one page.
const PAGE_LEN: usize = PAGE * CHUNK;

type Page = [[u32; CHUNK]; PAGE];

/// How a chunk is linked to others.
#[derive(Clone, Copy)]
struct Link {
    /// The slot that it belongs to, or `NONE` if it is free.
    owner: u32,
    /// The next chunk of the ring, or of the free ones.
    next: u32,
    previous: u32,
}

impl Link {
    const FREE: Link = Link { owner: NONE, next: NONE, previous: NONE };
}

pub(crate) struct Chunks {
    #[expect(
        clippy::vec_box,
        reason = "when there are more of them, the references stay where they are"
    )]
    pages: Vec<Box<Page>>,
    /// For each chunk a bit for each of its references that count.
    words: Vec<u64>,
    links: Vec<Link>,
    /// The first of those that were used and are free, or `NONE`.
    free: u32,
    /// The first that was never used: it is free, and so are all behind it.
    fresh: u32,
    free_len: usize,
    /// For fewer timers than this there are too many chunks: `FEW` for each, but for the first of each ring.
    least: usize,
    /// The one that was looked at last by who gives them back.
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

    /// A pool of so many chunks, and no more than there are in its last page.
    pub(crate) fn with_chunks(count: usize) -> Result<Self, OutOfMemory> {
        let mut pool = Chunks::new();
        pool.make(count)?;
        Ok(pool)
    }

    /// Makes sure that `count` references can be filed, whatever the slots they go to.
    #[inline]
    pub(crate) fn reserve(&mut self, count: usize) -> Result<(), OutOfMemory> {
        if self.free_len >= count { Ok(()) } else { self.grow(count - self.free_len) }
    }

    /// Makes room for so many more references, if they fill their chunks, and for a batch on its way down.
    pub(crate) fn reserve_references(&mut self, count: usize) -> Result<(), OutOfMemory> {
        self.make(self.missing(count))
    }

    fn missing(&self, references: usize) -> usize {
        (references.div_ceil(CHUNK) + CHUNK).saturating_sub(self.free_len)
    }

    /// The bytes that such a reservation asks for.
    pub(crate) fn lacking(&self, references: usize) -> usize {
        self.missing(references).div_ceil(PAGE).saturating_mul(size_of::<Page>())
    }

    /// Makes at least so many more chunks, and room for what is counted of others.
    #[cold]
    fn grow(&mut self, least: usize) -> Result<(), OutOfMemory> {
        let chunks = least.next_multiple_of(PAGE);
        grow_by(&mut self.pages, chunks / PAGE)?;
        grow_by(&mut self.words, chunks)?;
        grow_by(&mut self.links, chunks)?;
        self.make(least)
    }

    /// Makes at least so many more chunks.
    fn make(&mut self, least: usize) -> Result<(), OutOfMemory> {
        let pages = least.div_ceil(PAGE);
        // Positions end before the words for where a reference is not.
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

    /// Files a reference in the lowest gap of the head of a ring; `None` if that is full, or there is no ring.
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

    /// The slot that a position belongs to, or a number that no slot has.
    #[inline(always)]
    pub(crate) fn owner(&self, position: Position) -> u32 {
        let link = self.links.get((position / LEN) as usize);
        link.map_or(position.wrapping_sub(LONE), |link| link.owner)
    }

    /// Takes a reference out. True if that was the last of its chunk, or if it is in none.
    #[inline(always)]
    pub(crate) fn remove(&mut self, position: Position) -> bool {
        let Some(word) = self.words.get_mut((position / LEN) as usize) else { return true };
        *word &= !(1 << (position % LEN));
        *word == 0
    }

    /// The first references of a chunk, at most `most` of them, copied. Returns how many, and which are left.
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

    /// The references of a chunk, and a bit for each that counts.
    #[inline]
    pub(crate) fn content(&self, chunk: u32) -> (&[u32; CHUNK], u64) {
        let page = &self.pages[chunk as usize / PAGE];
        (&page[chunk as usize % PAGE], self.words[chunk as usize])
    }

    /// Lets only these references of a chunk count. There must be one.
    pub(crate) fn leave(&mut self, chunk: u32, refs: u64) {
        self.words[chunk as usize] = refs;
    }

    /// The references of a chunk, each with its position.
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

    /// How many references count, in all chunks. For `check` alone.
    pub(crate) fn bits(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// For fewer timers than this there are too many chunks.
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
