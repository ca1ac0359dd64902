//! Checks the style rules that hold in every file of the source.

use std::fs;
use std::path::Path;

use crate::drawings;
use crate::models::{LOOM, SHUTTLE};
use crate::planted;
use crate::rooms;
use crate::shell::{Outcome, root, tracked};
use crate::translation;

const LONGEST_LINE: usize = 120;
/// A file usually fits in 300 lines; beyond 500 it should be split.
const LONGEST_FILE: usize = 500;
/// The only files with unsafe code: callbacks stored in the wheel; and for tests and benches, allocators that count or
/// fail, and a waker that panics.
const UNSAFE: &[&str] = &[
    "crates/tourbillon/src/timer/inline.rs",
    "crates/wheel/tests/memory.rs",
    "crates/tourbillon/tests/rounds/allocator.rs",
    "crates/tourbillon/tests/tasks/by_hand.rs",
    "bench/src/counting.rs",
    "bench/src/wheel/contestants/intrusive.rs",
];
/// This file, which contains the forbidden words itself.
const THIS: &str = "xtask/src/tidy.rs";

pub(crate) fn run() -> Outcome {
    let mut found = Vec::new();
    let files = tracked()?;
    for path in &files {
        let name = path.to_string_lossy().replace('\\', "/");
        let Ok(text) = fs::read_to_string(root().join(path)) else { continue };
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("rs") => source(&name, &text, &mut found),
            Some("md") => links(&name, &text, &mut found),
            Some("js" | "css") => page(&name, &text, &mut found),
            _ => {}
        }
    }
    laws(&mut found);
    drawings::check(&mut found);
    translation::check(&mut found)?;
    planted::lists::check(&mut found)?;
    for checker in [LOOM, SHUTTLE] {
        checker.check(&mut found)?;
    }
    let rooms = rooms::check(&mut found)?;
    if found.is_empty() {
        rooms.iter().for_each(|line| println!("rooms: {line}"));
        println!("tidy: {} files are", files.len());
        return Ok(());
    }
    Err(format!("not tidy:\n  {}", found.join("\n  ")))
}

fn source(name: &str, text: &str, found: &mut Vec<String>) {
    if !text.starts_with("//!") {
        found.push(format!("{name}:1: a file opens with what it owns and promises (`//! …`)"));
    }
    let lines = text.lines().count();
    if lines > LONGEST_FILE {
        found.push(format!(
            "{name}: {lines} lines; at more than {LONGEST_FILE} it has two reasons to exist"
        ));
    }
    if name.contains("/tests/") && sleeps(text) && !says_real_time(text) {
        found.push(format!("{name}: a test that sleeps says at its head why it needs real time"));
    }
    let library = [
        "crates/wheel/src",
        "crates/tourbillon/src",
        "crates/durable/src",
        "crates/server/src",
        "crates/client/src",
        "crates/hyper/src",
        "crates/quinn/src",
    ]
    .iter()
    .any(|path| name.starts_with(path));
    let library = library && !name.ends_with("/schedules.rs");
    for (number, line) in text.lines().enumerate() {
        let mut complain = |wrong: &str| found.push(format!("{name}:{}: {wrong}", number + 1));
        if line.chars().count() > LONGEST_LINE {
            complain(&format!("longer than {LONGEST_LINE} characters"));
        }
        if line.contains('\t') || line.ends_with(' ') {
            complain("a tab, or a space at the end");
        }
        if name == THIS {
            continue;
        }
        for word in ["todo!(", "unimplemented!(", "dbg!(", "FIXME", "#[ignore"] {
            if line.contains(word) {
                complain(&format!("{word} is for later, and later is now"));
            }
        }
        let example = line.trim_start().starts_with("//");
        if library
            && !example
            && ["println!", "print!(", "eprint"].iter().any(|word| line.contains(word))
        {
            complain("a library never prints");
        }
        let code = line.split("//").next().unwrap_or_default();
        if code.contains("unsafe ") && !code.contains('"') && !UNSAFE.contains(&name) {
            complain("unsafe code outside the files that may have it");
        }
    }
}

/// Whether the code makes the thread sleep; `timer.sleep(…)` and `tasks::sleep(…)` do not.
fn sleeps(text: &str) -> bool {
    let belongs = |c: char| c.is_alphanumeric() || "_.:".contains(c);
    text.lines().filter_map(|line| line.split("//").next()).any(|code| {
        let mut found = code.match_indices("sleep(Duration");
        code.contains("thread::sleep(") || found.any(|(at, _)| !code[..at].ends_with(belongs))
    })
}

/// Whether the head of the file contains the words "real time".
fn says_real_time(text: &str) -> bool {
    let head: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).collect();
    // A line break may separate the words.
    head.concat().to_lowercase().contains("real time")
}

/// The files of the live page.
fn page(name: &str, text: &str, found: &mut Vec<String>) {
    if !text.starts_with("//") && !text.starts_with("/*") {
        found.push(format!("{name}:1: a file opens with what it owns and promises"));
    }
    for (number, line) in text.lines().enumerate() {
        let mut complain = |wrong: &str| found.push(format!("{name}:{}: {wrong}", number + 1));
        if line.chars().count() > LONGEST_LINE || line.contains('\t') || line.ends_with(' ') {
            complain("too long, a tab, or a space at the end");
        }
        let ours = ["ws://${location.host}", "http://www.w3.org/2000/svg"];
        if line.contains("://") && !ours.iter().any(|ours| line.contains(ours)) {
            complain("an address: the page asks no other host for anything");
        }
    }
}

/// Checks that links to files of the repository have a target.
fn links(name: &str, text: &str, found: &mut Vec<String>) {
    for piece in text.split("](").skip(1) {
        let target = piece.split([')', '#']).next().unwrap_or_default();
        // Skips links to other hosts, and intra-doc links, which rustdoc checks.
        if target.is_empty() || target.contains("://") || target.starts_with("crate::") {
            continue;
        }
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        if !root().join(folder).join(target).exists() {
            found.push(format!("{name}: a link to {target}, which does not exist"));
        }
    }
}

/// Checks the attributes at the head of each crate.
fn laws(found: &mut Vec<String>) {
    for (name, law) in [
        ("crates/wheel/src/lib.rs", "#![no_std]"),
        ("crates/wheel/src/lib.rs", "#![forbid(unsafe_code)]"),
        ("crates/tourbillon/src/lib.rs", "#![deny(unsafe_code)]"),
    ] {
        let text = fs::read_to_string(root().join(name)).unwrap_or_default();
        if !text.contains(law) {
            found.push(format!("{name}: {law} is missing"));
        }
    }
}
