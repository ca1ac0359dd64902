//! The view: what the store keeps in memory of its tables.
//!
//! Its size depends on the number of buckets, not of timers, except for the cached sets of removed rows.

use std::collections::{BTreeMap, BTreeSet};

use redb::{ReadTransaction, ReadableTable, TableError};

use super::error::{Fault, Outcome};
use super::marks::Removed;
use super::table::{Numbered, describe, marks_name};
use crate::bucket::{Bucket, Level};
use crate::codec::{BucketRow, DayCells, Marks, decode};
use crate::store::{Damage, Filling};
use crate::values::Moment;

/// Maximum number of words of [`Removed`] kept for buckets other than the one in use: 16 bytes each, plus overhead.
const WORDS: usize = 1 << 20;

/// Maximum number of days whose counters are cached: 12 KiB each.
const DAYS: usize = 64;

/// A table of rows by generation, or of lists by number.
pub(super) type Rows = redb::ReadOnlyTable<u64, &'static [u8]>;

#[derive(Clone, Default)]
pub(super) struct View {
    pub(super) buckets: BTreeMap<Bucket, Held>,
    /// Counters of recently written days, by row key.
    pub(super) days: BTreeMap<Vec<u8>, DayCells>,
    /// Damage found so far.
    pub(super) damage: BTreeSet<Damage>,
    /// For a check: reads a bucket even if some of its markers (tombstones) are lost, and adds it to `lost_marks`.
    pub(super) lenient: bool,
    pub(super) lost_marks: BTreeSet<Bucket>,
}

/// A bucket.
#[derive(Clone, Default)]
pub(super) struct Held {
    pub(super) row: BucketRow,
    /// Its removed rows, if loaded.
    pub(super) removed: Option<Removed>,
    /// The last list of markers, which may grow.
    pub(super) tail: Marks,
    /// Progress of its sweep: the next generation, and the first list of markers written after it began.
    pub(super) sweep: Option<(u64, u64)>,
    /// Some of its markers cannot be read; it is not swept.
    pub(super) unreadable: bool,
}

impl View {
    pub(super) fn fillings(&self) -> Vec<(Bucket, Filling)> {
        self.buckets.iter().map(|(&bucket, held)| (bucket, held.row.filling)).collect()
    }

    /// The number of removed rows that still take space.
    pub(super) fn removed_rows(&self) -> u64 {
        self.buckets.values().map(|held| held.row.removed).sum()
    }

    pub(super) fn keep_day(&mut self, key: Vec<u8>, cells: DayCells) {
        if self.days.len() >= DAYS {
            self.days.clear();
        }
        self.days.insert(key, cells);
    }

    /// The existing buckets around a moment: those that a timer with this home may be in.
    pub(super) fn around(&self, home: Moment) -> Vec<Bucket> {
        let around = Level::ALL.map(|level| Bucket::of(level, home));
        around.into_iter().filter(|bucket| self.buckets.contains_key(bucket)).collect()
    }

    /// The removed rows of a bucket. If they are not in memory, `open` opens the table of its markers.
    pub(super) fn removed(
        &mut self,
        bucket: Bucket,
        open: impl FnOnce(&str) -> Outcome<Option<Rows>>,
    ) -> Outcome<&mut Removed> {
        let held = self.buckets.entry(bucket).or_default();
        if held.removed.is_none() {
            let mut removed = Removed::default();
            let read = match held.row.next_marks {
                0 => Ok(()),
                _ => read_removed(bucket, open, &mut removed),
            };
            held.removed = Some(removed);
            if let Err(fault) = read {
                let Fault::Damaged(damage) = fault else { return Err(fault) };
                if !self.lenient {
                    held.removed = None;
                    return Err(Fault::Damaged(damage));
                }
                self.damage.insert(damage);
                self.lost_marks.insert(bucket);
            }
            self.limit_memory(bucket);
        }
        let held = self.buckets.entry(bucket).or_default();
        Ok(held.removed.get_or_insert_default())
    }

    /// Drops the cached sets of other buckets if all together are too large.
    fn limit_memory(&mut self, keep: Bucket) {
        let words = |held: &Held| held.removed.as_ref().map_or(0, Removed::words);
        if self.buckets.values().map(words).sum::<usize>() <= WORDS {
            return;
        }
        let others = self.buckets.iter_mut().filter(|(bucket, _)| **bucket != keep);
        others.for_each(|(_, held)| held.removed = None);
    }
}

/// Reads the lists of markers. A bucket with a lost list cannot be read: cancelled timers would reappear.
fn read_removed(
    bucket: Bucket,
    open: impl FnOnce(&str) -> Outcome<Option<Rows>>,
    removed: &mut Removed,
) -> Outcome {
    let name = marks_name(bucket);
    let Some(table) = open(&name)? else { return Ok(()) };
    // Reads the other lists even if one is damaged; a check continues with those.
    let mut lost = Ok(());
    for row in ReadableTable::iter(&table)? {
        let (number, value) = row?;
        let number = number.value();
        match decode::<Marks>(&name, &number.to_be_bytes(), value.value()) {
            Ok(marks) => removed.apply(&marks),
            Err(wrong) => {
                let what = format!("list {number} of its removed rows");
                lost = Err(Fault::value(describe(bucket), what, &wrong));
            }
        }
    }
    lost
}

/// Opens a numbered table; `None` if it does not exist.
pub(super) fn open_rows(transaction: &ReadTransaction, name: &str) -> Outcome<Option<Rows>> {
    match transaction.open_table(Numbered::new(name)) {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
