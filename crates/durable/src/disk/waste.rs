//! Waste: decides when a file has enough unused space to be copied into a new one (`compact.rs`).
//!
//! The space that the rows need is estimated from counters; each finished copy calibrates the estimate.

use std::fs::{self, Metadata};
use std::path::Path;

use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTableMetadata};

use super::FILE;
use super::error::Outcome;
use super::table::Small;
use super::view::View;
use crate::codec::BucketRow;
use crate::record::{Record, Spec};

/// The number of commits between two checks of the file's size.
const EVERY: u64 = if cfg!(test) { 1 } else { 64 };
/// Minimum number of changes for a check when the runtime is idle: fewer leave too little unused space.
const MUCH: u64 = 16_384;
/// In this crate's tests, a store in a directory of this name is not copied.
pub(super) const STILL: &str = "still";
/// A file with less unused space than this is left alone. This crate's tests copy small files all the time.
const LEAST: u64 = 8 << 20;

/// Decides when the next copy begins.
pub(super) struct Look {
    /// Commits until the next check, and the number of consecutive failed copies.
    left: u64,
    failures: u32,
    /// Changes since the last check.
    changes: u64,
    /// The actual size of the last finished copy divided by its estimate.
    scale: f64,
}

impl Default for Look {
    fn default() -> Self {
        Look { left: EVERY, failures: 0, changes: 0, scale: 1.0 }
    }
}

impl Look {
    /// Counts the changes of a commit.
    pub(super) fn changed(&mut self, count: u64) {
        self.changes += count;
    }

    /// Lets the next commit check for waste if there were many changes since the last check. Returns whether it will.
    pub(super) fn at_once(&mut self) -> bool {
        let much = self.changes >= MUCH && self.failures == 0;
        if much {
            self.left = 1;
        }
        much
    }

    /// Whether to copy the file now.
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
        (self.left, self.changes) = (EVERY, 0);
        let taken = fs::metadata(directory.join(FILE)).map_or(0, |file| on_disk(&file));
        if cfg!(test) {
            return Ok(!directory.ends_with(STILL));
        }
        // Removed rows are swept before a copy, so that they are not copied. A few always remain; a copy waits only
        // while they outnumber the living rows.
        let living: u64 = view.buckets.values().map(|held| held.row.filling.count).sum();
        let swept = view.removed_rows() <= living || view.to_sweep().is_none();
        if taken <= LEAST || !swept {
            return Ok(false);
        }
        let needed = estimate(view, &database.begin_read()?)? * self.scale;
        Ok(taken as f64 > 2.0 * needed + LEAST as f64)
    }

    /// A copy has failed: doubles the delay before the next one.
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
            // Any estimate error is corrected, however large; otherwise the next copy would begin at once, and so on.
            self.scale = (taken as f64 / needed).max(0.5);
        }
        Ok(())
    }
}

/// The space a file takes on disk. May be less than its length: redb extends files ahead of need, and the file system
/// allocates no blocks for the extension.
#[cfg(unix)]
fn on_disk(file: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(file) * 512
}

#[cfg(not(unix))]
fn on_disk(file: &Metadata) -> u64 {
    file.len()
}

/// The approximate size of all rows in a file without unused pages.
fn estimate(view: &View, transaction: &ReadTransaction) -> Outcome<f64> {
    /// Bytes per row in a page: the key, its offset, and the fields before the payload.
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
