//! The command itself: reads files, writes lines, returns an exit code.

use std::io::{self, Write};
use std::path::Path;

use super::event::{Event, JsonLines, Sink, json_string};
use super::{Outcome, RunError, run};
use crate::scenario::{self, Scenario};

/// The result of a run, from good to bad: the worst of several files counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Every expectation held.
    Passed,
    /// An expectation did not hold.
    Failed,
    /// A file is not a scenario, or its run ended with an error.
    Error,
}

impl Verdict {
    /// The exit code of the command.
    pub const fn code(self) -> u8 {
        match self {
            Verdict::Passed => 0,
            Verdict::Failed => 1,
            Verdict::Error => 2,
        }
    }
}

/// Runs each file; writes its events to `out`, and errors of the file to `err`.
///
/// If `quiet`, it writes only failures, and a last line with counts.
///
/// # Errors
/// If writing fails.
pub fn files<P: AsRef<Path>>(
    paths: &[P],
    quiet: bool,
    out: &mut impl Write,
    err: &mut impl Write,
) -> io::Result<Verdict> {
    let mut verdicts = Vec::new();
    for path in paths {
        let path = path.as_ref();
        let verdict = match scenario::read(path) {
            Ok(scenario) => one(&scenario, path, quiet, paths.len() > 1, out, err)?,
            Err(error) => {
                complain(out, err, path, &error)?;
                Verdict::Error
            }
        };
        verdicts.push(verdict);
    }
    if quiet {
        let count = |verdict| verdicts.iter().filter(|v| **v == verdict).count();
        let [passed, failed, errors] =
            [Verdict::Passed, Verdict::Failed, Verdict::Error].map(count);
        let files = verdicts.len();
        writeln!(
            out,
            r#"{{"files":{files},"passed":{passed},"failed":{failed},"errors":{errors}}}"#
        )?;
    }
    out.flush()?;
    Ok(verdicts.into_iter().max().unwrap_or(Verdict::Passed))
}

fn one(
    scenario: &Scenario,
    path: &Path,
    quiet: bool,
    several: bool,
    out: &mut impl Write,
    err: &mut impl Write,
) -> io::Result<Verdict> {
    let ended = if quiet {
        run(scenario, &mut OnlyFailures { path, out })
    } else {
        if several {
            name_file(out, path)?;
        }
        run(scenario, &mut JsonLines(&mut *out))
    };
    match ended {
        Ok(Outcome::Passed) => Ok(Verdict::Passed),
        Ok(Outcome::Failed) => Ok(Verdict::Failed),
        Err(RunError::Sink(error)) => Err(error),
        Err(error) => {
            complain(out, err, path, &error)?;
            Ok(Verdict::Error)
        }
    }
}

struct OnlyFailures<'a, W> {
    path: &'a Path,
    out: &'a mut W,
}

impl<W: Write> Sink for OnlyFailures<'_, W> {
    fn event(&mut self, at: u64, event: &Event<'_>) -> io::Result<()> {
        if !matches!(event, Event::Failed { .. }) {
            return Ok(());
        }
        name_file(self.out, self.path)?;
        JsonLines(&mut *self.out).event(at, event)
    }
}

fn name_file(out: &mut impl Write, path: &Path) -> io::Result<()> {
    out.write_all(br#"{"file":"#)?;
    json_string(out, &path.to_string_lossy())?;
    out.write_all(b"}\n")
}

/// Writes an error after the lines already printed, even if both streams go to one terminal.
fn complain(
    out: &mut impl Write,
    err: &mut impl Write,
    path: &Path,
    error: &impl std::fmt::Display,
) -> io::Result<()> {
    out.flush()?;
    writeln!(err, "tourbillon: {}: {error}", path.display())
}
