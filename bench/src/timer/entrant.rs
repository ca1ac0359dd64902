//! How a contestant runs a row: one blanket implementation over [`Contestant`].

use super::contestant::Contestant;
use super::figure::{Kind, Row};
use super::plan::Plan;
use super::rows::{churn, elsewhere, fire, idle};
use crate::league;

/// What one run of one row gave.
pub type Readings = league::Readings<Row>;

impl<C: Contestant> league::Entrant<Row> for league::Of<C> {
    fn contender(&self) -> league::Contender<Kind> {
        league::Contender { name: C::NAME, kind: C::KIND, settings: C::SETTINGS }
    }

    fn absent(&self, row: Row) -> Option<&'static str> {
        C::absent(row)
    }

    fn run(&self, row: Row, quick: bool) -> Result<Readings, &'static str> {
        let plan = &Plan { quick };
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
