//! The timers: one node each, which never moves while its timer is pending.
//!
//! Nodes lie in segments of 128. Growing adds a segment and copies no node.
//!
//! | field | a pending timer | a vacant node |
//! |---|---|---|
//! | `due` | the tick at which it fires | the `Name` of the next timer in the next vacant node |
//! | `generation` | the generation of its key | the generation of the next key |
//! | `position` | where its reference is, or `READY` | nothing |
//! | `value` | `Some` | `None` |
//!
//! A pending timer has exactly one reference, in a slot or in the ready queue. `due` may be later than the range of the
//! slot: the reference of a timer that was moved to later stays until the hand meets it.
//!
//! Generations never wrap: a node that has used its last one is retired.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::OutOfMemory;
use crate::key::{Key, Name, WheelId};
use crate::memory::{boxed, grow_by, tighten};
use crate::position::{NONE, NOWHERE, Position, READY};
use crate::tick::Tick;

/// The number of nodes in a segment: small enough to create a segment without a noticeable pause. Large values should
/// be boxed, or a segment takes much memory even for a few timers.
const SEGMENT: usize = 128;
/// The most segments: no node has the index `NONE`.
const SEGMENTS: usize = NONE as usize / SEGMENT;
/// How many generations a node has before it is retired. There are few in tests, so that nodes are retired there.
pub(crate) const GENERATIONS: u32 = if cfg!(test) { 10 } else { u32::MAX };
/// The generation of a node that is retired.
const RETIRED: u32 = u32::MAX;

pub(crate) struct Node<T> {
    /// Stored as two halves, so that a node with a `u32` value is aligned to four bytes.
    due: [u32; 2],
    generation: u32,
    position: Position,
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

    /// The next vacant node. A vacant node stores it in the field `due`.
    #[inline]
    fn next_vacant(&self) -> Name {
        Name::from_bits(self.due())
    }

    #[inline]
    fn set_next_vacant(&mut self, next: Name) {
        self.set_due(next.bits());
    }

    #[inline]
    pub(crate) fn position(&self) -> Position {
        self.position
    }

    #[inline]
    pub(crate) fn set_position(&mut self, position: Position) {
        self.position = position;
    }

    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.value.is_some()
    }
}

/// Whether a node has used most of its generations.
fn is_old(generation: u32) -> bool {
    RETIRED - generation < GENERATIONS / 2
}

#[inline]
fn halves(due: Tick) -> [u32; 2] {
    [due as u32, (due >> 32) as u32]
}

/// A vacant node that is about to get a timer.
pub(crate) struct Vacancy<'a, T> {
    node: &'a mut Node<T>,
    vacant: &'a mut Name,
    pending: &'a mut usize,
    wheel: WheelId,
}

impl<T> Vacancy<'_, T> {
    /// The index of the node.
    #[inline(always)]
    pub(crate) fn index(&self) -> u32 {
        self.vacant.index()
    }

    /// Puts a timer into the node; its reference is at `position`. Reads nothing of the node but the next vacant node's
    /// name.
    #[inline(always)]
    pub(crate) fn fill(self, due: Tick, position: Position, value: T) -> Key {
        let name = core::mem::replace(self.vacant, self.node.next_vacant());
        *self.pending += 1;
        self.node.set_due(due);
        (self.node.position, self.node.value) = (position, Some(value));
        Key::new(self.wheel, name)
    }
}

pub(crate) struct Nodes<T> {
    /// Arrays of one size, so that one comparison checks an index.
    segments: Vec<Box<[Node<T>; SEGMENT]>>,
    wheel: WheelId,
    /// The first vacant node, as the name of its next timer; `Name::NONE` if there is none.
    vacant: Name,
    pending: usize,
    retired: usize,
    /// The first generation of a new node: above those of all nodes that `shrink` has removed.
    first_generation: u32,
}

