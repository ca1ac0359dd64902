//! Puts a reference into its slot, and removes it.
//!
//! | the slot holds | a timer is inserted | it is removed |
//! |---|---|---|
//! | nothing | the slot stores its index: [`first`] | – |
//! | one timer | a ring is opened for both: [`widen`](Timers::widen) | the slot is empty: [`leave`](Timers::leave) |
//! | a ring | the lowest gap of its head is filled | its bit is cleared, and an empty chunk is released |

use super::{Content, Slot, Timers};
use crate::OutOfMemory;
use crate::chunks::CHUNK;
use crate::geometry::Geometry;
use crate::position::{LONE, NONE, Position, READY};
use crate::tick::Tick;

/// Inserting into a slot.
impl<T> Timers<T> {
    /// Adds a reference to a slot. The caller stores the returned position in the node. `None` if the level is not made
    /// or there is no memory; see [`Timers::prepare`].
    #[inline(always)]
    pub(super) fn file<G: Geometry>(
        &mut self,
        geometry: &mut G,
        node: u32,
        due: Tick,
        number: u32,
    ) -> Option<Position> {
        let slot = self.slots.get(number as usize)?;
        let Some(position) = self.chunks.push(slot.head(), node) else {
            let first = slot.is_empty() && (!G::SCANS || !self.scan.is_of(number));
            return if first {
                Some(self.file_first(geometry, node, due, number))
            } else {
                self.widen(geometry, node, due, number)
            };
        };
        self.lower(geometry, number, due, node);
        Some(position)
    }

    /// Inserts the first timer of a slot, or reinserts its only one.
    fn file_first(
        &mut self,
        geometry: &mut impl Geometry,
        node: u32,
        due: Tick,
        number: u32,
    ) -> Position {
        let Timers { slots, hand, stop, earliest, .. } = self;
        let slot = &mut slots[number as usize];
        let begin = geometry.mark(slot.level(), number, due.max(*hand));
        first(slot, (node, due), number, begin, (stop, earliest))
    }

    /// Adds a reference to a slot that has no head, or whose head is full.
    #[inline(never)]
    fn widen<G: Geometry>(
        &mut self,
        geometry: &G,
        node: u32,
        due: Tick,
        number: u32,
    ) -> Option<Position> {
        self.sweep();
        let slot = &mut self.slots[number as usize];
        let position = match slot.content() {
            Content::Nothing => {
                slot.hold_one(node);
                LONE + number
            }
            Content::One(first) => {
                let position = self.chunks.open(slot.head_mut(), number, first).ok()?;
                let first = self.nodes.node_mut(first);
                planted!("wheel.first-of-two-not-told", (), first.set_position(position));
                self.chunks.push(slot.head(), node)?
            }
            Content::Ring(_) => self.chunks.add(slot.head_mut(), number, node).ok()?,
        };
        self.lower(geometry, number, due, node);
        Some(position)
    }

    /// Updates the bound and the front of a slot for a timer that is inserted there or moved earlier within it.
    #[inline(always)]
    pub(super) fn lower<G: Geometry>(&mut self, _: &G, number: u32, due: Tick, node: u32) {
        if self.slots[number as usize].lower(due, node) {
            self.earliest = self.earliest.min(due);
            // Where no slot holds two turns, an earlier timer does not change when the hand meets the slot.
            if G::SCANS {
                self.stop = self.stop.min(due.max(self.hand));
            }
        }
        self.front.note(number, due, node);
    }

    /// Ensures that inserting a timer will not need memory, and returns its slot.
    #[inline]
    pub(super) fn prepare(
        &mut self,
        geometry: &mut impl Geometry,
        due: Tick,
    ) -> Result<u32, OutOfMemory> {
        let spot = self.make_level(geometry, due)?;
        if !self.slots[spot as usize].is_empty() {
            let room = self.chunks.reserve(1);
            room.or_else(|none| if self.sweep_all() { Ok(()) } else { Err(none) })?;
        }
        Ok(spot)
    }

    /// Ensures that the level for a timer is made, and returns the timer's slot.
    #[inline]
    pub(super) fn make_level(
        &mut self,
        geometry: &mut impl Geometry,
        due: Tick,
    ) -> Result<u32, OutOfMemory> {
        let spot = geometry.spot(due, self.hand);
        if spot < self.slots() {
            return Ok(spot);
        }
        let (level, count) = geometry.level_of(due, self.hand);
        self.slots.try_reserve_exact(count as usize).map_err(|_| OutOfMemory)?;
        geometry.make(level, self.slots())?;
        self.slots.resize(self.slots.len() + count as usize, super::Slot::new(level));
        Ok(geometry.spot(due, self.hand))
    }

    /// Inserts a timer that is in no slot. Its memory must have been reserved.
    #[inline(always)]
    pub(super) fn refile(&mut self, geometry: &mut impl Geometry, node: u32, due: Tick) {
        let number = geometry.spot(due, self.hand);
        self.refile_in(geometry, node, due, number);
    }

