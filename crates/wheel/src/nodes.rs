//! The timers themselves: one node each, in a place that never changes while it is pending.
//!
//! They lie in segments of 2048. Growing makes another one: it copies nothing, however many there are, and holds
//! nothing twice. Only the first begins small and doubles.
//!
//! | field | a pending timer | a vacant node |
//! |---|---|---|
//! | `due` | the tick at which it fires | the next vacant node |
//! | `generation` | what its key must carry | what the next key will carry |
//! | `position` | where its reference is, or `READY` | `NOWHERE` |
//! | `value` | `Some` | `None` |
//!
//! A pending timer has exactly one reference, in one slot or among those that are ready, and is known by it. `due` may
//! be later than the slot says: a timer that was moved to later stays where it is until the hand meets it there.
//!
//! A generation never comes round: a node that has used its last one is retired.

use alloc::vec::Vec;

use crate::chunks::{NOWHERE, Position, READY};
use crate::key::{Key, WheelId};
use crate::tick::Tick;
use crate::{OutOfMemory, grow_by, tighten};

/// Nodes in one segment.
const SEGMENT: usize = 2048;
/// Nodes that are made at a time, at most: not so many that somebody would have to wait for them.
const SEVERAL: usize = 64;

/// The index that stands for "none". It is never given to a node.
pub(crate) const NONE: u32 = u32::MAX;

pub(crate) struct Node<T> {
    /// In two halves, so that a node of a `u32` aligns to four bytes.
    due: [u32; 2],
    generation: u32,
    pub(crate) position: Position,
    value: Option<T>,
}

impl<T> Node<T> {
    #[inline]
    pub(crate) fn due(&self) -> Tick {
        Tick::from(self.due[0]) | Tick::from(self.due[1]) << 32
    }

    #[inline]
    pub(crate) fn set_due(&mut self, due: Tick) {
        self.due = halves(due);
    }

    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.value.is_some()
    }
}

#[inline]
fn halves(due: Tick) -> [u32; 2] {
    [due as u32, (due >> 32) as u32]
}

pub(crate) struct Nodes<T> {
    /// All that come before the one that `len` falls into are full, and no node ever moves from one to another.
    segments: Vec<Vec<Node<T>>>,
    /// How many nodes there are, pending, vacant and retired.
    len: u32,
    /// The first vacant node, or `NONE`.
    vacant: u32,
    pending: usize,
    retired: usize,
    wheel: WheelId,
    /// What a new node's generation begins with: above all that `shrink` has forgotten.
    first_generation: u32,
    /// A node that reaches this generation is retired. Only tests make it small.
    last_generation: u32,
}

impl<T> Nodes<T> {
    pub(crate) fn new() -> Self {
        Nodes {
            segments: Vec::new(),
            len: 0,
            vacant: NONE,
            pending: 0,
            retired: 0,
            wheel: WheelId::unique(),
            first_generation: 0,
            last_generation: u32::MAX,
        }
    }

    /// The node that the next timer gets. Nodes are made vacant, several at a time, so that there is one way to start
    /// a timer: the tempting alternative, a node is made when it is needed, asks three times how many there are.
    #[inline(always)]
    pub(crate) fn vacant(&mut self) -> Result<u32, OutOfMemory> {
        if self.vacant == NONE {
            self.grow()?;
        }
        Ok(self.vacant)
    }

    /// The same, or `NONE` if it is still to be made.
    #[inline(always)]
    pub(crate) fn next(&self) -> u32 {
        self.vacant
    }

    /// Puts a timer into the node that [`Nodes::vacant`] has named.
    #[inline(always)]
    pub(crate) fn occupy(&mut self, index: u32, due: Tick, position: Position, value: T) -> Key {
        let node = &mut self.segments[index as usize / SEGMENT][index as usize % SEGMENT];
        self.vacant = node.due[0];
        self.pending += 1;
        node.set_due(due);
        (node.position, node.value) = (position, Some(value));
        Key::new(self.wheel, index, node.generation)
    }

