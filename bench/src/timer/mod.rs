//! `bench timer`: the engine beside other timer services, in real time, on threads.
//!
//! A contestant is an adapter in `contestants`, a workload a function in `rows`. Contestants take turns, each round
//! on a fresh one; `scores` keeps the samples and judges them, `show` prints them.

mod contestant;
mod contestants;
mod entrant;
mod figure;
mod plan;
mod rows;
mod scores;
mod show;
mod sink;
mod system;

use std::{panic, process, thread};

use indicatif::ProgressBar;

use crate::cli::Timer;
use crate::{chosen, counting, create, machine, suite, write};
use contestant::Kind;
use entrant::{Entrant, Resting};
use figure::Figure;
pub use figure::Row;
use plan::Plan;
use rows::idle::CALM;
use scores::Scores;

/// Runs what was asked for, prints it, and writes it if wanted.
///
/// # Errors
///
/// What is wrong with the options, or with the file.
pub fn run(options: &Timer) -> Result<(), String> {
    let mut entrants = contestants::all();
    chosen(&mut entrants, &options.common.only, |entrant| entrant.contender().name)?;
    let file = create(options.common.json.as_deref())?;
    counting::stop();
    end_at_panic();

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

/// One round of one row: everybody once, a different one first each time.
fn take(
    row: Row,
    round: usize,
    entrants: &[Box<dyn Entrant>],
    plan: &Plan,
    scores: &mut Scores,
    bar: &ProgressBar,
) {
    if row == Row::Idle {
        bar.inc(entrants.len() as u64);
        return rest(entrants, plan, scores);
    }
    for place in 0..entrants.len() {
        let index = (place + round) % entrants.len();
        let entrant = &entrants[index];
        bar.set_message(format!("{row:?}: {}", entrant.contender().name));
        if takes_part(&**entrant, row) {
            let absent = entrant.absent(row);
            match absent.map_or_else(|| entrant.run(row, plan), Err) {
                Ok(readings) => readings
                    .into_iter()
                    .for_each(|(figure, value)| scores.add(figure, index, value)),
                Err(why) => scores.add_absent(row, index, why),
            }
        }
        bar.inc(1);
    }
}

fn takes_part(entrant: &dyn Entrant, row: Row) -> bool {
    row.fires() || entrant.contender().kind != Kind::OursOnDriver
}

/// All rest at the same time: a thread that sleeps disturbs nobody, and one that does not is counted for its own.
fn rest(entrants: &[Box<dyn Entrant>], plan: &Plan, scores: &mut Scores) {
    let resting: Vec<(usize, Resting)> = entrants
        .iter()
        .enumerate()
        .filter(|(_, entrant)| takes_part(&***entrant, Row::Idle))
        .map(|(index, entrant)| (index, entrant.rest()))
        .collect();
    thread::sleep(CALM);
    let before: Vec<_> = resting.iter().map(|(_, resting)| resting.threads.used()).collect();
    thread::sleep(plan.watch());
    for ((index, Resting { threads, alive }), before) in resting.into_iter().zip(before) {
        match before.zip(threads.used()) {
            Some((before, after)) => {
                let switches = after.switches - before.switches;
                scores.add(Figure::IdleSwitches, index, switches as f64);
                scores.add(Figure::IdleCpu, index, (after.cpu - before.cpu).as_nanos() as f64);
            }
            None => scores.add_absent(Row::Idle, index, "this system does not tell"),
        }
        drop(alive);
    }
}
