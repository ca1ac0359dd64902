//! Mutation testing: tries every mutant that cargo-mutants lists for the engine, in one build.
//!
//! One build per mutant would take days. Instead all mutants are written into a scratch copy of the repository as
//! alternatives (`schema.rs`). A process activates one of them, as with planted faults. Mutants that do not compile are
//! left out (`build.rs`). One run of the suite records which tests reach which mutants, and each mutant is tried with
//! only those tests. `target/mutants` keeps the results: an interrupted run is resumed, and survivors are tried again
//! if anything has changed. A mutant that no test notices is a gap, unless `planted/mutants.txt` explains it.

mod build;
mod cfg;
mod list;
mod report;
mod schema;
mod strip;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::reach::{self, Reach, Test};
use crate::scratch;
use crate::shell::{self, Outcome, capture, cargo, root, tracked, with_faults};
use crate::trial::{Verdict, try_all};
use list::Mutant;
use report::Explained;

/// The mutated rooms (module folders), relative to the engine's `src`.
const ROOMS: &[&str] = &[
    "clock/",
    "cron/",
    "engine/",
    "keyed/",
    "leases.rs",
    "purgatory/",
    "queue/",
    "retry.rs",
    "sleeper.rs",
    "tasks/",
    "timer/",
    "typed.rs",
    "wakers/",
];
const SOURCE: &str = "crates/tourbillon/src/";
/// The tests to try: those of the engine.
const TESTED: &[&str] = &["-p", "tourbillon", "--all-features", "--lib", "--tests"];

/// The macro through which a process activates a mutant, and an attribute against warnings about generated code.
const CHOOSE: &str = r#"
macro_rules! mutant {
    ($name:literal) => {{
        static PLACE: tourbillon_wheel::PlantedPlace =
            tourbillon_wheel::PlantedPlace::new(concat!($name, "\n"));
        PLACE.is_chosen()
    }};
}
"#;
const SILENCE: &str = "#![allow(warnings, arithmetic_overflow, unconditional_panic)]\n";

/// Tries every mutant of the files with `part` in their path.
pub(crate) fn run(part: &str) -> Outcome {
    if !capture(&mut cargo(&["mutants", "--version"])).is_ok_and(|(_, fine)| fine) {
        shell::run(&mut cargo(&["install", "--locked", "cargo-mutants"]))?;
    }
    let (mutants, unbuilt) = prepare()?;
    let chosen: Vec<&Mutant> = mutants.iter().filter(|mutant| mutant.file.contains(part)).collect();
    if chosen.is_empty() {
        return Err(format!("no mutated file has {part:?} in its path"));
    }
    let mut results = Results::load()?;
    let open: Vec<&Mutant> = chosen
        .iter()
        .copied()
        .filter(|it| !unbuilt.contains(&it.number) && results.of(it).is_none())
        .collect();
    if !open.is_empty() {
        try_open(&open, &mut results)?;
    }
    report::print(&chosen, &unbuilt, |mutant| results.of(mutant))
}

/// Writes the copy with all mutants. Returns them, and the numbers of those that do not compile.
fn prepare() -> Outcome<(Vec<Mutant>, BTreeSet<usize>)> {
    let copy = scratch::copy();
    let sources = sources()?;
    let (list, unbuilt) = (folder().join("list.json"), folder().join("unbuilt"));
    scratch::lay_out(is_source)?;
    let hash = hash(&sources);
    let is_current = fs::read_to_string(folder().join("source")).is_ok_and(|it| it == hash);
    if !is_current {
        for (file, text) in &sources {
            write_if_new(&copy.join(file), text)?;
        }
        write_if_new(&list, &list::list(&copy)?)?;
    }
    let mut mutants = list::parse_list(&read(&list)?, is_mutated)?;
    describe(&mut mutants, &sources)?;
    if !is_current {
        let numbers = build::write(&copy, &sources, &mutants)?;
        let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
        write_if_new(&unbuilt, &numbers.join("\n"))?;
        write_if_new(&folder().join("source"), &hash)?;
    }
    let mut numbers: BTreeSet<usize> =
        read(&unbuilt)?.lines().filter_map(|line| line.parse().ok()).collect();
    for (file, text) in &sources {
        let own: Vec<&Mutant> = mutants.iter().filter(|mutant| mutant.file == *file).collect();
        let parts = cfg::left_out(text).map_err(|error| format!("{file}: {error}"))?;
        numbers.extend(schema::inside(text, &own, &parts));
    }
    Ok((mutants, numbers))
}

