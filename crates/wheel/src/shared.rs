//! What both wheels share: nodes, slots, and the moving of references between them.
//!
//! The rules:
//! - a pending timer has one node and one reference, in a chunk of a slot, in the slot itself or among the ready
//!   ones, and each leads to the other; what else refers to a node (a witness, the front, an entry of the ready ones)
//!   may be out of date, and is asked for the truth whenever it is used;
//! - a slot is marked as occupied while it holds a timer: one alone, or a ring, and a ring has a reference;
//! - `min` of a slot is never above the due tick of a timer in it;
//! - nothing has to be done before the tick `stop`, and nothing in a slot is due before `earliest`. Both are
//!   lowered when a slot is first occupied; after that `earliest` with its `min`, and `stop` too where a slot holds the
//!   timers of several turns. So filing a timer that does not lower the `min` looks at neither;
//! - everything that needs memory is asked for before anything is moved.

use alloc::vec::Vec;

use crate::batch::Batch;
use crate::chunks::{CHUNK, Chunks, LONE, Position};
use crate::due::Front;
use crate::held::{Held, Ring};
use crate::nodes::{NONE, Nodes};
use crate::ready::Ready;
use crate::rules::{Rules, Scan};
use crate::tick::{Scale, Tick};
use crate::{Key, OutOfMemory};

#[derive(Clone, Copy)]
pub(crate) struct Slot {
    /// A lower bound of what is due here; `Tick::MAX` if nothing is.
    pub(crate) min: Tick,
    pub(crate) ring: Ring,
    /// The node that `min` was taken from: while it is here and due then, `min` is exact.
    pub(crate) witness: u32,
    pub(crate) level: u8,
}

impl Slot {
    pub(crate) const fn new(level: u8) -> Self {
        Slot { min: Tick::MAX, ring: Ring::NONE, witness: NONE, level }
    }

    /// Takes note of a timer. True if it is due earlier than any other here.
    #[inline(always)]
    fn lower(&mut self, due: Tick, node: u32) -> bool {
        let lower = due < self.min;
        if lower {
            (self.min, self.witness) = (due, node);
        }
        lower
    }
}

pub(crate) struct Core<T> {
    pub(crate) scale: Scale,
    pub(crate) nodes: Nodes<T>,
    pub(crate) chunks: Chunks,
    pub(crate) slots: Vec<Slot>,
    pub(crate) ready: Ready,
    /// The tick up to which everything has been settled, or is being settled.
    pub(crate) hand: Tick,
    pub(crate) stop: Tick,
    pub(crate) earliest: Tick,
    pub(crate) scan: Scan,
    pub(crate) front: Front,
    /// What is being moved. It lies here because a ring often holds a few, and a batch has room for 64.
    pub(crate) batch: Batch,
}

impl<T> Core<T> {
    pub(crate) fn new(scale: Scale) -> Self {
        Core {
            scale,
            nodes: Nodes::new(),
            chunks: Chunks::new(),
            slots: Vec::new(),
            ready: Ready::new(),
            hand: 0,
            stop: Tick::MAX,
            earliest: Tick::MAX,
            scan: Scan::NONE,
            front: Front::new(),
            batch: Batch::new(),
        }
    }

    /// Starts a timer, if everything it takes is there; gives the value back, with nothing changed, if it is not.
    ///
    /// There is no call in it, so nothing has to be saved before one: that was an eighth of all its instructions.
    #[inline(always)]
    pub(crate) fn start<K: Rules>(&mut self, rules: &K, due: Tick, value: T) -> Result<Key, T> {
        let Core { nodes, slots, chunks, front, hand, stop, earliest, .. } = self;
        nodes.occupy(due, value, |index| {
            let number = rules.near(due, *hand)?;
            let slot = slots.get_mut(number as usize)?;
            if number == front.slot() {
                return None;
            }
            let position = chunks.push(slot.ring.head, index)?;
            if slot.lower(due, index) {
                *earliest = (*earliest).min(due);
                if K::SCANS {
                    *stop = (*stop).min(due.max(*hand));
                }
            }
            Some(position)
        })
    }

    /// Adds a reference to a slot; its position must be told to the node. `None` if the level is not made or
    /// there is no memory: see [`Core::prepare`].
    #[inline(always)]
    pub(crate) fn file<K: Rules>(
        &mut self,
        rules: &mut K,
        node: u32,
        due: Tick,
        number: u32,
    ) -> Option<Position> {
        let slot = self.slots.get(number as usize)?;
        let Some(position) = self.chunks.push(slot.ring.head, node) else {
            let first = slot.ring.is_empty() && (!K::SCANS || self.scan.slot != number);
            return if first {
                Some(self.settle_in(rules, node, due, number))
            } else {
                self.widen::<K>(node, due, number)
            };
        };
        self.lower::<K>(number, due, node);
        Some(position)
    }

    /// The first timer has come to a slot.
    #[inline]
    pub(crate) fn occupy(&mut self, rules: &mut impl Rules, number: u32, due: Tick, node: u32) {
        let slot = &mut self.slots[number as usize];
        (slot.min, slot.witness) = (due, node);
        let begin = rules.mark(slot.level, number, due.max(self.hand));
        self.stop = self.stop.min(begin);
        self.earliest =
            planted!("wheel.first-of-a-slot-raises-the-bound", due, self.earliest.min(due));
    }

