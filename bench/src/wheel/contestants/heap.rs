//! `BinaryHeap` with lazy deletion: a cancelled timer's entry stays until it reaches the top.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::league::Kind;
use crate::wheel::contestant::{Contestant, Next};

/// An entry is valid while its node has the same generation.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    due: u64,
    index: u32,
    generation: u32,
}

struct Node {
    generation: u32,
    payload: u32,
}

#[derive(Default)]
pub struct Heap {
    entries: BinaryHeap<Reverse<Entry>>,
    nodes: Vec<Node>,
    free: Vec<u32>,
}

impl Heap {
    /// Removes stale entries from the top. Returns when the first valid one is due.
    fn settle(&mut self) -> Option<u64> {
        while let Some(Reverse(top)) = self.entries.peek() {
            if self.nodes[top.index as usize].generation == top.generation {
                return Some(top.due);
            }
            self.entries.pop();
        }
        None
    }

    fn retire(&mut self, index: u32) -> u32 {
        let node = &mut self.nodes[index as usize];
        node.generation += 1;
        self.free.push(index);
        node.payload
    }
}

impl Contestant for Heap {
    type Key = (u32, u32);
    const NAME: &'static str = "BinaryHeap, lazy deletion";
    const KIND: Kind = Kind::Baseline;
    const SETTINGS: &'static str = "16-byte entries, nodes with a generation";
    const LAZY: bool = true;

    fn new(_expected: usize) -> Self {
        Heap::default()
    }

    #[inline]
    fn start(&mut self, due: u64, payload: u32) -> Self::Key {
        let index = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(Node { generation: 0, payload });
            (self.nodes.len() - 1) as u32
        });
        let node = &mut self.nodes[index as usize];
        node.payload = payload;
        let generation = node.generation;
        self.entries.push(Reverse(Entry { due, index, generation }));
        (index, generation)
    }

    #[inline]
    fn cancel(&mut self, (index, generation): Self::Key) -> Option<u32> {
        (self.nodes[index as usize].generation == generation).then(|| self.retire(index))
    }

    #[inline]
    fn reschedule(&mut self, (index, _): Self::Key, due: u64) -> Self::Key {
        let node = &mut self.nodes[index as usize];
        node.generation += 1;
        let generation = node.generation;
        self.entries.push(Reverse(Entry { due, index, generation }));
        (index, generation)
    }

    #[inline]
    fn advance(&mut self, now: u64, fire: &mut impl FnMut(u32)) {
        while self.settle().is_some_and(|due| due <= now) {
            let Some(Reverse(entry)) = self.entries.pop() else { return };
            fire(self.retire(entry.index));
        }
    }

    #[inline]
    fn next_exact(&mut self) -> Next {
        self.settle().into()
    }

    fn dead(&self) -> Option<usize> {
        Some(self.entries.len() - (self.nodes.len() - self.free.len()))
    }
}
