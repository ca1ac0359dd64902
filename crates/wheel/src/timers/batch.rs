//! A chunk of a slot at a time: handed down to where it belongs, or made ready.
//!
//! The nodes of a chunk are read before anything is done with any of them, or independently of each other, so
//! that the memory answers for all of them at once. What is taken is in no slot: it must be filed again or be
//! made ready.

use super::{Content, Timers};
use crate::budget::{Budget, Cut};
use crate::chunks::CHUNK;
use crate::geometry::Geometry;
use crate::position::{NONE, READY};
use crate::tick::Tick;
use crate::{Key, OutOfMemory};

/// The first timers of a slot with their due ticks, copied: reading the nodes of a whole batch before acting on
/// any lets the memory answer for all of them at once.
pub(super) struct Batch {
    nodes: [u32; CHUNK],
    due: [Tick; CHUNK],
    number: u32,
    chunk: u32,
    /// The references of the chunk that are not in the batch.
    rest: u64,
    len: usize,
    /// The latest of the due ticks.
    last: Tick,
}

impl Batch {
    pub(super) const fn new() -> Self {
        Batch {
            nodes: [NONE; CHUNK],
            due: [0; CHUNK],
            number: NONE,
            chunk: NONE,
            rest: 0,
            len: 0,
            last: 0,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// One timer alone.
    fn set_one(&mut self, node: u32, due: Tick) {
        (self.nodes[0], self.due[0], self.len) = (node, due, 1);
    }

    #[inline]
    pub(super) fn get(&self, nth: usize) -> (u32, Tick) {
        (self.nodes[nth % CHUNK], self.due[nth % CHUNK])
    }
}

/// Handing down.
impl<T> Timers<T> {
    /// Hands the only timer of a slot, or a batch of its ring, on to where it belongs now; [`Timers::handed`] are they.
    pub(crate) fn hand_down(
        &mut self,
        geometry: &mut impl Geometry,
        number: u32,
        budget: &mut Budget,
    ) -> Result<(), Cut> {
        match self.content(number) {
            Content::Nothing => unreachable!("a slot that is marked holds a timer"),
            Content::One(node) => {
                budget.work()?;
                let due = self.pass_on(geometry, number, node)?;
                budget.spend(1);
                self.batch.set_one(node, due);
                Ok(())
            }
            Content::Ring(head) => self.hand_on(geometry, number, head, budget),
        }
    }

    /// The timers that were handed down last, and when they are due.
    pub(crate) fn handed(&self) -> impl Iterator<Item = (Key, Tick)> {
        let timers = (0..self.batch.len).map(|nth| self.batch.get(nth));
        timers.map(|(node, due)| (self.nodes.key(node), due))
    }

    /// Files a batch of what is in the head of a slot where it belongs now.
    #[inline]
    fn hand_on(
        &mut self,
        geometry: &mut impl Geometry,
        number: u32,
        head: u32,
        budget: &mut Budget,
    ) -> Result<(), Cut> {
        let work = budget.work()?;
        self.look(number, head, planted!("wheel.more-than-the-budget", work.max(CHUNK), work));
        planted!(
            "wheel.taken-before-there-is-room",
            {
                self.take(geometry);
                self.prepare_batch(geometry)?;
            },
            {
                self.prepare_batch(geometry)?;
                self.take(geometry);
            }
        );
        budget.spend(self.batch.len);
        let all = self.batch.len;
        for nth in 0..planted!("wheel.lost-when-handed-down", all.min(31), all) {
            let (node, due) = self.batch.get(nth);
            self.refile(geometry, node, due);
        }
        Ok(())
    }

    /// Makes sure that the whole batch can be filed before any of it moves.
    #[inline]
    fn prepare_batch(&mut self, geometry: &mut impl Geometry) -> Result<(), OutOfMemory> {
        // Its own chunk is free by then, if nothing stays there.
        self.chunks.reserve(self.batch.len - usize::from(self.batch.rest == 0))?;
        if !geometry.is_made(self.batch.last, self.hand) {
            for nth in 0..self.batch.len {
                self.make_level(geometry, self.batch.get(nth).1)?;
            }
        }
        Ok(())
    }

    /// Copies the first timers of a ring of a slot into the batch, at most `most` of them.
    #[inline]
    pub(super) fn look(&mut self, number: u32, head: u32, most: usize) {
        let batch = &mut self.batch;
        (batch.number, batch.chunk, batch.last) = (number, head, 0);
        (batch.len, batch.rest) = self.chunks.first(head, most, &mut batch.nodes);
        for (&node, due) in batch.nodes.iter().zip(&mut batch.due).take(batch.len) {
            *due = self.nodes.node(node).due();
            batch.last = batch.last.max(*due);
        }
    }

    /// Takes the batch out of its slot. Every timer of it must be filed again.
    #[inline]
    pub(super) fn take(&mut self, geometry: &mut impl Geometry) {
        let Batch { number, chunk, rest, .. } = self.batch;
        self.keep(geometry, number, chunk, rest);
    }

    /// Lets only these references of a chunk count, and frees it if there are none.
    #[inline]
    fn keep(&mut self, geometry: &mut impl Geometry, number: u32, chunk: u32, refs: u64) {
        if refs == 0 {
            self.release(geometry, number, chunk);
        } else {
            self.chunks.leave(chunk, refs);
        }
    }
}

/// Firing.
impl<T> Timers<T> {
    /// Makes everything in a slot ready that is due at the hand, as far as the budget goes. What was moved to later is
    /// handed on: this is no slot of another turn.
    #[inline]
    pub(crate) fn fire(
        &mut self,
        geometry: &mut impl Geometry,
        number: u32,
        budget: &mut Budget,
    ) -> Result<(), Cut> {
        loop {
            match self.content(number) {
                Content::Nothing => return Ok(()),
                Content::One(node) => {
                    budget.room(self.ready.len())?;
                    return Ok(self.settle_one(geometry, number, node, budget)?);
                }
                Content::Ring(head) => {
                    let room = budget.room(self.ready.len())?;
                    self.ready.reserve(CHUNK, &mut self.nodes)?;
                    if self.ripen(geometry, number, head, room) {
                        self.hand_on(geometry, number, head, budget)?;
                    }
                }
            }
        }
    }

    /// Makes the only timer of a slot ready if it is due at the hand, and passes it on if it was moved to later.
    #[inline(always)]
    pub(super) fn settle_one(
        &mut self,
        geometry: &mut impl Geometry,
        number: u32,
        node: u32,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        let due = self.nodes.node(node).due();
        if due <= self.hand {
            self.ready.reserve(1, &mut self.nodes)?;
            self.leave(geometry, number);
            self.make_ready(node, due);
        } else {
            self.pass_on(geometry, number, node)?;
            budget.spend(1);
        }
        Ok(())
    }

    /// Makes a timer that is in no slot ready to be popped. Room must have been reserved.
    #[inline]
    pub(super) fn make_ready(&mut self, index: u32, due: Tick) {
        let node = self.nodes.node_mut(index);
        node.set_position(READY);
        self.ready.push(index, node.generation(), due);
    }

    /// Makes the timers of a chunk of a slot that are due at the hand ready, having looked at `most` at most.
    /// True if some stay there because they were moved to later. Room for a chunk must have been reserved.
    #[inline]
    fn ripen(
        &mut self,
        geometry: &mut impl Geometry,
        number: u32,
        chunk: u32,
        most: usize,
    ) -> bool {
        let (nodes, mut refs) = self.chunks.content(chunk);
        let (mut late, mut looked) = (0_u64, 0);
        while refs != 0 && looked < most {
            let bit = refs.trailing_zeros();
            refs &= refs - 1;
            looked += 1;
            let index = nodes[bit as usize % CHUNK];
            let node = self.nodes.node_mut(index);
            let due = node.due();
            // It is pending. To ask reads the value too, which may lie in another cache line: the memory answers for
            // all of them together, and not for one after the other when they are popped.
            if due <= self.hand && node.is_pending() {
                node.set_position(READY);
                self.ready.push(index, node.generation(), due);
            } else {
                late |= 1 << bit;
            }
        }
        let kept = planted!("wheel.budget-drops-the-rest", late, refs | late);
        self.keep(geometry, number, chunk, kept);
        late != 0
    }
}
