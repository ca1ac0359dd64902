//! What both wheels share: nodes, slots, and the moving of references between them.
//!
//! The rules:
//! - a pending timer has one node and one reference, in a slot or among the ready ones, and each leads to the
//!   other; what else refers to a node (a witness, the front, an entry of the ready ones) may be out of date,
//!   and is asked for the truth whenever it is used;
//! - `live` of a slot counts its references, and it is marked as occupied if there are any;
//! - `min` of a slot is never above the due tick of a timer in it;
//! - nothing has to be done before the tick `stop`, and nothing in a slot is due before `earliest`;
//! - everything that needs memory is asked for before anything is moved.

use alloc::vec::Vec;

use crate::chunks::{CHUNK, Chunks, List, Position, READY};
use crate::due::Front;
use crate::nodes::{NONE, Nodes};
use crate::ready::Ready;
use crate::tick::{Scale, Tick};
use crate::{LevelView, Moved, OutOfMemory, Place};

#[derive(Clone, Copy)]
pub(crate) struct Slot {
    /// A lower bound of what is due here.
    pub(crate) min: Tick,
    pub(crate) list: List,
    /// The timers that are filed here.
    pub(crate) live: u32,
    /// The node that `min` was taken from: while it is here and due then, `min` is exact.
    pub(crate) witness: u32,
    pub(crate) level: u8,
}

impl Slot {
    pub(crate) const fn new(level: u8) -> Self {
        Slot { min: Tick::MAX, list: List::EMPTY, live: 0, witness: NONE, level }
    }

    #[inline]
    pub(crate) fn lower(&mut self, due: Tick, node: u32) {
        if due < self.min {
            (self.min, self.witness) = (due, node);
        }
    }
}

/// Where a wheel files a timer.
#[derive(Clone, Copy)]
pub(crate) struct Spot {
    pub(crate) level: u8,
    /// The number of its slot in the table, or `NONE` if its level is still to be made.
    pub(crate) number: u32,
    /// When the hand meets it.
    pub(crate) begin: Tick,
}

/// The slot of a hashed wheel that is being looked through, and how many of its timers are left.
#[derive(Clone, Copy)]
pub(crate) struct Scan {
    pub(crate) slot: u32,
    pub(crate) left: u32,
}

impl Scan {
    pub(crate) const NONE: Scan = Scan { slot: NONE, left: 0 };
}

/// What one call of `advance` may still do.
pub(crate) struct Budget {
    /// References that may still be looked at without firing.
    pub(crate) work: usize,
    /// The most timers that may be ready.
    pub(crate) ready: usize,
}

/// Who wants to know of every timer that is handed down, if anybody does.
pub(crate) type Watch<'a, 'w> = &'a mut Option<&'w mut dyn FnMut(Moved)>;

/// Why settling a tick ended before its end.
pub(crate) enum Cut {
    Budget,
    Memory,
}

impl From<OutOfMemory> for Cut {
    fn from(_: OutOfMemory) -> Self {
        Cut::Memory
    }
}

/// What distinguishes one kind of wheel from another.
pub(crate) trait Rules: Sized {
    /// Where a timer that is due then is filed; at `hand` if it is already due.
    fn spot(&self, due: Tick, hand: Tick) -> Spot;

    /// Makes a level.
    fn make(&mut self, level: u8, slots: &mut Vec<Slot>) -> Result<(), OutOfMemory>;

    /// Forgets all levels, as if none had been made.
    fn unmake(&mut self);

    /// Remembers that a slot is occupied from now on, and that the hand meets it then.
    fn mark(&mut self, level: u8, number: u32, begin: Tick);

    /// Remembers that a slot is no longer occupied.
    fn unmark(&mut self, level: u8, number: u32);

    /// If a timer that is filed there may stay when its deadline is moved earlier, to `due`: when the hand
    /// will look at it.
    fn covers(&self, level: u8, number: u32, due: Tick, hand: Tick) -> Option<Tick>;

    /// The next tick, not before the hand, at which there may be something to settle; `Tick::MAX` if there is
    /// none.
    fn next_stop<T>(&mut self, core: &Core<T>) -> Tick;

    /// A tick that is not after anything due on a level; `Tick::MAX` if it is empty.
    fn first(&self, level: usize, hand: Tick) -> Tick;

