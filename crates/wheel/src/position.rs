//! Positions of references, by which nodes, chunks and slots refer to each other.

/// The most slots that a level may have.
pub const MAX_SLOTS: u32 = 1 << 20;

/// No node, chunk or slot.
pub(crate) const NONE: u32 = u32::MAX;

/// Where the reference to a node is, or one of the values below.
pub(crate) type Position = u32;
/// The position of a new node.
pub(crate) const NOWHERE: Position = NONE;
/// The position of a timer that is ready to be popped: it is in no slot.
pub(crate) const READY: Position = NONE - 1;
/// `LONE + n`: the timer is the only one of slot `n`, which stores its index itself. No chunk refers to it.
pub(crate) const LONE: Position = READY - (1 << 24);
/// Each level multiplies the span by its slots, and `u64` limits the span: at most four levels of the largest size.
const _: () = assert!(4 * MAX_SLOTS + 64 < READY - LONE);
