//! A contestant as the harness holds it, its type forgotten: one blanket implementation over [`Contestant`].

use std::marker::PhantomData;

use crate::contestant::{Contestant, Kind};
use crate::load::Load;
use crate::measure::{Measure, Op};
use crate::ops;
use crate::trace::{self, Faults};

/// What one run of one operation gave.
pub type Readings = Vec<(Measure, f64)>;

pub trait Entrant {
    fn name(&self) -> &'static str;
    fn kind(&self) -> Kind;
    fn settings(&self) -> &'static str;
    /// The largest population it is asked to carry, and why not more.
    fn most(&self) -> (usize, &'static str);
    /// Replays the trace beside the oracle.
    fn replay(&self) -> Faults;
    /// Runs the operation once, on fresh timers. What it has no verb for is missing from the answer.
    fn run(&self, op: Op, load: &Load) -> Readings;
}

pub struct Of<C>(PhantomData<C>);

impl<C: Contestant + 'static> Of<C> {
    pub fn boxed() -> Box<dyn Entrant> {
        Box::new(Of::<C>(PhantomData))
    }
}

impl<C: Contestant> Entrant for Of<C> {
    fn name(&self) -> &'static str {
        C::NAME
    }

    fn kind(&self) -> Kind {
        C::KIND
    }

    fn settings(&self) -> &'static str {
        C::SETTINGS
    }

    fn most(&self) -> (usize, &'static str) {
        C::MOST
    }

    fn replay(&self) -> Faults {
        trace::replay::<C>()
    }

    fn run(&self, op: Op, load: &Load) -> Readings {
        match op {
            Op::Start => ops::churn::start::<C>(load),
            Op::Random => ops::churn::random::<C>(load),
            Op::InOrder => ops::churn::in_order::<C>(load),
            Op::Reschedule => ops::churn::reschedule::<C>(load),
            Op::Cancel => ops::churn::cancel::<C>(load),
            Op::Life => ops::life::whole::<C>(load),
            Op::Poll => ops::life::poll::<C>(load),
            Op::Longest => ops::life::longest::<C>(load),
            Op::Next => ops::crowd::next::<C>(load),
            Op::Pause => ops::crowd::pause::<C>(load),
            Op::Memory => ops::memory::bytes::<C>(load),
            Op::Family => Vec::new(),
        }
    }
}
