//! `bench timer`: the engine beside other timer services, in real time, on threads.
//!
//! A contestant is an adapter in `contestants`, a workload a function in `rows`. Contestants take turns, each in
//! a process of its own (`turn`); `scores` keeps the samples and judges them, `show` prints them.

mod contestant;
mod contestants;
mod entrant;
mod figure;
mod plan;
mod rows;
mod scores;
mod show;
mod sink;
pub mod system;
mod turn;

use std::{panic, process};

use indicatif::ProgressBar;

use crate::cli::Timer;
use crate::{chosen, create, machine, suite, write};
use contestant::Kind;
use entrant::Entrant;
pub use figure::Row;
use plan::Plan;
use scores::Scores;
pub use turn::run as turn;
use turn::{Outcome, Running};

/// Runs what was asked for, prints it, and writes it if wanted.
///
/// # Errors
///
/// What is wrong with the options, or with the file.
pub fn run(options: &Timer) -> Result<(), String> {
    let mut entrants = contestants::all();
    chosen(&mut entrants, &options.common.only, |entrant| entrant.contender().name)?;
    let file = create(options.common.json.as_deref())?;

    let plan = Plan { quick: options.quick, rounds: options.rounds };
    let rows = options.rows();
    let machine = machine::describe();
    let mut scores = Scores::new(&entrants);
    show::contenders(&scores, &machine);
    let rounds: usize = rows.iter().map(|&row| plan.rounds(row)).sum();
    let bar = suite::bar(rounds * entrants.len());
    for &row in &rows {
        for round in 0..plan.rounds(row) {
            take(row, round, &entrants, &plan, &mut scores, &bar);
        }
        bar.suspend(|| show::row(&scores, row));
    }
    bar.finish_and_clear();
    show::summing_up(&scores, &rows);
    write(file, &show::Report::new(&machine, plan, &rows, &scores))
}

/// A thread that panics would leave those waiting that it was to meet, and a run has to end.
fn end_at_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        report(panic);
        process::exit(101);
    }));
}

/// One round of one row: everybody once, a different one first each time, and at rest all at the same time.
fn take(
    row: Row,
    round: usize,
    entrants: &[Box<dyn Entrant>],
    plan: &Plan,
    scores: &mut Scores,
    bar: &ProgressBar,
) {
    let mut order: Vec<usize> = (0..entrants.len()).collect();
    order.rotate_left(round % entrants.len());
    // Threads that sleep disturb nobody, and those that do not are counted for their own.
    let together = if row == Row::Idle { order.len() } else { 1 };
    for indices in order.chunks(together) {
        let running: Vec<_> = indices
            .iter()
            .map(|&index| {
                let contender = entrants[index].contender();
                bar.set_message(format!("{row:?}: {}", contender.name));
                let absent = entrants[index].absent(row).map(str::to_owned);
                let takes_part = row.fires() || contender.kind != Kind::OursOnDriver;
                let start = || Running::start(contender.name, row, plan);
                (index, takes_part.then(|| absent.map_or_else(start, Err)))
            })
            .collect();
        for (index, running) in running {
            let outcome = running.map(|running| running.and_then(Running::finish));
            if let Some(outcome) = outcome {
                note(row, index, outcome, scores);
            }
            bar.inc(1);
        }
    }
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
