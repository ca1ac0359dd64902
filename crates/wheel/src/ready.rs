//! The timers that are ready to be popped, in the order in which they fire.
//!
//! A ready timer is still pending: it may be cancelled or moved before it is popped. Its entry stays then, and is
//! passed over, because it no longer says the truth: the node has another generation, is not ready, or is due at
//! another tick. So the order of the others is never disturbed. A timer that was moved away and has come back,
//! due at the same tick, has two entries that are true, and fires with the first.
//!
//! Entries that are not true, and the second ones of a timer, are thrown out when there is no more room, before more
//! memory is asked for.

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
    fn is_true<T>(&self, nodes: &Nodes<T>) -> bool {
        let node = nodes.node(self.index);
        node.generation() == self.generation && node.position() == READY && node.due() == self.due
    }
}

pub(crate) struct Ready {
    /// Those before `next` have been popped.
    queue: Vec<Entry>,
    next: usize,
    /// How many timers are ready.
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

    /// Makes room for so many more.
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
        // As much again as there is, or the next time would come before this one has paid for itself.
        let more = count.max(self.queue.len());
        let roomy = self.queue.try_reserve_exact(more);
        roomy.or_else(|_| self.queue.try_reserve_exact(count)).map_err(|_| OutOfMemory)
    }

    /// Throws out what was popped, what is not true, and what is true for the second time.
    fn tidy<T>(&mut self, nodes: &mut Nodes<T>) {
        self.queue.drain(..self.next);
        self.next = 0;
        self.queue.retain(|entry| {
            let first = entry.is_true(nodes);
            if planted!("wheel.ready-twice", false, first) {
                // So that another entry of this timer is not true.
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

    /// A ready timer was cancelled or moved.
    #[inline]
    pub(crate) fn lose_one(&mut self) {
        self.len -= 1;
    }

    /// Takes the next timer that is ready out of its node.
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

    /// The next timer that is ready. What is not true before it is passed over for good.
    pub(crate) fn peek<T>(&mut self, nodes: &Nodes<T>) -> Option<u32> {
        while let Some(entry) = self.queue.get(self.next) {
            if entry.is_true(nodes) {
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

    /// The timers that are ready. One that was moved away and has come back to the same tick is there twice.
    pub(crate) fn iter<T>(&self, nodes: &Nodes<T>) -> impl Iterator<Item = u32> {
        let entries = self.queue[self.next..].iter().filter(|entry| entry.is_true(nodes));
        entries.map(|entry| entry.index)
    }

    /// How many timers are ready, counted. For `check` alone.
    pub(crate) fn count<T>(&self, nodes: &Nodes<T>) -> usize {
        let entries = self.queue[self.next..].iter().filter(|entry| entry.is_true(nodes));
        let mut ready: Vec<u32> = entries.map(|entry| entry.index).collect();
        // A timer that was moved away and has come back to the same tick has two entries; the first one counts.
        ready.sort_unstable();
        ready.dedup();
        ready.len()
    }
}
