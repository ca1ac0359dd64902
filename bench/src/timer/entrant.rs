//! A contestant as the harness holds it, its type forgotten: one blanket implementation over [`Contestant`].

use std::marker::PhantomData;

use super::contestant::{Contestant, Kind};
use super::figure::{Figure, Row};
use super::plan::Plan;
use super::rows::{churn, elsewhere, fire, idle};

/// What one run of one row gave.
pub type Readings = Vec<(Figure, f64)>;

/// A contestant, as the report names it.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Contender {
    pub name: &'static str,
    pub kind: Kind,
    pub settings: &'static str,
}

pub trait Entrant {
    fn contender(&self) -> Contender;
    /// Why it has no part in a row.
    fn absent(&self, row: Row) -> Option<&'static str>;
    /// Runs the row once, on a fresh contestant.
    ///
    /// # Errors
    ///
    /// Why there is no figure.
    fn run(&self, row: Row, plan: &Plan) -> Result<Readings, &'static str>;
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

    fn run(&self, row: Row, plan: &Plan) -> Result<Readings, &'static str> {
        match row {
            Row::Churn => Ok(churn::one_thread::<C>(plan)),
            Row::Threads => Ok(churn::two_threads::<C>(plan)),
            Row::Elsewhere => Ok(elsewhere::both::<C>(plan)),
            Row::Reschedule => Ok(churn::reschedule::<C>(plan)),
            Row::Asleep => Ok(churn::short::<C>(plan)),
            Row::Fire => fire::cpu::<C>(plan),
            Row::Idle => idle::rest::<C>(plan),
            Row::Later => idle::later::<C>(plan),
            Row::Lateness => fire::lateness::<C>(plan),
        }
    }
}
