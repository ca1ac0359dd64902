//! One command for each chore of this repository: `cargo xtask` lists them.
//!
//! Nothing here is needed to build or to use the crates. A chore prints what it does, and ends with a non-zero
//! exit code as soon as something is wrong.

mod browser;
mod models;
mod planted;
mod shell;
mod suite;
mod tidy;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask CHORE [PART]

  test      everything that must hold: style, lints, docs, packages, all tests
  tidy      the style of the source, as a test
  loom      the models of the engine in every order of their steps, and their twins with a fault
  shuttle   the whole engine in many random orders, and its twins with a fault
  memcheck  the tests of the one file that is not safe code, under valgrind
  planted   plants one fault at a time in a scratch copy; the suite must catch each
  pictures  makes the pictures of the live page, for the README
  deny      licences and sources of the dependencies, by cargo-deny (installs it)

With a PART of a name, `loom`, `shuttle` and `planted` plant only the faults whose file has it in its name.
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["test"] => suite::everything(),
        ["tidy"] => tidy::run(),
        ["loom"] => models::LOOM.run(""),
        ["loom", part] if !part.starts_with('-') => models::LOOM.run(part),
        ["shuttle"] => models::SHUTTLE.run(""),
        ["shuttle", part] if !part.starts_with('-') => models::SHUTTLE.run(part),
        ["planted"] => planted::run(""),
        ["planted", part] if !part.starts_with('-') => planted::run(part),
        ["memcheck"] => suite::memcheck(),
        ["pictures"] => browser::pictures(),
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
