//! The results: a row for each room, and the mutants that survived.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::SOURCE;
use super::list::Mutant;
use crate::shell::{Outcome, root};
use crate::trial::Verdict;

const EXPLAINED: &str = "planted/mutants.txt";

#[derive(Default)]
struct Row {
    tested: usize,
    caught: usize,
    hung: usize,
    unreached: usize,
    survived: usize,
    explained: usize,
    unbuilt: usize,
}

/// Prints the table. Fails if a mutant survived without an explanation, or was caught despite one.
pub(super) fn print(
    mutants: &[&Mutant],
    unbuilt: &BTreeSet<usize>,
    verdict: impl Fn(&Mutant) -> Option<Verdict>,
) -> Outcome {
    let explained = Explained::load()?;
    let (mut rows, mut through): (BTreeMap<String, Row>, Vec<String>) = Default::default();
    let mut used = BTreeSet::new();
    for &mutant in mutants {
        let inside = mutant.file.trim_start_matches(SOURCE);
        let room = inside.split('/').next().unwrap_or_default();
        let words = mutant.words();
        for name in [room, "in all"] {
            let row = rows.entry(name.to_string()).or_default();
            if unbuilt.contains(&mutant.number) {
                row.unbuilt += 1;
                continue;
            }
            row.tested += 1;
            let reason = explained.find(&words);
            let mut got_through = |why: &str| {
                row.explained += usize::from(reason.is_some());
                used.extend(reason);
                if reason.is_none() && name == room {
                    let (line, column) = mutant.start;
                    through.push(format!(
                        "{}:{line}:{column} {} ({why})",
                        mutant.file,
                        mutant.words()
                    ));
                }
            };
            match verdict(mutant) {
                Some(Verdict::Caught(_)) => row.caught += 1,
                Some(Verdict::Hangs(_)) => row.hung += 1,
                Some(Verdict::Survived) => {
                    got_through("survived");
                    row.survived += 1;
                }
                Some(Verdict::Unreached) => {
                    got_through("not reached");
                    row.unreached += 1;
                }
                None => return Err(format!("{words} was not tried")),
            }
        }
    }
    println!(
        "\n{:<12} {:>7} {:>7} {:>9} {:>11} {:>8} {:>9} {:>12}",
        "room",
        "tested",
        "caught",
        "timed out",
        "not reached",
        "survived",
        "explained",
        "do not build"
    );
    let all = rows.remove("in all").map(|row| ("in all".to_string(), row));
    for (room, row) in rows.into_iter().chain(all) {
        let Row { tested, caught, hung, unreached, survived, explained, unbuilt } = row;
        println!(
            "{room:<12} {tested:>7} {caught:>7} {hung:>9} {unreached:>11} {survived:>8} {explained:>9} {unbuilt:>12}"
        );
    }
    let files: BTreeSet<&str> =
        mutants.iter().map(|mutant| mutant.file.trim_start_matches(SOURCE)).collect();
    let stale = explained.0.iter().filter(|words| !used.contains(words.as_str()));
    let stale = stale.filter(|words| words.split(": ").next().is_some_and(|it| files.contains(it)));
    through.extend(
        stale.map(|words| format!("{EXPLAINED}: {words}: is caught, or no mutant any more")),
    );
    if through.is_empty() {
        return Ok(());
    }
    Err(format!("{} not explained in {EXPLAINED}:\n  {}", through.len(), through.join("\n  ")))
}

/// The mutants that `planted/mutants.txt` explains, one per line: `file: function: what is replaced | why no user can
/// notice`. A star in place of what is replaced stands for everything in the function.
pub(super) struct Explained(Vec<String>);

impl Explained {
    pub(super) fn load() -> Outcome<Self> {
        let text = fs::read_to_string(root().join(EXPLAINED)).unwrap_or_default();
        let mut all = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            // The code may contain a bar, so the last one is the separator.
            let (words, _) = line.rsplit_once(" | ").ok_or_else(|| {
                format!("{EXPLAINED}: {line:?} is not `mutant | why no user can notice`")
            })?;
            all.push(words.to_string());
        }
        Ok(Explained(all))
    }

    /// The line that explains a mutant.
    pub(super) fn find(&self, words: &str) -> Option<&str> {
        let explains = |line: &&String| match line.strip_suffix('*') {
            Some(function) => words.starts_with(function),
            None => *line == words,
        };
        self.0.iter().find(explains).map(String::as_str)
    }
}
