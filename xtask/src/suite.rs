//! Everything that must hold, in the order in which it is quickest to find out that it does not.

use std::path::PathBuf;
use std::time::Instant;

use crate::models::{LOOM, SHUTTLE};
use crate::shell::{Outcome, capture, cargo, root, run, run_seen};
use crate::{browser, tidy};

/// The crates that are published.
const PUBLISHED: &[&str] = &["tourbillon-wheel", "tourbillon", "tourbillon-cli"];

pub(crate) fn everything() -> Outcome {
    let began = Instant::now();
    tidy::run()?;
    browser::install(&[])?;
    run_with(cargo(&["fmt", "--all", "--check"]), "rustfmt")?;
    timed("lints", lints)?;
    timed("docs", docs)?;
    timed("packages", package)?;
    let mut tests = timed("tests", tests)?;
    for checker in [LOOM, SHUTTLE] {
        tests.passed += timed("models", || checker.models())?.len();
    }
    println!("\nall of it took {:.0} s", began.elapsed().as_secs_f64());
    println!("{} passed, {} failed", tests.passed, tests.failed);
    if tests.failed > 0 { Err("some tests failed".into()) } else { Ok(()) }
}

/// Says how long it took.
fn timed<T>(what: &str, part: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let began = Instant::now();
    let done = part()?;
    println!("{what}: {:.0} s", began.elapsed().as_secs_f64());
    Ok(done)
}

/// With every feature, and the library with none as well.
fn lints() -> Outcome {
    let all = ["--workspace", "--all-features", "--all-targets"];
    for what in [&all[..], &["-p", "tourbillon"]] {
        let mut clippy = cargo(&["clippy", "--profile", "checked"]);
        clippy.args(what).args(["--", "-D", "warnings"]);
        run_with(clippy, "clippy")?;
    }
    Ok(())
}

fn docs() -> Outcome {
    // With the profile of the lints: what they have looked at need not be looked at again.
    let mut doc = cargo(&["doc", "--workspace", "--all-features", "--no-deps"]);
    run(doc.args(["--profile", "checked"]).env("RUSTDOCFLAGS", "-D warnings"))
}

fn run_with(mut command: std::process::Command, component: &str) -> Outcome {
    run(&mut command).map_err(|wrong| {
        format!("{wrong} (if it is not installed: rustup component add {component})")
    })
}

#[derive(Default)]
struct Tests {
    passed: usize,
    failed: usize,
}

/// All tests, optimised and with every assertion on, and the examples in the docs.
fn tests() -> Outcome<Tests> {
    let mut tests = Tests::default();
    let mut all = cargo(&["test", "--workspace", "--all-features", "--profile", "checked"]);
    // They have none, and their dependencies would be built for nothing.
    all.args(["--exclude", "bench", "--exclude", "xtask"]);
    all.args(["--no-fail-fast", "--", "--show-output"]);
    let outcome = run_seen(&mut all, |line| {
        // test result: ok. 12 passed; 0 failed; …
        let Some(counts) = line.strip_prefix("test result: ") else { return };
        let count = |what: &str| -> usize {
            let words: Vec<&str> = counts.split([' ', ';', '.']).collect();
            let at = words.iter().position(|&word| word == what);
            at.and_then(|at| words[at - 1].parse().ok()).unwrap_or(0)
        };
        tests.passed += count("passed");
        tests.failed += count("failed");
    });
    match outcome {
        Err(wrong) if tests.failed == 0 => Err(wrong),
        _ => Ok(tests),
    }
}

/// The published crates can be packaged, and the wheel depends on nothing.
fn package() -> Outcome {
    let (tree, _) = capture(&mut cargo(&[
        "tree",
        "-q",
        "-p",
        "tourbillon-wheel",
        "-e",
        "all",
        "--prefix",
        "none",
    ]))?;
    let dependencies: Vec<&str> =
        tree.lines().skip(1).filter(|line| !line.trim().is_empty()).collect();
    if !dependencies.is_empty() {
        return Err(format!(
            "tourbillon-wheel must depend on nothing, and depends on {dependencies:?}"
        ));
    }
    forget_packages();
    let mut package = cargo(&["package", "--allow-dirty", "--quiet"]);
    for name in PUBLISHED {
        package.args(["-p", name]);
    }
    run(&mut package)
}

/// Cargo keeps what it has once unpacked of a version, and would build the next package with the crates of the last.
fn forget_packages() {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let Some(home) = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))) else { return };
    let folders = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten();
    let registries =
        ["src", "cache"].into_iter().flat_map(|part| folders(home.join("registry").join(part)));
    // What was built of them counts as fresh for ever, as of anything that comes from a registry.
    let built = root().join("target/debug/.fingerprint");
    for folder in registries.map(|registry| registry.path()).chain([built]) {
        for package in folders(folder) {
            let name = package.file_name().to_string_lossy().into_owned();
            let ours = |published: &str| {
                let rest = name.strip_prefix(published).and_then(|rest| rest.strip_prefix('-'));
                rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_hexdigit()))
            };
            if PUBLISHED.iter().any(|published| ours(published)) {
                // What cannot be removed is as it was; the worst is the failure that this is to prevent.
                let _ = std::fs::remove_dir_all(package.path());
                let _ = std::fs::remove_file(package.path());
            }
        }
    }
}

/// The tests of the one file with unsafe code, under valgrind: nothing is read that is not there, and nothing leaks.
pub(crate) fn memcheck() -> Outcome {
    let valgrind = "valgrind -q --error-exitcode=1 --leak-check=full --errors-for-leak-kinds=definite \
         --show-leak-kinds=definite";
    let runner = format!("target.'cfg(unix)'.runner = '{valgrind}'");
    let test = ["test", "--profile", "checked", "-p", "tourbillon", "--config", &runner];
    run(cargo(&test).args(["--test", "engine", "--", "closures"]))
}

/// Licences, sources and duplicates of the dependencies.
pub(crate) fn deny() -> Outcome {
    if !capture(&mut cargo(&["deny", "--version"])).is_ok_and(|(_, fine)| fine) {
        run(&mut cargo(&["install", "--locked", "cargo-deny"]))?;
    }
    run(&mut cargo(&["deny", "check", "bans", "licenses", "sources"]))
}
