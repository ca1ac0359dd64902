//! `bench task`: sleeps and timeouts of tasks beside other timers for async code, in real time.
//!
//! A contestant is an adapter in `contestants`, a workload a function in `rows`, with what is asked of it in `figure`;
//! how they take turns is in `league`.
//!
//! tokio's alternative timer is not among them: it takes `--cfg tokio_unstable` for the whole build.

mod contestant;
mod contestants;
mod figure;
mod memory;
#[cfg(feature = "peers")]
mod peers;
mod rows;

use crate::cli::{Task, Turn, asked};
use crate::league::{Contest, turn};
use crate::{chosen, create};
pub use figure::Row;

/// Runs what was asked for, prints it, and writes it if wanted.
///
/// # Errors
///
/// What is wrong with the options, or with the file.
pub fn run(options: &Task) -> Result<(), String> {
    let mut entrants = contestants::all();
    chosen(&mut entrants, &options.common.only, |entrant| entrant.contender().name)?;
    let contest = Contest {
        turn: "task-turn",
        about: "real time; threads that measure are pinned, all others are not",
        entrants,
        rows: asked(&options.rows),
        quick: options.quick,
        rounds: options.rounds,
    };
    contest.hold(create(options.common.json.as_deref())?)
}

/// One run of one contestant, told in JSON.
///
/// # Errors
///
/// There is no such contestant.
pub fn turn(turn: &Turn<Row>) -> Result<(), String> {
    turn::run(turn, &contestants::all())
}
