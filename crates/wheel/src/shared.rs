//! What both wheels share: nodes, slots, and the moving of references between them.
//!
//! The rules:
//! - a pending timer has one node, and at least one reference in the slot that its node names;
//! - `live` of a slot counts the nodes that name it; a slot whose `live` is 0 holds no references at all;
//! - `min` of a slot is never above the due tick of a timer in it that is still due where it was filed;
//! - nothing has to be done before the tick `stop`, and nothing pending is due before `earliest`;
//! - dead references are swept a chunk at a time by the cancels that make them, as soon as they outnumber
//!   the living ones of a slot;
//! - everything that needs memory is asked for before anything is moved.
//!
//! Slot 0 is the ready slot: timers that are due, in the order in which they fire, until they are popped.

use alloc::vec::Vec;

use crate::chunks::{CHUNK, Chunks, List, Refs};
use crate::due::Front;
use crate::nodes::{At, NONE, Nodes};
use crate::tick::{Scale, Tick};
use crate::{LevelView, Moved, OutOfMemory, Place};

/// The slot of the timers that are ready to be popped.
pub(crate) const READY: u32 = 0;

#[derive(Clone, Copy)]
pub(crate) struct Slot {
    /// A lower bound of what is due here.
    pub(crate) min: Tick,
    pub(crate) list: List,
    /// The pending timers that are filed here.
    pub(crate) live: u32,
    /// The node that `min` was taken from: while it is here and due then, `min` is exact.
    pub(crate) witness: u32,
    pub(crate) level: u8,
}

impl Slot {
    pub(crate) const fn new(level: u8) -> Self {
        Slot { min: Tick::MAX, list: List::EMPTY, live: 0, witness: NONE, level }
    }

    /// Whether the dead references outnumber the living, by the chunks they take.
    #[inline]
    fn is_crowded(&self) -> bool {
        u64::from(self.list.chunks) * CHUNK as u64 > 2 * (u64::from(self.live) + CHUNK as u64)
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
    pub(crate) slot: u32,
    /// When the hand meets it.
    pub(crate) begin: Tick,
}

/// A walk over the chunks of a slot that is not finished: how many are left.
#[derive(Clone, Copy)]
pub(crate) struct Walk {
    pub(crate) slot: u32,
    pub(crate) left: u32,
}

impl Walk {
    pub(crate) const NONE: Walk = Walk { slot: NONE, left: 0 };
}

/// What one call of `advance` may still do.
pub(crate) struct Budget {
    /// References that may still be looked at without firing.
    pub(crate) work: usize,
    /// The most timers that may be ready.
    pub(crate) ready: usize,
}

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

    /// Makes the level if it is not there yet.
    fn open(&mut self, level: u8, slots: &mut Vec<Slot>) -> Result<(), OutOfMemory>;

    /// The number of a slot in the table. Its level must be open.
    fn number(&self, level: u8, slot: u32) -> u32;

    /// Remembers that a slot is occupied, or that it is not.
    fn mark(&mut self, level: u8, number: u32, occupied: bool);

    /// If a timer that is filed there may stay when its deadline is moved earlier, to `due`: when the hand
    /// will look at it.
    fn covers(&self, level: u8, number: u32, due: Tick, hand: Tick) -> Option<Tick>;

    /// The bound that a timer of this slot sets for the slot's `min`.
    fn floor(&self, number: u32, due: Tick, hand: Tick) -> Tick;

    /// The next tick, not before the hand, at which there is something to settle; `Tick::MAX` if there is none.
    fn next_stop<T>(&self, core: &Core<T>) -> Tick;

    /// The occupied slots of a level in the order in which the hand meets them, each with a tick that is not
    /// after anything due in it.
    fn met(&self, level: usize, hand: Tick) -> impl Iterator<Item = (u32, Tick)>;

    /// When the hand next meets an occupied slot.
    fn begin<T>(&self, core: &Core<T>, number: u32) -> Tick;

    /// When the hand next meets any occupied slot.
    fn next_slot<T>(&self, core: &Core<T>) -> Tick;

    fn levels(&self) -> usize;

    fn is_occupied(&self, level: u8, number: u32) -> bool;

    /// Does all there is to do at the hand: hands down what begins there, then makes ready what is due.
    fn settle<T>(
        &mut self,
        core: &mut Core<T>,
        budget: &mut Budget,
        watch: &mut impl FnMut(Moved),
    ) -> Result<(), Cut>;

    /// Where the drawings show a timer that is filed in this slot.
    fn place(&self, level: u8, number: u32, due: Tick, hand: Tick) -> Place;

    /// Where they show a timer that is filed now, due after the hand.
    fn place_of(&self, due: Tick, hand: Tick) -> Place;

