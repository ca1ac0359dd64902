//! The references in the slots: rings of small arrays, out of one pool.
//!
//! ```text
//!   slot ──► [ head ] ⇄ [ 32 ] ⇄ [ 29 of 32 ] ⇄ [ 18 of 32 ] ⇄ [ tail: 12 of 32 ] ⇄ back to the head
//!              ▲ filed here          ▲ cancelled: a bit              ▲ filled next
//! ```
//!
//! A reference is the index of a node: four bytes. A batch of them is read as a stream and their nodes are
//! touched independently of each other, which is what a list of nodes can never do. A node knows the position
//! of its reference: chunk `c` has the positions from `32·c` on.
//!
//! Beside each chunk stands its word: which of its 32 references count, and above that how many they are over
//! the number at which somebody should look at the chunk, its mark. So cancelling clears a bit and compares with
//! zero; it reads no slot and no reference, and waits for nothing. The tempting alternative, the last reference
//! of the slot fills the gap, has to tell a second node where its reference is: one more cache miss.
//!
//! - The head takes new references into the lowest gap; its mark is 0, or is made 0 when it is met.
//! - Any other chunk has more references than its mark. With [`LOW`] left it goes to the tail and is filled when
//!   the head is full; with [`FEW`] left they move to where there is room and the chunk is free. So what was
//!   cancelled never holds more memory than what is left, and no cancel moves more than `FEW`.

use alloc::vec::Vec;

use crate::nodes::NONE;
use crate::{OutOfMemory, grow_by};

/// References in one chunk, two cache lines, and the most in one batch.
pub(crate) const CHUNK: usize = 32;
const LEN: u32 = CHUNK as u32;
/// A chunk with no more than so many references is worth filling.
pub(crate) const LOW: u32 = 16;
/// A chunk with no more than so many is worth emptying.
pub(crate) const FEW: u32 = 8;

/// Where the reference to a node is, or one of two words for where it is not.
pub(crate) type Position = u32;
/// The position of a vacant node.
pub(crate) const NOWHERE: Position = NONE;
/// The position of a timer that is ready to be popped: it is in no slot any more.
pub(crate) const READY: Position = NONE - 1;

/// What is counted of a chunk.
#[derive(Clone, Copy)]
struct Word {
    /// A bit for each of its references.
    refs: u32,
    /// How many they are, less the mark.
    over: u32,
}

impl Word {
    const EMPTY: Word = Word { refs: 0, over: 0 };

    #[inline]
    fn new(refs: u32, mark: u32) -> Self {
        Word { refs, over: refs.count_ones() - mark }
    }
}

/// How a chunk is linked to others.
#[derive(Clone, Copy)]
struct Link {
    /// The slot that it belongs to, or `NONE` if it is free.
    owner: u32,
    /// The next chunk of the ring, or of the free ones.
    next: u32,
    previous: u32,
}

pub(crate) struct Chunks {
    refs: Vec<[u32; CHUNK]>,
    words: Vec<Word>,
    links: Vec<Link>,
    free: u32,
    free_len: usize,
}

impl Chunks {
    pub(crate) const fn new() -> Self {
        Chunks { refs: Vec::new(), words: Vec::new(), links: Vec::new(), free: NONE, free_len: 0 }
    }

    /// A pool of so many chunks, and no more.
    pub(crate) fn with_chunks(count: usize) -> Result<Self, OutOfMemory> {
        let mut pool = Chunks::new();
        pool.room_for(count)?;
        pool.grow(count)?;
        Ok(pool)
    }

    /// Makes sure that `count` references can be filed, whatever the slots they go to.
    #[inline]
    pub(crate) fn reserve(&mut self, count: usize) -> Result<(), OutOfMemory> {
        if self.free_len >= count { Ok(()) } else { self.grow(count) }
    }

    /// Makes room for so many more references, if they fill their chunks, and for a batch on its way down.
    pub(crate) fn reserve_references(&mut self, count: usize) -> Result<(), OutOfMemory> {
        self.room_for((count.div_ceil(CHUNK) + CHUNK).saturating_sub(self.free_len))
    }

