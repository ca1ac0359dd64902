//! Compaction: the store is copied into a new file, a bounded piece with each commit, while most of the old file is
//! unused. Then the new file takes the name of the old one.
//!
//! redb uses free pages again, and gives room back to the disk only from the end of a file. To move rows towards the
//! front does not free the end for certain: one page that stays there holds all before it. A copy does.
//!
//! # The law
//! - The old file is the store until the new one has its name. A copy that fails, or is killed, is removed and nothing
//!   else happens.
//! - The copy equals the store in all positions up to the **cursor**, a table and a key, at the end of every commit:
//!   what a commit changes before the cursor is changed in the copy, too, and then the next piece is copied.
//! - While a copy is under way nothing is swept: a sweep would change more rows than a commit should note. It goes on
//!   where it was.
//! - The new file and its name are durable before the first commit to it.

use std::cmp::Ordering;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use redb::{Builder, Database, ReadTransaction, ReadableDatabase};
use redb::{TableHandle, WriteTransaction};

use super::FILE;
use super::changes::{Change, Changes, repeat};
use super::error::{Fault, Outcome, discard};
use super::table::{Numbered, Small, bucket_of};
use super::view::open_rows;

/// The most rows and bytes that one commit copies.
const ROWS: usize = if cfg!(test) { 3 } else { 4096 };
const BYTES: usize = 1 << 20;

/// The name of the new file, which an opening removes.
pub(super) fn path(directory: &Path) -> PathBuf {
    directory.join(format!("{FILE}.new"))
}

/// A copy that is under way.
pub(super) struct Copy {
    path: PathBuf,
    target: Database,
    /// The table that is being copied, and its last key that was; before the first piece, none.
    cursor: Option<(String, Option<Vec<u8>>)>,
}

impl Copy {
    pub(super) fn begin(directory: &Path, cache: usize) -> Outcome<Self> {
        let path = path(directory);
        remove(&path)?;
        let target = Builder::new().set_cache_size(cache).create(&path)?;
        Ok(Copy { path, target, cursor: None })
    }

    /// Brings what was copied up to date, and copies the next piece. Whether it is whole.
    pub(super) fn step(&mut self, source: &Database, changes: &Changes) -> Outcome<bool> {
        let mut transaction = self.target.begin_write()?;
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
        // Before the copy is opened after a crash, it has this; a copy that is not whole is never opened.
        transaction.set_quick_repair(whole);
        transaction.commit()?;
        Ok(whole)
    }

    /// Makes the changes of a commit in the copy, but for those that lie behind the cursor.
    fn repeat(&self, changes: &Changes, transaction: &WriteTransaction) -> Outcome {
        let Some((table, last)) = &self.cursor else { return Ok(()) };
        let copied = |change: &Change<'_>| match change.table().cmp(table) {
            Ordering::Less => true,
            Ordering::Equal => change.key() <= last.as_deref(),
            Ordering::Greater => false,
        };
        repeat(changes.iter().filter(copied), transaction)
    }

    /// Gives the copy the name of the store. `false`: the store is where it was. After an error nobody knows.
    pub(super) fn rename(&self, directory: &Path) -> Outcome<bool> {
        if fs::rename(&self.path, directory.join(FILE)).is_err() {
            return Ok(false);
        }
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| Fault::Failed(format!("{}: {error}", directory.display())))?;
        Ok(true)
    }

    pub(super) fn into_database(self) -> Database {
        self.target
    }

    /// Removes the copy.
    pub(super) fn abandon(self) {
        // What is left of it is removed by the next opening.
        let _ = remove(&self.path);
        discard(self.target);
    }
}

/// How much more one commit copies.
struct Room {
    rows: usize,
    bytes: usize,
}

impl Room {
    /// Twice what the commit has changed, or the copy might never catch up with what is appended.
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

/// Copies rows of a table after a key, and returns the last key that was copied.
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

/// Removes a file, if it is there.
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

    /// A commit that appends much copies more than it appends, or the copy would never end.
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
