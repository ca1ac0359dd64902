//! `bench timer`: the engine beside other timer services, in real time, on threads.
//!
//! A contestant is an adapter in `contestants`, a workload a function in `rows`, with what is asked of it in `figure`;
//! how they take turns is in `league`.

mod contestant;
mod contestants;
mod entrant;
mod figure;
mod plan;
pub mod rows;
pub mod sink;

use crate::cli::{Timer, Turn, asked};
use crate::league::{Contest, turn};
use crate::{chosen, create};
pub use figure::Row;

/// Runs what was asked for, prints it, and writes it if wanted.
///
/// # Errors
///
/// What is wrong with the options, or with the file.
pub fn run(options: &Timer) -> Result<(), String> {
    let mut entrants = contestants::all();
    chosen(&mut entrants, &options.common.only, |entrant| entrant.contender().name)?;
    let contest = Contest {
        turn: "turn",
        about: "real time, payload u64; threads that measure are pinned, the contestants' own are not",
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
