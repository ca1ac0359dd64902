//! The timers of a wheel in their slots, for both kinds: start, cancel and move.
//!
//! ```text
//!   keys ──►  nodes                      chunks                     slots
//!             ┌──────────────────┐       ┌─────────────────┐        ┌────────────────┐
//!    index ─► │ due              │   ┌─► │ a bit for each  │        │ bound, witness │
//!             │ generation       │   │   │   reference     │        │ head of a ring │
//!             │ position ────────┼───┘   └─────────────────┘        └───────┬────────┘
//!             │ value            │                                          ▼
//!             └──────────────────┘                             [ 64 references ] ⇄ [ 64 ] ⇄ …
//! ```
//!
//! Invariants:
//! - A pending timer has one node and one reference, which lead to each other. The reference is in a chunk of a slot,
//!   in the slot itself, or in the ready queue. Other links to a node (the witness of a slot's bound, the front, a
//!   further entry of the ready queue) may be outdated, and are validated before use.
//! - A slot is marked as occupied while it holds a timer: a single one, or a ring with at least one reference.
//! - The bound of a slot is never above the due tick of a timer in it.
//! - There is nothing to do before the tick `stop`, and nothing in a slot is due before `earliest`. The first timer of
//!   a slot lowers both. A further timer that lowers the slot's bound lowers `earliest`, and also `stop` on a hashed
//!   wheel. A timer that does not lower the bound reads neither.
//! - All memory is reserved before anything moves.
//!
//! | file | what it does |
//! |---|---|
//! | here | starts, cancels and moves timers |
//! | [`filing`] | puts a reference into its slot, and removes it |
//! | [`batch`] | cascades a chunk of a slot, or makes it ready |
//! | [`scan`] | scans a slot with timers of many turns |
//! | [`sweep`] | merges nearly empty chunks |
//! | [`next_due`] | finds the exact next due tick |
//! | [`check`] | checks the invariants |

mod batch;
mod check;
mod filing;
mod next_due;
mod scan;
mod slot;
mod sweep;

use alloc::vec::Vec;

use crate::chunks::{CHUNK, Chunks};
use crate::geometry::Geometry;
use crate::memory::probe;
use crate::nodes::Nodes;
use crate::position::{NONE, READY};
use crate::ready::Ready;
use crate::tick::Tick;
use crate::{Full, Key, OutOfMemory, RescheduleError};
use batch::Batch;
pub(crate) use check::Slots;
use next_due::Front;
use scan::Scan;
pub(crate) use slot::Content;
use slot::Slot;

pub(crate) struct Timers<T> {
    nodes: Nodes<T>,
    chunks: Chunks,
    slots: Vec<Slot>,
    ready: Ready,
    /// The current tick: every earlier tick is settled, and this one is settled or being settled.
    hand: Tick,
    stop: Tick,
    earliest: Tick,
    scan: Scan,
    front: Front,
    /// The timers that are being moved. Kept here, because most batches are small, and initializing 64 entries each
    /// time is expensive.
    batch: Batch,
}

