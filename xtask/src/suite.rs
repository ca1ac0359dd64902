//! The whole test suite, with the stages that fail fastest first.

use std::time::Duration;

use crate::models::{LOOM, SHUTTLE};
use crate::sample::Sample;
use crate::shell::{Outcome, TESTED, capture, cargo, nextest, root, run, run_within, with_faults};
use crate::stages::Stages;
use crate::{browser, gate, packages, planted, serving, tidy};

/// The crates that are published.
const PUBLISHED: &[&str] = &[
    "tourbillon-wheel",
    "tourbillon",
    "tourbillon-hyper",
    "tourbillon-quinn",
    "tourbillon-durable",
    "tourbillon-server",
    "tourbillon-client",
    "tourbillon-cli",
];
/// Doc tests have no individual time limit, so a hang fails the whole stage.
const DOC_TESTS: Duration = Duration::from_secs(300);

/// The options of `cargo xtask test`.
pub(crate) struct Options {
    /// Whether to run the checks that take too long for every change.
    pub(crate) long: bool,
    /// The sample of faults and twins to try; `None` for the sample that a hash of the source selects.
    pub(crate) sample: Option<Sample>,
}

pub(crate) fn everything(options: Options) -> Outcome {
    let Options { long, sample } = options;
    let sample = sample.map_or_else(Sample::of_source, Ok)?;
    let mut stages = Stages::new();
    stages.run("tidy", tidy::run)?;
    stages.run("xtask", || run(&mut cargo(&["test", "--quiet", "-p", "xtask"])))?;
    stages.run("tools", tools)?;
    stages.run("format", || {
        run_with(cargo(&["fmt", "--all", "--check"]), "rustup component add rustfmt")
    })?;
    stages.run("lints", || lints(long))?;
    stages.run("docs", docs)?;
    stages.run("packages", || package(long))?;
    let mut passed = stages.run("tests", tests)?;
    passed += stages.run("doc tests", doc_tests)?;
    for checker in [LOOM, SHUTTLE] {
        passed += stages.run(checker.flag, || checker.models())?.len();
    }
    stages.run("gate", gate::check)?;
    stages.run("bench", bench)?;
    stages.run("memcheck", memcheck)?;
    if long {
        stages.run("tests, normal build", || {
            let mut tests = nextest("run", TESTED);
            tests.env("TOURBILLON_STEPS", "1700000").env("TOURBILLON_DEPTH", "5");
            tests.env("TOURBILLON_CRASH_SEEDS", "60");
            run(tests.env_remove("RUSTC_WORKSPACE_WRAPPER"))
        })?;
        stages.run("kill -9, 300 rounds", kill_rounds)?;
        stages.run("simulator, a million crashes", || {
            let sim = ["run", "--release", "--quiet", "-p", "sim", "--", "durable"];
            run(cargo(&sim).args(["--crashes", "1000000"]))
        })?;
        stages.run("the server, kill -9, 300 rounds", serving::kill_rounds)?;
        stages.run("the server, as the README starts it", serving::readme)?;
        stages.run("the server, schemathesis", serving::schemathesis)?;
        stages.run("the server, a static binary", serving::static_binary)?;
        stages.run("loom, durable", || {
            let mut models =
                cargo(&["test", "-p", "tourbillon-durable", "--lib", "runtime::models"]);
            models.env("RUSTFLAGS", "--cfg loom").env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
            run(models.env("CARGO_TARGET_DIR", root().join("target/loom-durable")))
        })?;
        stages.run("planted, all", || planted::run(&[]))?;
        stages.run("twins, all", || [LOOM, SHUTTLE].iter().try_for_each(|it| it.run("")))?;
    } else {
        println!("a sample of faults and twins: --seed {}", sample.seed());
        stages.run("planted, a sample", || planted::some(&sample))?;
        stages.run("twins, a sample", || {
            [LOOM, SHUTTLE].iter().try_for_each(|checker| checker.some(&sample))
        })?;
    }
    stages.print();
    println!("{passed} passed, 0 failed");
    Ok(())
}

/// Installs missing tools that the stages need.
fn tools() -> Outcome {
    browser::install(&["valgrind"])?;
    if !capture(&mut cargo(&["nextest", "--version"])).is_ok_and(|(_, fine)| fine) {
        run(&mut cargo(&["install", "--locked", "cargo-nextest"]))?;
    }
    Ok(())
}

