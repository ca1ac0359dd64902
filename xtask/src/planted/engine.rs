//! The engine's faults: `planted!("room.fault", wrong, right)` in its code.
//!
//! `planted/engine/` lists each with the harm that a user would see.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use super::{Fault, Plant};
use crate::shell::{Outcome, TESTED, nextest, root, run, tracked};

const SOURCE: &str = "crates/tourbillon/src";
const LIST: &str = "planted/engine";

/// The faults with `part` in their name, in the order of the list.
pub(super) fn faults(part: &str) -> Outcome<Vec<Fault>> {
    let listed = listed()?;
    let chosen = listed.into_iter().filter(|(name, _)| name.contains(part));
    Ok(chosen.map(|(name, harm)| Fault { name, harm, plant: Plant::InTheCode }).collect())
}

/// Says what is wrong if the list and the code do not name the same faults, each once.
pub(crate) fn check(found: &mut Vec<String>) -> Outcome {
    let listed = listed()?;
    let mut planted: BTreeMap<String, usize> = BTreeMap::new();
    for file in tracked()? {
        if !file.starts_with(SOURCE) || file.ends_with("planted.rs") {
            continue;
        }
        let text = fs::read_to_string(root().join(&file)).unwrap_or_default();
        for after in text.split("planted!(").skip(1) {
            let name = after.split('"').nth(1).unwrap_or_default();
            *planted.entry(name.to_string()).or_default() += 1;
        }
    }
    for (name, times) in &planted {
        if !listed.iter().any(|(listed, _)| listed == name) {
            found.push(format!("{SOURCE}: {name} is planted, and {LIST}/ does not list its harm"));
        }
        if *times > 1 {
            found.push(format!("{SOURCE}: {name} is planted {times} times; a fault is one place"));
        }
    }
    let missing = listed.iter().filter(|(name, _)| !planted.contains_key(name));
    found.extend(missing.map(|(name, _)| format!("{LIST}: {name} is listed, and not planted")));
    Ok(())
}

/// Name and harm of each listed fault.
fn listed() -> Outcome<Vec<(String, String)>> {
    let mut all = Vec::new();
    for file in tracked()?.into_iter().filter(|file| file.starts_with(LIST)) {
        let text = fs::read_to_string(root().join(&file))
            .map_err(|error| format!("{}: {error}", file.display()))?;
        for line in text.lines().filter(|line| !line.is_empty()) {
            let (name, harm) = line
                .split_once(" | ")
                .ok_or_else(|| format!("{}: {line:?} is not `name | harm`", file.display()))?;
            all.push((name.to_string(), harm.to_string()));
        }
    }
    Ok(all)
}

/// Builds the tests, and runs them with no fault chosen.
pub(super) fn build() -> Outcome {
    println!("the suite of the engine, without a fault …");
    run(&mut suite("none"))
}

/// The tests of the engine, with that fault.
pub(super) fn suite(fault: &str) -> Command {
    let mut nextest = nextest(TESTED);
    nextest.args(["--filterset", "package(tourbillon)", "--profile", "planted"]);
    nextest.env("TOURBILLON_PLANTED", fault).env("RUST_BACKTRACE", "0");
    nextest
}
