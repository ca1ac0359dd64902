//! Every test that a table in `docs/http-api.md` names must exist.

use std::collections::BTreeSet;
use std::path::Path;

/// The names of functions in the Rust files of a folder.
fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            functions(&path, names);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let name = |line: &str| {
                Some(
                    line.trim()
                        .trim_start_matches("async ")
                        .strip_prefix("fn ")?
                        .split(['(', '<'])
                        .next()?
                        .to_owned(),
                )
            };
            names.extend(text.lines().filter_map(name));
        }
    }
}

#[test]
fn every_test_that_the_table_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // A packaged crate has no docs.
    let Ok(page) = std::fs::read_to_string(root.join("docs/http-api.md")) else { return };
    let table = page.split("## Which test shows it").nth(1).unwrap();
    let mut there = BTreeSet::new();
    for folder in [
        "crates/server",
        "crates/client/tests",
        "crates/cli/src",
        "crates/cli/tests",
        "crates/durable/tests",
        "browser/tests",
    ] {
        functions(&root.join(folder), &mut there);
    }
    let is_test = |word: &&str| {
        word.matches('_').count() > 1
            && word
                .chars()
                .all(|char| char.is_ascii_lowercase() || char == '_' || char.is_ascii_digit())
    };
    let named: Vec<&str> = table.split('`').filter(is_test).collect();
    assert!(named.len() > 100, "{}", named.len());
    let missing: Vec<&&str> = named.iter().filter(|name| !there.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
