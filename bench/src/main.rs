//! Tourbillon beside its peers, in one run.
//!
//! `bench wheel` measures the wheels, in virtual time; `bench instructions` counts what they and the engine execute;
//! `bench timer` measures the engine, in real time, and `bench task` its tasks: `league` is what these two share.
//! `bench purgatory` measures what waits for conditions, `bench people` what else is built on timers, `bench durable`
//! the store on disk, `bench serve` the server. For the wheels, a contestant is an adapter in `contestants`, an
//! operation a function in `ops`; `suite` lets them take turns, `results` keeps the samples, `table` and `report` show
//! them.
#![deny(unsafe_code)]
// A program, not a library: nothing is exported, and what needs a comment has one.
#![allow(missing_docs, unreachable_pub)]

mod bare;
mod cli;
mod contestant;
mod contestants;
mod count;
mod counting;
mod durable;
mod entrant;
mod family;
mod figure;
mod huge;
mod league;
mod load;
mod machine;
mod measure;
mod ops;
mod people;
mod purgatory;
mod report;
mod results;
mod rng;
mod serve;
mod suite;
mod system;
mod table;
mod task;
mod timer;
mod trace;

use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command, Wheel};
use crate::measure::{Measure, Op};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Wheel(options) => wheel(&options),
        Command::Timer(options) => timer::run(&options),
        Command::Task(options) => task::run(&options),
        Command::TaskTurn(turn) => task::turn(&turn),
        Command::People(options) => people::run(&options),
        Command::Durable(options) => durable::run(&options),
        Command::DurableChild(child) => durable::run_child(&child),
        Command::Serve(options) => serve::run(&options),
        Command::Turn(turn) => timer::turn(&turn),
        Command::Purgatory(options) => purgatory::run(&options),
        Command::PurgatoryTurn(turn) => purgatory::turn(&turn),
        Command::Instructions { rows, iterations } => count::instructions(&rows, iterations),
        Command::Count { operation, iterations, prepared } => {
            count::count(operation, iterations, prepared)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("bench: {problem}");
            ExitCode::from(2)
        }
    }
}

fn wheel(options: &Wheel) -> Result<(), String> {
    let mut entrants = contestants::all();
    chosen(&mut entrants, &options.common.only, |entrant| entrant.name())?;
    let file = create(options.common.json.as_deref())?;

    let machine = machine::pin();
    let results = suite::run(options, &entrants);
    table::contenders(&results, &machine);
    for measure in Measure::ALL {
        table::measure(&results, measure);
    }
    let family = options.asks_for(Op::Family).then(family::run);
    family.iter().for_each(family::Family::print);
    let huge = options.huge.then(huge::run);
    huge.iter().for_each(huge::Huge::print);

    write(file, &report::Report::new(&machine, &results, family.as_ref(), huge.as_ref()))
}

/// Keeps those whose names have a part that was asked for, or all.
fn chosen<E: ?Sized>(
    entrants: &mut Vec<Box<E>>,
    only: &[String],
    name: impl Fn(&E) -> &'static str,
) -> Result<(), String> {
    let names: Vec<&str> = entrants.iter().map(|entrant| name(entrant)).collect();
    entrants.retain(|entrant| {
        only.is_empty() || only.iter().any(|part| name(entrant).contains(part.as_str()))
    });
    if entrants.is_empty() {
        return Err(format!("--only fits nobody; the contestants are: {}", names.join(", ")));
    }
    Ok(())
}

/// Opens the report before the run: a path that cannot be written should not cost one.
fn create(path: Option<&Path>) -> Result<Option<File>, String> {
    let create =
        |path: &Path| File::create(path).map_err(|error| format!("{}: {error}", path.display()));
    path.map(create).transpose()
}

fn write(file: Option<File>, report: &impl serde::Serialize) -> Result<(), String> {
    let Some(file) = file else { return Ok(()) };
    serde_json::to_writer_pretty(file, report)
        .map_err(|error| format!("the report could not be written: {error}"))
}
