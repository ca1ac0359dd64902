//! The timers that are ready to be popped, in the order in which they fire.
//!
//! A ready timer is still pending: it may be cancelled or moved before it is popped. Its entry stays then, and is
//! passed over, because it no longer says the truth: the node has another generation, is not ready, or is due at
//! another tick. So the order of the others is never disturbed. A timer that was moved away and has come back,
//! due at the same tick, has two entries that are true, and fires with the first.
//!
//! Entries that are not true are thrown out when they outnumber the others.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::chunks::READY;
use crate::nodes::Nodes;
use crate::tick::Tick;
use crate::{Key, OutOfMemory};

struct Entry {
    due: Tick,
    index: u32,
    generation: u32,
}

impl Entry {
    #[inline]
    fn is_true<T>(&self, nodes: &Nodes<T>) -> bool {
        let node = nodes.node(self.index);
        node.generation() == self.generation && node.position == READY && node.due() == self.due
    }
}

pub(crate) struct Ready {
    queue: VecDeque<Entry>,
    /// How many timers are ready.
    len: usize,
}

impl Ready {
    pub(crate) const fn new() -> Self {
        Ready { queue: VecDeque::new(), len: 0 }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Makes room for so many more.
    #[inline]
    pub(crate) fn reserve<T>(&mut self, count: usize, nodes: &Nodes<T>) -> Result<(), OutOfMemory> {
        if self.queue.len() > 2 * self.len + 64 {
            self.queue.retain(|entry| entry.is_true(nodes));
        }
        self.queue.try_reserve(count).map_err(|_| OutOfMemory)
    }

    #[inline]
    pub(crate) fn push(&mut self, key: Key, due: Tick) {
        self.queue.push_back(Entry { due, index: key.index(), generation: key.generation() });
        self.len += 1;
    }

    /// A ready timer was cancelled or moved.
    #[inline]
    pub(crate) fn lose_one(&mut self) {
        self.len -= 1;
    }

    /// The next timer that is ready.
    #[inline]
    pub(crate) fn pop<T>(&mut self, nodes: &Nodes<T>) -> Option<(u32, Tick)> {
        if self.len == 0 {
            return None;
        }
        loop {
            let entry = self.queue.pop_front()?;
            if entry.is_true(nodes) {
                self.len -= 1;
                return Some((entry.index, entry.due));
            }
        }
    }

    pub(crate) fn shrink<T>(&mut self, nodes: &Nodes<T>) {
        self.queue.retain(|entry| entry.is_true(nodes));
        // Not `shrink_to_fit`: without memory that ends the program.
        let mut copy = VecDeque::new();
        if copy.try_reserve_exact(self.queue.len()).is_ok() {
            copy.append(&mut self.queue);
            self.queue = copy;
        }
    }

    pub(crate) fn memory(&self) -> usize {
        self.queue.capacity() * size_of::<Entry>()
    }

    /// How many timers are ready, counted. For `check` alone.
    pub(crate) fn count<T>(&self, nodes: &Nodes<T>) -> usize {
        let entries = self.queue.iter().filter(|entry| entry.is_true(nodes));
        let mut ready: Vec<u32> = entries.map(|entry| entry.index).collect();
        // A timer that was moved away and has come back to the same tick has two entries; the first one counts.
        ready.sort_unstable();
        ready.dedup();
        ready.len()
    }
}
