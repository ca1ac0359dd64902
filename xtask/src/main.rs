//! The repository's chores, one command each: `cargo xtask` lists them.
//!
//! Nothing here is needed to build or use the crates. A chore prints what it does, and fails with a non-zero exit code
//! at the first error.

mod browser;
mod count;
mod drawings;
mod gate;
mod models;
mod mutants;
mod packages;
mod planted;
mod reach;
mod rooms;
mod sample;
mod scratch;
mod serving;
mod shell;
mod stages;
mod suite;
mod tidy;
mod translation;
mod trial;

use std::path::Path;
use std::process::ExitCode;

use sample::Sample;

const HELP: &str = "\
cargo xtask CHORE [PART]

  test      everything that must hold: style, lints, docs, packages, all tests, and a sample of planted faults
              --long      all planted faults and twins, lints with the peers of the benches, packages built,
                          a million simulated crashes
              --seed N    another sample (the default is a hash of the source)
  tidy      the style of the source, as a test
              --count     lines of code and types of each crate
  planted   chooses one planted fault at a time; the tests that reach it must catch it
  mutants   what cargo-mutants would change in the engine, all in one build; goes on where it was ended
  loom      the models of the engine in every order of their steps, and their twins with a fault
  shuttle   the whole engine in many random orders, and its twins with a fault
  gate      instructions of the wheel's and the engine's verbs, against bench/counts.txt: more than 3 % up fails
              --record    writes that file
  memcheck  the tests of the one file that is not safe code, under valgrind
  pictures  makes the pictures of the guide, and those of the live page for the README
              guide       only those of the guide: no browser needed
  deny      licences and sources of the dependencies, by cargo-deny (installs it)

With a PART of a name, `planted`, `loom`, `shuttle` and `mutants` try only the faults, twins or files that have it in
their name.
";

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1).peekable();
    if words.peek().is_some_and(|word| Path::new(word).file_stem().is_some_and(|it| it == "rustc"))
    {
        return shell::as_wrapper(words);
    }
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["test", ref options @ ..] => options_of_test(options).and_then(suite::everything),
        ["tidy"] => tidy::run(),
        ["tidy", "--count"] => count::run(),
        ["loom"] => models::LOOM.run(""),
        ["loom", part] if !part.starts_with('-') => models::LOOM.run(part),
        ["shuttle"] => models::SHUTTLE.run(""),
        ["shuttle", part] if !part.starts_with('-') => models::SHUTTLE.run(part),
        ["planted", ref parts @ ..] if parts.iter().all(|part| !part.starts_with('-')) => {
            planted::run(parts)
        }
        ["mutants"] => mutants::run(""),
        ["mutants", part] if !part.starts_with('-') => mutants::run(part),
        ["gate"] => gate::check(),
        ["gate", "--record"] => gate::record(),
        ["memcheck"] => suite::memcheck(),
        ["pictures"] => drawings::write().and_then(|()| browser::pictures()),
        ["pictures", "guide"] => drawings::write(),
        ["deny"] => suite::deny(),
        [] | ["help" | "-h" | "--help", ..] | [_, "-h" | "--help", ..] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => Err(format!("there is no chore {:?}\n\n{HELP}", words.join(" "))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("xtask: {wrong}");
            ExitCode::FAILURE
        }
    }
}

fn options_of_test(mut words: &[&str]) -> shell::Outcome<suite::Options> {
    let mut options = suite::Options { long: false, sample: None };
    while let [option, rest @ ..] = words {
        words = rest;
        match (*option, rest) {
            ("--long", _) => options.long = true,
            ("--seed", [seed, rest @ ..]) => {
                let wrong = |_| format!("--seed takes a number from 0 to 2^64 - 1, not {seed:?}");
                options.sample = Some(Sample::with_seed(seed.parse().map_err(wrong)?));
                words = rest;
            }
            _ => return Err(format!("`test` has no option {option:?}\n\n{HELP}")),
        }
    }
    Ok(options)
}
