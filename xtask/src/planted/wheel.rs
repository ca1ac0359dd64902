//! The wheel's faults: patches in `planted/`, each of which breaks one rule. Its first line says which.

use std::process::Command;

use super::{Fault, Plant};
use crate::scratch;
use crate::shell::{Outcome, nextest};

/// Enough steps of the property test to catch every fault, and quick.
const STEPS: &str = "60000";

/// All faults, in the order of their names.
pub(super) fn faults() -> Outcome<Vec<Fault>> {
    let named = |patch: std::path::PathBuf| {
        let text = std::fs::read_to_string(&patch).unwrap_or_default();
        let harm = text.lines().next().unwrap_or_default().to_string();
        Fault { name: scratch::stem(&patch), harm, plant: Plant::Patch(patch) }
    };
    Ok(scratch::patches("planted")?.into_iter().map(named).collect())
}

/// Plants the fault, and returns the suite that must fail.
pub(super) fn plant(fault: &Fault) -> Outcome<Command> {
    if let Plant::Patch(patch) = &fault.plant {
        scratch::plant(patch)?;
    }
    Ok(suite())
}

fn suite() -> Command {
    let mut nextest = nextest(&["-p", "tourbillon-wheel", "--lib", "--profile", "planted"]);
    nextest.arg("--ignore-default-filter");
    for test in ["memory", "panics", "property", "exhaustive"] {
        nextest.args(["--test", test]);
    }
    nextest.current_dir(scratch::copy());
    nextest.env("CARGO_TARGET_DIR", scratch::folder().join("target"));
    nextest.env("TOURBILLON_STEPS", STEPS).env("RUST_BACKTRACE", "0");
    nextest
}
