//! Planted faults: a test that cannot fail is a defect, so each fault must make the suite fail.
//!
//! The wheel's faults are patches (`wheel.rs`): each needs a build of its own. The engine's are in its code
//! (`engine.rs`): one build holds them all, and a process chooses one. Some of those are for the models alone
//! (`twins.rs`): no other test would meet the one order of steps in which they show.

pub(crate) mod engine;
pub(crate) mod twins;
mod wheel;

use std::process::Command;
use std::time::Instant;

use crate::sample::Sample;
use crate::shell::{Outcome, capture};

/// One fault, ready to be tried.
struct Fault {
    name: String,
    /// What a user would notice.
    harm: String,
    plant: Plant,
}

enum Plant {
    Patch(std::path::PathBuf),
    InTheCode,
}

/// Tries every fault that has one of the parts in its name, or all if there are none.
pub(crate) fn run(parts: &[&str]) -> Outcome {
    let (mut wheel, mut engine) = (wheel::faults()?, engine::faults()?);
    for part in parts {
        if !wheel.iter().chain(&engine).any(|fault| fault.name.contains(part)) {
            return Err(format!("no planted fault has {part:?} in its name"));
        }
    }
    for faults in [&mut wheel, &mut engine] {
        faults
            .retain(|fault| parts.is_empty() || parts.iter().any(|part| fault.name.contains(part)));
    }
    try_all(&wheel, &engine)
}

/// Tries a few faults, chosen by the sample.
pub(crate) fn some(sample: &Sample) -> Outcome {
    let wheel = sample.choose(wheel::faults()?, 1);
    let engine = sample.choose(engine::faults()?, 6);
    try_all(&wheel, &engine)
}

fn try_all(wheel: &[Fault], engine: &[Fault]) -> Outcome {
    let mut survivors = Vec::new();
    if !engine.is_empty() {
        let healthy = || Some(engine::suite("none"));
        let suite = |fault: &Fault| Ok(engine::suite(&fault.name));
        survivors.extend(table("engine", engine, healthy, suite)?);
    }
    if !wheel.is_empty() {
        survivors.extend(table("wheel", wheel, || None, wheel::plant)?);
    }
    let all = wheel.len() + engine.len();
    println!("planted: {} of {all} caught", all - survivors.len());
    if survivors.is_empty() {
        return Ok(());
    }
    Err(format!("no test noticed: {}", survivors.join(", ")))
}

/// Runs the suite against each fault, prints a row for each, and returns the names of those that survived.
fn table(
    what: &str,
    faults: &[Fault],
    healthy: impl Fn() -> Option<Command>,
    suite: impl Fn(&Fault) -> Outcome<Command>,
) -> Outcome<Vec<String>> {
    let mut survivors = Vec::new();
    println!("\n{} faults in the {what}\n", faults.len());
    for fault in faults {
        let began = Instant::now();
        let failed = caught_by(near(&fault.name), &healthy, || suite(fault))?;
        let seconds = began.elapsed().as_secs_f64();
        let by = failed.as_deref().unwrap_or("SURVIVED");
        println!("{:<48} {by} ({seconds:.0} s)\n    {}", fault.name, fault.harm);
        if failed.is_none() {
            survivors.push(fault.name.clone());
        }
    }
    Ok(survivors)
}

/// The test that notices the fault: of those that are near to it, or else of the others.
///
/// The test must fail again when it runs alone, and pass without the fault: a test that failed because the machine was
/// busy is no witness. (`healthy` is `None` for the wheel, whose tests have no clock and no thread.)
fn caught_by(
    near: &str,
    healthy: impl Fn() -> Option<Command>,
    suite: impl Fn() -> Outcome<Command>,
) -> Outcome<Option<String>> {
    for tests in [near.to_string(), format!("not ({near})")] {
        let Some(test) = first_failure(suite()?.args(["--filterset", &tests]))? else { continue };
        let (binary, name) = test.id.split_once(' ').unwrap_or(("", &test.id));
        let alone = format!("binary_id(={binary}) and test(={name})");
        let fails = |mut suite: Command| -> Outcome<bool> {
            Ok(first_failure(suite.args(["--filterset", &alone]))?.is_some())
        };
        for _ in 0..AGAIN {
            if fails(suite()?)? && !healthy().map_or(Ok(false), fails)? {
                return Ok(Some(format!("{}{}", test.id, if test.hung { " hangs" } else { "" })));
            }
        }
        println!("    {} failed, and is no witness alone", test.id);
    }
    Ok(None)
}

/// The tests that are near a fault, by the room that its name begins with. They run first: it saves most of the time.
fn near(fault: &str) -> &'static str {
    let room = fault.split('.').next().unwrap_or_default();
    match room {
        "backoff" | "missed" | "queue" => "kind(lib) | binary(people)",
        "clock" => "kind(lib) | binary(engine) | binary(verbs)",
        "engine" | "timer" => "kind(lib) | binary(engine) | binary(people)",
        "key" | "keyed" => "kind(lib) | binary(keyed)",
        "purgatory" => "kind(lib) | binary(purgatory)",
        "tasks" => "kind(lib) | binary(tasks) | binary(faces)",
        "wall" => "kind(lib) | binary(wall) | binary(calendar)",
        _ => "kind(lib) | binary(engine)",
    }
}

/// A test that failed runs this often alone: some faults show only now and then.
const AGAIN: usize = 3;

/// A test that failed.
struct Failure {
    /// `package::binary path::of::the::test`.
    id: String,
    hung: bool,
}

/// The first test that failed or hung, or `None` if all passed.
fn first_failure(nextest: &mut Command) -> Outcome<Option<Failure>> {
    let (text, fine) = capture(nextest)?;
    if fine {
        return Ok(None);
    }
    text.lines()
        .find_map(failure)
        .map(Some)
        .ok_or_else(|| format!("a planted fault must build, and tests must run:\n{text}"))
}

/// The test that a line of nextest names as failed: `FAIL [   0.010s] (12/90) tourbillon::engine panics::name`.
fn failure(line: &str) -> Option<Failure> {
    let (verdict, rest) = line.trim_start().split_once(" [")?;
    let failed = ["FAIL", "TIMEOUT", "ABORT"].contains(&verdict) || verdict.starts_with("SIG");
    let id = rest.split_once("] ")?.1.trim();
    let id = id.strip_prefix('(').and_then(|rest| rest.split_once(") ")).map_or(id, |it| it.1);
    failed.then(|| Failure { id: id.trim().to_string(), hung: verdict == "TIMEOUT" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_nextest_are_understood() {
        let id = |line| failure(line).map(|test| (test.id, test.hung));
        let one = "tourbillon::engine panics::one".to_string();
        assert_eq!(
            id("    FAIL [   0.010s] (12/90) tourbillon::engine panics::one"),
            Some((one.clone(), false))
        );
        assert_eq!(
            id(" TIMEOUT [  20.010s] ( 2/90) tourbillon::engine panics::one"),
            Some((one.clone(), true))
        );
        assert_eq!(id(" SIGABRT [   0.010s] tourbillon::engine panics::one"), Some((one, false)));
        assert_eq!(id("    PASS [   0.010s] (12/90) tourbillon::engine panics::one"), None);
        assert_eq!(id("error: could not compile"), None);
    }
}
