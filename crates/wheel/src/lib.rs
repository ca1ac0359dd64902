//! Timing wheels: a million timers for the price of a few cache lines each.
//!
//! A wheel holds timers and says which are due. It reads no clock, starts no thread and calls nobody: the
//! current time is an argument, and what is due is popped. Event loops, protocol stacks, caches and simulators
//! drive it as they like. `no_std`, no dependency, no unsafe code.
//!
//! ```
//! use tourbillon_wheel::{HierarchicalWheel, Progress, Time};
//!
//! let mut wheel = HierarchicalWheel::new(Time::ZERO);
//! let key = wheel.insert(Time::from(250), "retry").unwrap();
//! wheel.insert(Time::from(100), "ping").unwrap();
//!
//! // Sleep until then, whatever sleeping is for you.
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
//! - **Once.** A timer is popped, cancelled or cleared: one of them, one time.
//! - **Keys never lie.** A [`Key`] whose timer is gone answers "no", for ever, and so does a key of another
//!   wheel.
//! - **O(1)** [`insert`](Wheel::insert), [`cancel`](Wheel::cancel) and [`reschedule`](Wheel::reschedule), whatever
//!   the population and the delay. Moving a timer to later writes to its own node alone.
//! - **Time that passes costs nothing**: an [`advance`](Wheel::advance) pays for what is due and for the slots
//!   that are occupied, be it over a tick or over a century.
//! - **The next due time is exact** when asked for ([`next_due`](Wheel::next_due)), and has a bound that costs
//!   nothing ([`next_due_bound`](Wheel::next_due_bound)).
//! - **Bounded**: an advance takes a budget and goes on where it stopped. What was cancelled makes room for the next
//!   timers; the memory of the peak is kept until [`shrink`](Wheel::shrink). Without memory nothing is lost.
//! - **From zero to the end of `u64`**: nothing wraps, nothing panics, a clock that goes back is harmless.
//!
//! # The hashed wheel
//! One ring of slots, and a hand that passes one slot a tick. A timer goes to slot `due mod slots`; timers of
//! many turns share a slot, and the *rounds* tell them apart. On a ring of 8, with the hand on 2:
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
//! When the hand comes to slot 6, the timer of this round fires and the others stay. That is simple and quick
//! as long as a turn is longer than most delays. With many rounds in a slot, each of them is looked at in
//! every turn in which one of the slot is due.
//!
//! # The hierarchical wheel
//! Rings of growing span, like the hands of a clock. With 20 slots a level, a slot of the second level covers
//! a whole turn of the first: 20 ticks; a slot of the third covers 400.
//!
//! ```text
//!   L3   ├────────400────────┼────────400────────┤ …      20 slots of 400 ticks
//!   L2   ├──20──┼──20──┼──20──┤ …                          20 slots of  20 ticks
//!   L1   ├1┼1┼1┼1┼1┤ …                                     20 slots of   1 tick
//! ```
//!
//! A timer is filed by the ticks it has left, `r`: on the lowest level that reaches so far (`r < 20`, `r < 400`,
//! …), in slot `due / ticks_a_slot mod slots`. Its place is written `L2[17]`. So a short timer goes straight to
//! the first level, and never moves again. A far one waits above; when the hand comes to the beginning of its
//! slot, it is *handed down*, to where the ticks left then put it. A timer 450 ticks away, filed at 0:
//!
//! | the hand | what happens | its place |
//! |---|---|---|
//! | 0 | filed: 450 are left, more than 400 | `L3[1]`, which covers 400 … 799 |
//! | 400 | that slot begins: 50 are left | `L2[2]`, which covers 440 … 459 |
//! | 440 | that slot begins: 10 are left | `L1[10]` |
//! | 450 | fired | |
//!
//! A slot that the hand has passed is used again at once for the turn after: with the hand on 2, a timer due at
//! 21 goes to `L1[1]`, and `L2[0]` takes what is due at 400 or 401 while the hand is still among 2 … 19. No
//! slot ever holds two turns, because **the hand moves only with `advance`**, stops wherever an occupied slot
//! begins, and every new timer is filed from where the hand is. A hand that lags behind the clock, because
//! nothing was due, does no harm: timers are filed further away than they need to be, and handed down as usual.
//!
//! Levels are made when a timer needs them, until all of `u64` is covered.
//!
//! # Three ways to drive it
//! The same timers fire at the same ticks, however the wheel is driven. What differs is how often the driver
//! wakes up for nothing. One timer, 450 ticks away, on wheels of 20:
//!
//! | | the driver wakes | of these for nothing |
//! |---|---|---|
//! | tick by tick | at every tick: 450 times | 449 |
//! | slot by slot, at [`next_slot`](Wheel::next_slot) | at 400, 440 and 450 | 2 |
//! | by due time, at [`next_due`](Wheel::next_due) | at 450 | 0 |
//!
//! # Where other explanations differ
//! Each of these is a scenario in the repository, under `scenarios/differs`.
//! - **Due 401 with the hand on 2, wheels of 20.** With aligned clocks, as in Kafka, the second level covers
//!   0 … 399 until the hand has made the turn, and 401 goes to the third. Here 399 ticks are left, which the
//!   second level holds: `L2[0]`, a slot that the hand has passed.
//! - **A delay of 21 with the hand on 1.** A well-known article puts it in slot 0 of the first wheel. 21 ticks do
//!   not fit a wheel of 20: it is due at 22, and that is `L2[1]`.
//! - **A delay of exactly one turn** does not fit the first level, on which it would be the slot under the hand,
//!   met now and not in a turn: 20 at 0 is `L2[1]`, and fires straight from there.
//! - **Rounding.** With a tick of 10, a deadline of 15 that rounds down fires at 10: early. Here it rounds up.
//!
//! # How it is built
//! Past the cache, chasing pointers is the cost of a wheel. So a slot is not a list of timers but a list of
//! small arrays of references, which are streamed; the timers are nodes that never move, and a batch of them is
//! read at once, so that the memory answers for all of them together. A node knows where its reference is, and
//! cancelling clears a bit there: it touches no other timer. Gaps are filled by the next timers of the slot, and
//! before there are more arrays, those that are almost empty give their last references to others. `DESIGN.md` in the
//! repository tells the rest, with the numbers that chose it.
//!
//! It needs `alloc`, and a target with atomic compare-and-swap for the numbers of the wheels.

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

/// The example of the README, run with the others.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
