//! The timers themselves: one node each, in a place that never changes while it is pending.
//!
//! They lie in segments of 128. Growing makes another one: it copies no node, however many there are, and holds none
//! twice.
//!
//! | field | a pending timer | a vacant node |
//! |---|---|---|
//! | `due` | the tick at which it fires | the next vacant node |
//! | `generation` | what its key must carry | what the next key will carry |
//! | `position` | where its reference is, or `READY` | nothing |
//! | `value` | `Some` | `None` |
//!
//! A pending timer has exactly one reference, in one slot or among those that are ready, and is known by it. `due` may
//! be later than the slot says: a timer that was moved to later stays where it is until the hand meets it there.
//!
//! A generation never comes round: a node that has used its last one is retired.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::chunks::{NOWHERE, Position, READY};
use crate::key::{Key, WheelId};
use crate::tick::Tick;
use crate::{OutOfMemory, boxed, grow_by, tighten};

/// Nodes in one segment: not so many that who waits for a new one would notice. Who has a few timers with large values
/// had better put them into boxes.
const SEGMENT: usize = 128;
/// The most segments: no node has the index `NONE`.
const SEGMENTS: usize = NONE as usize / SEGMENT;
/// A node that reaches this generation is retired. Tests see that sooner.
pub(crate) const LAST_GENERATION: u32 = if cfg!(test) { 10 } else { u32::MAX };

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
    /// Arrays of one size, so that one comparison is enough to know that an index is in them.
    segments: Vec<Box<[Node<T>; SEGMENT]>>,
    /// The first vacant node, or `NONE`.
    vacant: u32,
    pending: usize,
    retired: usize,
    wheel: WheelId,
    /// What a new node's generation begins with: above all that `shrink` has forgotten.
    first_generation: u32,
}

impl<T> Nodes<T> {
    pub(crate) fn new() -> Self {
        Nodes {
            segments: Vec::new(),
            vacant: NONE,
            pending: 0,
            retired: 0,
            wheel: WheelId::unique(),
            first_generation: 0,
        }
    }

    /// The node that the next timer gets. Nodes are made vacant, a segment at a time, so that there is one way to start
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

    /// Makes another segment, all vacant.
    #[cold]
    fn grow(&mut self) -> Result<(), OutOfMemory> {
        if self.segments.len() == SEGMENTS {
            return Err(OutOfMemory);
        }
        debug_assert!(
            self.first_generation <= LAST_GENERATION / 2,
            "new nodes have many before them"
        );
        grow_by(&mut self.segments, 1)?;
        let (generation, mut next) = (self.first_generation, self.len());
        let mut segment = boxed(|| {
            next += 1;
            Node { due: [next, 0], generation, position: NOWHERE, value: None }
        })?;
        segment[SEGMENT - 1].due = [self.vacant, 0];
        self.vacant = self.len();
        self.segments.push(segment);
        Ok(())
    }

    /// Takes a timer out of its node and leaves the node to the next one. Returns where its reference is, too.
    #[inline(always)]
    pub(crate) fn vacate(&mut self, key: Key) -> Option<(T, Position)> {
        let index = key.index() as usize;
        let node = &mut self.segments.get_mut(index / SEGMENT)?[index % SEGMENT];
        let stale = node.generation != key.generation();
        let foreign = key.wheel() != self.wheel;
        if planted!("wheel.stale-key", false, stale)
            || planted!("wheel.foreign-key", false, foreign)
        {
            return None;
        }
        let value = node.value.take()?;
        let position = node.position;
        node.generation += 1;
        self.pending -= 1;
        if node.generation == LAST_GENERATION {
            self.retired += 1;
        } else {
            node.due[0] = self.vacant;
            self.vacant = key.index();
        }
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
        let node = &self.segments.get(index / SEGMENT)?[index % SEGMENT];
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
        self.all().enumerate().filter_map(|(index, node)| {
            let key = Key::new(self.wheel, index as u32, node.generation);
            Some((key, node.due(), node.value.as_ref()?))
        })
    }

    pub(crate) fn pending(&self) -> usize {
        self.pending
    }

