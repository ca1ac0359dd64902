//! `tourbillon check`, `dump` and `load`: a directory of durable timers that no server has open.
//!
//! | module | owns |
//! |---|---|
//! | `check` | the damage of a store, as text for people |
//! | `dump`, `load` | all timers of a store as lines, and lines into an empty store |
//!
//! `tourbillon_durable::dump` defines the format.

mod check;
mod dump;
mod load;

use std::io::{self, Write};
use std::time::SystemTime;

use tourbillon_durable::store::StoreError;
use tourbillon_durable::values::Moment;

pub use check::check;
pub use dump::dump;
pub use load::load;

/// Why a command on a store ended early.
#[derive(Debug)]
pub enum StoreProblem {
    /// The store or a line is wrong: what, and where.
    Said(String),
    /// The output could not be written.
    Output(io::Error),
}

impl From<StoreError> for StoreProblem {
    fn from(error: StoreError) -> Self {
        StoreProblem::Said(error.to_string())
    }
}

impl From<io::Error> for StoreProblem {
    fn from(error: io::Error) -> Self {
        StoreProblem::Output(error)
    }
}

/// Prints the number of timers done so far. Failures are ignored: progress is no reason to stop.
fn tell(err: &mut impl Write, timers: u64) {
    let _ = writeln!(err, "{timers} timers");
}

/// The wall clock.
fn now() -> Moment {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Moment::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
