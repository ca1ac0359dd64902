//! The directory lock: one process at a time, by a file lock. The file names the holder.
//!
//! The kernel releases the lock when the process ends, even by a crash. The file is never removed: otherwise a third
//! process could lock a new file while a second waits for the old one.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use super::device::sync_names;
use super::error;
use crate::store::StoreError;

/// The name of the lock file.
pub(super) const NAME: &str = "lock";

/// A held lock, released on drop.
pub(super) struct Lock {
    file: File,
}

/// Unlocks explicitly, because closing the file may not be enough: a process that another thread is spawning shares the
/// open file until it executes its program.
impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl Lock {
    /// Locks a directory, which is created durably if it does not exist.
    pub(super) fn take(directory: &Path) -> Result<Self, StoreError> {
        if directory.exists() && !directory.is_dir() {
            let what = format!("{} is not a directory", directory.display());
            return Err(StoreError::Refused(format!("{what}: name one, or remove that file")));
        }
        create(directory)?;
        let path = directory.join(NAME);
        let open =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = open.map_err(|error| error::io(&path, "written", &error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(directory, file)),
            Err(TryLockError::Error(error)) => return Err(error::io(&path, "locked", &error)),
        }
        let mut name = || -> std::io::Result<()> {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", holder())
        };
        // A full disk must not prevent opening the store, which may be needed to free space.
        let _ = name();
        Ok(Lock { file })
    }
}

/// Creates a directory and its missing parents, and makes their names durable.
///
/// A sync of the new directory alone is not enough: its name is in its parent, and a power cut could take it with the
/// whole store.
fn create(directory: &Path) -> Result<(), StoreError> {
    if directory.is_dir() {
        return Ok(());
    }
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    create(parent)?;
    match fs::create_dir(directory) {
        Err(error) if !directory.is_dir() => return Err(error::io(directory, "made", &error)),
        _ => {}
    }
    let synced = planted!("disk.new-directory-not-synced", Ok(()), sync_names(parent));
    synced.map_err(|error| {
        // The next attempt must not take it for a directory whose name is durable.
        let _ = fs::remove_dir(directory);
        error::io(parent, "written", &error)
    })
}

/// Describes the holder of the lock, as written into the file.
fn holder() -> String {
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(Path::file_name).unwrap_or_default();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "this host" } else { host.trim() };
    format!("process {} ({}) on {host}", std::process::id(), program.to_string_lossy())
}

fn held(directory: &Path, mut file: File) -> StoreError {
    let mut holder = String::new();
    let _ = file.read_to_string(&mut holder);
    let holder = if holder.trim().is_empty() { "another process" } else { holder.trim() };
    StoreError::Refused(format!(
        "{} is in use by {holder}: stop that, or name another directory",
        directory.display()
    ))
}
