//! Checking a store.

use std::io::Write;
use std::path::Path;

use tourbillon_durable::disk;

use super::{StoreProblem, tell};
use crate::replay::Verdict;

/// Verifies a store and lists its damage on `out`; with `repair`, also copies what is readable into a new file.
///
/// # Errors
/// If the store cannot be read at all, or the output cannot be written.
pub fn check(
    directory: &Path,
    repair: bool,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<Verdict, StoreProblem> {
    let progress = |timers| tell(err, timers);
    let report = match repair {
        true => disk::repair(directory, progress)?,
        false => disk::check(directory, progress)?,
    };
    for damage in &report.damage {
        writeln!(out, "{damage}")?;
    }
    let shown = directory.display();
    match (&report.set_aside, report.damage.len()) {
        (_, 0) => writeln!(out, "{shown}: {} timers, sound", report.timers)?,
        (None, count) => {
            writeln!(out, "{shown}: {} timers can be read; damage found: {count}", report.timers)?;
            writeln!(out, "to keep these timers and set the damaged file aside, add --repair")?;
        }
        (Some(aside), _) => {
            writeln!(out, "{shown}: repaired, with {} timers", report.timers)?;
            writeln!(out, "the damaged file is {}", aside.display())?;
        }
    }
    out.flush()?;
    Ok(if report.damage.is_empty() { Verdict::Passed } else { Verdict::Failed })
}