    /// Where they show the slot itself.
    fn slot_place(&self, level: u8, number: u32) -> Place;

    /// The ticks that a slot stands for in the turn in which the hand next meets it.
    fn range(&self, place: Place, hand: Tick) -> Option<(Tick, Tick)>;

    fn view(&self, level: usize) -> LevelView;

    fn memory(&self) -> usize;
}

/// Some references of a slot with what their nodes say, copied: reading the nodes of a whole batch before
/// acting on any lets the memory answer for all of them at once.
pub(crate) struct Batch {
    refs: Refs,
    at: [At; CHUNK],
    due: [Tick; CHUNK],
    slot: u32,
}

impl Batch {
    pub(crate) fn len(&self) -> usize {
        self.refs.len
    }

    /// The references that count: node and due tick.
    #[inline]
    pub(crate) fn living(&self) -> impl Iterator<Item = (u32, Tick)> {
        (0..self.refs.len)
            .filter(|&i| self.at[i] == At::new(self.slot, self.refs.stamps[i]))
            .map(|i| (self.refs.nodes[i], self.due[i]))
    }
}

pub(crate) struct Core<T> {
    pub(crate) scale: Scale,
    pub(crate) nodes: Nodes<T>,
    pub(crate) chunks: Chunks,
    pub(crate) slots: Vec<Slot>,
    /// The tick up to which everything has been settled, or is being settled.
    pub(crate) hand: Tick,
    pub(crate) stop: Tick,
    pub(crate) earliest: Tick,
    pub(crate) sweep: Walk,
    /// The slot of a hashed wheel that is being looked through.
    pub(crate) scan: Walk,
    pub(crate) front: Front,
}

impl<T> Core<T> {
    pub(crate) fn new(scale: Scale) -> Self {
        Core {
            scale,
            nodes: Nodes::new(),
            chunks: Chunks::new(),
            slots: alloc::vec![Slot::new(0)],
            hand: 0,
            stop: Tick::MAX,
            earliest: Tick::MAX,
            sweep: Walk::NONE,
            scan: Walk::NONE,
            front: Front::new(),
        }
    }

    pub(crate) fn ready(&self) -> usize {
        self.slots[READY as usize].live as usize
    }

    /// Makes sure that [`Core::file`] can file one timer there.
    #[inline]
    pub(crate) fn prepare(
        &mut self,
        rules: &mut impl Rules,
        spot: Spot,
    ) -> Result<(), OutOfMemory> {
        self.chunks.reserve(1)?;
        rules.open(spot.level, &mut self.slots)
    }

    /// Files a timer that is filed nowhere, or whose old slot is told with [`Core::leave`].
    #[inline]
    pub(crate) fn file(&mut self, rules: &mut impl Rules, node: u32, due: Tick, spot: Spot) {
        let number = rules.number(spot.level, spot.slot);
        if self.join(number, node, due) {
            rules.mark(spot.level, number, true);
        }
        self.stop = self.stop.min(spot.begin);
        self.earliest = self.earliest.min(due);
    }

    /// Makes a timer ready to be popped.
    #[inline]
    pub(crate) fn file_ready(&mut self, node: u32, due: Tick) {
        self.join(READY, node, due);
    }

    /// Adds a reference to a slot; true if it is the first.
    #[inline]
    fn join(&mut self, number: u32, node: u32, due: Tick) -> bool {
        let slot = &mut self.slots[number as usize];
        let at = &mut self.nodes.node_mut(node).at;
        *at = At::new(number, at.stamp().wrapping_add(1));
        self.chunks.push(&mut slot.list, node, at.stamp());
        slot.live += 1;
        slot.lower(due, node);
        self.front.note(number, due, node);
        slot.live == 1
    }

    /// A timer that was filed there no longer is.
    #[inline]
    pub(crate) fn leave(&mut self, rules: &mut impl Rules, number: u32) {
        let slot = &mut self.slots[number as usize];
        slot.live -= 1;
        if slot.live == 0 {
            self.empty(rules, number);
        }
    }

    fn empty(&mut self, rules: &mut impl Rules, number: u32) {
        let slot = &mut self.slots[number as usize];
        self.chunks.clear(&mut slot.list);
        let level = slot.level;
        *slot = Slot::new(level);
        if number != READY {
            rules.mark(level, number, false);
        }
        self.front.forget(number);
        for walk in [&mut self.sweep, &mut self.scan] {
            if walk.slot == number {
                *walk = Walk::NONE;
            }
        }
    }

    /// The first references of a slot, at most `most`.
    #[inline]
    pub(crate) fn look(&self, number: u32, most: usize) -> Batch {
        self.read(self.chunks.peek(&self.slots[number as usize].list, most), number)
    }

