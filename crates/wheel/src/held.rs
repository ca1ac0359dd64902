//! What a slot holds: nothing, one timer, or a ring of chunks.
//!
//! When timers are sparse most slots hold one. It needs no chunk: the slot names its node, and the position of the node
//! names the slot. So starting it, cancelling it, handing it down and firing it touch the slot and the node alone.
//! The second one opens a ring, and takes the first along. A ring that comes down to one timer stays a ring until
//! it is empty: the tempting alternative, to turn it back, opens it once more as soon as the next one comes, and
//! a slot that has had two is likely to have them again.

use crate::OutOfMemory;
use crate::chunks::{LONE, Position};
use crate::nodes::NONE;
use crate::rules::{Budget, Rules, Scan};
use crate::shared::Core;
use crate::tick::Tick;

/// What a slot holds, beside what is still to be looked through of it.
pub(crate) enum Held {
    Nothing,
    /// The only timer: its node.
    One(u32),
    /// More, or what is left of more: the head of their ring.
    Ring(u32),
}

/// Stands in the place of a head: the only timer is named beside it. No chunk has this number, so who adds a
/// reference to a head finds out that there is none without asking, as in a slot that is empty.
const ALONE: u32 = NONE - 1;

/// What a slot holds, in eight bytes. [`Held`] itself would make a slot a third larger.
#[derive(Clone, Copy)]
pub(crate) struct Ring {
    /// The chunk that is being filled, `ALONE`, or `NONE` if the slot is empty.
    pub(crate) head: u32,
    /// If the head is `ALONE`: the node.
    only: u32,
}

impl Ring {
    pub(crate) const NONE: Ring = Ring::of(NONE);

    /// That of a chunk.
    pub(crate) const fn of(head: u32) -> Self {
        Ring { head, only: NONE }
    }

    /// One timer, and no chunk.
    #[inline]
    fn of_one(node: u32) -> Self {
        Ring { head: ALONE, only: node }
    }

    #[inline]
    pub(crate) fn held(self) -> Held {
        match self.head {
            NONE => Held::Nothing,
            ALONE => Held::One(self.only),
            head => Held::Ring(head),
        }
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.head == NONE
    }
}

impl<T> Core<T> {
    /// The first timer comes to a slot.
    #[inline(never)]
    pub(crate) fn settle_in(
        &mut self,
        rules: &mut impl Rules,
        node: u32,
        due: Tick,
        number: u32,
    ) -> Position {
        self.slots[number as usize].ring = Ring::of_one(node);
        self.occupy(rules, number, due, node);
        LONE + planted!("wheel.alone-elsewhere", 0, number)
    }

    /// Adds a reference to a slot that has no head, or whose head is full.
    #[inline(never)]
    pub(crate) fn widen<K: Rules>(
        &mut self,
        node: u32,
        due: Tick,
        number: u32,
    ) -> Option<Position> {
        self.sweep();
        let ring = &mut self.slots[number as usize].ring;
        let position = match ring.held() {
            Held::Nothing => {
                *ring = Ring::of_one(node);
                LONE + number
            }
            Held::One(first) => {
                let position = self.chunks.open(ring, number, first).ok()?;
                let first = self.nodes.node_mut(first);
                planted!("wheel.first-of-two-not-told", (), first.position = position);
                self.chunks.push(ring.head, node)?
            }
            Held::Ring(_) => self.chunks.add(ring, number, node).ok()?,
        };
        self.lower::<K>(number, due, node);
        Some(position)
    }

    /// Takes the only timer out of its slot. It must be filed again, be made ready, or be gone.
    #[inline(always)]
    pub(crate) fn leave<K: Rules>(&mut self, rules: &mut K, number: u32) {
        self.slots[number as usize].ring = Ring::NONE;
        if !K::SCANS || self.scan.slot != number {
            self.empty(rules, number);
        }
    }

    /// Files the only timer of a slot where it belongs now. Returns when it is due.
    #[inline]
    pub(crate) fn pass_on(
        &mut self,
        rules: &mut impl Rules,
        number: u32,
        node: u32,
    ) -> Result<Tick, OutOfMemory> {
        let due = self.nodes.node(node).due();
        if rules.spot(due, self.hand) == number {
            self.occupy(rules, number, due, node);
            return Ok(due);
        }
        let to = self.prepare(rules, due)?;
        self.leave(rules, number);
        self.refile_in(rules, node, due, to);
        Ok(due)
    }

    /// Makes the only timer of a slot ready if it is due at the hand, and passes it on if it was moved to later.
    #[inline(always)]
    pub(crate) fn settle_one(
        &mut self,
        rules: &mut impl Rules,
        number: u32,
        node: u32,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        let due = self.nodes.node(node).due();
        if due <= self.hand {
            self.ready.reserve(1, &mut self.nodes)?;
            self.leave(rules, number);
            self.file_ready(node, due);
        } else {
            self.pass_on(rules, number, node)?;
            budget.work -= 1;
        }
        Ok(())
    }

    /// Frees an empty chunk of a slot.
    pub(crate) fn release(&mut self, rules: &mut impl Rules, number: u32, chunk: u32) {
        let next = self.chunks.release(chunk);
        let slot = &mut self.slots[number as usize];
        if slot.ring.head == chunk {
            slot.ring.head = next;
        }
        if self.scan.head == chunk {
            self.scan.head = next;
            if next == NONE {
                self.scan = Scan::NONE;
            }
        }
        if !self.is_occupied(number) {
            self.empty(rules, number);
        }
    }

    /// Whether a slot holds a timer.
    #[inline]
    pub(crate) fn is_occupied(&self, number: u32) -> bool {
        !self.slots[number as usize].ring.is_empty() || self.scan.slot == number
    }

    /// The slot that a timer is filed in, or a number that no slot has.
    #[inline]
    pub(crate) fn slot_of(&self, node: u32) -> u32 {
        let node = self.nodes.node(node);
        if planted!("wheel.cancelled-witness", true, node.is_pending()) {
            self.chunks.owner(node.position)
        } else {
            NONE
        }
    }

    /// The only timer of a slot, beside what is still to be looked through.
    pub(crate) fn lone(&self, number: u32) -> Option<u32> {
        match self.slots[number as usize].ring.held() {
            Held::One(node) => Some(node),
            Held::Nothing | Held::Ring(_) => None,
        }
    }

    /// The heads of the rings of a slot, or `NONE`: its own, and that of what is still to be looked through.
    pub(crate) fn rings(&self, number: u32) -> [u32; 2] {
        let own = match self.slots[number as usize].ring.held() {
            Held::Ring(head) => head,
            Held::Nothing | Held::One(_) => NONE,
        };
        [own, if self.scan.slot == number { self.scan.head } else { NONE }]
    }

    /// How many timers are filed in a slot, counted.
    pub(crate) fn count(&self, number: u32) -> usize {
        let chunks = self.rings(number).map(|head| self.chunks.count(head));
        usize::from(self.lone(number).is_some()) + chunks.iter().sum::<usize>()
    }

    /// The timers that are filed in a slot, each with the position of its reference.
    pub(crate) fn filed(&self, number: u32) -> impl Iterator<Item = (Position, u32)> {
        let lone = self.lone(number).map(|node| (LONE + number, node));
        let chunks = self.rings(number).into_iter().flat_map(|head| self.chunks.ring(head));
        lone.into_iter().chain(chunks.flat_map(|chunk| self.chunks.of_chunk(chunk)))
    }
}
