//! What every face of the crate promises, in tables: a new face is covered by adding a row.
//!
//! | property | tests | rows |
//! |---|---|---|
//! | the task that polled last is woken, and a waker that panics affects no other | `wakers.rs` | `awaited.rs` |
//! | a future may be polled by its own wake, and by a callback when it is due | `polled_inside.rs` | `awaited.rs` |
//! | the panic hook hears of each panic once, with what was thrown | `reports.rs` | there |
//! | a task that waits for a queue is woken for what was inserted or moved meanwhile | `moved.rs` | there |
//! | the drop of a value may panic, whatever holds it and however it ends | `drops.rs` | `held.rs`, `held_by_key.rs` |
//! | the same for values without a closure | `values.rs`, `task_values.rs` | there |
//! | the same for hooks, and for values that are not needed | `hooks.rs` | there |
//! | a user-defined clock may query what uses it | `looking_clock.rs` | there |
//!
//! `fragile.rs` has the values whose drop panics.

#[allow(dead_code, reason = "the tests of tasks use all of it")]
#[path = "../tasks/by_hand.rs"]
mod by_hand;
#[path = "../common/mod.rs"]
mod common;

mod awaited;
mod drops;
mod fragile;
mod held;
mod held_by_key;
mod hooks;
mod looking_clock;
mod moved;
mod polled_inside;
mod reports;
mod task_values;
mod values;
mod wakers;
