//! The lists of planted faults, one `name | harm` per line, and the code that contains them.
//!
//! Twins are runs of a loom or shuttle model with a fault, which must fail. Their lists (`twins.rs`) name the faults
//! that only a model reliably catches.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::twins::{self, FLAGS, Twin};
use crate::shell::{Outcome, root, tracked};

/// A list of faults, and where they are planted.
pub(crate) struct List {
    /// The list: a file, or a folder of files.
    pub(super) path: &'static str,
    /// The sources that contain the faults.
    sources: &'static [&'static str],
    /// The packages whose tests are tried first.
    pub(super) tests: &'static [&'static str],
    /// The number of its faults that `cargo xtask test` tries.
    pub(super) sample: usize,
}

pub(super) const LISTS: &[List] = &[
    List {
        path: "planted/wheel.txt",
        sources: &["crates/wheel/src"],
        tests: &["tourbillon-wheel"],
        sample: 5,
    },
    List {
        path: "planted/engine",
        sources: &["crates/tourbillon/src"],
        tests: &["tourbillon"],
        sample: 20,
    },
    List {
        path: "planted/durable",
        sources: &["crates/durable/src", "sim/src"],
        tests: &["tourbillon-durable", "sim"],
        sample: 1,
    },
];

/// One fault.
pub(super) struct Fault {
    pub(super) name: String,
    /// What a user would notice.
    pub(super) harm: String,
    pub(super) list: &'static List,
}

impl List {
    /// All faults, in the order of the list.
    pub(super) fn faults(&'static self) -> Outcome<Vec<Fault>> {
        let mut all = Vec::new();
        for file in tracked()?.into_iter().filter(|file| file.starts_with(self.path)) {
            let text = fs::read_to_string(root().join(&file))
                .map_err(|error| format!("{}: {error}", file.display()))?;
            for line in text.lines().filter(|line| !line.is_empty()) {
                let (name, harm) = line
                    .split_once(" | ")
                    .ok_or_else(|| format!("{}: {line:?} is not `name | harm`", file.display()))?;
                all.push(Fault { name: name.to_string(), harm: harm.to_string(), list: self });
            }
        }
        Ok(all)
    }

    /// The faults in the code, and how often each one occurs.
    fn planted(&self) -> Outcome<BTreeMap<String, usize>> {
        let mut planted: BTreeMap<String, usize> = BTreeMap::new();
        for file in tracked()? {
            let here = self.sources.iter().any(|source| file.starts_with(source));
            if !here || file.ends_with("planted.rs") {
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

    /// Whether twins of the models use faults of this list.
    fn has_twins(&self) -> bool {
        self.path == "planted/engine"
    }
}

/// Reports differences between the lists and the code.
///
/// A fault of these lists must occur once in the code. A fault that only twins use may occur several times.
pub(crate) fn check(found: &mut Vec<String>) -> Outcome {
    for list in LISTS {
        let path = list.path;
        let suite: BTreeSet<String> = list.faults()?.into_iter().map(|fault| fault.name).collect();
        let mut all = suite.clone();
        for flag in FLAGS.iter().filter(|_| list.has_twins()) {
            let twins = twins::list(flag);
            for Twin { fault, harm, .. } in twins::twins(flag)? {
                if suite.contains(&fault) == harm.is_some() {
                    found.push(format!(
                        "{twins}: the harm of {fault} is told here or in {path}, once"
                    ));
                }
                all.insert(fault);
            }
        }
        let planted = list.planted()?;
        for (name, &times) in &planted {
            if !all.contains(name) {
                found.push(format!("{path}: {name} is planted, and its harm is not listed"));
            }
            if times > 1 && suite.contains(name) {
                found
                    .push(format!("{path}: {name} is planted {times} times; a fault is one place"));
            }
        }
        let missing = all.iter().filter(|name| !planted.contains_key(*name));
        found.extend(missing.map(|name| format!("{path}: {name} is listed, and not planted")));
    }
    Ok(())
}