    /// As `refile`, given the slot.
    #[inline(always)]
    fn refile_in(&mut self, geometry: &mut impl Geometry, node: u32, due: Tick, number: u32) {
        let position = self.file(geometry, node, due, number);
        let position = position.expect("room for it was made before it was moved");
        self.nodes.node_mut(node).set_position(position);
    }

    /// Moves the only timer of a slot to where it belongs now. Returns its due tick.
    #[inline]
    pub(super) fn refile_only(
        &mut self,
        geometry: &mut impl Geometry,
        number: u32,
        node: u32,
    ) -> Result<Tick, OutOfMemory> {
        let due = self.nodes.node(node).due();
        if geometry.spot(due, self.hand) == number {
            self.file_first(geometry, node, due, number);
            return Ok(due);
        }
        let to = self.prepare(geometry, due)?;
        self.leave(geometry, number);
        self.refile_in(geometry, node, due, to);
        Ok(due)
    }
}

/// Stores the first timer of a slot. The slot is already marked as occupied and begins at `begin`. Lowers `stop` and
/// `earliest`.
#[inline(always)]
pub(super) fn first(
    slot: &mut Slot,
    (node, due): (u32, Tick),
    number: u32,
    begin: Tick,
    (stop, earliest): (&mut Tick, &mut Tick),
) -> Position {
    slot.hold_one(node);
    slot.set_bound(due, node);
    *stop = begin.min(*stop);
    *earliest = planted!("wheel.first-of-a-slot-raises-the-bound", due, due.min(*earliest));
    LONE + planted!("wheel.alone-elsewhere", 0, number)
}

/// Removing from a slot.
impl<T> Timers<T> {
    /// Removes the reference at a position from its slot or from the ready queue.
    #[inline(always)]
    pub(super) fn unfile(&mut self, geometry: &mut impl Geometry, position: Position) {
        if self.chunks.remove(position) {
            self.vacated(geometry, position);
        }
    }

    /// Completes the removal of a chunk's last reference, of a slot's only timer, or of a ready timer.
    #[inline(never)]
    fn vacated(&mut self, geometry: &mut impl Geometry, position: Position) {
        if position < LONE {
            self.release(geometry, self.chunks.owner(position), position / CHUNK as u32);
        } else if position >= READY {
            self.ready.lose_one();
        } else {
            self.leave(geometry, position - LONE);
        }
    }

    /// Removes the only timer from its slot.
    #[inline(always)]
    pub(super) fn leave<G: Geometry>(&mut self, geometry: &mut G, number: u32) {
        let slot = &mut self.slots[number as usize];
        slot.hold_nothing();
        if !G::SCANS || !self.scan.is_of(number) {
            slot.forget_bound();
            geometry.unmark(slot.level(), number);
            self.front.forget(number);
        }
    }

    /// Frees an empty chunk of a slot.
    pub(super) fn release(&mut self, geometry: &mut impl Geometry, number: u32, chunk: u32) {
        let next = self.chunks.release(chunk);
        let head = self.slots[number as usize].head_mut();
        if *head == chunk {
            *head = next;
        }
        self.scan.release(chunk, next);
        if self.slots[number as usize].is_empty() {
            self.leave(geometry, number);
        }
    }
}

/// The contents of a slot.
impl<T> Timers<T> {
    /// Whether a slot holds a timer.
    #[inline]
    pub(super) fn is_occupied(&self, number: u32) -> bool {
        !self.slots[number as usize].is_empty() || self.scan.is_of(number)
    }

    /// The slot of a timer, or an invalid number.
    #[inline]
    pub(crate) fn slot_of(&self, node: u32) -> u32 {
        let node = self.nodes.node(node);
        if planted!("wheel.cancelled-witness", true, node.is_pending()) {
            self.chunks.owner(node.position())
        } else {
            NONE
        }
    }

    /// The only timer of a slot, if it holds no ring. Timers that are being scanned do not count.
    pub(super) fn lone(&self, number: u32) -> Option<u32> {
        match self.content(number) {
            Content::One(node) => Some(node),
            Content::Nothing | Content::Ring(_) => None,
        }
    }

    /// The heads of the slot's own ring and of the ring that is being scanned, each `NONE` if there is none.
    pub(super) fn rings(&self, number: u32) -> [u32; 2] {
        let own = match self.content(number) {
            Content::Ring(head) => head,
            Content::Nothing | Content::One(_) => NONE,
        };
        [own, if self.scan.is_of(number) { self.scan.head() } else { NONE }]
    }

    /// Counts the timers in a slot.
    pub(super) fn count(&self, number: u32) -> usize {
        let chunks = self.rings(number).map(|head| self.chunks.count(head));
        usize::from(self.lone(number).is_some()) + chunks.iter().sum::<usize>()
    }

    /// The timers in a slot, each with the position of its reference.
    pub(crate) fn filed(&self, number: u32) -> impl Iterator<Item = (Position, u32)> {
        let lone = self.lone(number).map(|node| (LONE + number, node));
        let chunks = self.rings(number).into_iter().flat_map(|head| self.chunks.ring(head));
        lone.into_iter().chain(chunks.flat_map(|chunk| self.chunks.of_chunk(chunk)))
    }
}
