//! Tourbillon's wheels beside their peers, in one run and one table.
//!
//! `bench wheel` measures; `bench instructions` counts. A contestant is an adapter in `contestants`, an
//! operation a function in `ops`; `suite` lets them take turns, `results` keeps the samples, `table` and
//! `report` show them.
#![deny(unsafe_code)]
// A program, not a library: nothing is exported, and what needs a comment has one.
#![allow(missing_docs, unreachable_pub)]

mod cli;
mod contestant;
mod contestants;
mod count;
mod counting;
mod entrant;
mod family;
mod huge;
mod load;
mod machine;
mod measure;
mod ops;
mod report;
mod results;
mod rng;
mod suite;
mod table;
mod trace;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command, Wheel};
use crate::measure::{Measure, Op};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Wheel(options) => wheel(&options),
        Command::Instructions { iterations } => count::instructions(iterations),
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
    let chosen = |name: &str| {
        options.only.is_empty() || options.only.iter().any(|part| name.contains(part.as_str()))
    };
    let mut entrants = contestants::all();
    let names: Vec<&str> = entrants.iter().map(|entrant| entrant.name()).collect();
    entrants.retain(|entrant| chosen(entrant.name()));
    if entrants.is_empty() {
        return Err(format!("--only fits nobody; the contestants are: {}", names.join(", ")));
    }
    // Opened first: a path that cannot be written should not cost a run.
    let file = match &options.json {
        Some(path) => Some(
            std::fs::File::create(path).map_err(|error| format!("{}: {error}", path.display()))?,
        ),
        None => None,
    };

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

    let Some(file) = file else { return Ok(()) };
    let report = report::Report::new(&machine, &results, family.as_ref(), huge.as_ref());
    serde_json::to_writer_pretty(file, &report)
        .map_err(|error| format!("the report could not be written: {error}"))
}
