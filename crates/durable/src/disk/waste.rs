//! Waste: when a file has so much unused room that it is to be copied into a new one (`compact.rs`).
//!
//! What its rows need is estimated from counters; after a copy the estimate is set right by what the new file takes.

use std::fs::{self, Metadata};
use std::path::Path;

use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTableMetadata};

use super::FILE;
use super::error::Outcome;
use super::table::Small;
use super::view::View;
use crate::codec::BucketRow;
use crate::record::{Record, Spec};

/// The commits between two looks at the size of the file.
const EVERY: u64 = if cfg!(test) { 1 } else { 64 };
/// Fewer changes than this leave too little behind to look for it.
const MUCH: u64 = 16_384;
/// A file that has less than this to give is left alone. The tests of this crate copy small files without end.
const LEAST: u64 = 8 << 20;

/// When the next copy begins.
pub(super) struct Look {
    /// Commits until the next look, and how many times in a row a copy has failed.
    left: u64,
    failures: u32,
    /// Changes since the last look.
    changes: u64,
    /// The size of a file that was just copied, by the estimate of it.
    scale: f64,
}

impl Default for Look {
    fn default() -> Self {
        Look { left: EVERY, failures: 0, changes: 0, scale: 1.0 }
    }
}

impl Look {
    /// A commit has made so many changes.
    pub(super) fn changed(&mut self, count: u64) {
        self.changes += count;
    }

    /// If there was much to change since the last look, the next commit looks. Whether it does.
    pub(super) fn at_once(&mut self) -> bool {
        let much = self.changes >= MUCH && self.failures == 0;
        if much {
            self.left = 1;
        }
        much
    }

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
        (self.left, self.changes) = (EVERY, 0);
        let taken = fs::metadata(directory.join(FILE)).map_or(0, |file| on_disk(&file));
        if cfg!(test) {
            return Ok(true);
        }
        // What can be swept is swept first, and not copied. Some of it is there all the time.
        let living: u64 = view.buckets.values().map(|held| held.row.filling.count).sum();
        let swept = view.removed_rows() <= living || view.to_sweep().is_none();
        if taken <= LEAST || !swept {
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
            // However much the estimate is off: else the next copy would begin at once, and so on.
            self.scale = (taken as f64 / needed).max(0.5);
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