    /// A timer of a slot may be due earlier than any other there, or than the front may know.
    #[inline(always)]
    pub(crate) fn lower<K: Rules>(&mut self, number: u32, due: Tick, node: u32) {
        if self.slots[number as usize].lower(due, node) {
            self.lowered::<K>(due);
        }
        self.front.note(number, due, node);
    }

    /// The bound of a slot that is occupied was lowered.
    #[inline(always)]
    fn lowered<K: Rules>(&mut self, due: Tick) {
        self.earliest = self.earliest.min(due);
        // Where no slot holds two turns, the hand meets this one when it would have met it before.
        if K::SCANS {
            self.stop = self.stop.min(due.max(self.hand));
        }
    }

    /// Makes sure that a timer can be filed, and says in which slot.
    #[inline]
    pub(crate) fn prepare(
        &mut self,
        rules: &mut impl Rules,
        due: Tick,
    ) -> Result<u32, OutOfMemory> {
        let mut spot = rules.spot(due, self.hand);
        if spot as usize >= self.slots.len() {
            rules.make(due, self.hand, &mut self.slots)?;
            spot = rules.spot(due, self.hand);
        }
        if !self.slots[spot as usize].ring.is_empty() {
            let room = self.chunks.reserve(1);
            room.or_else(|none| if self.sweep_all() { Ok(()) } else { Err(none) })?;
        }
        Ok(spot)
    }

    /// Files a timer that is in no slot, where everything is prepared for it.
    #[inline(always)]
    pub(crate) fn refile(&mut self, rules: &mut impl Rules, node: u32, due: Tick) {
        let number = rules.spot(due, self.hand);
        self.refile_in(rules, node, due, number);
    }

    /// The same, for who knows the slot.
    #[inline(always)]
    pub(crate) fn refile_in(&mut self, rules: &mut impl Rules, node: u32, due: Tick, number: u32) {
        let position = self.file(rules, node, due, number);
        let position = position.expect("room for it was made before it was moved");
        self.nodes.node_mut(node).position = position;
    }

    /// Takes the reference at a position out of its slot, or from among the ready ones.
    #[inline(always)]
    pub(crate) fn unfile(&mut self, rules: &mut impl Rules, position: Position) {
        if self.chunks.remove(position) {
            self.vacated(rules, position);
        }
    }

    /// The last reference of a chunk was taken out, or a timer that was alone or ready.
    #[inline(never)]
    fn vacated(&mut self, rules: &mut impl Rules, position: Position) {
        let number = self.chunks.owner(position);
        if number as usize >= self.slots.len() {
            self.ready.lose_one();
        } else if position >= LONE {
            self.leave(rules, number);
        } else {
            self.release(rules, number, position / CHUNK as u32);
        }
    }

    /// The last timer has left a slot.
    #[inline(always)]
    pub(crate) fn empty(&mut self, rules: &mut impl Rules, number: u32) {
        let slot = &mut self.slots[number as usize];
        (slot.min, slot.witness) = (Tick::MAX, NONE);
        self.front.forget(number);
        rules.unmark(slot.level, number);
    }

    /// Gives back memory that the pending timers do not need.
    ///
    /// # Errors
    /// There is too little to copy their references; nothing has changed then.
    pub(crate) fn shrink(&mut self, rules: &mut impl Rules) -> Result<(), OutOfMemory> {
        let rings = (0..self.slots.len() as u32).flat_map(|number| self.rings(number));
        let needed = rings.map(|head| self.chunks.count(head).div_ceil(CHUNK)).sum();
        let mut pool = Chunks::with_chunks(needed)?;
        for number in 0..self.slots.len() as u32 {
            // A witness that left may be a node that will not exist.
            if self.witnessed(number).is_none() {
                self.slots[number as usize].witness = NONE;
            }
            let rings = self.rings(number).map(|old| {
                let mut ring = Ring::NONE;
                let (chunks, nodes) = (&self.chunks, &mut self.nodes);
                for (_, node) in chunks.ring(old).flat_map(|chunk| chunks.of_chunk(chunk)) {
                    let position = pool.add(&mut ring, number, node);
                    nodes.node_mut(node).position = position.expect("the pool has just the size");
                }
                ring
            });
            if let Held::Ring(_) = self.slots[number as usize].ring.held() {
                self.slots[number as usize].ring = rings[0];
            }
            if self.scan.slot == number {
                self.scan.head = rings[1].head;
            }
        }
        self.chunks = pool;
        self.front = Front::new();
        self.ready.shrink(&mut self.nodes);
        if self.nodes.pending() == 0 {
            rules.unmake();
            (self.slots, self.scan) = (Vec::new(), Scan::NONE);
            (self.stop, self.earliest) = (Tick::MAX, Tick::MAX);
        }
        // Only now does nothing refer to a vacant node any more.
        self.nodes.shrink();
        Ok(())
    }

    pub(crate) fn memory(&self) -> usize {
        let slots = self.slots.capacity() * size_of::<Slot>();
        self.nodes.memory()
            + self.chunks.memory()
            + self.ready.memory()
            + self.front.memory()
            + slots
    }
}
