//! Records which tests reach which places of the code, while the suite runs.
//!
//! A place is a planted fault or a mutant. In a build with `--cfg planted`, each evaluated place writes its name into a
//! file named after the test, if an environment variable requests it (`crates/wheel/src/planted.rs`). So one run of the
//! suite shows, for each place, which tests could notice a fault there, and how long each test takes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::sample::hash_files;
use crate::shell::{Outcome, Stream, capture_output, run_seen};

/// One test, and how to run it alone.
pub(crate) struct Test {
    /// `package::binary`.
    pub(crate) binary: String,
    /// `path::of::the::test`.
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    /// The folder to run it in.
    pub(crate) folder: PathBuf,
    /// Its duration in the recorded run.
    pub(crate) seconds: f64,
}

impl Test {
    /// Its name in nextest's output.
    pub(crate) fn id(&self) -> String {
        format!("{} {}", self.binary, self.name)
    }

    pub(crate) fn package(&self) -> &str {
        self.binary.split("::").next().unwrap_or_default()
    }
}

/// The record of a run of the suite.
pub(crate) struct Reach {
    /// Shortest first.
    tests: Vec<Test>,
    /// The tests that reach a place, as indices into `tests`.
    places: BTreeMap<String, Vec<usize>>,
}

impl Reach {
    /// The tests that reach a place, shortest first.
    pub(crate) fn tests(&self, place: &str) -> impl Iterator<Item = &Test> {
        let tests = self.places.get(place).into_iter().flatten();
        tests.map(|&index| &self.tests[index])
    }

    /// Reads a record from a folder. `list` is the command that lists the recorded tests.
    pub(crate) fn load(folder: &Path, list: &mut Command) -> Outcome<Reach> {
        let seconds = read(&folder.join(SECONDS))?;
        let seconds: BTreeMap<&str, f64> = seconds.lines().filter_map(parse_seconds).collect();
        let mut tests = listed(&capture_output(list)?)?;
        tests.retain_mut(|test| {
            let found = seconds.get(test.id().as_str());
            test.seconds = found.copied().unwrap_or_default();
            found.is_some()
        });
        tests.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
        let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, test) in tests.iter().enumerate() {
            let file = folder.join(test.id().replace('/', "%"));
            for place in fs::read_to_string(file).unwrap_or_default().lines() {
                let reached_by = places.entry(place.to_string()).or_default();
                // Several threads and processes of a test may have written the same place.
                if reached_by.last() != Some(&index) {
                    reached_by.push(index);
                }
            }
        }
        Ok(Reach { tests, places })
    }
}

/// The file with the duration of each test. Its name contains no space, unlike those of the tests' files.
const SECONDS: &str = "seconds";
/// The file with the hash of the recorded source.
const SOURCE: &str = "source";

/// A hash of everything that the tests are built from or read.
pub(crate) fn source() -> Outcome<String> {
    let others = ["xtask", "bench", "planted"];
    let is_tested = |file: &Path| {
        let is_other = others.iter().any(|folder| file.starts_with(folder));
        !is_other && file.extension().is_none_or(|ending| ending != "md")
    };
    Ok(hash_files(is_tested)?.to_string())
}

/// Whether a folder has a record of the present source.
pub(crate) fn is_recorded(folder: &Path) -> Outcome<bool> {
    let now = source()?;
    Ok(fs::read_to_string(folder.join(SOURCE)).is_ok_and(|then| then == now))
}

/// Runs the suite with nextest and records in a folder what its tests reach.
///
/// `see` gets each line of nextest's output. Fails if a test fails.
pub(crate) fn record(folder: &Path, nextest: &mut Command, see: impl FnMut(&str)) -> Outcome {
    let (_, outcome) = run_recorded(folder, nextest, see)?;
    outcome?;
    seal(folder)
}

/// As [`record`], but lists failing tests and leaves them out of the record: they cannot show that a fault is caught.
pub(crate) fn record_what_passes(folder: &Path, nextest: &mut Command) -> Outcome {
    let mut failed = Vec::new();
    let see = |line: &str| {
        if let Some(Line { verdict, id, .. }) = parse_line(line)
            && !["PASS", "LEAK", "SLOW", "Summary"].contains(&verdict)
        {
            failed.push(id.to_string());
        }
    };
    let (passed, outcome) = run_recorded(folder, nextest, see)?;
    if passed == 0 {
        outcome?;
    }
    failed.sort();
    failed.dedup();
    if !failed.is_empty() {
        println!("left out, because they fail without a fault: {}", failed.join(", "));
    }
    seal(folder)
}

