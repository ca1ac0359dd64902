//! Error messages: what went wrong, where, and what to do.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use redb::StorageError;

use crate::codec::DecodeError;
use crate::store::{Damage, StoreError};

/// Why an operation on the tables failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// The system or redb failed: the store is poisoned.
    Failed(String),
    /// Data cannot be read.
    Damaged(Damage),
}

pub(super) type Outcome<T = ()> = Result<T, Fault>;

impl Fault {
    /// Stored data that is inconsistent.
    pub(super) fn damage(
        table: impl Into<String>,
        row: Option<String>,
        wrong: impl ToString,
    ) -> Self {
        Fault::Damaged(Damage { table: table.into(), row, wrong: wrong.to_string() })
    }

    /// A file that cannot be written.
    pub(super) fn disk(path: &Path, error: &io::Error) -> Self {
        Fault::Failed(unusable(path, "written", error))
    }

    /// A value that cannot be decoded.
    pub(super) fn value(table: impl Into<String>, row: String, wrong: &DecodeError) -> Self {
        Fault::damage(table, Some(row), wrong)
    }
}

/// Converts any redb error, via its common type.
impl<E: Into<redb::Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        match error.into() {
            redb::Error::Corrupted(wrong) => Fault::damage("the file's pages", None, wrong),
            error => Fault::Failed(error.to_string()),
        }
    }
}

/// Runs work on the tables. redb panics on some damage: such a panic is reported as damage.
pub(super) fn contain<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        Err(Fault::damage("the file's pages", None, format!("redb panicked: {}", text(&*panic))))
    })
}

/// Drops a value whose drop may panic, such as a failed database.
pub(super) fn discard<T>(value: T) {
    let _ = contain(|| {
        drop(value);
        Ok(())
    });
}

pub(super) fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_string()
}

/// A file or directory that cannot be used.
pub(super) fn io(path: &Path, done: &str, error: &io::Error) -> StoreError {
    StoreError::Refused(unusable(path, done, error))
}

fn unusable(path: &Path, done: &str, error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            ": give this user the right to, or name another directory"
        }
        io::ErrorKind::ReadOnlyFilesystem => ": mount it for writing, or name another directory",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ": free some room",
        _ => "",
    };
    format!("{} cannot be {done}: {error}{advice}", path.display())
}

/// A database that cannot be opened.
pub(super) fn open(path: &Path, error: redb::DatabaseError) -> StoreError {
    use redb::DatabaseError::{DatabaseAlreadyOpen, Storage, UpgradeRequired};
    let shown = path.display();
    match error {
        DatabaseAlreadyOpen => StoreError::Refused(format!("{shown} is in use by another program")),
        UpgradeRequired(version) => StoreError::Refused(format!(
            "{shown} has the file format {version} of another version of redb: use the program that wrote it"
        )),
        // redb reports a short file, or one that is not a database, with these two kinds.
        Storage(StorageError::Io(error))
            if !matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData
            ) =>
        {
            io(path, "opened", &error)
        }
        error => damaged(path, &error.to_string()),
    }
}

/// A database whose head cannot be read.
pub(super) fn damaged(path: &Path, wrong: &str) -> StoreError {
    StoreError::Refused(format!(
        "{} is damaged: {wrong}. Keep a copy, then run `tourbillon check --repair` on its directory, or restore a \
         backup",
        path.display()
    ))
}

/// A store whose format this program does not know.
pub(super) fn newer(path: &Path, format: u64) -> StoreError {
    StoreError::Refused(format!(
        "{} has format {format}; this program knows {}: use the version that wrote it, or a newer one",
        path.display(),
        super::FORMAT
    ))
}
