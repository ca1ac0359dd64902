//! The timers themselves: one node each, in a place that never changes while it is pending.
//!
//! | field | a pending timer | a vacant node |
//! |---|---|---|
//! | `due` | the tick at which it fires | the next vacant node |
//! | `generation` | what its key must carry | what the next key will carry |
//! | `at` | the slot that holds its reference, and that reference's stamp | no slot, the last stamp |
//! | `value` | `Some` | `None` |
//!
//! A slot refers to a node by index and stamp, and **a reference counts only if the node says so**: if `at`
//! names that slot and that stamp. Cancelling a timer or moving it to another slot therefore never has to find
//! the old reference: `at` changes, and the old one is dead. The stamp has eight bits and comes round; a dead
//! reference that is taken for a living one by that is at most a second reference to a timer that is in that
//! slot anyway, which is harmless: whichever is met first acts, and the other is dead then.
//!
//! A generation never comes round: a node that has used its last one is retired.

use crate::key::{Key, WheelId};
use crate::segments::Segments;
use crate::tick::Tick;
use crate::{Full, OutOfMemory};

/// The index that stands for "none". It is never given to a node.
pub(crate) const NONE: u32 = u32::MAX;

/// A slot and a stamp in one word: 24 bits of slot, 8 of stamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct At(u32);

impl At {
    /// The slot of a vacant node: no slot has this number.
    const NOWHERE: u32 = (1 << 24) - 1;

    #[inline]
    pub(crate) fn new(slot: u32, stamp: u8) -> Self {
        debug_assert!(slot <= Self::NOWHERE);
        At(slot << 8 | u32::from(stamp))
    }

    #[inline]
    pub(crate) fn slot(self) -> u32 {
        self.0 >> 8
    }

    #[inline]
    pub(crate) fn stamp(self) -> u8 {
        self.0 as u8
    }
}

pub(crate) struct Node<T> {
    /// In two halves, so that a node of a `u32` aligns to four bytes.
    due: [u32; 2],
    generation: u32,
    pub(crate) at: At,
    value: Option<T>,
}

impl<T> Node<T> {
    #[inline]
    pub(crate) fn due(&self) -> Tick {
        Tick::from(self.due[0]) | Tick::from(self.due[1]) << 32
    }

    #[inline]
    pub(crate) fn set_due(&mut self, due: Tick) {
        self.due = [due as u32, (due >> 32) as u32];
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.value.is_some()
    }
}

pub(crate) struct Nodes<T> {
    nodes: Segments<Node<T>, 15>,
    wheel: WheelId,
    /// The first vacant node, or `NONE`.
    vacant: u32,
    pending: usize,
    /// What a new node's generation begins with: above all that `shrink` has forgotten.
    first_generation: u32,
    /// A node that reaches this generation is retired. Only tests make it small.
    last_generation: u32,
}

impl<T> Nodes<T> {
    pub(crate) fn new() -> Self {
        Nodes {
            nodes: Segments::new(),
            wheel: WheelId::unique(),
            vacant: NONE,
            pending: 0,
            first_generation: 0,
            last_generation: u32::MAX,
        }
    }

    /// A pending node for `value`, filed nowhere yet.
    #[inline]
    pub(crate) fn insert(&mut self, due: Tick, value: T) -> Result<Key, Full<T>> {
        let index = match self.vacant {
            NONE => match self.push() {
                Ok(index) => index,
                Err(OutOfMemory) => return Err(Full(value)),
            },
            index => {
                self.vacant = self.nodes[index as usize].due[0];
                index
            }
        };
        let node = &mut self.nodes[index as usize];
        node.set_due(due);
        node.value = Some(value);
        self.pending += 1;
        Ok(Key { wheel: self.wheel, index, generation: node.generation })
    }

    #[cold]
    fn push(&mut self) -> Result<u32, OutOfMemory> {
        let index = u32::try_from(self.nodes.len())
            .ok()
            .filter(|&index| index != NONE)
            .ok_or(OutOfMemory)?;
        if self.first_generation >= self.last_generation {
            return Err(OutOfMemory);
        }
        let generation = self.first_generation;
        self.nodes.push(Node {
            due: [0; 2],
            generation,
            at: At::new(At::NOWHERE, 0),
            value: None,
        })?;
        Ok(index)
    }

