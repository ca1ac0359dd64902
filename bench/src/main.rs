//! Compares Tourbillon with its peers, in one run.
//!
//! Without a command it runs every family of the [`league`]: the wheels in virtual time (`wheel`), the engine and its
//! tasks in real time (`timer`, `task`), the structures built on them (`queue`, `purgatory`), and the peers on the JVM
//! (`jvm`). `instructions` counts the instructions of each operation (`count`); `durable` measures the store on disk,
//! `serve` the server.
#![deny(unsafe_code)]
// A program, not a library: nothing is exported.
#![allow(missing_docs, unreachable_pub)]

mod cli;
mod count;
mod counting;
#[cfg(feature = "durable")]
mod durable;
mod jvm;
mod league;
mod machine;
mod plots;
mod purgatory;
mod queue;
mod results;
mod rng;
#[cfg(feature = "durable")]
mod serve;
mod system;
mod table;
mod task;
mod timer;
mod wheel;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command, League};
use crate::league::report::Report;
use crate::league::{Family, publish, run, turn};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

fn main() -> ExitCode {
    let Cli { command, league } = Cli::parse();
    let only =
        |league: League, family: &str| hold(League { families: vec![family.into()], ..league });
    let done = match command {
        None => hold(league),
        Some(Command::Wheel(league)) => only(league, "wheel"),
        Some(Command::Timer(league)) => only(league, "timer"),
        Some(Command::Task(league)) => only(league, "task"),
        Some(Command::Queue(league)) => only(league, "queue"),
        Some(Command::Purgatory(league)) => only(league, "purgatory"),
        Some(Command::Plot { file, plots, page }) => plot(&file, &plots, page.as_deref()),
        Some(Command::Turn { turn }) => turn::run(&turn, &families()),
        #[cfg(feature = "durable")]
        Some(Command::Durable(options)) => durable::run(&options),
        #[cfg(feature = "durable")]
        Some(Command::DurableChild(child)) => durable::run_child(&child),
        #[cfg(feature = "durable")]
        Some(Command::Serve(options)) => serve::run(&options),
        Some(Command::Instructions(asked)) => count::instructions(&asked),
        Some(Command::Count { operation, iterations, prepared }) => {
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

fn families() -> Vec<Family> {
    vec![
        wheel::family(),
        wheel::driving(),
        timer::family(),
        task::family(),
        queue::family(),
        purgatory::family(),
    ]
}

/// Runs and prints the requested families; writes and plots the results if requested.
fn hold(mut asked: League) -> Result<(), String> {
    let mut page = None;
    if asked.publish {
        if !Path::new("BENCHMARKS.md").exists() {
            return Err("--publish is for the root of the repository".to_owned());
        }
        asked.json.get_or_insert_with(|| PathBuf::from("bench/results.json"));
        asked.plots.get_or_insert_with(|| PathBuf::from("pictures/bench"));
        page = Some(Path::new("BENCHMARKS.md"));
    }
    jvm::prepare(asked.install_peers)?;
    let file = create(asked.json.as_deref())?;
    let report = run::run(&asked, &families())?;
    write(file, &report)?;
    if let Some(folder) = &asked.plots {
        plots::draw(&report, folder)?;
    }
    page.map_or(Ok(()), |page| publish::write(&report, page, asked.plots.as_deref()))?;
    match report.wrong() {
        wrong if wrong.is_empty() => Ok(()),
        wrong => Err(format!("wrong beside the oracle: {}", wrong.join("; "))),
    }
}

fn plot(file: &Path, folder: &Path, page: Option<&Path>) -> Result<(), String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
    let report: Report = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    plots::draw(&report, folder)?;
    page.map_or(Ok(()), |page| publish::write(&report, page, Some(folder)))
}

/// Opens the report before the run, so that an unwritable path does not waste a run.
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