    /// The occupied slots of a level in the order in which the hand meets them, each with a tick that is not
    /// after anything due in it.
    fn met(&self, level: usize, hand: Tick) -> impl Iterator<Item = (u32, Tick)>;

    /// When the hand next meets an occupied slot.
    fn begin<T>(&self, core: &Core<T>, number: u32) -> Tick;

    /// The tick, not before the hand, at which an occupied slot must be settled. For `check` alone.
    fn need<T>(&self, core: &Core<T>, number: u32) -> Tick;

    /// When the hand next meets any occupied slot.
    fn next_slot<T>(&self, core: &Core<T>) -> Tick;

    fn levels(&self) -> usize;

    fn is_occupied(&self, level: u8, number: u32) -> bool;

    /// Does all there is to do at the hand: hands down what begins there, then makes ready what is due.
    fn settle<T>(
        &mut self,
        core: &mut Core<T>,
        budget: &mut Budget,
        watch: Watch<'_, '_>,
    ) -> Result<(), Cut>;

    /// Where the drawings show a timer that is filed in this slot.
    fn place(&self, level: u8, number: u32, due: Tick, hand: Tick) -> Place;

    /// Where they show a timer that is filed now, due after the hand.
    fn place_of(&self, due: Tick, hand: Tick) -> Place;

    /// Where they show the slot itself.
    fn slot_place(&self, level: u8, number: u32) -> Place;

    /// The ticks that a slot stands for in the turn in which the hand next meets it.
    fn range<T>(&self, core: &Core<T>, place: Place) -> Option<(Tick, Tick)>;

    fn view(&self, level: usize) -> LevelView;

    fn memory(&self) -> usize;
}

/// The first timers of a slot with their due ticks, copied: reading the nodes of a whole batch before acting on
/// any lets the memory answer for all of them at once.
pub(crate) struct Batch {
    nodes: [u32; CHUNK],
    due: [Tick; CHUNK],
    number: u32,
    pub(crate) len: usize,
}