    fn room_for(&mut self, chunks: usize) -> Result<(), OutOfMemory> {
        self.refs.try_reserve_exact(chunks).map_err(|_| OutOfMemory)?;
        self.words.try_reserve_exact(chunks).map_err(|_| OutOfMemory)?;
        self.links.try_reserve_exact(chunks).map_err(|_| OutOfMemory)
    }

    #[cold]
    fn grow(&mut self, count: usize) -> Result<(), OutOfMemory> {
        while self.free_len < count {
            let index = self.links.len() as u32;
            // Positions end before the words for where a reference is not.
            if index >= READY / LEN {
                return Err(OutOfMemory);
            }
            grow_by(&mut self.refs, 1)?;
            grow_by(&mut self.words, 1)?;
            grow_by(&mut self.links, 1)?;
            self.refs.push([NONE; CHUNK]);
            self.words.push(Word::EMPTY);
            self.links.push(Link { owner: NONE, next: self.free, previous: NONE });
            self.free = index;
            self.free_len += 1;
        }
        Ok(())
    }

    /// Files a reference in the head of a ring; `None` if that is full, or there is no ring: see
    /// [`Chunks::widen`].
    #[inline(always)]
    pub(crate) fn push(&mut self, head: u32, node: u32) -> Option<Position> {
        let word = self.words.get_mut(head as usize)?;
        if word.refs == u32::MAX {
            return None;
        }
        let bit = word.refs.trailing_ones();
        word.refs |= 1 << (bit % LEN);
        word.over += 1;
        self.refs[head as usize][bit as usize % CHUNK] = node;
        Some(head * LEN + bit)
    }

    /// Begins the ring of a slot with its first reference.
    #[inline]
    pub(crate) fn open(
        &mut self,
        head: &mut u32,
        slot: u32,
        node: u32,
    ) -> Result<Position, OutOfMemory> {
        let chunk = self.draw(slot)?;
        *head = chunk;
        self.words[chunk as usize] = Word { refs: 1, over: 1 };
        self.refs[chunk as usize][0] = node;
        Ok(chunk * LEN)
    }

    /// Gives a ring whose head is full a head with a gap: the tail if it is low, or a new chunk.
    pub(crate) fn widen(&mut self, head: &mut u32, slot: u32) -> Result<(), OutOfMemory> {
        let tail = self.links[*head as usize].previous;
        if self.is_low(tail) {
            self.resign(*head);
            *head = tail;
            self.unmark(tail);
        } else {
            let chunk = self.draw(slot)?;
            self.resign(*head);
            self.link(chunk, *head);
            *head = chunk;
        }
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
        let chunk = self.free;
        let link = &mut self.links[chunk as usize];
        self.free = link.next;
        self.free_len -= 1;
        *link = Link { owner: slot, next: chunk, previous: chunk };
        Ok(chunk)
    }

    /// A head that is full becomes a chunk like any other.
    fn resign(&mut self, head: u32) {
        self.words[head as usize] = Word::new(u32::MAX, LOW);
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

    /// Links a chunk into a ring, as its tail.
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
        self.links[chunk as usize] = Link { owner: NONE, next: self.free, previous: NONE };
        self.free = chunk;
        self.free_len += 1;
        next
    }

    /// The slot that a position belongs to, or `NONE`.
    #[inline(always)]
    pub(crate) fn owner(&self, position: Position) -> u32 {
        self.links.get((position / LEN) as usize).map_or(NONE, |link| link.owner)
    }

    /// The node of the only reference of a ring, if it is.
    #[inline]
    pub(crate) fn only(&self, head: u32) -> Option<u32> {
        let refs = self.words[head as usize].refs;
        let only = refs.is_power_of_two() && self.links[head as usize].next == head;
        only.then(|| self.refs[head as usize][refs.trailing_zeros() as usize % CHUNK])
    }

