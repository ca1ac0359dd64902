//! The timers that are ready to be popped, in the order in which they fire.
//!
//! A ready timer is still pending: it may be cancelled or moved before it is popped. Its entry then stays in the queue,
//! which preserves the order of the other entries, and is skipped as outdated: its node has another generation, is not
//! ready, or is due at another tick. A timer that was moved away and back to the same tick has two current entries, and
//! fires with the first.
//!
//! Outdated and duplicate entries are removed when the queue is full, before it grows.

use alloc::vec::Vec;

use crate::memory::tighten;
use crate::nodes::Nodes;
use crate::position::{NOWHERE, READY};
use crate::tick::Tick;
use crate::{Key, OutOfMemory};

struct Entry {
    due: Tick,
    index: u32,
    generation: u32,
}

impl Entry {
    #[inline]
    fn is_current<T>(&self, nodes: &Nodes<T>) -> bool {
        let node = nodes.node(self.index);
        node.generation() == self.generation && node.position() == READY && node.due() == self.due
    }
}

pub(crate) struct Ready {
    /// Entries before `next` have been popped.
    queue: Vec<Entry>,
    next: usize,
    /// The number of ready timers.
    len: usize,
}

impl Ready {
    pub(crate) const fn new() -> Self {
        Ready { queue: Vec::new(), next: 0, len: 0 }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Makes room for `count` more entries.
    #[inline]
    pub(crate) fn reserve<T>(
        &mut self,
        count: usize,
        nodes: &mut Nodes<T>,
    ) -> Result<(), OutOfMemory> {
        if self.len == 0 {
            self.queue.clear();
            self.next = 0;
        }
        if self.queue.capacity() - self.queue.len() >= count {
            return Ok(());
        }
        self.make_room(count, nodes)
    }

    #[cold]
    fn make_room<T>(&mut self, count: usize, nodes: &mut Nodes<T>) -> Result<(), OutOfMemory> {
        self.tidy(nodes);
        // Doubling amortizes the copy.
        let more = count.max(self.queue.len());
        let roomy = self.queue.try_reserve_exact(more);
        roomy.or_else(|_| self.queue.try_reserve_exact(count)).map_err(|_| OutOfMemory)
    }

    /// Removes entries that were popped, are outdated, or are duplicates.
    fn tidy<T>(&mut self, nodes: &mut Nodes<T>) {
        self.queue.drain(..self.next);
        self.next = 0;
        self.queue.retain(|entry| {
            let first = entry.is_current(nodes);
            if planted!("wheel.ready-twice", false, first) {
                // Makes any other entry of this timer outdated.
                nodes.node_mut(entry.index).set_position(NOWHERE);
            }
            first
        });
        for entry in &self.queue {
            nodes.node_mut(entry.index).set_position(READY);
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, index: u32, generation: u32, due: Tick) {
        self.queue.push(Entry { due, index, generation });
        self.len += 1;
    }

    /// Counts a ready timer that was cancelled or moved.
    #[inline]
    pub(crate) fn lose_one(&mut self) {
        self.len -= 1;
    }

    /// Takes the next ready timer out of its node.
    #[inline]
    pub(crate) fn pop<T>(&mut self, nodes: &mut Nodes<T>) -> Option<(Key, Tick, T)> {
        if self.len == 0 {
            return None;
        }
        loop {
            let &Entry { due, index, generation } = self.queue.get(self.next)?;
            self.next += 1;
            if let Some((key, value)) = nodes.vacate_ready(index, generation, due) {
                self.len -= 1;
                return Some((key, due, value));
            }
        }
    }

    /// The next ready timer. Skips the outdated entries before it for good.
    pub(crate) fn peek<T>(&mut self, nodes: &Nodes<T>) -> Option<u32> {
        while let Some(entry) = self.queue.get(self.next) {
            if entry.is_current(nodes) {
                return Some(entry.index);
            }
            self.next += 1;
        }
        None
    }

    pub(crate) fn shrink<T>(&mut self, nodes: &mut Nodes<T>) {
        self.tidy(nodes);
        tighten(&mut self.queue);
    }

    pub(crate) fn memory(&self) -> usize {
        self.queue.capacity() * size_of::<Entry>()
    }

    /// The ready timers. A timer that was moved away and back to the same tick appears twice.
    pub(crate) fn iter<T>(&self, nodes: &Nodes<T>) -> impl Iterator<Item = u32> {
        let entries = self.queue[self.next..].iter().filter(|entry| entry.is_current(nodes));
        entries.map(|entry| entry.index)
    }

    /// The number of ready timers, counted for `check`.
    pub(crate) fn count<T>(&self, nodes: &Nodes<T>) -> usize {
        let entries = self.queue[self.next..].iter().filter(|entry| entry.is_current(nodes));
        let mut ready: Vec<u32> = entries.map(|entry| entry.index).collect();
        // A timer that was moved away and back to the same tick has two entries; the first one counts.
        ready.sort_unstable();
        ready.dedup();
        ready.len()
    }
}
