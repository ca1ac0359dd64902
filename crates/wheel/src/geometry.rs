//! What filing a timer needs to know of a kind of wheel: which slots there are, and where on them a tick falls.

use crate::OutOfMemory;
use crate::tick::Tick;

/// The slots of a wheel, by the numbers that they have in one table, and which of them are occupied.
pub(crate) trait Geometry {
    /// Whether a slot holds the timers of several turns. It is scanned then.
    const SCANS: bool;

    /// The number of the slot in which a timer that is due then is filed, the one under the hand if it is due
    /// already; a number that the table does not have if the level is still to be made.
    fn spot(&self, due: Tick, hand: Tick) -> u32;

    /// The same, without a call in it. If it is not found at once: `None`, or a number that the table does not have.
    fn near(&self, due: Tick, hand: Tick) -> Option<u32>;

    /// Whether the level is made on which a timer is filed that is due then. It may say no where it is.
    fn is_made(&self, due: Tick, hand: Tick) -> bool;

    /// The level on which a timer is filed that is due then, and how many slots it has.
    fn level_of(&self, due: Tick, hand: Tick) -> (u8, u32);

    /// Makes a level, whose slots have the numbers from `base` on.
    fn make(&mut self, level: u8, base: u32) -> Result<(), OutOfMemory>;

    /// Forgets all levels, as if none had been made.
    fn unmake(&mut self);

    /// Remembers that a slot is occupied from now on, by a timer that is due then, not before the hand. Returns when
    /// the hand meets it.
    fn mark(&mut self, level: u8, number: u32, due: Tick) -> Tick;

    /// Remembers that a slot is no longer occupied.
    fn unmark(&mut self, level: u8, number: u32);

    /// Whether a slot is remembered as occupied.
    fn is_marked(&self, level: u8, number: u32) -> bool;

    /// Whether a timer that is filed there may stay when its deadline is moved earlier, to `due`.
    fn covers(&self, level: u8, number: u32, due: Tick, hand: Tick) -> bool;

    /// How many levels there are, made or not.
    fn levels(&self) -> usize;

    /// A tick that is not after anything due on a level; `Tick::MAX` if it is empty.
    fn first(&self, level: usize, hand: Tick) -> Tick;

    /// The occupied slots of a level in the order in which the hand meets them, each with a tick that is not
    /// after anything due in it.
    fn met(&self, level: usize, hand: Tick) -> impl Iterator<Item = (u32, Tick)>;
}
