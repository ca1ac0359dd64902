//! Compaction: copies a mostly unused file into a new one, a bounded part with each commit, then replaces it.
//!
//! redb reuses free pages, and returns space to the disk only from the end of a file. Moving rows towards the front
//! does not reliably free the end: a single page that remains there keeps the whole file long. A copy does.
//!
//! # Rules
//! - The old file is the store until the new one takes its name. A copy that fails or is killed is removed and has no
//!   other effect.
//! - At the end of every commit the copy equals the store in all positions up to the **cursor**, a table and a key.
//!   Changes of a commit before the cursor are repeated in the copy; then the next part is copied.
//! - No rows are swept while a copy is in progress: a sweep would change more rows than a commit should record.
//!   Sweeping resumes afterwards.
//! - The new file and its name are durable before the first commit to it.

use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};

use redb::{Database, ReadTransaction, ReadableDatabase};
use redb::{TableHandle, WriteTransaction};

use super::FILE;
use super::behind::Tables;
use super::changes::{Change, Changes, repeat};
use super::device::sync_names;
use super::error::{Fault, Outcome, discard};
use super::table::{Numbered, Small, bucket_of};
use super::view::open_rows;

/// Maximum rows and bytes that one commit copies, unless the commit itself changes many.
const ROWS: usize = if cfg!(test) { 3 } else { 1024 };
const BYTES: usize = 256 << 10;

/// The name of the new file. An open removes it.
pub(super) fn path(directory: &Path) -> PathBuf {
    directory.join(format!("{FILE}.new"))
}

/// A copy in progress.
pub(super) struct Copy {
    path: PathBuf,
    target: Tables,
    /// The table being copied, and the last key copied; `None` before the first part.
    cursor: Option<(String, Option<Vec<u8>>)>,
}

impl Copy {
    pub(super) fn begin(directory: &Path, cache: usize) -> Outcome<Self> {
        let path = path(directory);
        remove(&path)?;
        let target = Tables::open(&path, cache)?;
        Ok(Copy { path, target, cursor: None })
    }

    /// Repeats the changes of a commit and copies the next part. Returns whether the copy is complete.
    pub(super) fn step(&mut self, source: &Database, changes: &Changes) -> Outcome<bool> {
        let mut transaction = self.target.database.begin_write()?;
        self.repeat(changes, &transaction)?;
        let from = source.begin_read()?;
        let mut names: Vec<String> =
            from.list_tables()?.map(|table| table.name().to_owned()).collect();
        names.sort_unstable();
        let (mut room, mut whole) = (Room::beside(changes), true);
        for name in names {
            let after = match &self.cursor {
                Some((table, _)) if *table > name => continue,
                Some((table, key)) if *table == name => key.clone(),
                _ => None,
            };
            let last = copy_table(&from, &transaction, &name, after, &mut room)?;
            self.cursor = Some((name, last));
            if room.is_full() {
                whole = false;
                break;
            }
        }
        // A complete copy becomes the store and may be opened after a crash; an incomplete one never is.
        transaction.set_quick_repair(whole);
        transaction.commit()?;
        if whole {
            let durable = || self.target.behind.drain();
            planted!("disk.copy-not-waited-for", Ok(()), durable())?;
        }
        Ok(whole)
    }

    /// Repeats the changes of a commit in the copy, except those after the cursor.
    fn repeat(&self, changes: &Changes, transaction: &WriteTransaction) -> Outcome {
        let Some((table, last)) = &self.cursor else { return Ok(()) };
        let copied = |change: &Change<'_>| match change.table().cmp(table) {
            Ordering::Less => true,
            Ordering::Equal => change.key() <= last.as_deref(),
            Ordering::Greater => false,
        };
        repeat(changes.iter().filter(copied), transaction)
    }

    /// Renames the copy to the name of the store. Returns `false` if the store is unchanged. After an error it is
    /// unknown which file is the store.
    pub(super) fn rename(&self, directory: &Path) -> Outcome<bool> {
        #[cfg(test)]
        super::crash::renamed(directory);
        if fs::rename(&self.path, directory.join(FILE)).is_err() {
            return Ok(false);
        }
        let synced = sync_names(directory);
        synced.map_err(|error| Fault::Failed(format!("{}: {error}", directory.display())))?;
        Ok(true)
    }

    pub(super) fn into_tables(self) -> Tables {
        self.target
    }

    /// Removes the copy.
    pub(super) fn abandon(self) {
        // Whatever remains is removed by the next open.
        let _ = remove(&self.path);
        discard(self.target);
    }
}

/// How much more one commit may copy.
struct Room {
    rows: usize,
    bytes: usize,
}

impl Room {
    /// At least twice what the commit changes; otherwise the copy might never catch up with appends.
    fn beside(changes: &Changes) -> Self {
        Room { rows: ROWS.max(2 * changes.count), bytes: BYTES.max(2 * changes.len()) }
    }

    fn take(&mut self, bytes: usize) {
        self.rows = self.rows.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    fn is_full(&self) -> bool {
        self.rows == 0 || self.bytes == 0
    }
}

/// Copies rows of a table after a key. Returns the last key copied.
fn copy_table(
    from: &ReadTransaction,
    to: &WriteTransaction,
    name: &str,
    after: Option<Vec<u8>>,
    room: &mut Room,
) -> Outcome<Option<Vec<u8>>> {
    use std::ops::Bound::{Excluded, Unbounded};
    let mut last = after;
    if let Some(small) = Small::from_name(name) {
        let (source, mut target) =
            (from.open_table(small.definition())?, to.open_table(small.definition())?);
        let begin = last.clone();
        let begin = begin.as_deref().map_or(Unbounded, Excluded);
        for row in source.range::<&[u8]>((begin, Unbounded))? {
            if room.is_full() {
                break;
            }
            let (key, value) = row?;
            target.insert(key.value(), value.value())?;
            room.take(key.value().len() + value.value().len());
            last = Some(key.value().to_vec());
        }
        return Ok(last);
    }
    if bucket_of(name).is_none() {
        return Err(Fault::damage(name, None, "it is no table of a store"));
    }
    let Some(source) = open_rows(from, name)? else { return Ok(last) };
    let mut target = to.open_table(Numbered::new(name))?;
    let number = last.as_deref().and_then(|key| Some(u64::from_be_bytes(key.try_into().ok()?)));
    for row in source.range((number.map_or(Unbounded, Excluded), Unbounded))? {
        if room.is_full() {
            break;
        }
        let (key, value) = row?;
        target.insert(key.value(), value.value())?;
        room.take(8 + value.value().len());
        last = Some(key.value().to_be_bytes().to_vec());
    }
    Ok(last)
}

/// Removes a file, if it exists.
pub(super) fn remove(path: &Path) -> Outcome {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Fault::Failed(format!("{}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A commit that appends much copies even more; otherwise the copy would never end.
    #[test]
    fn a_copy_is_faster_than_what_is_appended() {
        let mut changes = Changes::new();
        (0..5000_u64).for_each(|nth| changes.put("hour.1", &nth.to_be_bytes(), &[0; 1000]));
        let room = Room::beside(&changes);
        assert!(room.rows >= 2 * 5000 && room.bytes >= 2 * 5000 * 1000);
        let room = Room::beside(&Changes::new());
        assert_eq!((room.rows, room.bytes), (ROWS, BYTES));
    }
}
