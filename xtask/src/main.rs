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
cargo xtask CHORE

  test      everything that must hold: style, lints, docs, packages, all tests
  tidy      the style of the source, as a test
  loom      the models of the engine in every order of their steps, and their twins with a fault
  shuttle   the whole engine in many random orders, and its twins with a fault
  planted   plants one fault at a time in a scratch copy; the suite must catch each
  pictures  makes the pictures of the live page, for the README
  deny      licences and sources of the dependencies, by cargo-deny (installs it)
";

fn main() -> ExitCode {
    let chore = std::env::args().nth(1).unwrap_or_default();
    let outcome = match chore.as_str() {
        "test" => suite::everything(),
        "tidy" => tidy::run(),
        "loom" => models::LOOM.run(),
        "shuttle" => models::SHUTTLE.run(),
        "planted" => planted::run(),
        "pictures" => browser::pictures(),
        "deny" => suite::deny(),
        "" | "help" | "-h" | "--help" => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        unknown => Err(format!("there is no chore {unknown:?}\n\n{HELP}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("xtask: {wrong}");
            ExitCode::FAILURE
        }
    }
}