/// The sources of the engine without planted faults, which are then mutated.
fn sources() -> Outcome<BTreeMap<String, String>> {
    let mut sources = BTreeMap::new();
    for file in tracked()?.into_iter().filter(|file| is_source(file)) {
        let name = file.to_string_lossy().replace('\\', "/");
        let text = read(&root().join(&file))?;
        let mut text = strip::strip(&text).map_err(|error| format!("{name}: {error}"))?;
        if name.ends_with("src/planted.rs") {
            text.push_str(CHOOSE);
        } else if name.ends_with("src/lib.rs") {
            text.insert_str(0, SILENCE);
        }
        sources.insert(name, text);
    }
    Ok(sources)
}

fn is_source(file: &Path) -> bool {
    file.starts_with(SOURCE)
}

fn is_mutated(file: &str) -> bool {
    let inside = file.strip_prefix(SOURCE);
    inside.is_some_and(|inside| ROOMS.iter().any(|room| inside.starts_with(room)))
        && !file.ends_with("/tests.rs")
}

fn describe(mutants: &mut [Mutant], sources: &BTreeMap<String, String>) -> Outcome {
    for (file, text) in sources {
        let own: Vec<&Mutant> = mutants.iter().filter(|mutant| mutant.file == *file).collect();
        let numbers: Vec<usize> = own.iter().map(|mutant| mutant.number).collect();
        let replaced = schema::replaced(text, &own).map_err(|error| format!("{file}: {error}"))?;
        for (number, replaced) in numbers.into_iter().zip(replaced) {
            mutants[number].replaced = replaced;
        }
    }
    Ok(())
}

fn hash(sources: &BTreeMap<String, String>) -> String {
    let mut hasher = DefaultHasher::new();
    sources.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The folder for all results.
fn folder() -> PathBuf {
    root().join("target/mutants")
}

fn read(file: &Path) -> Outcome<String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

/// Writes a file only if its text changes: its modification time stays, so that little is rebuilt.
fn write_if_new(file: &Path, text: &str) -> Outcome {
    if fs::read_to_string(file).is_ok_and(|it| it == text) {
        return Ok(());
    }
    let folder = file.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(file, text))
        .map_err(|error| format!("{}: {error}", file.display()))
}

/// A cargo command in the copy. It shares the target folder, because the dependencies are the same.
fn cargo_in(copy: &Path, arguments: &[&str]) -> Command {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let mut command = cargo(arguments);
    command.current_dir(copy);
    command.env("CARGO_TARGET_DIR", target.unwrap_or_else(|| root().join("target")));
    command
}

fn nextest(verb: &str) -> Command {
    let mut command = cargo_in(&scratch::copy(), &["nextest", verb]);
    with_faults(command.args(TESTED));
    command
}