/// Lints with all features, and the library also with none.
///
/// The benches' peers are many crates, so they are linted only with `long`.
fn lints(long: bool) -> Outcome {
    let rest = ["--workspace", "--exclude", "bench", "--all-features", "--all-targets"];
    let bench = ["-p", "bench", "--no-default-features", "--features", "durable", "--all-targets"];
    let [plain, peers] = [&bench[..3], &["-p", "bench", "--all-targets"]];
    let library = ["-p", "tourbillon"];
    let mut runs = vec![&rest[..], &library, &bench];
    if long {
        runs.extend([plain, peers]);
    }
    for what in runs {
        let mut clippy = cargo(&["clippy"]);
        clippy.args(what).args(["--", "-D", "warnings"]);
        run_with(clippy, "rustup component add clippy")?;
    }
    Ok(())
}

fn docs() -> Outcome {
    let mut doc = cargo(&["doc", "--no-deps"]);
    run(doc.args(TESTED).env("RUSTDOCFLAGS", "-D warnings"))
}

fn run_with(mut command: std::process::Command, install: &str) -> Outcome {
    run(&mut command).map_err(|wrong| format!("{wrong} (if it is not installed: {install})"))
}

/// Runs all tests with every assertion enabled, each in its own process and with a time limit.
///
/// The build contains the planted faults, none of them active, and the tests record which ones they reach. The sample
/// needs both. The examples in the docs, and with `--long` all tests, run in a normal build.
fn tests() -> Outcome<usize> {
    let mut passed = 0;
    planted::record(|line| {
        // Summary [  25.345s] 784 tests run: 784 passed, 0 skipped
        if line.trim_start().starts_with("Summary [") {
            passed = count_before(line, "passed");
        }
    })?;
    if passed == 0 { Err("no test was run".into()) } else { Ok(passed) }
}

/// The examples in the docs, which nextest does not run.
fn doc_tests() -> Outcome<usize> {
    let mut command = cargo(&["test", "--doc"]);
    let mut passed = 0;
    run_within(command.args(TESTED), DOC_TESTS, |line| {
        // test result: ok. 12 passed; 0 failed; …
        if line.starts_with("test result: ") {
            passed += count_before(line, "passed");
        }
    })?;
    if passed == 0 { Err("no doc test was run".into()) } else { Ok(passed) }
}

/// The number before a word.
fn count_before(line: &str, word: &str) -> usize {
    let words: Vec<&str> = line.split([' ', ';', ',', '.']).collect();
    let at = words.iter().position(|&one| one == word).filter(|&at| at > 0);
    at.and_then(|at| words[at - 1].parse().ok()).unwrap_or(0)
}

/// Runs the benches briefly, without peers, with the gate's release build. An oracle first checks every contestant.
fn bench() -> Outcome {
    let build = ["run", "--release", "--quiet", "-p", "bench", "--no-default-features"];
    run(cargo(&build).args(["--", "wheel", "--populations", "1k", "--rounds", "1"]))
}

/// Checks that the published crates can be packaged and that the wheel has no dependencies.
///
/// With `long`, also builds the packages.
fn package(long: bool) -> Outcome {
    let tree = ["tree", "-q", "-p", "tourbillon-wheel", "-e", "all", "--prefix", "none"];
    let (tree, _) = capture(&mut cargo(&tree))?;
    let dependencies: Vec<&str> =
        tree.lines().skip(1).filter(|line| !line.trim().is_empty()).collect();
    if !dependencies.is_empty() {
        return Err(format!(
            "tourbillon-wheel must depend on nothing, and depends on {dependencies:?}"
        ));
    }
    let mut package = cargo(&["package", "--allow-dirty", "--quiet"]);
    if long {
        packages::forget(PUBLISHED);
    } else {
        package.arg("--no-verify");
    }
    for name in PUBLISHED {
        package.args(["-p", name]);
    }
    run(&mut package)
}

/// Runs more rounds of the kill -9 test of the durable store.
fn kill_rounds() -> Outcome {
    let mut test = cargo(&["test", "-p", "tourbillon-durable"]);
    test.args(["--test", "disk", "kill::what_was_committed"]);
    run(test.env("TOURBILLON_LONG", "1"))
}

/// Runs the tests of the one file with unsafe code under valgrind: no invalid reads, no leaks.
pub(crate) fn memcheck() -> Outcome {
    let valgrind = "valgrind -q --error-exitcode=1 --leak-check=full --errors-for-leak-kinds=definite \
         --show-leak-kinds=definite";
    let runner = format!("target.'cfg(unix)'.runner = '{valgrind}'");
    let mut test = cargo(&["test", "--config", &runner]);
    run(with_faults(test.args(TESTED).args(["--test", "engine", "--", "closures"])))
}

/// Checks the licences, sources and duplicates of the dependencies.
pub(crate) fn deny() -> Outcome {
    if !capture(&mut cargo(&["deny", "--version"])).is_ok_and(|(_, fine)| fine) {
        run(&mut cargo(&["install", "--locked", "cargo-deny"]))?;
    }
    run(&mut cargo(&["deny", "check", "bans", "licenses", "sources"]))
}
