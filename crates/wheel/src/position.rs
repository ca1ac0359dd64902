//! Numbers of nodes and positions of references: what nodes, chunks and slots know of each other.

/// The most slots that a level may have.
pub const MAX_SLOTS: u32 = 1 << 20;

/// The index that stands for "none": of a node, a chunk or a slot.
pub(crate) const NONE: u32 = u32::MAX;

/// Where the reference to a node is, or a word for why there is none.
pub(crate) type Position = u32;
/// The position of a new node.
pub(crate) const NOWHERE: Position = NONE;
/// The position of a timer that is ready to be popped: it is in no slot any more.
pub(crate) const READY: Position = NONE - 1;
/// From here on: the timer is the only one of slot 0, 1 and so on. No chunk has a reference to it: the slot names it.
pub(crate) const LONE: Position = READY - (1 << 24);
/// A level multiplies what the levels reach by its slots, and 64 bits are all there is to reach: four of the largest.
const _: () = assert!(4 * MAX_SLOTS + 64 < READY - LONE);
