//! Builds a copy of the repository with all mutants that compile.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use serde_json::Value;

use super::list::Mutant;
use super::schema::{self, Schema};
use crate::shell::{Outcome, capture, with_faults};

/// A type error hides the errors of later compiler phases, so one round of checks is not enough.
const ROUNDS: usize = 30;

/// Writes the mutants into the copy. Returns the numbers of those that do not compile.
///
/// `sources` has the text of each file without mutants.
pub(super) fn write(
    copy: &Path,
    sources: &BTreeMap<String, String>,
    mutants: &[Mutant],
) -> Outcome<BTreeSet<usize>> {
    let mut dropped = BTreeSet::new();
    for round in 1..=ROUNDS {
        let mut schemata = BTreeMap::new();
        for (file, text) in sources {
            let own = mutants.iter().filter(|it| it.file == *file && !dropped.contains(&it.number));
            let schema = schema::write(text, &own.collect::<Vec<_>>())
                .map_err(|error| format!("{file}: {error}"))?;
            super::write_if_new(&copy.join(file), &schema.text)?;
            schemata.insert(file.as_str(), schema);
        }
        let written: BTreeSet<usize> = schemata.values().flat_map(Schema::mutants).collect();
        dropped.extend(mutants.iter().map(|it| it.number).filter(|it| !written.contains(it)));
        let wrong = blamed(copy, &schemata)?;
        println!(
            "round {round}: {} of {} mutants do not build",
            dropped.len() + wrong.len(),
            mutants.len()
        );
        if wrong.is_empty() {
            return Ok(dropped);
        }
        dropped.extend(wrong);
    }
    Err(format!("after {ROUNDS} rounds there are mutants that do not build"))
}

/// Checks the copy. Returns the mutants that cause the errors.
fn blamed(copy: &Path, schemata: &BTreeMap<&str, Schema>) -> Outcome<BTreeSet<usize>> {
    let mut check = super::cargo_in(copy, &["check", "-p", "tourbillon"]);
    check.args(["--all-features", "--lib", "--message-format", "json"]);
    let (text, fine) = capture(with_faults(&mut check))?;
    let mut blamed = BTreeSet::new();
    for line in text.lines() {
        let Ok(json) = serde_json::from_str::<Value>(line) else { continue };
        let message = &json["message"];
        if message["level"] != "error" || message["spans"].as_array().is_none_or(Vec::is_empty) {
            continue;
        }
        let found = blame(message, schemata);
        if found.is_empty() {
            return Err(format!("an error that no mutant has made:\n{}", message["rendered"]));
        }
        blamed.extend(found);
    }
    if blamed.is_empty() && !fine {
        return Err("the copy does not build".into());
    }
    Ok(blamed)
}

/// The mutants that cause an error: those at its spans, or else those of the choice around the spans.
fn blame(message: &Value, schemata: &BTreeMap<&str, Schema>) -> Vec<usize> {
    let mut spans = Vec::new();
    collect(message, &mut spans);
    let search = |primary: bool, find: fn(&Schema, &[Range<usize>]) -> Vec<usize>| {
        let mut all = Vec::new();
        for (file, schema) in schemata {
            let here = spans.iter().filter(|it| it.file == *file && (it.primary || !primary));
            let here: Vec<Range<usize>> = here.map(|it| it.at.clone()).collect();
            if !here.is_empty() {
                all.extend(find(schema, &here));
            }
        }
        (!all.is_empty()).then_some(all)
    };
    let pointed_at = search(true, Schema::alternatives_at);
    let pointed_at = pointed_at.or_else(|| search(false, Schema::alternatives_at));
    pointed_at.or_else(|| search(true, Schema::choice_around)).unwrap_or_default()
}

/// A span in a compiler message.
struct At {
    file: String,
    at: Range<usize>,
    primary: bool,
}

/// The spans of a message, of its notes, and of the macros that they expand from.
fn collect(message: &Value, found: &mut Vec<At>) {
    for span in message["spans"].as_array().into_iter().flatten() {
        let mut span = span;
        let primary = span["is_primary"] == true;
        while let Some(file) = span["file_name"].as_str() {
            let byte = |key: &str| span[key].as_u64().unwrap_or_default() as usize;
            let at = byte("byte_start")..byte("byte_end");
            found.push(At { file: file.to_string(), at, primary });
            span = &span["expansion"]["span"];
        }
    }
    for child in message["children"].as_array().into_iter().flatten() {
        let before = found.len();
        collect(child, found);
        found[before..].iter_mut().for_each(|it| it.primary = false);
    }
}
