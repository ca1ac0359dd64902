//! The gate: fails if an operation takes over 3 % more instructions than `bench/counts.txt` records.
//!
//! The counts depend on the compiler and the C library, which the file names. If this machine has others, the commit
//! that last changed the file is built in a git worktree under `target/gate` and counted here, and its counts replace
//! the record. `cargo xtask gate --record` writes the file; the commit that changes it must say why.
//!
//! Each run ends with a planted slowdown, one allocation per operation in one row, which must fail that row.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{Outcome, capture_output, cargo, root, run};

const RECORD: &str = "bench/counts.txt";
/// The rows of `bench instructions` that the gate compares.
///
/// `fire-on-driver` is left out: its timers become due in real time, so its count depends on the load.
const ROWS: &str = "insert,cancel,reschedule,fire,handle,key,typed,sleep";
/// The row that gets the planted slowdown: the quickest to count.
const PLANTED: &str = "cancel";
const MOST: f64 = 1.03;
const HEAD: &str = "\
# Instructions an operation, by callgrind: `cargo xtask gate` fails if one rises by more than 3 %.
# `cargo xtask gate --record` writes this file, in a commit that says why a count has changed.
";

type Counts = BTreeMap<String, f64>;

/// Counts every row and compares it with the record.
///
/// # Errors
///
/// The count of a row has risen, or the gate cannot compare. Outside CI the latter is only a warning.
pub(crate) fn check() -> Outcome {
    let Some(valgrind) = valgrind() else {
        return skipped("valgrind is missing: on Debian `apt install valgrind`");
    };
    println!("{valgrind}");
    let bench = build(&root(), &root().join("target"))?;
    let new = counts(&bench, ROWS, None)?;
    let text = fs::read_to_string(root().join(RECORD))
        .map_err(|error| format!("{RECORD}: {error}; `cargo xtask gate --record` writes it"))?;
    let (toolchain, recorded) = parse(&text);
    let old = if toolchain == self::toolchain()? {
        recorded
    } else {
        println!("{RECORD} is for {toolchain}, so its commit is counted here");
        match recording_commit()? {
            Some(commit) => recount(&commit)?,
            None => return skipped("the history is shallow: the recording commit is not in it"),
        }
    };
    judge(&old, &new)?;
    let slower = counts(&bench, PLANTED, Some(PLANTED))?;
    let old: Counts = old.into_iter().filter(|(row, _)| slower.contains_key(row)).collect();
    match judge(&old, &slower) {
        Err(wrong) if wrong.contains(PLANTED) => println!("planted slowdown: caught ({wrong})"),
        _ => return Err("the planted slowdown was not caught: the gate cannot fail".into()),
    }
    Ok(())
}

/// Counts this tree and writes the record.
pub(crate) fn record() -> Outcome {
    let bench = build(&root(), &root().join("target"))?;
    let mut text = format!("{HEAD}toolchain {}\n", toolchain()?);
    for (row, count) in counts(&bench, ROWS, None)? {
        text += &format!("{row} {count:.1}\n");
    }
    print!("{text}");
    fs::write(root().join(RECORD), text).map_err(|error| format!("{RECORD}: {error}"))
}

/// Outside CI a gate that did not run is a warning; in CI it is a failure.
fn skipped(why: &str) -> Outcome {
    if std::env::var_os("CI").is_some() {
        return Err(format!("the gate did not run: {why}"));
    }
    println!("WARNING: the gate did not run: {why}");
    Ok(())
}

fn valgrind() -> Option<String> {
    let version = capture_output(Command::new("valgrind").arg("--version")).ok()?;
    Some(version.trim().to_owned())
}

/// The compiler and the C library, on which the counts depend.
fn toolchain() -> Outcome<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = capture_output(Command::new(rustc).current_dir(root()).arg("-vV"))?;
    let field = |name: &str| {
        let line = version.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or("unknown").trim().to_owned()
    };
    let libc = capture_output(Command::new("ldd").arg("--version")).unwrap_or_default();
    let libc = libc.lines().next().and_then(|line| line.split(' ').next_back()).unwrap_or("none");
    let (release, commit, host) = (field("release:"), field("commit-hash:"), field("host:"));
    Ok(format!("rustc {release} {commit} {host}, libc {libc}"))
}

