//! What takes part: the one face that every timer for async code shows to the harness.
//!
//! All of them are there for the whole process, so a contestant is a type. An adapter translates and adds nothing. A
//! runtime of tokio is there for all of them: it is the executor of one row, and tokio's own timers need it.

use std::pin::Pin;
use std::time::{Duration, Instant};

use crate::league::Kind;

pub trait Contestant: Send + Sync + 'static {
    type Sleep: Future + Send + 'static;

    const NAME: &'static str;
    const KIND: Kind;
    /// The settings it runs with, for the reader of the table.
    const SETTINGS: &'static str;

    fn sleep(after: Duration) -> Self::Sleep;

    /// A sleep to be fired.
    fn sleep_until(at: Instant) -> impl Future + Send + 'static;

    /// The future, with a limit.
    fn timeout<F: Future>(after: Duration, future: F) -> impl Future;

    /// Moves a sleep that its task waits for.
    fn reset(_sleep: Pin<&mut Self::Sleep>, _after: Duration) {
        unreachable!("asked only of those that take part in the row")
    }

    /// Why it has no part in a row; an empty reason is not shown.
    fn absent(_row: &str) -> Option<&'static str> {
        None
    }
}