/// Runs the suite. Returns the number of tests that passed, and whether all did.
fn run_recorded(
    folder: &Path,
    nextest: &mut Command,
    mut see: impl FnMut(&str),
) -> Outcome<(usize, Outcome)> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(failed)?;
    let (mut seconds, mut passed) = (String::new(), 0);
    nextest.args(["--no-fail-fast", "--status-level", "pass"]).env("TOURBILLON_REACHED", folder);
    let outcome = run_seen(nextest, Stream::Error, |line| {
        see(line);
        let Some(Line { verdict: "PASS" | "LEAK", id, seconds: time }) = parse_line(line) else {
            return true;
        };
        seconds.push_str(&format!("{time} {id}\n"));
        passed += 1;
        false
    });
    fs::write(folder.join(SECONDS), seconds).map_err(failed)?;
    Ok((passed, outcome))
}

/// Marks a record as made from the present source.
fn seal(folder: &Path) -> Outcome {
    fs::write(folder.join(SOURCE), source()?)
        .map_err(|error| format!("{}: {error}", folder.display()))
}

fn read(file: &Path) -> Outcome<String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

/// Parses `seconds binary test`.
fn parse_seconds(line: &str) -> Option<(&str, f64)> {
    let (seconds, id) = line.split_once(' ')?;
    Some((id, seconds.parse().ok()?))
}

/// A line of nextest's output about a test.
struct Line<'a> {
    verdict: &'a str,
    seconds: f64,
    id: &'a str,
}

/// Parses `PASS [   0.010s] (12/90) tourbillon::engine panics::name`.
fn parse_line(line: &str) -> Option<Line<'_>> {
    let (verdict, rest) = line.trim_start().split_once(" [")?;
    let (seconds, id) = rest.split_once("] ")?;
    let seconds = seconds.trim().strip_suffix('s')?.parse().ok()?;
    let id = id.trim();
    let id = id.strip_prefix('(').and_then(|rest| rest.split_once(") ")).map_or(id, |it| it.1);
    Some(Line { verdict, seconds, id: id.trim() })
}

/// The tests that nextest lists as JSON.
fn listed(json: &str) -> Outcome<Vec<Test>> {
    let json: Value = serde_json::from_str(json)
        .map_err(|error| format!("cargo nextest list: {error}: {json}"))?;
    let suites = json["rust-suites"].as_object().into_iter().flatten();
    let mut tests = Vec::new();
    for (binary, suite) in suites {
        let path = |key: &str| PathBuf::from(suite[key].as_str().unwrap_or_default());
        for name in suite["testcases"].as_object().into_iter().flatten().map(|(name, _)| name) {
            tests.push(Test {
                binary: binary.clone(),
                name: name.clone(),
                program: path("binary-path"),
                folder: path("cwd"),
                seconds: 0.0,
            });
        }
    }
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_nextest_are_understood() {
        let parse = |line| parse_line(line).map(|it| (it.verdict, it.seconds, it.id));
        let one = "tourbillon::engine panics::one";
        assert_eq!(
            parse("    PASS [   0.010s] (12/90) tourbillon::engine panics::one"),
            Some(("PASS", 0.01, one))
        );
        assert_eq!(
            parse(" TIMEOUT [  20.010s] ( 2/90) tourbillon::engine panics::one"),
            Some(("TIMEOUT", 20.01, one))
        );
        assert_eq!(
            parse("     SIGABRT [   1.5s] tourbillon::engine panics::one"),
            Some(("SIGABRT", 1.5, one))
        );
        assert_eq!(parse("error: could not compile"), None);
        assert_eq!(
            parse("     Summary [   0.9s] 3 tests run: 3 passed"),
            Some(("Summary", 0.9, "3 tests run: 3 passed"))
        );
    }

    #[test]
    fn the_list_of_nextest_is_understood() {
        let json = r#"{"rust-suites": {"a::b": {"binary-path": "/x/b", "cwd": "/y", "testcases": {"c::d": {}}}}}"#;
        let tests = listed(json).unwrap();
        let [test] = &tests[..] else { panic!("{} tests", tests.len()) };
        assert_eq!(
            (test.binary.as_str(), test.name.as_str(), test.package()),
            ("a::b", "c::d", "a")
        );
        assert_eq!(
            (test.program.as_path(), test.folder.as_path()),
            (Path::new("/x/b"), Path::new("/y"))
        );
    }
}
