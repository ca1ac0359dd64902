//! What a cancel and a start touch, and nothing else: no wheel, but a loop over memory of the same shape.
//!
//! Keys of two words, nodes of 24 bytes in one array, slots filled through a chunk of 64 references with a bit for
//! each, as in our hierarchical wheel. A cancel reads its key, reads its node and clears the bit; a start sets one in
//! the chunk of its slot, and writes the reference, the node and the key. There are no levels but a shift, no
//! generations, no bounds and no hand, hardly anything grows while the clock runs, and a timer that is cancelled twice
//! takes somebody else's reference with it. So nothing that keeps references in arrays can be much quicker, and how
//! far ours is from it is the price of its promises.

use std::hint::black_box;
use std::time::Instant;

use crate::load::Load;
use crate::ops::nanos;

/// References in one chunk.
const CHUNK: u32 = 64;
/// Slots of one level, and the bits that a level is apart.
const SLOTS: usize = 256;
const BITS: u32 = 8;
const LEVELS: usize = 4;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node {
    value: [u32; 2],
    due: u64,
    generation: u32,
    position: u32,
}

struct Bare {
    keys: Vec<[u64; 2]>,
    nodes: Vec<Node>,
    words: Vec<u64>,
    references: Vec<u32>,
    /// The next chunk of the same slot.
    next: Vec<u32>,
    heads: Vec<u32>,
}

impl Bare {
    fn filled(load: &Load) -> Self {
        let node = Node { value: [0; 2], due: 0, generation: 0, position: 0 };
        // Enough for a gap in every other place, so that hardly anybody looks for one twice.
        let chunks = load.population * 2 / CHUNK as usize + LEVELS * SLOTS;
        let mut bare = Bare {
            keys: vec![[1, 0]; load.population],
            nodes: vec![node; load.population],
            words: Vec::with_capacity(chunks),
            references: Vec::with_capacity(chunks * CHUNK as usize),
            next: Vec::with_capacity(chunks),
            heads: vec![NONE; LEVELS * SLOTS],
        };
        for (timer, &due) in load.dues.iter().enumerate() {
            bare.start(timer as u32, timer as u32, due.into());
        }
        bare
    }

    #[inline(always)]
    fn replace(&mut self, timer: u32, delay: u32) {
        let index = self.keys[timer as usize][1] as u32;
        let node = &self.nodes[index as usize];
        black_box(node.value[1]);
        let position = node.position;
        self.words[(position / CHUNK) as usize] &= !(1 << (position % CHUNK));
        self.start(timer, index, delay.into());
    }

    #[inline(always)]
    fn start(&mut self, timer: u32, index: u32, due: u64) {
        let level = (due | 1).ilog2() / BITS;
        let slot = level as usize * SLOTS + (due >> (level * BITS)) as usize % SLOTS;
        let mut chunk = self.heads[slot];
        if self.words.get(chunk as usize).is_none_or(|&word| word == u64::MAX) {
            chunk = self.widen(slot);
        }
        let word = &mut self.words[chunk as usize];
        let bit = word.trailing_ones() % CHUNK;
        *word |= 1 << bit;
        let position = chunk * CHUNK + bit;
        self.references[position as usize] = index;
        let node = &mut self.nodes[index as usize];
        (node.value, node.due, node.position) = ([1, timer], due, position);
        self.keys[timer as usize] = [1, u64::from(node.generation) << 32 | u64::from(index)];
    }

    /// Goes on to the next chunk of the slot, or makes one if that is full, too.
    #[inline(never)]
    fn widen(&mut self, slot: usize) -> u32 {
        let head = self.heads[slot];
        let mut chunk = self.next.get(head as usize).copied().unwrap_or(NONE);
        if self.words.get(chunk as usize).is_none_or(|word| word.count_ones() > CHUNK / 2) {
            chunk = self.words.len() as u32;
            self.words.push(0);
            self.references.resize(self.references.len() + CHUNK as usize, 0);
            self.next.push(chunk);
            if head != NONE {
                self.next.swap(head as usize, chunk as usize);
            }
        }
        self.heads[slot] = chunk;
        chunk
    }

    fn churn(
        mut self,
        load: &Load,
        before: impl Iterator<Item = u32>,
        timers: impl Iterator<Item = u32>,
    ) -> f64 {
        for (timer, &delay) in before.zip(load.delays.iter().rev()).take(load.population) {
            self.replace(timer, delay);
        }
        let begin = Instant::now();
        for (timer, &delay) in timers.zip(&load.delays) {
            self.replace(timer, delay);
        }
        let spent = nanos(begin);
        black_box(&self);
        spent / load.delays.len() as f64
    }
}

/// Nanoseconds for a random timer.
pub fn random(load: &Load) -> f64 {
    let picks = || load.picks.iter().copied();
    Bare::filled(load).churn(load, picks().rev(), picks())
}

/// Nanoseconds in arrival order.
pub fn in_order(load: &Load) -> f64 {
    let oldest = || (0..load.population as u32).cycle();
    Bare::filled(load).churn(load, oldest(), oldest())
}