    /// Gives a chunk that is a ring of its own to another slot.
    #[inline]
    pub(crate) fn give(&mut self, chunk: u32, slot: u32) {
        self.links[chunk as usize].owner = slot;
    }

    /// Takes a reference out. True if somebody has to look at its chunk, or if it is in none.
    #[inline(always)]
    pub(crate) fn remove(&mut self, position: Position) -> bool {
        let Some(word) = self.words.get_mut((position / LEN) as usize) else { return true };
        word.refs &= !(1 << (position % LEN));
        word.over -= 1;
        word.over == 0
    }

    /// A chunk that is not the head of its ring has come down to its mark: it goes to the tail, or, if only a
    /// few references are left, they are to be filed anew. Returns those; the chunk is free then.
    pub(crate) fn thin(&mut self, head: &mut u32, chunk: u32) -> Option<[u32; FEW as usize]> {
        let refs = self.words[chunk as usize].refs;
        if refs.count_ones() > FEW {
            self.unlink(chunk);
            self.link(chunk, *head);
            self.words[chunk as usize] = Word::new(refs, FEW);
            return None;
        }
        let tail = self.links[*head as usize].previous;
        if self.words[*head as usize].refs == u32::MAX && (tail == chunk || !self.is_low(tail)) {
            // Nowhere in the ring is room: it is the one to be filled.
            self.unlink(chunk);
            self.link(chunk, *head);
            self.resign(*head);
            *head = chunk;
            self.unmark(chunk);
            return None;
        }
        let mut few = [NONE; FEW as usize];
        for ((_, node), copy) in self.of_chunk(chunk).zip(&mut few) {
            *copy = node;
        }
        self.release(chunk);
        Some(few)
    }

    /// The first references of a chunk, at most `most` of them, copied. Returns how many, and which are left.
    #[inline]
    pub(crate) fn first(&self, chunk: u32, most: usize, copy: &mut [u32; CHUNK]) -> (usize, u32) {
        let mut refs = self.words[chunk as usize].refs;
        let nodes = &self.refs[chunk as usize];
        if refs == u32::MAX && most >= CHUNK {
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
    pub(crate) fn content(&self, chunk: u32) -> (&[u32; CHUNK], u32) {
        (&self.refs[chunk as usize], self.words[chunk as usize].refs)
    }

    /// Lets only these references of a chunk count. There must be one.
    pub(crate) fn leave(&mut self, chunk: u32, refs: u32) {
        self.words[chunk as usize] = Word::new(refs, 0);
    }

    /// The chunks of a ring, from its head on.
    pub(crate) fn ring(&self, head: u32) -> impl Iterator<Item = u32> {
        let first = (head != NONE).then_some(head);
        core::iter::successors(first, move |&chunk| {
            let next = self.links[chunk as usize].next;
            (next != head).then_some(next)
        })
    }

    /// The references of a chunk, each with its position.
    pub(crate) fn of_chunk(&self, chunk: u32) -> impl Iterator<Item = (Position, u32)> {
        let mut refs = self.words[chunk as usize].refs;
        core::iter::from_fn(move || {
            let bit = (refs != 0).then(|| refs.trailing_zeros())?;
            refs &= refs - 1;
            Some((chunk * LEN + bit, self.refs[chunk as usize][bit as usize]))
        })
    }

    /// How many references a ring has.
    pub(crate) fn count(&self, head: u32) -> usize {
        self.ring(head).map(|chunk| self.words[chunk as usize].refs.count_ones() as usize).sum()
    }

    pub(crate) fn memory(&self) -> usize {
        self.refs.capacity() * size_of::<[u32; CHUNK]>()
            + self.words.capacity() * size_of::<Word>()
            + self.links.capacity() * size_of::<Link>()
    }

    /// Chunks that are in no ring. For `check` alone.
    pub(crate) fn free_len(&self) -> usize {
        self.free_len
    }

    pub(crate) fn len(&self) -> usize {
        self.links.len()
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
