//! Timing wheels: a million timers at the cost of a few cache lines each.
//!
//! A wheel holds timers and reports which are due. It reads no clock, starts no thread and runs no callback: the
//! current time is an argument, and due timers are popped. Event loops, protocol stacks, caches and simulators
//! drive it. `no_std`, no dependency, no unsafe code.
//!
//! ```
//! use tourbillon_wheel::{HierarchicalWheel, Progress, Time};
//!
//! let mut wheel = HierarchicalWheel::new(Time::ZERO);
//! let key = wheel.insert(Time::from(250), "retry").unwrap();
//! wheel.insert(Time::from(100), "ping").unwrap();
//!
//! // Sleep until this moment, by whatever means you have.
//! let now = wheel.next_due().unwrap();
//! assert_eq!(now, Time::from(100));
//! assert_eq!(wheel.advance(now, 1_000), Progress::Done);
//! while let Some(expired) = wheel.pop() {
//!     assert_eq!(expired.value, "ping");
//! }
//! assert_eq!(wheel.cancel(key), Some("retry"));
//! ```
//!
//! # What it promises
//! - **Never early, less than one tick late.** A deadline rounds up to a tick, a clock reading rounds down.
//! - **Exactly once.** A timer is popped, cancelled or cleared: one of the three, once.
//! - **A stale key is refused forever.** Once its timer is gone, a [`Key`] matches no other timer. A key of another
//!   wheel is refused too.
//! - **O(1)** [`insert`](Wheel::insert), [`cancel`](Wheel::cancel) and [`reschedule`](Wheel::reschedule), whatever
//!   the population and the delay. Moving a timer to later writes only to its own node.
//! - **Passing time costs nothing**: the cost of an [`advance`](Wheel::advance) depends on due timers and occupied
//!   slots, not on whether it covers a tick or a century.
//! - **The next due time is exact** ([`next_due`](Wheel::next_due)), and has a lower bound in O(1)
//!   ([`next_due_bound`](Wheel::next_due_bound)).
//! - **Bounded**: an advance takes a budget, and the next call continues where it stopped. The memory of a cancelled
//!   timer is reused; the wheel keeps its peak memory until [`shrink`](Wheel::shrink). No timer is lost when memory
//!   runs out.
//! - **From zero to the end of `u64`**: nothing wraps, nothing panics, and a clock that is set back does no harm.
//!
//! # The hashed wheel
//! The wheel is one ring of slots, with a hand that passes one slot per tick; a *turn* is one full rotation. A timer is
//! placed in slot `due mod slots`. Timers of many turns share a slot; their *rounds*, the full turns left, distinguish
//! them. On a ring of 8, with the hand on 2:
//!
//! ```text
//!            ┌───┬───┬───┬───┬───┬───┬───┬───┐
//!   slot       0   1   2   3   4   5   6   7
//!            └───┴───┴─▲─┴───┴───┴───┴─┬─┴───┘
//!                     hand             ├ due  6: rounds 0
//!                                      ├ due 14: rounds 1
//!                                      └ due 22: rounds 2
//! ```
//!
//! When the hand reaches slot 6, the timer with 0 rounds fires and the others stay. This is simple and fast while a
//! turn is longer than most delays. If a slot holds many rounds, all its timers are examined in every turn in which one
//! of them is due.
//!
//! # The hierarchical wheel
//! The wheel has several rings, its *levels*, of growing span, like the hands of a clock. With 20 slots per level, a
//! slot of the second level covers a whole turn of the first, 20 ticks; a slot of the third covers 400.
//!
//! ```text
//!   L3   ├────────400────────┼────────400────────┤ …      20 slots of 400 ticks
//!   L2   ├──20──┼──20──┼──20──┤ …                          20 slots of  20 ticks
//!   L1   ├1┼1┼1┼1┼1┤ …                                     20 slots of   1 tick
//! ```
//!
//! A timer with `r` ticks left is placed on the lowest level whose span exceeds `r` (`r < 20`, `r < 400`, …), in slot
//! `due / ticks_a_slot mod slots`. Its place is written `L2[17]`. A short timer goes straight to the first level and
//! never moves again. A distant timer waits on an upper level. When the hand reaches the beginning of its slot, the
//! timer *cascades*: it is placed again according to the ticks that are left. For example, a timer 450 ticks away,
//! placed at tick 0:
//!
//! | the hand | what happens | its place |
//! |---|---|---|
//! | 0 | placed: 450 are left, more than 400 | `L3[1]`, which covers 400 … 799 |
//! | 400 | that slot begins: 50 are left | `L2[2]`, which covers 440 … 459 |
//! | 440 | that slot begins: 10 are left | `L1[10]` |
//! | 450 | fired | |
//!
//! A slot that the hand has passed is reused at once for the next turn: with the hand on 2, a timer due at 21 is placed
//! in `L1[1]`, and a timer due at 400 or 401 in `L2[0]`, whose range 0 … 19 the hand has already entered. No slot ever
//! holds two turns, because **the hand moves only with `advance`**, stops wherever an occupied slot begins, and new
//! timers are placed relative to the hand. The hand may lag behind the clock while nothing is due. New timers are then
//! placed on a higher level than necessary, and cascade as usual.
//!
//! Levels are created when a timer needs them, until all of `u64` is covered.
//!
//! # Three ways to drive it
//! However the wheel is driven, the same timers fire at the same ticks. Only the number of useless wake-ups differs.
//! For one timer, 450 ticks away, on levels of 20 slots:
//!
//! | | the driver wakes up | useless wake-ups |
//! |---|---|---|
//! | tick by tick | at every tick: 450 times | 449 |
//! | slot by slot, at [`next_slot`](Wheel::next_slot) | at 400, 440 and 450 | 2 |
//! | by due time, at [`next_due`](Wheel::next_due) | at 450 | 0 |
//!
//! # Where other explanations differ
//! Each of these is a scenario in the repository, under `scenarios/differs`.
//! - **Due 401 with the hand on 2, levels of 20.** With aligned levels, as in Kafka, the second level covers 0 … 399
//!   until the hand has completed the turn, so 401 goes to the third level. Here the level depends on the ticks left,
//!   399, so the timer goes to the second level: to `L2[0]`, a slot that the hand has passed.
//! - **A delay of 21 with the hand on 1.** A well-known article places the timer in slot 0 of the first level. But 21
//!   ticks do not fit in 20 slots: the timer is due at 22, so its place is `L2[1]`.
//! - **A delay of exactly one turn** does not fit in the first level: its slot there would be the slot under the hand,
//!   which the hand meets now and not a turn later. A delay of 20 at tick 0 goes to `L2[1]`, and fires directly from
//!   there.
//! - **Rounding.** With a tick of 10 and rounding down, a deadline of 15 would fire at 10: early. Here deadlines round
//!   up.
//!
//! # How it is built
//! Once the timers no longer fit in the cache, pointer chasing dominates the cost of a wheel. So a slot is not a linked
//! list but a ring of small arrays of references, which are read sequentially. Timers are nodes that never move, and
//! the nodes of a whole array are read independently, so that their cache misses overlap. A node stores the position of
//! its reference. A cancel clears one bit at that position and touches no other timer. New timers of the slot fill the
//! gaps, and nearly empty arrays are merged before more are allocated. `DESIGN.md` in the repository explains why.
//!
//! The crate needs `alloc`, and a target with atomic compare-and-swap to number the wheels.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(planted)]
extern crate std;

#[macro_use]
mod planted;

mod bitmap;
mod budget;
mod chunks;
mod error;
mod geometry;
mod hashed;
mod hierarchical;
mod key;
mod kind;
mod levels;
mod memory;
mod nodes;
mod outcome;
mod place;
mod position;
mod ready;
mod tick;
mod timers;
mod wheel;

pub use error::{Full, GeometryError, OutOfMemory, RescheduleError};
pub use hashed::Hashed;
pub use hierarchical::Hierarchical;
pub use key::Key;
pub use outcome::{Expired, Moved, Progress};
pub use place::{LevelView, Place, Slot, SlotView};
#[cfg(planted)]
#[doc(hidden)]
pub use planted::Place as PlantedPlace;
pub use position::MAX_SLOTS;
pub use tick::Time;
pub use wheel::{HashedWheel, HierarchicalWheel, Kind, Wheel};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