fn try_open(open: &[&Mutant], results: &mut Results) -> Outcome {
    let reached = folder().join("reached");
    if !reach::is_recorded(&reached)? {
        // A test that measures or reads the source may fail with mutants built in.
        reach::record_what_passes(&reached, &mut nextest("run"))?;
    }
    let reach = Reach::load(&reached, nextest("list").args(["--message-format", "json"]))?;
    let names: Vec<String> = open.iter().map(|mutant| mutant.place()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let file_of: BTreeMap<&str, &str> =
        names.iter().copied().zip(open.iter().map(|mutant| mutant.file.as_str())).collect();
    // A test that caught a mutant of this file is likely to catch others.
    let caught_by: Mutex<BTreeMap<&str, Vec<String>>> = Mutex::default();
    let witnesses = || caught_by.lock().unwrap_or_else(PoisonError::into_inner);
    let tests = |name: &str| -> Vec<&Test> {
        let known = witnesses().get(file_of[name]).cloned().unwrap_or_default();
        let (mut first, rest): (Vec<_>, Vec<_>) =
            reach.tests(name).partition(|test| known.contains(&test.id()));
        first.extend(rest);
        first
    };
    try_all(&names, tests, |index, verdict, seconds| {
        let mutant = open[index];
        if let Verdict::Caught(test) | Verdict::Hangs(test) = &verdict {
            let mut all = witnesses();
            let known = all.entry(mutant.file.as_str()).or_default();
            if !known.contains(test) {
                known.push(test.clone());
            }
        }
        println!(
            "{} of {}: {} {verdict:?} ({seconds:.1} s)",
            index + 1,
            open.len(),
            mutant.words()
        );
        results.add(mutant, verdict)
    })
}

/// The recorded verdicts. A verdict is valid while the mutant's file is unchanged. An unexplained survival is valid
/// only while all sources are unchanged, because a new test may catch the mutant.
struct Results {
    all: BTreeMap<String, Verdict>,
    files: Mutex<BTreeMap<String, String>>,
    everything: String,
}

impl Results {
    fn load() -> Outcome<Self> {
        let everything = reach::source()?;
        let mut results = Results { all: BTreeMap::new(), files: Mutex::default(), everything };
        let explained = Explained::load()?;
        let text = fs::read_to_string(folder().join("results")).unwrap_or_default();
        for line in text.lines() {
            let mut columns = line.split('\t');
            let [Some(key), Some(of), Some(verdict)] =
                [columns.next(), columns.next(), columns.next()]
            else {
                continue;
            };
            let words = key.splitn(3, ' ').last().unwrap_or_default();
            let holds = of == results.everything || explained.find(words).is_some();
            let verdict = match verdict.split_once(": ").unwrap_or((verdict, "")) {
                ("caught", test) => Verdict::Caught(test.to_string()),
                ("hangs", test) => Verdict::Hangs(test.to_string()),
                ("survived", _) if holds => Verdict::Survived,
                ("unreached", _) if holds => Verdict::Unreached,
                _ => continue,
            };
            results.all.insert(key.to_string(), verdict);
        }
        Ok(results)
    }

    fn of(&self, mutant: &Mutant) -> Option<Verdict> {
        self.all.get(&self.key(mutant)).cloned()
    }

    fn add(&mut self, mutant: &Mutant, verdict: Verdict) -> Outcome {
        let key = self.key(mutant);
        let words = match &verdict {
            Verdict::Caught(test) => format!("caught: {test}"),
            Verdict::Hangs(test) => format!("hangs: {test}"),
            Verdict::Survived => "survived".to_string(),
            Verdict::Unreached => "unreached".to_string(),
        };
        let line = format!("{key}\t{}\t{words}\n", self.everything);
        let file = folder().join("results");
        let file = fs::OpenOptions::new().create(true).append(true).open(file);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.map_err(|error| format!("target/mutants/results: {error}"))?;
        self.all.insert(key, verdict);
        Ok(())
    }

    /// Identifies a mutant and the present content of its file.
    fn key(&self, mutant: &Mutant) -> String {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = files.entry(mutant.file.clone()).or_insert_with(|| {
            let mut hasher = DefaultHasher::new();
            fs::read(root().join(&mutant.file)).unwrap_or_default().hash(&mut hasher);
            format!("{:016x}", hasher.finish())
        });
        let (line, column) = mutant.start;
        format!("{hash} {line}:{column} {}", mutant.words())
    }
}
