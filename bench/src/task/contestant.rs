//! What takes part: the one face that every timer for async code shows to the harness.
//!
//! All of them are there for the whole process, so a contestant is a type. An adapter translates and adds nothing. A
//! runtime of tokio is there for all of them: it is the executor of one row, and tokio's own timers need it.

use std::marker::PhantomData;
use std::pin::Pin;
use std::time::{Duration, Instant};

use super::figure::{Figure, Row};
use super::rows;

/// What one run of one row gave.
pub type Readings = Vec<(Figure, f64)>;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Ours,
    /// What ours are compared with.
    Tokio,
    Peer,
}

/// A contestant, as the report names it.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Contender {
    pub name: &'static str,
    pub kind: Kind,
    pub settings: &'static str,
}

/// A contestant as the harness holds it, its type forgotten.
pub trait Entrant {
    fn contender(&self) -> Contender;
    fn absent(&self, row: Row) -> Option<&'static str>;
    /// Runs the row once.
    ///
    /// # Errors
    ///
    /// Why there is no figure.
    fn run(&self, row: Row, quick: bool) -> Result<Readings, &'static str>;
}

pub struct Of<C>(PhantomData<C>);

impl<C: Contestant> Of<C> {
    pub fn boxed() -> Box<dyn Entrant> {
        Box::new(Of::<C>(PhantomData))
    }
}

impl<C: Contestant> Entrant for Of<C> {
    fn contender(&self) -> Contender {
        Contender { name: C::NAME, kind: C::KIND, settings: C::SETTINGS }
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
