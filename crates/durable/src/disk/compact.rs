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

use std::fs::{self, File, Metadata};
use std::path::{Path, PathBuf};

use redb::{Builder, Database, ReadTransaction, ReadableDatabase, ReadableTableMetadata};
use redb::{TableHandle, WriteTransaction};

use super::FILE;
use super::error::{Fault, Outcome, discard};
use super::table::{Numbered, Small, bucket_of};
use super::view::{View, open_rows};
use crate::codec::BucketRow;
use crate::record::{Record, Spec};

/// The most rows and bytes that one commit copies.
const ROWS: usize = if cfg!(test) { 3 } else { 4096 };
const BYTES: usize = 1 << 20;
/// The commits between two looks at the size of the file.
const EVERY: u64 = if cfg!(test) { 1 } else { 64 };
/// A file that has less than this to give is left alone. The tests of this crate copy small files without end.
const LEAST: u64 = 8 << 20;

/// The name of the new file, which an opening removes.
pub(super) fn path(directory: &Path) -> PathBuf {
    directory.join(format!("{FILE}.new"))
}

/// A change of one table. Keys of numbered tables are big-endian, so that they compare as their numbers do.
pub(super) enum Change {
    Put(String, Vec<u8>, Vec<u8>),
    Remove(String, Vec<u8>),
    Drop(String),
}

/// When the next copy begins.
pub(super) struct Look {
    /// Commits until the next look, and how many times in a row a copy has failed.
    left: u64,
    failures: u32,
    /// The size of a file that was just copied, by the estimate of it.
    scale: f64,
}

impl Default for Look {
    fn default() -> Self {
        Look { left: EVERY, failures: 0, scale: 1.0 }
    }
}

impl Look {
    /// Whether the file is to be copied now.
    pub(super) fn is_wanted(
        &mut self,
        directory: &Path,
        view: &View,
        database: &Database,
    ) -> Outcome<bool> {
        self.left -= 1;
        if self.left > 0 {
            return Ok(false);
        }
        self.left = EVERY;
        let taken = fs::metadata(directory.join(FILE)).map_or(0, |file| on_disk(&file));
        if cfg!(test) {
            return Ok(true);
        }
        // What can be swept is swept first, and not copied. Some of it is there all the time.
        let held = || view.buckets.values().map(|held| &held.row);
        let removed: u64 = held().map(|row| row.removed).sum();
        if taken <= LEAST || removed > held().map(|row| row.filling.count).sum() {
            return Ok(false);
        }
        let needed = estimate(view, &database.begin_read()?)? * self.scale;
        Ok(taken as f64 > 2.0 * needed + LEAST as f64)
    }

    /// A copy has failed: the next one begins later, each time twice as late.
    pub(super) fn failed(&mut self) {
        self.failures = (self.failures + 1).min(16);
        self.left = EVERY << self.failures;
    }

    /// A copy has become the store.
    pub(super) fn done(&mut self, directory: &Path, view: &View, database: &Database) -> Outcome {
        let taken = fs::metadata(directory.join(FILE)).map_or(0, |file| on_disk(&file));
        let needed = estimate(view, &database.begin_read()?)?;
        self.failures = 0;
        if taken > LEAST && needed > 0.0 {
            self.scale = (taken as f64 / needed).clamp(0.5, 4.0);
        }
        Ok(())
    }
}

/// What a file takes on the disk: redb makes it longer ahead of need, and the file system keeps no room for that.
#[cfg(unix)]
fn on_disk(file: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(file) * 512
}

#[cfg(not(unix))]
fn on_disk(file: &Metadata) -> u64 {
    file.len()
}

/// What all rows take in a file without unused pages, roughly.
fn estimate(view: &View, transaction: &ReadTransaction) -> Outcome<f64> {
    /// In a page: the key of a row, its offset, and the fields before its payload.
    const BESIDE: u64 = 56;
    const INDEX: u64 = 96;
    let fixed = (size_of::<Record>() + size_of::<Spec>()) as u64;
    let each = |row: &BucketRow| {
        let size = row.filling.bytes / row.filling.count.max(1);
        size.saturating_sub(fixed) + BESIDE
    };
    let rows = |row: &BucketRow| row.filling.count + row.removed;
    let held = || view.buckets.values().map(|held| &held.row);
    let (count, mut bytes) = held()
        .fold((0, 0), |(count, bytes), row| (count + rows(row), bytes + rows(row) * each(row)));
    let typical = bytes.checked_div(count).unwrap_or(256);
    for small in Small::ALL {
        let each = match small {
            Small::Keys | Small::Places => INDEX,
            Small::Head | Small::Cells => 1024,
            _ => typical + BESIDE,
        };
        bytes += transaction.open_table(small.definition())?.len()? * each;
    }
    Ok(bytes as f64)
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
    pub(super) fn step(&mut self, source: &Database, changes: &[Change]) -> Outcome<bool> {
        let mut transaction = self.target.begin_write()?;
        for change in changes {
            self.repeat(change, &transaction)?;
        }
        let from = source.begin_read()?;
        let mut names: Vec<String> =
            from.list_tables()?.map(|table| table.name().to_owned()).collect();
        names.sort_unstable();
        let (mut room, mut whole) = (Room { rows: ROWS, bytes: BYTES }, true);
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

    /// Makes a change of the store in the copy, if it lies before the cursor.
    fn repeat(&self, change: &Change, transaction: &WriteTransaction) -> Outcome {
        let (Change::Put(name, ..) | Change::Remove(name, _) | Change::Drop(name)) = change;
        let Some((table, last)) = &self.cursor else { return Ok(()) };
        let key = match change {
            Change::Put(_, key, _) | Change::Remove(_, key) => Some(key),
            Change::Drop(_) => None,
        };
        let behind = name > table || (name == table && key.is_some() && key > last.as_ref());
        if behind {
            return Ok(());
        }
        let number = |key: &[u8]| key.try_into().map_or(0, u64::from_be_bytes);
        match (change, Small::from_name(name)) {
            (Change::Put(_, key, value), Some(small)) => {
                transaction.open_table(small.definition())?.insert(&key[..], &value[..])?;
            }
            (Change::Put(_, key, value), None) => {
                let mut table = transaction.open_table(Numbered::new(name))?;
                table.insert(number(key), &value[..])?;
            }
            (Change::Remove(_, key), Some(small)) => {
                transaction.open_table(small.definition())?.remove(&key[..])?;
            }
            (Change::Remove(_, key), None) => {
                transaction.open_table(Numbered::new(name))?.remove(number(key))?;
            }
            (Change::Drop(_), _) => drop(transaction.delete_table(Numbered::new(name))?),
        }
        Ok(())
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
