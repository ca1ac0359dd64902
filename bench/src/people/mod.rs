//! `bench people`: what people build on timers. The delay queue beside a heap behind a lock, and repeating timers
//! beside a pool that has them.
//!
//! A workload is a function that runs one contestant once; here they take turns, a different one first each round.

mod heap;
mod periodic;
mod queue;

use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::cli::People;
use crate::figure::Figure;
use crate::machine::{self, Machine};
use crate::{counting, create, suite, write};

/// One run of one contestant: a figure for each title of its row.
type Run = Box<dyn Fn() -> Result<Vec<f64>, String>>;

/// A workload, its figures, and who takes part: the first is the one that the others are compared with.
struct Row {
    titles: Vec<String>,
    contestants: Vec<(&'static str, Run)>,
}

/// Runs everything, prints it, and writes it if wanted.
///
/// # Errors
///
/// What is wrong with the file, or with a contestant.
pub fn run(options: &People) -> Result<(), String> {
    let file = create(options.json.as_deref())?;
    counting::stop();
    let rounds = usize::from(options.rounds.unwrap_or(if options.quick { 3 } else { 7 }));
    let machine = machine::describe();
    let Machine { cpu, cores, memory_gib, .. } = &machine;
    println!("{cpu}, {cores} cores, {memory_gib:.1} GiB; real time; medians of {rounds} rounds");
    let rows: Vec<Row> =
        queue::rows(options.quick).into_iter().chain(periodic::rows(options.quick)).collect();
    let bar = suite::bar(rows.iter().map(|row| row.contestants.len() * rounds).sum());
    let mut figures = Vec::new();
    for row in &rows {
        let mut samples = vec![vec![Vec::new(); row.titles.len()]; row.contestants.len()];
        for round in 0..rounds {
            for place in 0..row.contestants.len() {
                let index = (place + round) % row.contestants.len();
                let (name, run) = &row.contestants[index];
                bar.set_message(*name);
                for (values, value) in samples[index].iter_mut().zip(run()?) {
                    values.push(value);
                }
                bar.inc(1);
                // The threads of one have ended before the next begins.
                thread::sleep(Duration::from_millis(20));
            }
        }
        for (number, title) in row.titles.iter().enumerate() {
            let contestants = row.contestants.iter().zip(&samples);
            let figure =
                Figure::new(title, contestants.map(|((name, _), all)| (*name, &all[number])));
            bar.suspend(|| figure.print());
            figures.push(figure);
        }
    }
    bar.finish_and_clear();
    write(file, &Report { machine, quick: options.quick, figures })
}

#[derive(Serialize)]
struct Report {
    machine: Machine,
    quick: bool,
    figures: Vec<Figure>,
}
