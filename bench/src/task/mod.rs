//! `bench task`: sleeps and timeouts of tasks beside other timers for async code, in real time.
//!
//! A contestant is an adapter in `contestants`, a workload a function in `rows`, with what is asked of it in `figure`.
//! Contestants take turns, each in a process of its own, as in `bench timer`; `scores` keeps and judges the samples,
//! `show` prints them.
//!
//! tokio's alternative timer is not among them: it takes `--cfg tokio_unstable` for the whole build.

mod contestant;
mod contestants;
mod figure;
mod rows;
mod scores;
mod show;

use serde::{Deserialize, Serialize};

use crate::cli::{Task, TaskTurn};
use crate::timer::end_at_panic;
use crate::timer::system::{self, Waits};
use crate::timer::turn::Running;
use crate::{chosen, counting, create, machine, suite, write};
use contestant::Readings;
pub use figure::Row;
use scores::Scores;

/// What a run tells.
#[derive(Deserialize, Serialize)]
struct Outcome {
    /// Or why there are none.
    readings: Result<Readings, String>,
    waits: Waits,
}

/// Runs what was asked for, prints it, and writes it if wanted.
///
/// # Errors
///
/// What is wrong with the options, or with the file.
pub fn run(options: &Task) -> Result<(), String> {
    let mut entrants = contestants::all();
    chosen(&mut entrants, &options.common.only, |entrant| entrant.contender().name)?;
    let file = create(options.common.json.as_deref())?;

    let rows = options.rows();
    let machine = machine::describe();
    let mut scores = Scores::new(entrants.iter().map(|entrant| entrant.contender()).collect());
    show::contenders(&scores, &machine);
    let rounds = |row: Row| options.rounds.map_or(row.rounds(options.quick), usize::from);
    let bar = suite::bar(rows.iter().map(|&row| rounds(row) * entrants.len()).sum());
    for &row in &rows {
        for round in 0..rounds(row) {
            for place in 0..entrants.len() {
                // A different one first each time.
                let index = (place + round) % entrants.len();
                let contender = entrants[index].contender();
                bar.set_message(format!("{row:?}: {}", contender.name));
                let outcome = match entrants[index].absent(row) {
                    Some(why) => Err(why.to_owned()),
                    None => Running::start("task-turn", contender.name, &row, options.quick)
                        .and_then(Running::finish),
                };
                note(row, index, outcome, &mut scores);
                bar.inc(1);
            }
        }
        bar.suspend(|| show::row(&scores, row));
    }
    bar.finish_and_clear();
    show::summing_up(&scores, &rows);
    write(file, &show::Report::new(&machine, options.quick, &rows, &scores))
}

fn note(row: Row, index: usize, outcome: Result<Outcome, String>, scores: &mut Scores) {
    let readings = outcome.and_then(|outcome| {
        scores.waits.add(outcome.waits);
        outcome.readings
    });
    match readings {
        Ok(readings) => {
            readings.into_iter().for_each(|(figure, value)| scores.add(figure, index, value));
        }
        Err(why) => scores.add_absent(row, index, why),
    }
}

/// The run itself, in its own process.
///
/// # Errors
///
/// There is no such contestant.
pub fn turn(turn: &TaskTurn) -> Result<(), String> {
    counting::stop();
    end_at_panic();
    let entrants = contestants::all();
    let entrant = entrants.iter().find(|entrant| entrant.contender().name == turn.contestant);
    let entrant = entrant.ok_or("there is no such contestant")?;
    let readings = entrant.run(turn.row, turn.quick).map_err(str::to_owned);
    let outcome = Outcome { readings, waits: system::waits() };
    serde_json::to_writer(std::io::stdout(), &outcome).map_err(|error| error.to_string())
}
