//! A scratch copy of the repository under `target/`, into which one patch at a time is applied.
//!
//! The wheel's planted faults are patches. Nothing of the copy is shipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{Outcome, capture, root, tracked};

/// The folder of the copy; what is built of it lies beside it.
pub(crate) fn folder() -> PathBuf {
    root().join("target/planted")
}

/// The copy itself.
pub(crate) fn copy() -> PathBuf {
    folder().join("copy")
}

/// The patches of a folder, in the order of their names.
pub(crate) fn patches(folder: &str) -> Outcome<Vec<PathBuf>> {
    let mut patches: Vec<PathBuf> = fs::read_dir(root().join(folder))
        .map_err(|error| format!("{folder}/: {error}"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "patch"))
        .collect();
    patches.sort();
    Ok(patches)
}

/// The name of a patch: its file's, without the ending.
pub(crate) fn stem(patch: &Path) -> String {
    patch.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Resets the copy, applies the patch, and returns its first line, which describes the fault.
pub(crate) fn plant(patch: &Path) -> Outcome<String> {
    let text =
        fs::read_to_string(patch).map_err(|error| format!("{}: {error}", patch.display()))?;
    lay_out()?;
    apply(patch)?;
    Ok(text.lines().next().unwrap_or_default().to_string())
}

/// Makes the copy equal to the repository. Files that are equal already keep their time, so that little is rebuilt.
pub(crate) fn lay_out() -> Outcome {
    for file in tracked()? {
        let (from, to) = (root().join(&file), copy().join(&file));
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

fn apply(patch: &Path) -> Outcome {
    let mut git = Command::new("git");
    // The ceiling hides the repository around the copy, so that git applies the patch to the copy.
    git.args(["apply", "--recount", "-p1"]).arg(patch).current_dir(copy());
    let (text, fine) = capture(git.env("GIT_CEILING_DIRECTORIES", folder()))?;
    if fine { Ok(()) } else { Err(format!("{} does not apply: {text}", patch.display())) }
}
