//! Positions of references. A node stores one, and it leads to the chunk and the slot.

/// The most slots that a level may have.
pub const MAX_SLOTS: u32 = 1 << 20;

/// No node, chunk or slot.
pub(crate) const NONE: u32 = u32::MAX;

/// The position of the reference to a node, or one of the values below.
pub(crate) type Position = u32;
/// The position of a new node.
pub(crate) const NOWHERE: Position = NONE;
/// The position of a timer that is ready to be popped: it is in no slot.
pub(crate) const READY: Position = NONE - 1;
/// `LONE + n`: the timer is the only one of slot `n`. The slot itself stores the timer's index; no chunk refers to it.
pub(crate) const LONE: Position = READY - (1 << 24);
/// There are at most four levels of the largest size, because each level multiplies the span by its number of slots,
/// and `u64` limits the span.
const _: () = assert!(4 * MAX_SLOTS + 64 < READY - LONE);
