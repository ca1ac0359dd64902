//! cargo-mutants over the engine: every small change of a function that it knows, one at a time.
//!
//! It works on the scratch copy, a file at a time, and keeps what each file showed in `target/mutants`: run again, it
//! goes on with the files that are missing or have changed. A mutant that no test notices is a gap, unless
//! `planted/mutants.txt` lists it with the reason why it changes nothing that a user could see.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::scratch;
use crate::shell::{self, Outcome, capture, cargo, root, tracked};

/// The rooms that are mutated, below the sources of the engine, and the tests that know them best. A build of all tests
/// takes minutes: a mutant meets these first, and all of them only if it got through.
const ROOMS: &[(&str, &[&str])] = &[
    ("engine/", &["engine", "people"]),
    ("timer/", &["engine", "people"]),
    ("tasks/", &["tasks", "faces"]),
    ("queue/", &["people", "verbs"]),
    ("purgatory/", &["purgatory"]),
    ("keyed/", &["keyed"]),
    ("clock/", &["engine", "verbs"]),
    ("wall/", &["wall", "calendar"]),
];
const SOURCE: &str = "crates/tourbillon/src/";
const EXPLAINED: &str = "planted/mutants.txt";

/// Mutates every file with `part` in its path.
pub(crate) fn run(part: &str) -> Outcome {
    if !capture(&mut cargo(&["mutants", "--version"])).is_ok_and(|(_, fine)| fine) {
        shell::run(&mut cargo(&["install", "--locked", "cargo-mutants"]))?;
    }
    let files = files(part)?;
    scratch::lay_out()?;
    for (number, file) in files.iter().enumerate() {
        if !is_done(file)? {
            println!("{} of {}: {file}", number + 1, files.len());
            mutate(file)?;
        }
    }
    report(&files)
}

fn files(part: &str) -> Outcome<Vec<String>> {
    let files = tracked()?.into_iter().map(|file| file.to_string_lossy().replace('\\', "/"));
    let in_room = |file: &String| {
        let inside = file.strip_prefix(SOURCE);
        inside.is_some_and(|inside| ROOMS.iter().any(|(room, _)| inside.starts_with(room)))
            && !file.ends_with("/tests.rs")
            && file.contains(part)
    };
    let files: Vec<String> = files.filter(in_room).collect();
    if files.is_empty() {
        Err(format!("no file of the engine has {part:?} in its path"))
    } else {
        Ok(files)
    }
}

/// Where the outcome of a file lies.
fn folder(file: &str) -> PathBuf {
    let name = file.trim_start_matches(SOURCE).replace('/', "-");
    root().join("target/mutants").join(name)
}

fn hash(file: &str) -> Outcome<String> {
    let text = fs::read(root().join(file)).map_err(|error| format!("{file}: {error}"))?;
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

fn is_done(file: &str) -> Outcome<bool> {
    Ok(fs::read_to_string(folder(file).join("of")).is_ok_and(|of| Ok(of) == hash(file)))
}

fn mutate(file: &str) -> Outcome {
    let folder = folder(file);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let inside = file.trim_start_matches(SOURCE);
    let room = ROOMS.iter().find(|(room, _)| inside.starts_with(room));
    let first = room.map_or(&[][..], |(_, tests)| tests).iter().flat_map(|test| ["--test", *test]);
    mutate_with(file, &folder, &[], first.collect())?;
    mutate_with(file, &folder, &["--iterate"], vec!["--tests"])?;
    fs::write(folder.join("of"), hash(file)?).map_err(|error| error.to_string())
}

/// Runs these tests against every mutant of the file; with `--iterate` against those that got through before.
fn mutate_with(file: &str, folder: &Path, how: &[&str], tests: Vec<&str>) -> Outcome {
    let mut mutants = cargo(&["mutants", "--in-place", "--file", file, "--output"]);
    mutants.arg(folder).args(how).args(["--package", "tourbillon", "--all-features"]);
    mutants.args(["--test-tool", "nextest", "--profile", "mutants", "--baseline", "skip"]);
    mutants.args(["--timeout", "120", "--no-shuffle", "--", "--lib"]).args(tests);
    mutants.current_dir(scratch::copy()).env("NEXTEST_PROFILE", "planted");
    mutants.env("CARGO_TARGET_DIR", scratch::folder().join("mutants"));
    // It fails if a mutant got through: that is for the report.
    let _ = shell::run(&mut mutants);
    scratch::lay_out()?;
    if !folder.join("mutants.out/outcomes.json").exists() {
        return Err(format!("cargo-mutants did not get through {file}"));
    }
    Ok(())
}

/// Prints a row for each file, and every mutant that was missed and is not explained.
fn report(files: &[String]) -> Outcome {
    let explained = fs::read_to_string(root().join(EXPLAINED)).unwrap_or_default();
    let explained: BTreeMap<&str, &str> =
        explained.lines().filter_map(|line| line.split_once(" | ")).collect();
    let mut unexplained = Vec::new();
    println!(
        "{:<40} {:>7} {:>7} {:>8} {:>7} {:>9}",
        "file", "caught", "hung", "unbuilt", "missed", "explained"
    );
    for file in files {
        let listed = |name: &str| read_lines(&folder(file).join("mutants.out").join(name));
        let missed = listed("missed.txt");
        // The place of a mutant moves with every change above it: its words do not.
        let words = missed.iter().map(|line| without_place(line));
        let (known, unknown): (Vec<_>, Vec<_>) =
            words.partition(|mutant| explained.contains_key(mutant.as_str()));
        println!(
            "{:<40} {:>7} {:>7} {:>8} {:>7} {:>9}",
            file.trim_start_matches(SOURCE),
            listed("caught.txt").len() + listed("previously_caught.txt").len(),
            listed("timeout.txt").len(),
            listed("unviable.txt").len(),
            missed.len(),
            known.len()
        );
        unexplained.extend(unknown);
    }
    if unexplained.is_empty() {
        return Ok(());
    }
    Err(format!("missed, and not explained in {EXPLAINED}:\n  {}", unexplained.join("\n  ")))
}

fn read_lines(file: &Path) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().lines().map(str::to_string).collect()
}

/// `path:line:column: what` as `path: what`.
fn without_place(mutant: &str) -> String {
    let mut parts = mutant.splitn(4, ':');
    let (file, what) = (parts.next().unwrap_or_default(), parts.nth(2).unwrap_or_default());
    format!("{file}:{what}")
}