/// Builds `bench` without its peers. Returns the path of the program.
fn build(source: &Path, target: &Path) -> Outcome<PathBuf> {
    let mut build =
        cargo(&["build", "--release", "--quiet", "-p", "bench", "--no-default-features"]);
    build.current_dir(source).env("CARGO_TARGET_DIR", target);
    run(build.env_remove("RUSTC_WORKSPACE_WRAPPER").env_remove("RUSTFLAGS"))?;
    Ok(target.join("release/bench"))
}

/// Counts the rows of a build of `bench`, which may be of another commit, with this tree's `bench`.
fn counts(program: &Path, rows: &str, slower: Option<&str>) -> Outcome<Counts> {
    let mut command = Command::new(root().join("target/release/bench"));
    command.args(["instructions", "--exact", "--rows", rows, "--program"]).arg(program);
    command.env_remove("TOURBILLON_SLOWER");
    command.envs(slower.map(|row| ("TOURBILLON_SLOWER", row)));
    let (_, counts) = parse(&capture_output(&mut command)?);
    if counts.len() == rows.split(',').count() {
        Ok(counts)
    } else {
        Err(format!("of {rows} only these were counted: {counts:?}"))
    }
}

/// Parses a record: the toolchain line, and every line of a word and a number. Remarks are ignored.
fn parse(text: &str) -> (String, Counts) {
    let toolchain = text.lines().find_map(|line| line.strip_prefix("toolchain "));
    let counts = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    });
    (toolchain.unwrap_or("an unknown toolchain").to_owned(), counts.collect())
}

/// The commit that last changed the record; `None` if the history may be too shallow.
fn recording_commit() -> Outcome<Option<String>> {
    let git = |arguments: &[&str]| {
        capture_output(Command::new("git").current_dir(root()).args(arguments))
    };
    let shallow = git(&["rev-parse", "--is-shallow-repository"])?.trim() == "true";
    let commit = git(&["log", "-1", "--format=%H", "--", RECORD])?.trim().to_owned();
    Ok((!shallow && !commit.is_empty()).then_some(commit))
}

/// Builds a commit and counts it.
fn recount(commit: &str) -> Outcome<Counts> {
    let folder = root().join("target/gate");
    let (tree, target) = (folder.join("tree"), folder.join("target"));
    let git = || {
        let mut git = Command::new("git");
        git.current_dir(root());
        git
    };
    // Removes a worktree left by an interrupted run, if there is one.
    let _ = git().args(["worktree", "remove", "--force"]).arg(&tree).output();
    run(git().args(["worktree", "add", "--quiet", "--force", "--detach"]).arg(&tree).arg(commit))?;
    let counted = build(&tree, &target).and_then(|bench| counts(&bench, ROWS, None));
    run(git().args(["worktree", "remove", "--force"]).arg(&tree))?;
    counted
}

/// Prints every row. Fails with the names of the rows that have risen.
fn judge(old: &Counts, new: &Counts) -> Outcome {
    let mut risen = Vec::new();
    for (row, &before) in old {
        let now =
            *new.get(row).ok_or(format!("row {row} of the record is not counted any more"))?;
        let percent = (now / before - 1.0) * 100.0;
        println!("  {row:<16} {before:>8.1} → {now:>8.1}  {percent:+.1} %");
        if now > before * MOST {
            risen.push(format!("{row} {before:.1} → {now:.1} ({percent:+.1} %)"));
        }
    }
    if risen.is_empty() {
        return Ok(());
    }
    Err(format!("instructions have risen by more than 3 %: {}", risen.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::{judge, parse};

    #[test]
    fn a_rise_of_more_than_three_percent_fails_by_name() {
        let (toolchain, old) = parse("# words\ntoolchain rustc 1\ninsert 100.0\nkey 200.0\n");
        assert_eq!(toolchain, "rustc 1");
        let (_, same) = parse("row  instructions\n  insert  102.9  a remark\n  key  190.0\n");
        assert_eq!(judge(&old, &same), Ok(()));
        let (_, risen) = parse("insert 103.1\nkey 200.0\n");
        let wrong = judge(&old, &risen).unwrap_err();
        assert!(wrong.contains("insert") && !wrong.contains("key"), "{wrong}");
        let (_, missing) = parse("insert 100.0\n");
        assert!(judge(&old, &missing).unwrap_err().contains("key"));
    }
}
