//! Tries faults. A fault is caught if a test that reaches it fails with the fault and passes without it.
//!
//! The tests for a fault run one after the other, shortest first, until one catches it; several faults are tried
//! concurrently. A test that fails only because the machine is busy does not count: the next test is tried.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::reach::Test;
use crate::shell::Outcome;

/// The result of trying a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Caught by this test, `binary name`.
    Caught(String),
    /// Caught by this test, which hangs with the fault.
    Hangs(String),
    /// No test noticed.
    Survived,
    /// No test reaches it.
    Unreached,
}

/// Tries the faults concurrently.
///
/// Calls `show` with each verdict and its duration in seconds, in the order of the faults. `tests` returns the tests
/// that reach a fault, in the order in which to try them.
pub(crate) fn try_all<'a>(
    faults: &[&str],
    tests: impl Fn(&str) -> Vec<&'a Test> + Sync,
    mut show: impl FnMut(usize, Verdict, f64) -> Outcome,
) -> Outcome {
    let next = AtomicUsize::new(0);
    let (done, verdicts) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..at_once() {
            let (next, tests, done) = (&next, &tests, done.clone());
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(fault) = faults.get(index) else { return };
                    let began = Instant::now();
                    let verdict = try_one(fault, &tests(fault));
                    if done.send((index, verdict, began.elapsed().as_secs_f64())).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        let mut early: Vec<Option<(Verdict, f64)>> = vec![None; faults.len()];
        let mut shown = 0;
        for (index, verdict, seconds) in verdicts {
            early[index] = Some((verdict?, seconds));
            while let Some((verdict, seconds)) = early.get_mut(shown).and_then(Option::take) {
                show(shown, verdict, seconds)?;
                shown += 1;
            }
        }
        Ok(())
    })
}

/// The number of concurrent trials: two per core, because most tests wait.
fn at_once() -> usize {
    2 * thread::available_parallelism().map_or(2, usize::from)
}

fn try_one(fault: &str, tests: &[&Test]) -> Outcome<Verdict> {
    if tests.is_empty() {
        return Ok(Verdict::Unreached);
    }
    for test in tests {
        let end = run(test, fault)?;
        if end != End::Passed && is_witness(test, fault)? {
            let id = test.id();
            return Ok(if end == End::Hung { Verdict::Hangs(id) } else { Verdict::Caught(id) });
        }
    }
    Ok(Verdict::Survived)
}

/// How often a failed test is repeated, because some faults appear only occasionally.
const AGAIN: usize = 3;

/// Whether a test that failed once with a fault fails again with it, and passes without it.
fn is_witness(test: &Test, fault: &str) -> Outcome<bool> {
    for _ in 0..AGAIN {
        if run(test, fault)? != End::Passed {
            return Ok(run(test, "none")? == End::Passed);
        }
    }
    Ok(false)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Passed,
    Failed,
    Hung,
}

/// How long a test may take: much longer than in the recorded run, during which other tests ran too.
fn limit(test: &Test) -> Duration {
    Duration::from_secs_f64(10.0 + 10.0 * test.seconds)
}

/// Runs a test alone in a process that activates the fault.
fn run(test: &Test, fault: &str) -> Outcome<End> {
    let mut command = Command::new(&test.program);
    command.args([&test.name, "--exact"]).current_dir(&test.folder).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.env("TOURBILLON_PLANTED", fault).env("RUST_BACKTRACE", "0");
    let wrong = |error: std::io::Error| format!("{}: {error}", test.program.display());
    let mut child = command.spawn().map_err(wrong)?;
    let status = wait(&mut child, limit(test)).map_err(wrong)?;
    if status.is_some_and(|passed| passed) {
        return Ok(End::Passed);
    }
    // Kills the process group, because the test's child processes may outlive it.
    let group = format!("-{}", child.id());
    let mut kill = Command::new("kill");
    kill.args(["-KILL", "--", &group]).stdout(Stdio::null()).stderr(Stdio::null());
    kill.status().map_err(wrong)?;
    child.wait().map_err(wrong)?;
    Ok(if status.is_some() { End::Failed } else { End::Hung })
}

/// Whether a process succeeded; `None` if it did not end within the limit.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<bool>> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        if began.elapsed() > limit {
            return Ok(None);
        }
        // Polls quickly at first: there are many short tests.
        thread::sleep(
            (began.elapsed() / 8).clamp(Duration::from_millis(1), Duration::from_millis(50)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A test that runs `sh NAME --exact`, where NAME is a script.
    fn test(script: &str) -> Test {
        let folder = std::env::temp_dir();
        let file = folder.join(format!("xtask-trial-{}-{}", std::process::id(), script.len()));
        std::fs::write(&file, script).unwrap();
        let name = file.to_string_lossy().into_owned();
        Test { binary: "b".into(), name, program: PathBuf::from("sh"), folder, seconds: 0.0 }
    }

    #[test]
    fn a_witness_fails_with_the_fault_alone() {
        let never = test("exit 0");
        let always = test("exit 1  ");
        let with_it = test("[ $TOURBILLON_PLANTED != fault ]");
        let id = format!("b {}", with_it.name);
        assert_eq!(try_one("fault", &[]), Ok(Verdict::Unreached));
        assert_eq!(try_one("fault", &[&never]), Ok(Verdict::Survived));
        assert_eq!(try_one("fault", &[&always]), Ok(Verdict::Survived));
        assert_eq!(try_one("fault", &[&never, &always, &with_it]), Ok(Verdict::Caught(id)));
        let mut shown = Vec::new();
        let tests = |fault: &str| if fault == "none" { vec![] } else { vec![&with_it] };
        let faults = ["fault", "other", "none"];
        let show = |index, verdict, _| {
            shown.push((index, matches!(verdict, Verdict::Caught(_))));
            Ok(())
        };
        try_all(&faults, tests, show).unwrap();
        assert_eq!(shown, [(0, true), (1, false), (2, false)]);
        for test in [never, always, with_it] {
            std::fs::remove_file(test.name).unwrap();
        }
    }

    #[test]
    fn a_process_that_does_not_end_is_given_up() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert_eq!(wait(&mut child, Duration::from_millis(30)).unwrap(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