impl<T> Nodes<T> {
    pub(crate) fn new() -> Self {
        Nodes {
            segments: Vec::new(),
            wheel: WheelId::unique(),
            vacant: Name::NONE,
            pending: 0,
            retired: 0,
            first_generation: RETIRED - GENERATIONS,
        }
    }

    /// Ensures that there is a vacant node. Nodes are made a segment at a time, so every start takes a vacant node; if
    /// nodes were made one by one, a start would check the length three times.
    #[cold]
    pub(crate) fn prepare(&mut self) -> Result<(), OutOfMemory> {
        if self.vacant == Name::NONE { self.make_segment() } else { Ok(()) }
    }

    /// The index of the next timer's node; beyond all nodes if none is vacant.
    pub(crate) fn next(&self) -> u32 {
        self.vacant.index()
    }

    /// The next vacant node, if there is one.
    #[inline(always)]
    pub(crate) fn vacancy(&mut self) -> Option<Vacancy<'_, T>> {
        let index = self.vacant.index() as usize;
        let node = &mut self.segments.get_mut(index / SEGMENT)?[index % SEGMENT];
        let Nodes { vacant, pending, wheel, .. } = self;
        Some(Vacancy { node, vacant, pending, wheel: *wheel })
    }

    /// Rebuilds the list of vacant nodes from index `first` on, in front of the list `others`. Lower indices come
    /// first, so that the upper nodes tend to be unused when `shrink` is called.
    fn enlist(&mut self, first: u32, others: Name) {
        self.vacant = others;
        for index in (first..self.len()).rev() {
            let (vacant, node) = (self.vacant, self.node_mut(index));
            if node.generation == RETIRED {
                self.retired += 1;
            } else if !node.is_pending() {
                node.set_next_vacant(vacant);
                self.vacant = Name::new(index, node.generation);
            }
        }
    }

    /// Makes a segment of vacant nodes and puts it in front of the list.
    fn make_segment(&mut self) -> Result<(), OutOfMemory> {
        if self.segments.len() == SEGMENTS {
            return Err(OutOfMemory);
        }
        debug_assert!(!is_old(self.first_generation), "new nodes have many generations left");
        grow_by(&mut self.segments, 1)?;
        let (first, generation) = (self.len(), self.first_generation);
        let mut next = Name::new(first, generation);
        let mut segment = boxed(|| {
            next = Name::new(next.index() + 1, generation);
            Node { due: halves(next.bits()), generation, position: NOWHERE, value: None }
        })?;
        segment[SEGMENT - 1].set_next_vacant(self.vacant);
        self.vacant = Name::new(first, generation);
        self.segments.push(segment);
        Ok(())
    }

    /// Takes a timer out of its node, which becomes vacant. Also returns the position of its reference.
    #[inline(always)]
    pub(crate) fn vacate(&mut self, key: Key) -> Option<(T, Position)> {
        let (index, generation) = (key.index() as usize, key.name().generation());
        let node = &mut self.segments.get_mut(index / SEGMENT)?[index % SEGMENT];
        let stale = node.generation != generation;
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
        if node.generation == RETIRED {
            self.retired += 1;
        } else {
            node.set_next_vacant(self.vacant);
            self.vacant = key.name().next();
        }
        Some((value, position))
    }

    /// As [`Nodes::vacate`], if the timer is ready and due at `due`.
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
        let key = Key::new(self.wheel, Name::new(index, generation));
        self.vacate(key).map(|(value, _)| (key, value))
    }

    /// The index behind a key, if its timer is pending.
    #[inline]
    pub(crate) fn find(&self, key: Key) -> Option<u32> {
        let index = key.index() as usize;
        let node = &self.segments.get(index / SEGMENT)?[index % SEGMENT];
        // Keys carry only generations of timers that were started, and vacating increases the generation. So a match
        // means pending.
        let pending = node.generation == key.name().generation() && key.wheel() == self.wheel;
        pending.then_some(key.index())
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
        Key::new(self.wheel, Name::new(index, self.node(index).generation))
    }

    pub(crate) fn value(&self, index: u32) -> Option<&T> {
        self.node(index).value.as_ref()
    }

    pub(crate) fn value_mut(&mut self, index: u32) -> Option<&mut T> {
        self.node_mut(index).value.as_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, Tick, &T)> {
        self.all().enumerate().filter_map(|(index, node)| {
            let key = Key::new(self.wheel, Name::new(index as u32, node.generation));
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

    /// The number of nodes.
    pub(crate) fn len(&self) -> u32 {
        (self.segments.len() * SEGMENT) as u32
    }

    /// The number of timers that fit into the nodes.
    pub(crate) fn capacity(&self) -> usize {
        self.len() as usize - self.retired
    }

    /// The number of segments missing for `additional` more timers.
    fn missing(&self, additional: usize) -> Result<usize, OutOfMemory> {
        let missing = additional.saturating_sub(self.capacity() - self.pending).div_ceil(SEGMENT);
        if missing > SEGMENTS - self.segments.len() { Err(OutOfMemory) } else { Ok(missing) }
    }

    /// The bytes that `reserve` would allocate for `additional` more timers.
    pub(crate) fn lacking(&self, additional: usize) -> Result<usize, OutOfMemory> {
        self.missing(additional)?.checked_mul(size_of::<[Node<T>; SEGMENT]>()).ok_or(OutOfMemory)
    }

    /// Makes the nodes for `additional` more timers.
    pub(crate) fn reserve(&mut self, additional: usize) -> Result<(), OutOfMemory> {
        let missing = self.missing(additional)?;
        self.segments.try_reserve_exact(missing).map_err(|_| OutOfMemory)?;
        let (first, others) = (self.len(), self.vacant);
        let made = (0..missing).try_for_each(|_| self.make_segment());
        self.enlist(first, others);
        made
    }

    pub(crate) fn memory(&self) -> usize {
        self.segments.len() * size_of::<[Node<T>; SEGMENT]>()
            + self.segments.capacity() * size_of::<Box<[Node<T>; SEGMENT]>>()
    }

    /// Removes the segments behind the last one with a node that must stay. New nodes then begin with a generation that
    /// no removed node has used, so that old keys stay stale. A node that has used most of its generations must stay:
    /// if it were removed, new nodes would begin with few generations left.
    pub(crate) fn shrink(&mut self) {
        if self.pending == 0 {
            // A new wheel number makes every old key stale.
            *self = Nodes::new();
            return;
        }
        let stays = |node: &Node<T>| node.is_pending() || is_old(node.generation);
        let last = self.segments.iter().rposition(|segment| segment.iter().any(stays));
        let keep = last.map_or(0, |last| last + 1);
        let forgotten = self.segments[keep..].iter().flat_map(|segment| segment.iter());
        let generations = forgotten.map(|node| node.generation);
        let least = generations.fold(self.first_generation, u32::max);
        self.first_generation =
            planted!("wheel.generation-begins-again", self.first_generation, least);
        self.segments.truncate(keep);
        tighten(&mut self.segments);
        self.retired = 0;
        self.enlist(0, Name::NONE);
    }

    /// Checks the list of vacant nodes and the counts.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let mut vacant = 0;
        let mut next = self.vacant;
        while next != Name::NONE {
            let Some(node) = (next.index() < self.len()).then(|| self.node(next.index())) else {
                return Err("the list of vacant nodes leaves the nodes");
            };
            if node.is_pending() || node.generation != next.generation() {
                return Err("the list of vacant nodes names one that is not");
            }
            vacant += 1;
            if vacant > self.len() {
                return Err("the list of vacant nodes goes in a circle");
            }
            next = node.next_vacant();
        }
        let (mut pending, mut retired) = (0, 0);
        for node in self.all() {
            pending += usize::from(node.is_pending());
            retired += usize::from(node.generation == RETIRED);
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
