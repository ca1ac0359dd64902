//! What takes part: the one face that every timer for async code shows to the harness.
//!
//! All of them are there for the whole process, so a contestant is a type. An adapter translates and adds nothing. A
//! runtime of tokio is there for all of them: it is the executor of one row, and tokio's own timers need it.

use std::pin::Pin;
use std::time::{Duration, Instant};

use super::figure::{Kind, Row};
use super::rows;
use crate::league;

/// What one run of one row gave.
pub type Readings = league::Readings<Row>;

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

    /// Why it has no part in a row.
    fn absent(_row: Row) -> Option<&'static str> {
        None
    }
}

impl<C: Contestant> league::Entrant<Row> for league::Of<C> {
    fn contender(&self) -> league::Contender<Kind> {
        league::Contender { name: C::NAME, kind: C::KIND, settings: C::SETTINGS }
    }

    fn absent(&self, row: Row) -> Option<&'static str> {
        C::absent(row)
    }

    fn run(&self, row: Row, quick: bool) -> Result<Readings, &'static str> {
        let pairs = if quick { 500_000 } else { 1_000_000 };
        match row {
            Row::Churn => Ok(rows::churn::<C>(pairs)),
            Row::Threads => Ok(rows::threads::<C>(pairs)),
            Row::Ready => Ok(rows::at_once::<C>(5 * pairs)),
            Row::Reset => Ok(rows::reset::<C>(pairs)),
            Row::FireOnTokio => rows::fire_on_tokio::<C>(),
            Row::FireOnSmol => rows::fire_on_smol::<C>(),
            Row::Later => rows::later::<C>(),
        }
    }
}
