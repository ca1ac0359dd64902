//! The interface through which the harness uses every timer service.
//!
//! A contestant is shared by threads, and each thread that uses it takes a [`Seat`]. Time is real. A callback captures
//! only its payload, a `u64`, and calls [`sink::fired`](super::sink::fired) with it. An adapter translates calls and
//! adds nothing. Its threads start in `new`, before the measuring threads are pinned, because a thread inherits the
//! core of its creator.

use std::time::{Duration, Instant};

use crate::league::Kind;

/// A timer service under test.
pub trait Contestant: Send + Sync + Sized + 'static {
    type Seat<'a>: Seat<Handle = Self::Handle>;
    /// Identifies a pending timer, on any thread.
    type Handle: Send + 'static;

    const NAME: &'static str;
    const KIND: Kind;
    /// Its settings, for readers of the table.
    const SETTINGS: &'static str;
    /// How long before the first deadline the arming of a million timers begins.
    const LEAD: Duration = Duration::from_millis(1000);

    /// Creates a contestant without timers, and starts its threads.
    fn new() -> Self;

    /// Creates the seat of the current thread. No two live seats have the same number.
    fn sit(&self, number: usize) -> Self::Seat<'_>;

    /// Why it does not take part in a row, if it does not.
    fn absent(_row: &str) -> Option<&'static str> {
        None
    }
}

/// One thread's access to a contestant.
pub trait Seat {
    type Handle;

    /// Starts a timer that can be cancelled.
    fn schedule(&mut self, after: Duration, payload: u64) -> Self::Handle;

    /// Cancels a timer. Returns whether it was pending, if the contestant can tell.
    fn cancel(&mut self, handle: Self::Handle) -> bool;

    /// Moves a pending timer.
    fn reschedule(&mut self, _handle: &mut Self::Handle, _after: Duration) {
        unreachable!("asked only of those that take part in the row")
    }

    /// Starts a timer that is never cancelled.
    fn fire_at(&mut self, at: Instant, payload: u64);

    /// Waits until all requests of this seat have taken effect, if another thread carries them out.
    fn settle(&mut self) {}
}
