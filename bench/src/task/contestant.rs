//! The interface through which the harness uses every timer for async code.
//!
//! Every timer exists for the whole process, so a contestant is a type. An adapter translates calls and adds nothing.
//! Every contestant runs inside a tokio runtime, because tokio's own timers need it and one row uses its executor.

use std::pin::Pin;
use std::time::{Duration, Instant};

use crate::league::Kind;

pub trait Contestant: Send + Sync + 'static {
    type Sleep: Future + Send + 'static;

    const NAME: &'static str;
    const KIND: Kind;
    /// Its settings, for readers of the table.
    const SETTINGS: &'static str;

    fn sleep(after: Duration) -> Self::Sleep;

    /// A sleep that will fire.
    fn sleep_until(at: Instant) -> impl Future + Send + 'static;

    /// The future with a time limit.
    fn timeout<F: Future>(after: Duration, future: F) -> impl Future;

    /// Moves a sleep that its task awaits.
    fn reset(_sleep: Pin<&mut Self::Sleep>, _after: Duration) {
        unreachable!("asked only of those that take part in the row")
    }

    /// Why it does not take part in a row, if it does not. An empty reason is not shown.
    fn absent(_row: &str) -> Option<&'static str> {
        None
    }
}
