//! The engine's faults: `planted!("room.fault", wrong, right)` in its code.
//!
//! `planted/engine/` lists each with the harm that a user would see; the lists of the twins, those that only a model is
//! sure to catch.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use super::twins::{self, Twin};
use super::{Fault, Plant};
use crate::models::{LOOM, SHUTTLE};
use crate::shell::{Outcome, TESTED, nextest, root, tracked};

const SOURCE: &str = "crates/tourbillon/src";
const LIST: &str = "planted/engine";

/// All faults, in the order of the lists.
pub(super) fn faults() -> Outcome<Vec<Fault>> {
    let named = |(name, harm)| Fault { name, harm, plant: Plant::InTheCode };
    Ok(listed()?.into_iter().map(named).collect())
}

/// Says what is wrong if the lists and the code do not name the same faults. A fault of the suite is one place; one
/// that only the twins of the models use may be several.
pub(crate) fn check(found: &mut Vec<String>) -> Outcome {
    let suite: BTreeSet<String> = listed()?.into_iter().map(|(name, _)| name).collect();
    let planted = planted()?;
    let mut all = suite.clone();
    for checker in [LOOM, SHUTTLE] {
        let list = twins::list(checker.flag);
        for Twin { fault, harm, .. } in twins::twins(checker.flag)? {
            if suite.contains(&fault) == harm.is_some() {
                found.push(format!("{list}: the harm of {fault} is told here or in {LIST}/, once"));
            }
            all.insert(fault);
        }
    }
    for (name, &times) in &planted {
        if !all.contains(name) {
            found.push(format!("{SOURCE}: {name} is planted, and planted/ does not list its harm"));
        }
        if times > 1 && suite.contains(name) {
            found.push(format!("{SOURCE}: {name} is planted {times} times; a fault is one place"));
        }
    }
    let missing = all.iter().filter(|name| !planted.contains_key(*name));
    found.extend(missing.map(|name| format!("planted/: {name} is listed, and not planted")));
    Ok(())
}

/// The faults in the code, and how often each is planted.
fn planted() -> Outcome<BTreeMap<String, usize>> {
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
    Ok(planted)
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

/// The tests of the engine, with that fault; `none` is no fault.
pub(super) fn suite(fault: &str) -> Command {
    let mut nextest = nextest(TESTED);
    nextest.args(["--profile", "planted"]);
    nextest.env("TOURBILLON_PLANTED", fault).env("RUST_BACKTRACE", "0");
    nextest
}