    /// Makes more nodes. Only the first segment grows; the others are made as large as they get.
    #[cold]
    fn grow(&mut self) -> Result<(), OutOfMemory> {
        if self.first_generation >= self.last_generation || self.len == NONE {
            return Err(OutOfMemory);
        }
        let filled = self.len as usize % SEGMENT;
        if self.segments.len() <= self.len as usize / SEGMENT {
            grow_by(&mut self.segments, 1)?;
            self.segments.push(Vec::new());
        }
        let whole = self.len as usize >= SEGMENT;
        let segment = &mut self.segments[self.len as usize / SEGMENT];
        if segment.capacity() == filled {
            let size = if whole { SEGMENT } else { (2 * filled).clamp(8, SEGMENT) };
            segment.try_reserve_exact(size - filled).map_err(|_| OutOfMemory)?;
        }
        let more = (segment.capacity().min(SEGMENT) - filled).min(SEVERAL);
        let more = more.min((NONE - self.len) as usize) as u32;
        let (generation, mut next) = (self.first_generation, self.len);
        segment.resize_with(filled + more as usize, || {
            next += 1;
            Node { due: [next, 0], generation, position: NOWHERE, value: None }
        });
        if let Some(last) = segment.last_mut() {
            last.due = [NONE, 0];
        }
        self.vacant = self.len;
        self.len += more;
        Ok(())
    }

    /// Takes a timer out of its node and leaves the node to the next one. Returns where its reference is, too.
    #[inline(always)]
    pub(crate) fn vacate(&mut self, key: Key) -> Option<(T, Position)> {
        let index = key.index() as usize;
        let node = self.segments.get_mut(index / SEGMENT)?.get_mut(index % SEGMENT)?;
        if node.generation != key.generation() || key.wheel() != self.wheel {
            return None;
        }
        let value = node.value.take()?;
        let position = core::mem::replace(&mut node.position, NOWHERE);
        node.generation += 1;
        if node.generation < self.last_generation {
            node.due[0] = self.vacant;
            self.vacant = key.index();
        } else {
            self.retired += 1;
        }
        self.pending -= 1;
        Some((value, position))
    }

    /// Takes a timer out of its node as [`Nodes::vacate`] does, if it is ready and due then.
    #[inline]
    pub(crate) fn vacate_ready(
        &mut self,
        index: u32,
        generation: u32,
        due: Tick,
    ) -> Option<(Key, T)> {
        let node = &self.segments[index as usize / SEGMENT][index as usize % SEGMENT];
        if node.position != READY || node.due() != due {
            return None;
        }
        let key = Key::new(self.wheel, index, generation);
        self.vacate(key).map(|(value, _)| (key, value))
    }

    /// The index behind a key, if its timer is pending.
    #[inline]
    pub(crate) fn find(&self, key: Key) -> Option<u32> {
        let index = key.index() as usize;
        let node = self.segments.get(index / SEGMENT)?.get(index % SEGMENT)?;
        // A generation that was given out and is still the node's own has not been taken back: it is pending.
        (node.generation == key.generation() && key.wheel() == self.wheel).then_some(key.index())
    }

    #[inline]
    pub(crate) fn node(&self, index: u32) -> &Node<T> {
        &self.segments[index as usize / SEGMENT][index as usize % SEGMENT]
    }

    #[inline]
    pub(crate) fn node_mut(&mut self, index: u32) -> &mut Node<T> {
        &mut self.segments[index as usize / SEGMENT][index as usize % SEGMENT]
    }

    pub(crate) fn key(&self, index: u32) -> Key {
        Key::new(self.wheel, index, self.node(index).generation)
    }

    pub(crate) fn value(&self, index: u32) -> Option<&T> {
        self.node(index).value.as_ref()
    }

    pub(crate) fn value_mut(&mut self, index: u32) -> Option<&mut T> {
        self.node_mut(index).value.as_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, Tick, &T)> {
        self.segments.iter().flatten().enumerate().filter_map(|(index, node)| {
            let key = Key::new(self.wheel, index as u32, node.generation);
            Some((key, node.due(), node.value.as_ref()?))
        })
    }

    pub(crate) fn pending(&self) -> usize {
        self.pending
    }

    /// How many nodes there are, pending, vacant and retired.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// How many timers the nodes are enough for.
    pub(crate) fn capacity(&self) -> usize {
        self.room() - self.retired
    }

    fn room(&self) -> usize {
        self.segments.iter().map(Vec::capacity).sum()
    }