    #[inline]
    pub(crate) fn read(&self, refs: Refs, slot: u32) -> Batch {
        let mut batch = Batch { refs, at: [At::new(0, 0); CHUNK], due: [0; CHUNK], slot };
        for i in 0..refs.len {
            let node = self.nodes.node(refs.nodes[i]);
            (batch.at[i], batch.due[i]) = (node.at, node.due());
        }
        batch
    }

    /// Whether a timer is still filed there. Asked again of each timer of a batch, because two references to
    /// one timer may look alike (see `nodes`): the second must not count once the first has acted.
    #[inline]
    pub(crate) fn is_in(&self, node: u32, number: u32) -> bool {
        self.nodes.node(node).at.slot() == number
    }

    /// Takes a batch that was looked at out of its slot. Its living timers must be filed again, and the slot
    /// told with [`Core::leave`].
    #[inline]
    pub(crate) fn take(&mut self, batch: &Batch) {
        self.chunks.drop_first(&mut self.slots[batch.slot as usize].list, batch.len());
    }

    /// Puts a living reference that was taken back, at the end of the slot it came from.
    #[inline]
    pub(crate) fn put_back(&mut self, number: u32, node: u32) {
        let stamp = self.nodes.node(node).at.stamp();
        self.chunks.push(&mut self.slots[number as usize].list, node, stamp);
    }

    /// Sweeps one chunk, if a slot has too many dead references. To be called after a reference of `number`
    /// has died: so the sweeping of a slot is paid for by what was cancelled in it, in slices.
    #[inline]
    pub(crate) fn sweep(&mut self, number: u32) {
        if self.sweep.left == 0 {
            let slot = &self.slots[number as usize];
            // The order of the ready slot is the order of firing, and a scan counts on the order of its slot.
            if !slot.is_crowded() || number == READY || number == self.scan.slot {
                return;
            }
            self.sweep = Walk { slot: number, left: slot.list.chunks };
        }
        self.sweep_chunk();
    }

    #[cold]
    fn sweep_chunk(&mut self) {
        let number = self.sweep.slot;
        if number == self.scan.slot || self.chunks.reserve(1).is_err() {
            self.sweep = Walk::NONE;
            return;
        }
        let batch = self.look(number, CHUNK);
        self.take(&batch);
        for (node, _) in batch.living() {
            self.put_back(number, node);
        }
        self.sweep.left -= 1;
        // The list may have become shorter than it was when the sweep began.
        if self.sweep.left == 0 || self.slots[number as usize].list.chunks == 0 {
            self.sweep = Walk::NONE;
        }
    }

    /// Gives back the memory that the pending timers do not need.
    ///
    /// # Errors
    /// There is too little to copy their references into a pool of just the size; nothing has changed then.
    pub(crate) fn shrink(&mut self) -> Result<(), OutOfMemory> {
        let (pool, lists) = self.copy_living()?;
        for (number, list) in lists.into_iter().enumerate() {
            // A witness that left may be a node that will not exist.
            if self.witnessed(number as u32).is_none() {
                self.slots[number].witness = NONE;
            }
            self.slots[number].list = list;
        }
        self.chunks = pool;
        self.front = Front::new();
        self.sweep = Walk::NONE;
        if self.scan.left > 0 {
            self.scan.left = self.slots[self.scan.slot as usize].list.chunks;
        }
        // Only now does nothing refer to a vacant node any more.
        self.nodes.shrink();
        Ok(())
    }

    fn copy_living(&self) -> Result<(Chunks, Vec<List>), OutOfMemory> {
        let mut pool = Chunks::new();
        let mut lists = Vec::new();
        lists.try_reserve_exact(self.slots.len()).map_err(|_| OutOfMemory)?;
        let needed: usize =
            self.slots.iter().map(|slot| (slot.live as usize).div_ceil(CHUNK)).sum();
        pool.reserve(needed)?;
        for (number, slot) in self.slots.iter().enumerate() {
            let mut list = List::EMPTY;
            let mut copied = Ok(());
            self.chunks.for_each(&slot.list, |refs| {
                for (node, _) in self.read(*refs, number as u32).living() {
                    // Two references that look alike may need more than there are timers.
                    copied = copied.and_then(|()| pool.reserve(1));
                    if copied.is_ok() {
                        pool.push(&mut list, node, self.nodes.node(node).at.stamp());
                    }
                }
            });
            copied?;
            lists.push(list);
        }
        Ok((pool, lists))
    }

    pub(crate) fn memory(&self) -> usize {
        let slots = self.slots.capacity() * size_of::<Slot>();
        self.nodes.memory() + self.chunks.memory() + self.front.memory() + slots
    }
}
