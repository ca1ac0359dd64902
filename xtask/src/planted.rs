//! Plants one fault at a time in a scratch copy of the repository; the suite must catch each.
//!
//! A test that cannot fail is a defect. Each file in `planted/` is a patch that breaks one rule of the wheel;
//! its first line says which. The scratch copy lies under `target/`, and nothing of it is shipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::shell::{Outcome, capture, capture_within, cargo, root, tracked};

/// Enough to catch every fault, and quick.
const STEPS: &str = "60000";
/// A fault may make the wheel turn for ever: that is caught too.
const PATIENCE: Duration = Duration::from_secs(180);

pub(crate) fn run(part: &str) -> Outcome {
    let scratch = scratch();
    let patches = patches("planted", part)?;
    lay_out(&scratch)?;
    println!("the suite without a fault …");
    if let Some(failed) = first_failure(&scratch)? {
        return Err(format!("the suite fails without a fault: {failed}"));
    }
    let mut caught = 0;
    for patch in &patches {
        let fault = plant(&scratch, patch)?;
        let began = Instant::now();
        let failed = first_failure(&scratch)?;
        caught += usize::from(failed.is_some());
        let verdict = failed.map_or("NOT CAUGHT".to_string(), |by| format!("caught by {by}"));
        println!("{fault:<64} {verdict} ({:.0} s)", began.elapsed().as_secs_f64());
    }
    println!("{caught} of {} caught", patches.len());
    if caught == patches.len() { Ok(()) } else { Err("a fault was not caught".into()) }
}

/// Where the copy lies, beside what is built of it.
pub(crate) fn scratch() -> PathBuf {
    root().join("target/planted")
}

/// The patches of a folder with `part` in their name, in the order of their names.
pub(crate) fn patches(folder: &str, part: &str) -> Outcome<Vec<PathBuf>> {
    let mut patches: Vec<PathBuf> = fs::read_dir(root().join(folder))
        .map_err(|error| format!("{folder}/: {error}"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "patch"))
        .filter(|path| path.file_stem().is_some_and(|name| name.to_string_lossy().contains(part)))
        .collect();
    if patches.is_empty() {
        return Err(format!("{folder}/ has no patch with {part:?} in its name"));
    }
    patches.sort();
    Ok(patches)
}

/// Makes the copy anew, with this fault in it, and says which it is.
pub(crate) fn plant(scratch: &Path, patch: &Path) -> Outcome<String> {
    let text =
        fs::read_to_string(patch).map_err(|error| format!("{}: {error}", patch.display()))?;
    lay_out(scratch)?;
    apply(scratch, patch)?;
    Ok(text.lines().next().unwrap_or_default().to_string())
}

/// Copies the files of the repository; those that are as they were keep their time, so that little is built.
pub(crate) fn lay_out(scratch: &Path) -> Outcome {
    for file in tracked()? {
        let (from, to) = (root().join(&file), scratch.join("copy").join(&file));
        let text = fs::read(&from).map_err(|error| format!("{}: {error}", from.display()))?;
        if fs::read(&to).is_ok_and(|copy| copy == text) {
            continue;
        }
        let folder = to.parent().expect("a file has a folder");
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&to, text))
            .map_err(|error| format!("{}: {error}", to.display()))?;
    }
    Ok(())
}

fn apply(scratch: &Path, patch: &Path) -> Outcome {
    let mut git = Command::new("git");
    // Outside of the repository as git sees it, so that the patch is applied to the copy.
    git.args(["apply", "--recount", "-p1"]).arg(patch).current_dir(scratch.join("copy"));
    let (text, fine) = capture(git.env("GIT_CEILING_DIRECTORIES", scratch))?;
    if fine { Ok(()) } else { Err(format!("{} does not apply: {text}", patch.display())) }
}

/// The parts of the suite, the quickest first.
const PARTS: &[&[&str]] = &[
    &["--lib"],
    &["--test", "memory"],
    &["--test", "panics"],
    &["--test", "property"],
    &["--test", "exhaustive"],
];

/// The first test that fails, or that does not end.
fn first_failure(scratch: &Path) -> Outcome<Option<String>> {
    let (text, fine) = capture(suite(scratch).args(["--lib", "--tests", "--no-run"]))?;
    if !fine {
        return Err(format!("a planted fault must build:\n{text}"));
    }
    for part in PARTS {
        let Some((text, fine)) = capture_within(suite(scratch).args(*part), PATIENCE)? else {
            return Ok(Some(format!("the clock: {} s were not enough", PATIENCE.as_secs())));
        };
        if fine {
            continue;
        }
        let failed =
            |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_string());
        let first = text.lines().find_map(failed).unwrap_or_else(|| "a crash".into());
        return Ok(Some(format!("{}: {first}", part[part.len() - 1].trim_start_matches("--"))));
    }
    Ok(None)
}

fn suite(scratch: &Path) -> Command {
    let mut suite = cargo(&["test", "--profile", "checked", "-p", "tourbillon-wheel"]);
    suite.current_dir(scratch.join("copy")).env("CARGO_TARGET_DIR", scratch.join("target"));
    suite.env("TOURBILLON_STEPS", STEPS).env("RUST_BACKTRACE", "0");
    suite
}
