//! The scratch folder under `target/`: a copy of the repository, and builds of it and of the models.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{Outcome, root, tracked};

/// The scratch folder: holds the copy and what is built from it.
pub(crate) fn folder() -> PathBuf {
    root().join("target/planted")
}

/// The copy itself.
pub(crate) fn copy() -> PathBuf {
    folder().join("copy")
}

/// Makes the copy equal to the repository, except for the files that `is_left` selects.
///
/// The caller writes those. Unchanged files keep their modification time, so that little is rebuilt.
pub(crate) fn lay_out(is_left: impl Fn(&Path) -> bool) -> Outcome {
    for file in tracked()?.into_iter().filter(|file| !is_left(file)) {
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