impl Batch {
    #[inline]
    pub(crate) fn get(&self, nth: usize) -> (u32, Tick) {
        (self.nodes[nth % CHUNK], self.due[nth % CHUNK])
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
    /// What is being moved. It lies here because a slot often holds one timer, and a batch has room for 32.
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
            batch: Batch { nodes: [NONE; CHUNK], due: [0; CHUNK], number: NONE, len: 0 },
        }
    }

    /// Adds a reference to a slot; its position must be told to the node. `None` if the level is not made or
    /// there is no memory: see [`Core::prepare`].
    #[inline(always)]
    pub(crate) fn file(
        &mut self,
        rules: &mut impl Rules,
        node: u32,
        due: Tick,
        spot: Spot,
    ) -> Option<Position> {
        let slot = self.slots.get_mut(spot.number as usize)?;
        let position = self.chunks.push(&mut slot.list, spot.number, node)?;
        slot.lower(due, node);
        slot.live += 1;
        if slot.live == 1 {
            rules.mark(spot.level, spot.number, spot.begin);
        }
        self.front.note(spot.number, due, node);
        if spot.begin < self.stop {
            self.stop = spot.begin;
        }
        if due < self.earliest {
            self.earliest = due;
        }
        Some(position)
    }

    /// Makes sure that a timer can be filed, wherever that is.
    #[inline(never)]
    pub(crate) fn prepare(
        &mut self,
        rules: &mut impl Rules,
        due: Tick,
    ) -> Result<Spot, OutOfMemory> {
        let mut spot = rules.spot(due, self.hand);
        if spot.number as usize >= self.slots.len() {
            rules.make(spot.level, &mut self.slots)?;
            spot = rules.spot(due, self.hand);
        }
        if self.slots[spot.number as usize].list.is_full() {
            self.chunks.reserve(1)?;
        }
        Ok(spot)
    }

    /// Files a timer that is in no slot, where everything is prepared for it.
    #[inline]
    pub(crate) fn refile(&mut self, rules: &mut impl Rules, node: u32, due: Tick, spot: Spot) {
        let position =
            self.file(rules, node, due, spot).expect("room for it was made before it was moved");
        self.nodes.node_mut(node).position = position;
    }

    /// Takes the reference of a node out of its slot, or from among the ready ones.
    #[inline(always)]
    pub(crate) fn unfile(&mut self, rules: &mut impl Rules, node: u32, position: Position) {
        let number = self.chunks.owner(position);
        let Some(slot) = self.slots.get_mut(number as usize) else {
            self.ready.lose_one();
            return;
        };
        let moved = self.chunks.remove(&mut slot.list, position);
        if moved != node {
            self.nodes.node_mut(moved).position = position;
        }
        slot.live -= 1;
        if slot.live == 0 {
            self.empty(rules, number);
        }
    }

    /// So many timers have been taken out of a slot.
    #[inline]
    pub(crate) fn leave(&mut self, rules: &mut impl Rules, number: u32, count: usize) {
        let slot = &mut self.slots[number as usize];
        slot.live -= count as u32;
        if slot.live == 0 {
            self.empty(rules, number);
        }
    }

    /// The last timer has left a slot.
    #[inline(never)]
    fn empty(&mut self, rules: &mut impl Rules, number: u32) {
        let slot = &mut self.slots[number as usize];
        (slot.min, slot.witness) = (Tick::MAX, NONE);
        self.front.forget(number);
        if self.scan.slot == number {
            self.scan = Scan::NONE;
        }
        rules.unmark(slot.level, number);
    }

    /// The slot that a timer is filed in, or `NONE`.
    #[inline]
    pub(crate) fn slot_of(&self, node: u32) -> u32 {
        self.chunks.owner(self.nodes.node(node).position)
    }

    /// Copies the first timers of a slot that is not empty into the batch, at most `most` of them.
    #[inline]
    pub(crate) fn look(&mut self, number: u32, most: usize) {
        let first = self.chunks.first(&self.slots[number as usize].list, most);
        let batch = &mut self.batch;
        for ((&node, copy), due) in first.iter().zip(&mut batch.nodes).zip(&mut batch.due) {
            (*copy, *due) = (node, self.nodes.node(node).due());
        }
        (batch.number, batch.len) = (number, first.len());
    }

    /// Takes the batch out of its slot. Every timer of it must be filed again.
    #[inline]
    pub(crate) fn take(&mut self, rules: &mut impl Rules) {
        let Batch { number, len, .. } = self.batch;
        self.chunks.drop_first(&mut self.slots[number as usize].list, len);
        self.leave(rules, number, len);
    }

    /// Puts a timer that was taken out back, at the end of the slot it came from.
    #[inline]
    pub(crate) fn put_back(&mut self, number: u32, node: u32) {
        let list = &mut self.slots[number as usize].list;
        let position = self.chunks.push(list, number, node).expect("room was made for a batch");
        self.nodes.node_mut(node).position = position;
    }

    /// Makes a timer that is in no slot ready to be popped. Room must have been reserved.
    #[inline]
    pub(crate) fn file_ready(&mut self, node: u32, due: Tick) {
        self.nodes.node_mut(node).position = READY;
        self.ready.push(self.nodes.key(node), due);
    }

    /// Gives back memory that the pending timers do not need.
    ///
    /// # Errors
    /// There is too little to copy their references; nothing has changed then.
    pub(crate) fn shrink(&mut self, rules: &mut impl Rules) -> Result<(), OutOfMemory> {
        let mut pool = Chunks::with_chunks(
            self.slots.iter().map(|slot| (slot.live as usize).div_ceil(CHUNK)).sum(),
        )?;
        for number in 0..self.slots.len() as u32 {
            // A witness that left may be a node that will not exist.
            if self.witnessed(number).is_none() {
                self.slots[number as usize].witness = NONE;
            }
            if self.slots[number as usize].live == 0 {
                continue;
            }
            let mut list = List::EMPTY;
            let (chunks, nodes) = (&self.chunks, &mut self.nodes);
            chunks.for_each(&self.slots[number as usize].list, |refs, _| {
                for &node in refs {
                    let position =
                        pool.push(&mut list, number, node).expect("the pool has just the size");
                    nodes.node_mut(node).position = position;
                }
            });
            self.slots[number as usize].list = list;
        }
        self.chunks = pool;
        self.front = Front::new();
        self.ready.shrink(&self.nodes);
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
