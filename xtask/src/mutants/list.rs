//! The mutants that cargo-mutants lists: which code each one replaces, and by what.

use std::path::Path;

use serde_json::Value;

use crate::shell::{Outcome, capture_output, cargo};

/// One small change to the code.
pub(super) struct Mutant {
    /// Its index in the list.
    pub(super) number: usize,
    pub(super) genre: Genre,
    /// The path from the root of the repository.
    pub(super) file: String,
    pub(super) function: String,
    /// The replaced text; empty if the whole body of a function is replaced.
    pub(super) replaced: String,
    pub(super) replacement: String,
    /// Where the replaced text starts: line and column, from 1.
    pub(super) start: (usize, usize),
    /// Where the replaced text ends.
    pub(super) end: (usize, usize),
}

/// The kind of code that is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Genre {
    /// The body of a function, by a value.
    Function,
    /// An operator, by another or by nothing.
    Operator,
    /// An arm of a match, by nothing.
    Arm,
    /// The guard of an arm, by true or false.
    Guard,
    /// A field of a struct expression, by the value of the base.
    Field,
}

impl Mutant {
    /// The name by which a process activates it.
    pub(super) fn place(&self) -> String {
        format!("m{}", self.number)
    }

    /// Describes it independently of line numbers.
    pub(super) fn words(&self) -> String {
        let Mutant { file, function, replaced, replacement, genre, .. } = self;
        let file = file.trim_start_matches(super::SOURCE);
        match genre {
            Genre::Function => format!("{file}: {function}: returns {replacement}"),
            Genre::Arm | Genre::Field => format!("{file}: {function}: without `{replaced}`"),
            Genre::Operator | Genre::Guard => {
                format!("{file}: {function}: `{replaced}` replaced by `{replacement}`")
            }
        }
    }
}

/// Runs `cargo mutants --list` on a copy of the repository.
pub(super) fn list(copy: &Path) -> Outcome<String> {
    let mut list = cargo(&["mutants", "--list", "--json", "--all-features"]);
    capture_output(list.args(["--package", "tourbillon"]).current_dir(copy))
}

/// Parses that list.
pub(super) fn parse_list(json: &str, is_mutated: impl Fn(&str) -> bool) -> Outcome<Vec<Mutant>> {
    let json: Value =
        serde_json::from_str(json).map_err(|error| format!("cargo mutants --list: {error}"))?;
    let mut mutants = Vec::new();
    for one in json.as_array().into_iter().flatten() {
        let mutant = parse(one, mutants.len())?;
        if is_mutated(&mutant.file) {
            mutants.push(mutant);
        }
    }
    Ok(mutants)
}

fn parse(json: &Value, number: usize) -> Outcome<Mutant> {
    let text = |json: &Value| json.as_str().unwrap_or_default().to_string();
    let genre = match json["genre"].as_str() {
        Some("FnValue") => Genre::Function,
        Some("BinaryOperator" | "UnaryOperator") => Genre::Operator,
        Some("MatchArm") => Genre::Arm,
        Some("MatchArmGuard") => Genre::Guard,
        Some("StructField") => Genre::Field,
        other => return Err(format!("cargo-mutants has a genre that is new: {other:?}")),
    };
    let place = |end: &str| {
        let number = |key| json["span"][end][key].as_u64().unwrap_or(1) as usize;
        (number("line"), number("column"))
    };
    Ok(Mutant {
        number,
        genre,
        file: text(&json["file"]),
        function: text(&json["function"]["function_name"]),
        replaced: String::new(),
        replacement: text(&json["replacement"]),
        start: place("start"),
        end: place("end"),
    })
}