/// Starting, cancelling and moving.
impl<T> Timers<T> {
    pub(crate) fn new() -> Self {
        Timers {
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

    /// Starts a timer if its slot is empty or has a chunk with room. If not, changes nothing and returns the value; see
    /// [`start_slowly`](Timers::start_slowly).
    ///
    /// It contains no call, so it saves no registers; saving them was an eighth of its instructions.
    #[inline(always)]
    pub(crate) fn start<G: Geometry>(
        &mut self,
        geometry: &mut G,
        due: Tick,
        value: T,
    ) -> Result<Key, T> {
        let Timers { nodes, slots, chunks, front, scan, hand, stop, earliest, .. } = self;
        let Some(vacancy) = nodes.vacancy() else { return Err(value) };
        let index = vacancy.index();
        let Some(number) = geometry.near(due, *hand) else { return Err(value) };
        let Some(slot) = slots.get_mut(number as usize) else { return Err(value) };
        if number == front.slot() {
            return Err(value);
        }
        if let Some(position) = chunks.push(slot.head(), index) {
            if slot.lower(due, index) {
                *earliest = (*earliest).min(due);
                if G::SCANS {
                    *stop = (*stop).min(due.max(*hand));
                }
            }
            return Ok(vacancy.fill(due, position, value));
        }
        if !slot.is_empty() || G::SCANS && scan.is_of(number) {
            return Err(value);
        }
        let Some(begin) = geometry.mark_near(slot.level(), number, due.max(*hand)) else {
            return Err(value);
        };
        let position = filing::first(slot, (index, due), number, begin, (stop, earliest));
        Ok(vacancy.fill(due, position, value))
    }

    /// Starts a timer that needs a new level, segment or chunk, or must be recorded in the front.
    #[cold]
    #[inline(never)]
    pub(crate) fn start_slowly(
        &mut self,
        geometry: &mut impl Geometry,
        due: Tick,
        value: T,
    ) -> Result<Key, Full<T>> {
        if self.nodes.prepare().is_err() {
            return Err(Full(value));
        }
        let (index, spot) = (self.nodes.next(), geometry.spot(due, self.hand));
        let position = self.file(geometry, index, due, spot).or_else(|| {
            let spot = self.prepare(geometry, due).ok()?;
            self.file(geometry, index, due, spot)
        });
        match (self.nodes.vacancy(), position) {
            (Some(vacancy), Some(position)) => Ok(vacancy.fill(due, position, value)),
            _ => Err(Full(value)),
        }
    }

    #[inline(always)]
    pub(crate) fn cancel(&mut self, geometry: &mut impl Geometry, key: Key) -> Option<T> {
        let (value, position) = self.nodes.vacate(key)?;
        self.unfile(geometry, position);
        Some(value)
    }

    #[inline]
    pub(crate) fn reschedule(
        &mut self,
        geometry: &mut impl Geometry,
        key: Key,
        due: Tick,
    ) -> Result<(), RescheduleError> {
        let index = self.nodes.find(key).ok_or(RescheduleError::NotPending)?;
        let node = self.nodes.node_mut(index);
        if due >= node.due() && node.position() != READY {
            // The reference stays. The hand meets it no later than at the old due tick, and reinserts the timer then.
            node.set_due(due);
            return Ok(());
        }
        let moved = self.move_to(geometry, index, due);
        moved.map_err(|OutOfMemory| RescheduleError::OutOfMemory)
    }

    /// Moves a timer to an earlier tick, or out of the ready queue.
    fn move_to(
        &mut self,
        geometry: &mut impl Geometry,
        index: u32,
        due: Tick,
    ) -> Result<(), OutOfMemory> {
        let number = self.slot_of(index);
        if let Some(slot) = self.slots.get(number as usize) {
            if geometry.covers(slot.level(), number, due, self.hand) {
                self.nodes.node_mut(index).set_due(due);
                self.lower(geometry, number, due, index);
                return Ok(());
            }
        }
        self.prepare(geometry, due)?;
        self.unfile(geometry, self.nodes.node(index).position());
        self.nodes.node_mut(index).set_due(due);
        self.refile(geometry, index, due);
        Ok(())
    }

    pub(crate) fn clear(&mut self, geometry: &mut impl Geometry) {
        // Timers are cancelled one by one, so that the wheel stays consistent if the drop of a value panics.
        for index in 0..self.nodes.len() {
            if self.nodes.node(index).is_pending() {
                drop(self.cancel(geometry, self.nodes.key(index)));
            }
        }
    }
}

/// The hand and the ready timers.
impl<T> Timers<T> {
    #[inline]
    pub(crate) fn hand(&self) -> Tick {
        self.hand
    }

    /// Moves the hand forward to a tick.
    #[inline]
    pub(crate) fn move_hand(&mut self, tick: Tick) {
        self.hand = self.hand.max(tick);
    }

    /// The tick before which there is nothing to do.
    #[inline]
    pub(crate) fn stop(&self) -> Tick {
        self.stop
    }

    #[inline]
    pub(crate) fn set_stop(&mut self, stop: Tick) {
        self.stop = stop;
    }

    /// The number of ready timers.
    #[inline]
    pub(crate) fn ready(&self) -> usize {
        self.ready.len()
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Key, Tick, T)> {
        self.ready.pop(&mut self.nodes)
    }

    pub(crate) fn peek(&mut self) -> Option<(Key, &T)> {
        let index = self.ready.peek(&self.nodes)?;
        Some((self.nodes.key(index), self.nodes.value(index)?))
    }

    pub(crate) fn iter_ready(&self) -> impl Iterator<Item = &T> {
        self.ready.iter(&self.nodes).filter_map(|index| self.nodes.value(index))
    }
}

/// Queries, and memory.
impl<T> Timers<T> {
    pub(crate) fn nodes(&self) -> &Nodes<T> {
        &self.nodes
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.nodes.value_mut(self.nodes.find(key)?)
    }

    /// The number of slots that are made.
    pub(crate) fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// The level of a slot.
    #[inline]
    pub(crate) fn level(&self, number: u32) -> u8 {
        self.slots[number as usize].level()
    }

    /// A lower bound of the due ticks in a slot, except for the timers that a scan has not reached yet.
    #[inline]
    pub(crate) fn bound(&self, number: u32) -> Tick {
        self.slots[number as usize].bound()
    }

    #[inline]
    pub(crate) fn content(&self, number: u32) -> Content {
        self.slots[number as usize].content()
    }

    pub(crate) fn reserve(&mut self, additional: usize) -> Result<(), OutOfMemory> {
        let bytes = self.nodes.lacking(additional)?;
        probe(bytes.saturating_add(self.chunks.lacking(additional)))?;
        self.nodes.reserve(additional)?;
        self.chunks.reserve_references(additional)
    }

    /// Releases memory that the pending timers do not need.
    ///
    /// # Errors
    /// There is too little memory to copy the references; nothing has changed.
    pub(crate) fn shrink(&mut self, geometry: &mut impl Geometry) -> Result<(), OutOfMemory> {
        let rings = (0..self.slots()).flat_map(|number| self.rings(number));
        let needed = rings.map(|head| self.chunks.count(head).div_ceil(CHUNK)).sum();
        let mut pool = Chunks::with_chunks(needed)?;
        for number in 0..self.slots() {
            // An outdated witness may refer to a node that is about to be removed.
            if self.witnessed(number).is_none() {
                let slot = &mut self.slots[number as usize];
                slot.forget_witness();
            }
            let rings = self.rings(number).map(|old| {
                let mut ring = NONE;
                let (chunks, nodes) = (&self.chunks, &mut self.nodes);
                for (_, node) in chunks.ring(old).flat_map(|chunk| chunks.of_chunk(chunk)) {
                    let position = pool.add(&mut ring, number, node);
                    let position = position.expect("the pool has just the size");
                    nodes.node_mut(node).set_position(position);
                }
                ring
            });
            if let Content::Ring(_) = self.content(number) {
                *self.slots[number as usize].head_mut() = rings[0];
            }
            self.scan.renew(number, rings[1]);
        }
        self.chunks = pool;
        self.front = Front::new();
        self.ready.shrink(&mut self.nodes);
        if self.nodes.pending() == 0 {
            geometry.unmake();
            (self.slots, self.scan) = (Vec::new(), Scan::NONE);
            (self.stop, self.earliest) = (Tick::MAX, Tick::MAX);
        }
        // From here on nothing refers to a vacant node.
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
