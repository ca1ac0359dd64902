//! `bench purgatory`: operations that wait under keys, beside a plain map of lists with tokio's sleeps.
//!
//! A contestant is an adapter (`ours`, `plain`), a workload a function in `rows`. Contestants take turns, each in a
//! process of its own; `show` prints the medians and writes the file. Time is virtual where something expires: what is
//! measured is work, not waiting.

mod contestant;
mod figure;
mod ours;
mod plain;
mod rows;
mod show;

use crate::cli::{Purgatory, Turn, asked};
use crate::league::turn::Running;
use crate::{create, machine, suite, write};
use contestant::Contestant;
use figure::Readings;
pub use figure::Row;
use ours::Ours;
use plain::Plain;
use show::Scores;

/// Who takes part, in the order of the tables.
const CONTESTANTS: [(&str, &str); 2] =
    [(Ours::NAME, Ours::SETTINGS), (Plain::NAME, Plain::SETTINGS)];

/// Runs what was asked for, prints it, and writes it if wanted.
///
/// # Errors
///
/// What is wrong with the options, with the file, or with a run.
pub fn run(options: &Purgatory) -> Result<(), String> {
    let file = create(options.json.as_deref())?;
    let rows = asked(&options.rows);
    let rounds = usize::from(options.rounds.unwrap_or(if options.quick { 1 } else { 3 }));
    let machine = machine::describe();
    let mut scores = Scores::default();
    show::contestants(&machine, &CONTESTANTS);
    let bar = suite::bar(rounds * rows.len() * CONTESTANTS.len());
    for &row in &rows {
        for round in 0..rounds {
            for turn in 0..CONTESTANTS.len() {
                let index = (round + turn) % CONTESTANTS.len();
                let name = CONTESTANTS[index].0;
                bar.set_message(format!("{row:?}: {name}"));
                let running = Running::start("purgatory-turn", name, &row, options.quick);
                let readings: Result<Readings, String> = running.and_then(Running::finish);
                for (figure, value) in readings.map_err(|why| format!("{name}: {row:?} {why}"))? {
                    scores.add(figure, index, value);
                }
                bar.inc(1);
            }
        }
        bar.suspend(|| show::row(&scores, row, &CONTESTANTS));
    }
    bar.finish_and_clear();
    show::summing_up(&scores, &rows);
    write(file, &show::Report::new(&machine, options.quick, &scores, &rows, &CONTESTANTS))
}

/// The run itself, in its own process.
///
/// # Errors
///
/// There is no such contestant.
pub fn turn(turn: &Turn<Row>) -> Result<(), String> {
    let readings = match turn.contestant.as_str() {
        Ours::NAME => rows::run::<Ours>(turn.row, turn.quick),
        Plain::NAME => rows::run::<Plain>(turn.row, turn.quick),
        _ => return Err("there is no such contestant".to_owned()),
    };
    serde_json::to_writer(std::io::stdout(), &readings).map_err(|error| error.to_string())
}