    /// How many nodes there must be for so many more timers.
    fn needed(&self, additional: usize) -> Result<usize, OutOfMemory> {
        let vacant = self.len as usize - self.pending - self.retired;
        let needed = (self.len as usize).checked_add(additional.saturating_sub(vacant));
        needed.filter(|&needed| needed < NONE as usize).ok_or(OutOfMemory)
    }

    /// The bytes that a reservation asks for.
    pub(crate) fn lacking(&self, additional: usize) -> Result<usize, OutOfMemory> {
        let nodes = self.needed(additional)?.saturating_sub(self.room());
        nodes.checked_mul(size_of::<Node<T>>()).ok_or(OutOfMemory)
    }

    pub(crate) fn reserve(&mut self, additional: usize) -> Result<(), OutOfMemory> {
        let last = self.needed(additional)?;
        let segments = last.div_ceil(SEGMENT).saturating_sub(self.segments.len());
        self.segments.try_reserve_exact(segments).map_err(|_| OutOfMemory)?;
        for first in (self.len as usize / SEGMENT * SEGMENT..last).step_by(SEGMENT) {
            if self.segments.len() <= first / SEGMENT {
                self.segments.push(Vec::new());
            }
            let segment = &mut self.segments[first / SEGMENT];
            let size = if first == 0 { last.min(SEGMENT) } else { SEGMENT };
            segment.try_reserve_exact(size - segment.len()).map_err(|_| OutOfMemory)?;
        }
        Ok(())
    }

    pub(crate) fn memory(&self) -> usize {
        self.room() * size_of::<Node<T>>() + self.segments.capacity() * size_of::<Vec<Node<T>>>()
    }

    /// Forgets the vacant nodes behind the last one that must stay, as far as there is memory to do so. A node
    /// that is new then begins with a generation that none of the forgotten ones has had, so that their keys stay
    /// stale. A node with most of its generations behind it is not forgotten: the new ones would inherit that.
    pub(crate) fn shrink(&mut self) {
        if self.pending == 0 {
            // As good as a new wheel: every key there is belongs to the old one.
            let last_generation = self.last_generation;
            *self = Nodes { last_generation, ..Nodes::new() };
            return;
        }
        let old = self.last_generation / 2;
        let stays = |node: &Node<T>| node.is_pending() || node.generation > old;
        let keep =
            (0..self.len()).rev().find(|&index| stays(self.node(index))).map_or(0, |last| last + 1);
        let forgotten = (keep..self.len()).map(|index| self.node(index).generation).max();
        self.first_generation = self.first_generation.max(forgotten.unwrap_or(0));
        self.segments.truncate((keep as usize).div_ceil(SEGMENT));
        if let Some(last) = self.segments.last_mut() {
            last.truncate((keep as usize - 1) % SEGMENT + 1);
            tighten(last);
        }
        tighten(&mut self.segments);
        self.len = keep;
        (self.vacant, self.retired) = (NONE, 0);
        for index in (0..keep).rev() {
            let (vacant, last) = (self.vacant, self.last_generation);
            let node = self.node_mut(index);
            if node.is_pending() {
                continue;
            }
            if node.generation < last {
                node.due = [vacant, 0];
                self.vacant = index;
            } else {
                self.retired += 1;
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
            if node.is_pending() || node.position != NOWHERE {
                return Err("a pending timer is on the list of vacant nodes");
            }
            vacant += 1;
            if vacant > self.len() {
                return Err("the list of vacant nodes goes in a circle");
            }
            next = node.due[0];
        }
        let count = |test: fn(&Node<T>, u32) -> bool| {
            self.segments.iter().flatten().filter(|node| test(node, self.last_generation)).count()
        };
        if count(|node, _| node.is_pending()) != self.pending {
            return Err("the count of pending timers is wrong");
        }
        if count(|node, last| !node.is_pending() && node.generation >= last) != self.retired {
            return Err("the count of retired nodes is wrong");
        }
        let len: usize = self.segments.iter().map(Vec::len).sum();
        if self.pending + vacant as usize + self.retired != len || len != self.len as usize {
            return Err("a vacant node is lost");
        }
        let full = self.segments.iter().take(len / SEGMENT);
        if full.clone().any(|segment| segment.len() != SEGMENT) {
            return Err("a segment of nodes has a gap");
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn retired(&self) -> usize {
        self.retired
    }

    #[cfg(test)]
    pub(crate) fn limit_generations(&mut self, last: u32) {
        self.last_generation = last;
    }
}
