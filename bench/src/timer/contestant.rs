//! What takes part: the one face that every timer service shows to the harness.
//!
//! A contestant is shared by threads, and each thread that uses it takes a [`Seat`]. Time is real. The payload is a
//! `u64`, all that a callback captures; callbacks call [`sink::fired`](super::sink::fired) with it. An adapter
//! translates and adds nothing. Its threads start in `new`, because a thread inherits the core of the one that
//! starts it, and those that measure are pinned.

use std::time::{Duration, Instant};

use crate::league::Kind;

/// A timer service under test.
pub trait Contestant: Send + Sync + Sized + 'static {
    type Seat<'a>: Seat<Handle = Self::Handle>;
    /// Names a pending timer, on any thread.
    type Handle: Send + 'static;

    const NAME: &'static str;
    const KIND: Kind;
    /// The settings it runs with, for the reader of the table.
    const SETTINGS: &'static str;
    /// How long before the first deadline a million timers are armed.
    const LEAD: Duration = Duration::from_millis(1000);

    /// With its threads started and no timer.
    fn new() -> Self;

    /// The place of one thread, taken by that thread. No two that live have the same number.
    fn sit(&self, number: usize) -> Self::Seat<'_>;

    /// Why it has no part in a row.
    fn absent(_row: &str) -> Option<&'static str> {
        None
    }
}

/// A contestant as one thread uses it.
pub trait Seat {
    type Handle;

    /// A timer that can be cancelled.
    fn schedule(&mut self, after: Duration, payload: u64) -> Self::Handle;

    /// Whether it was pending, where the contestant can tell.
    fn cancel(&mut self, handle: Self::Handle) -> bool;

    /// Moves a pending timer.
    fn reschedule(&mut self, _handle: &mut Self::Handle, _after: Duration) {
        unreachable!("asked only of those that take part in the row")
    }

    /// A timer that nobody will cancel, to be fired.
    fn fire_at(&mut self, at: Instant, payload: u64);

    /// Waits until all that was asked for here has taken effect, where that happens on another thread.
    fn settle(&mut self) {}
}
