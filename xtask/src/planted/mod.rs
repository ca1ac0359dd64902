//! Planted faults: a test that cannot fail is a defect, so each fault must make a test fail.
//!
//! The faults are in the code (`lists.rs`): one build contains them all, and a process activates one. A run of the
//! suite without a fault records which tests reach which faults, and each fault is tried with only those tests. Some
//! faults are only for models (`twins.rs`): no other test would hit the one interleaving in which they appear.

pub(crate) mod lists;
pub(crate) mod twins;

use std::path::PathBuf;
use std::time::Instant;

use crate::reach::{self, Reach};
use crate::sample::Sample;
use crate::shell::{Outcome, TESTED, nextest, root};
use crate::trial::{Verdict, try_all};
use lists::{Fault, LISTS};

/// Tries every fault with one of the parts in its name or in the path of its list.
///
/// Without parts, tries every fault.
pub(crate) fn run(parts: &[&str]) -> Outcome {
    let mut faults = Vec::new();
    for list in LISTS {
        faults.extend(list.faults()?);
    }
    let has =
        |fault: &Fault, part: &str| fault.list.path.contains(part) || fault.name.contains(part);
    if let Some(part) = parts.iter().find(|part| !faults.iter().any(|fault| has(fault, part))) {
        return Err(format!("no planted fault has {part:?} in its name"));
    }
    faults.retain(|fault| parts.is_empty() || parts.iter().any(|part| has(fault, part)));
    table(&faults)
}

/// Tries a few faults, chosen by the sample.
pub(crate) fn some(sample: &Sample) -> Outcome {
    let mut faults = Vec::new();
    for list in LISTS {
        faults.extend(sample.choose(list.faults()?, list.sample));
    }
    table(&faults)
}

/// Runs the suite without a fault, which must pass, and records which faults its tests reach.
///
/// `see` gets each line of nextest's output.
pub(crate) fn record(see: impl FnMut(&str)) -> Outcome {
    // Runs more tests at once than there are processors, because many wait for real time or for the browser.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut tests = nextest("run", TESTED);
    tests.arg(format!("--test-threads={}", processors + processors.div_ceil(2)));
    reach::record(&folder(), &mut tests, see)
}

fn folder() -> PathBuf {
    root().join("target/planted/reached")
}

/// Tries the faults, prints a row for each, and fails if one survived.
fn table(faults: &[Fault]) -> Outcome {
    if !reach::is_recorded(&folder())? {
        reach::record_what_passes(&folder(), &mut nextest("run", TESTED))?;
    }
    let list = &mut nextest("list", TESTED);
    let reach = Reach::load(&folder(), list.args(["--message-format", "json"]))?;
    let tests = |name: &str| {
        let own =
            faults.iter().find(|fault| fault.name == name).map_or(&[][..], |it| it.list.tests);
        // First the tests of the list's own packages.
        let (mut near, far): (Vec<_>, Vec<_>) =
            reach.tests(name).partition(|test| own.contains(&test.package()));
        near.extend(far);
        near
    };
    let (began, mut survivors) = (Instant::now(), Vec::new());
    let names: Vec<&str> = faults.iter().map(|fault| fault.name.as_str()).collect();
    try_all(&names, tests, |index, verdict, seconds| {
        let Fault { name, harm, .. } = &faults[index];
        let by = match &verdict {
            Verdict::Caught(test) => test.clone(),
            Verdict::Hangs(test) => format!("{test} hangs"),
            Verdict::Survived => "SURVIVED".to_string(),
            Verdict::Unreached => "SURVIVED: no test reaches it".to_string(),
        };
        println!("{name:<48} {by} ({seconds:.1} s)\n    {harm}");
        if matches!(verdict, Verdict::Survived | Verdict::Unreached) {
            survivors.push(name.as_str());
        }
        Ok(())
    })?;
    let (all, seconds) = (faults.len(), began.elapsed().as_secs());
    println!("planted: {} of {all} caught, in {seconds} s", all - survivors.len());
    if survivors.is_empty() {
        return Ok(());
    }
    Err(format!("no test noticed: {}", survivors.join(", ")))
}