    /// All nodes, pending, vacant and retired.
    fn all(&self) -> impl Iterator<Item = &Node<T>> {
        self.segments.iter().flat_map(|segment| segment.iter())
    }

    /// How many they are.
    pub(crate) fn len(&self) -> u32 {
        (self.segments.len() * SEGMENT) as u32
    }

    /// How many timers the nodes are enough for.
    pub(crate) fn capacity(&self) -> usize {
        self.len() as usize - self.retired
    }

    /// How many segments are missing for so many more timers.
    fn missing(&self, additional: usize) -> Result<usize, OutOfMemory> {
        let missing = additional.saturating_sub(self.capacity() - self.pending).div_ceil(SEGMENT);
        if missing > SEGMENTS - self.segments.len() { Err(OutOfMemory) } else { Ok(missing) }
    }

    /// The bytes that a reservation asks for.
    pub(crate) fn lacking(&self, additional: usize) -> Result<usize, OutOfMemory> {
        self.missing(additional)?.checked_mul(size_of::<[Node<T>; SEGMENT]>()).ok_or(OutOfMemory)
    }

    /// Makes the nodes for so many more timers.
    pub(crate) fn reserve(&mut self, additional: usize) -> Result<(), OutOfMemory> {
        let missing = self.missing(additional)?;
        self.segments.try_reserve_exact(missing).map_err(|_| OutOfMemory)?;
        let (first, others) = (self.segments.len(), self.vacant);
        let made = (0..missing).try_for_each(|_| self.grow());
        // The lower ones first, so that a shrink finds the upper ones unused.
        for number in first..self.segments.len() {
            let next = (number + 1) * SEGMENT;
            let last = number + 1 == self.segments.len();
            self.segments[number][SEGMENT - 1].due[0] = if last { others } else { next as u32 };
            self.vacant = (first * SEGMENT) as u32;
        }
        made
    }

    pub(crate) fn memory(&self) -> usize {
        self.segments.len() * size_of::<[Node<T>; SEGMENT]>()
            + self.segments.capacity() * size_of::<Box<[Node<T>; SEGMENT]>>()
    }

    /// Forgets the segments behind the last one that must stay. A node that is new then begins with a generation that
    /// none of the forgotten ones has had, so that their keys stay stale. A node with most of its generations behind it
    /// is not forgotten: the new ones would inherit that.
    pub(crate) fn shrink(&mut self) {
        if self.pending == 0 {
            // As good as a new wheel: every key there is belongs to the old one.
            *self = Nodes::new();
            return;
        }
        let stays = |node: &Node<T>| node.is_pending() || node.generation > LAST_GENERATION / 2;
        let last = self.segments.iter().rposition(|segment| segment.iter().any(stays));
        let keep = last.map_or(0, |last| last + 1);
        let forgotten = self.segments[keep..].iter().flat_map(|segment| segment.iter());
        let generations = forgotten.map(|node| node.generation);
        let least = generations.fold(self.first_generation, u32::max);
        self.first_generation =
            planted!("wheel.generation-begins-again", self.first_generation, least);
        self.segments.truncate(keep);
        tighten(&mut self.segments);
        (self.vacant, self.retired) = (NONE, 0);
        for index in (0..self.len()).rev() {
            let vacant = self.vacant;
            let node = self.node_mut(index);
            if node.is_pending() {
                continue;
            }
            if node.generation != LAST_GENERATION {
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
            if node.is_pending() {
                return Err("a pending timer is on the list of vacant nodes");
            }
            vacant += 1;
            if vacant > self.len() {
                return Err("the list of vacant nodes goes in a circle");
            }
            next = node.due[0];
        }
        let (mut pending, mut retired) = (0, 0);
        for node in self.all() {
            pending += usize::from(node.is_pending());
            retired += usize::from(!node.is_pending() && node.generation == LAST_GENERATION);
        }
        if pending != self.pending {
            return Err("the count of pending timers is wrong");
        }
        if retired != self.retired {
            return Err("the count of retired nodes is wrong");
        }
        if self.pending + vacant as usize + self.retired != self.len() as usize {
            return Err("a vacant node is lost");
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn retired(&self) -> usize {
        self.retired
    }
}
