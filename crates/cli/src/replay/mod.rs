//! `tourbillon replay`: scenarios on the real wheels, under virtual time.
//!
//! [`run`] runs one scenario and passes its events to a [`Sink`]; [`files`] is the command. A run is deterministic.
//!
//! ```
//! use tourbillon_cli::replay::{JsonLines, Outcome, run};
//! use tourbillon_cli::scenario::Scenario;
//!
//! let scenario = Scenario::parse(
//!     r#"{"name": "one timer", "wheel": {"kind": "hierarchical", "slots": [20]},
//!         "steps": [{"schedule": "A", "delay": 2}, {"advance": 5}]}"#,
//! )?;
//! let mut lines = JsonLines(Vec::new());
//! assert_eq!(run(&scenario, &mut lines)?, Outcome::Passed);
//! assert_eq!(
//!     String::from_utf8(lines.0)?.lines().collect::<Vec<_>>(),
//!     [
//!         r#"{"at":0,"event":"scheduled","id":"A","due":2,"place":"L1[2]"}"#,
//!         r#"{"at":2,"event":"fired","id":"A","due":2}"#,
//!         r#"{"at":5,"event":"done","pending":0,"fired":1,"cancelled":0,"wakes":1,"cascades":0}"#,
//!     ]
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
mod drive;
mod event;
mod files;
mod live;
mod pass;
mod run;
mod turns;

use std::{fmt, io};

use tourbillon_wheel::{GeometryError, HashedWheel, HierarchicalWheel};

pub use event::{Event, JsonLines, Reason, Sink, Totals};
pub use files::{Verdict, files};
pub use live::{Live, LiveError, MOST_LINES, Seen};

use crate::scenario::{Id, Kind, Scenario};
use run::Run;

/// The maximum number of timers that one run may fire: a repeating timer could continue forever.
pub const MOST_FIRED: u64 = 10_000_000;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every expectation held.
    Passed,
    /// An expectation failed; the sink has received which.
    Failed,
}

/// Runs a scenario to its end, to its first expectation that fails, or to an error.
///
/// # Errors
/// If the scenario does something that is not allowed, or the sink refuses an event. The sink has received the events
/// before the error.
pub fn run(scenario: &Scenario, sink: &mut impl Sink) -> Result<Outcome, RunError> {
    let steps = &scenario.steps;
    match scenario.wheel.kind {
        Kind::Hierarchical => Run::new(scenario, hierarchical(scenario)?, sink).run(steps),
        Kind::Hashed => Run::new(scenario, hashed(scenario)?, sink).run(steps),
    }
}

fn hierarchical(scenario: &Scenario) -> Result<HierarchicalWheel<Id>, RunError> {
    let spec = &scenario.wheel;
    let wheel = HierarchicalWheel::with_levels(spec.start.into(), spec.tick.get(), &spec.slots);
    wheel.map_err(refused)
}

fn hashed(scenario: &Scenario) -> Result<HashedWheel<Id>, RunError> {
    let spec = &scenario.wheel;
    let wheel = HashedWheel::with_slots(spec.start.into(), spec.tick.get(), spec.slots[0]);
    wheel.map_err(refused)
}

fn refused(error: GeometryError) -> RunError {
    RunError::at("wheel".into(), error.to_string())
}

/// Why a run ended early.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The sink refused an event.
    Sink(io::Error),
    /// A step failed.
    Step {
        /// The place of the step, such as `steps[0].then[1]`.
        place: String,
        /// What is wrong, and what would be right.
        message: String,
    },
}

impl RunError {
    fn at(place: String, message: String) -> Self {
        RunError::Step { place, message }
    }

    /// An error whose place the caller adds with [`RunError::or_at`].
    fn at_once(message: String) -> Self {
        RunError::at(String::new(), message)
    }

    /// Adds the place, unless it is already known.
    fn or_at(self, here: impl FnOnce() -> String) -> Self {
        match self {
            RunError::Step { place, message } if place.is_empty() => RunError::at(here(), message),
            other => other,
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Sink(error) => error.fmt(f),
            RunError::Step { place, message } => write!(f, "{place}: {message}"),
        }
    }
}

impl std::error::Error for RunError {}