    /// Takes a timer out of its node and leaves the node to the next one.
    #[inline]
    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let node = &mut self.nodes[index as usize];
        let value = node.value.take()?;
        node.at = At::new(At::NOWHERE, node.at.stamp());
        node.generation += 1;
        self.pending -= 1;
        if node.generation < self.last_generation {
            node.due = [self.vacant, 0];
            self.vacant = index;
        }
        Some(value)
    }

    /// The index behind a key, if its timer is pending.
    #[inline]
    pub(crate) fn find(&self, key: Key) -> Option<u32> {
        if key.wheel != self.wheel || key.index as usize >= self.nodes.len() {
            return None;
        }
        // A generation that was given out and is still the node's own has not been taken back: it is pending.
        (self.nodes[key.index as usize].generation == key.generation).then_some(key.index)
    }

    #[inline]
    pub(crate) fn node(&self, index: u32) -> &Node<T> {
        &self.nodes[index as usize]
    }

    #[inline]
    pub(crate) fn node_mut(&mut self, index: u32) -> &mut Node<T> {
        &mut self.nodes[index as usize]
    }

    pub(crate) fn key(&self, index: u32) -> Key {
        Key { wheel: self.wheel, index, generation: self.nodes[index as usize].generation }
    }

    pub(crate) fn value(&self, index: u32) -> Option<&T> {
        self.nodes[index as usize].value.as_ref()
    }

    pub(crate) fn value_mut(&mut self, index: u32) -> Option<&mut T> {
        self.nodes[index as usize].value.as_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, Tick, &T)> {
        self.nodes.iter().enumerate().filter_map(|(index, node)| {
            let key = Key { wheel: self.wheel, index: index as u32, generation: node.generation };
            Some((key, node.due(), node.value.as_ref()?))
        })
    }

    pub(crate) fn pending(&self) -> usize {
        self.pending
    }

    /// How many nodes there are, pending, vacant and retired.
    pub(crate) fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    pub(crate) fn capacity(&self) -> usize {
        self.nodes.capacity()
    }

    pub(crate) fn reserve(&mut self, additional: usize) -> Result<(), OutOfMemory> {
        let vacant = self.nodes.len() - self.pending;
        self.nodes.reserve(additional.saturating_sub(vacant))
    }

    pub(crate) fn memory(&self) -> usize {
        self.nodes.memory()
    }

    /// Forgets the vacant nodes behind the last pending one. Those that come in their place begin with a
    /// generation that none of them has had, so that their keys stay stale.
    pub(crate) fn shrink(&mut self) {
        let keep = (0..self.len())
            .rev()
            .find(|&index| self.node(index).is_pending())
            .map_or(0, |last| last + 1);
        let forgotten = (keep..self.len()).map(|index| self.node(index).generation).max();
        self.first_generation = self.first_generation.max(forgotten.unwrap_or(0));
        self.nodes.truncate(keep as usize);
        self.vacant = NONE;
        for index in (0..keep).rev() {
            let vacant = self.vacant;
            let usable = self.last_generation;
            let node = self.node_mut(index);
            if !node.is_pending() && node.generation < usable {
                node.due = [vacant, 0];
                self.vacant = index;
            }
        }
    }

    /// Walks the vacant nodes. For `check` alone.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let mut vacant = 0;
        let mut next = self.vacant;
        while next != NONE {
            let Some(node) = (next < self.len()).then(|| self.node(next)) else {
                return Err("the list of vacant nodes leaves the nodes");
            };
            if node.is_pending() || node.at.slot() != At::NOWHERE {
                return Err("a pending timer is on the list of vacant nodes");
            }
            vacant += 1;
            if vacant > self.len() {
                return Err("the list of vacant nodes goes in a circle");
            }
            next = node.due[0];
        }
        let count = |test: fn(&Node<T>, u32) -> bool| {
            self.nodes.iter().filter(|node| test(node, self.last_generation)).count()
        };
        if count(|node, _| node.is_pending()) != self.pending {
            return Err("the count of pending timers is wrong");
        }
        let retired = count(|node, last| !node.is_pending() && node.generation >= last);
        if self.pending + vacant as usize + retired != self.nodes.len() {
            return Err("a vacant node is lost");
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn limit_generations(&mut self, last: u32) {
        self.last_generation = last;
    }
}
