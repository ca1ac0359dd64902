//! What inserting a timer needs from a kind of wheel: its slots, and the slot for a due tick.

use crate::OutOfMemory;
use crate::tick::Tick;

/// The slots of a wheel, numbered in one table, and which of them are occupied.
pub(crate) trait Geometry {
    /// Whether a slot holds timers of several turns, and must be scanned.
    const SCANS: bool;

    /// The slot for a timer due at `due`; the slot under the hand if the timer is already due. Returns a number beyond
    /// the table if the level is not made yet.
    fn spot(&self, due: Tick, hand: Tick) -> u32;

    /// The fast path of `spot`, with shifts only. If it does not apply, returns `None` or a number beyond the
    /// table.
    fn near(&self, due: Tick, hand: Tick) -> Option<u32>;

    /// True only if the level for a timer due at `due` is made. May return false for a level that is made.
    fn is_made(&self, due: Tick, hand: Tick) -> bool;

    /// The level for a timer due at `due`, and its number of slots.
    fn level_of(&self, due: Tick, hand: Tick) -> (u8, u32);

    /// Makes a level whose slots are numbered from `base`.
    fn make(&mut self, level: u8, base: u32) -> Result<(), OutOfMemory>;

    /// Removes all levels.
    fn unmake(&mut self);

    /// Marks a slot as occupied by a timer due at `due`, which is not before the hand. Returns the tick at which the
    /// hand meets the slot.
    fn mark(&mut self, level: u8, number: u32, due: Tick) -> Tick;

    /// The fast path of `mark`, without a function call. If it does not apply, changes nothing and returns `None`.
    fn mark_near(&mut self, level: u8, number: u32, due: Tick) -> Option<Tick>;

    /// Marks a slot as empty.
    fn unmark(&mut self, level: u8, number: u32);

    /// Whether a slot is marked as occupied.
    fn is_marked(&self, level: u8, number: u32) -> bool;

    /// Whether a timer may stay in this slot when its deadline is moved earlier, to `due`.
    fn covers(&self, level: u8, number: u32, due: Tick, hand: Tick) -> bool;

    /// How many levels there are, made or not.
    fn levels(&self) -> usize;

    /// A lower bound of the due ticks on a level; `Tick::MAX` if it is empty.
    fn first(&self, level: usize, hand: Tick) -> Tick;

    /// The occupied slots of a level in the order in which the hand meets them, each with a lower bound of its due
    /// ticks.
    fn met(&self, level: usize, hand: Tick) -> impl Iterator<Item = (u32, Tick)>;
}
