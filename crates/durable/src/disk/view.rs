//! The view: what the store keeps in memory of its tables. Its size goes by the number of buckets, not of timers, but
//! for the removed rows of buckets that were read.

use std::collections::{BTreeMap, BTreeSet};

use redb::{ReadTransaction, ReadableTable, TableError};

use super::error::{Fault, Outcome};
use super::marks::Removed;
use super::table::{Numbered, describe, marks_name};
use crate::bucket::{Bucket, Level};
use crate::codec::{BucketRow, DayCells, Marks, decode};
use crate::store::{Damage, Filling};
use crate::values::Moment;

/// The most words of [`Removed`] that are kept for buckets other than the one in use: 16 bytes each, and some more.
const WORDS: usize = 1 << 20;

/// The most days whose counters are kept: 12 KiB each.
const DAYS: usize = 64;

/// A table of rows by generation, or of lists by number.
pub(super) type Rows = redb::ReadOnlyTable<u64, &'static [u8]>;

#[derive(Clone, Default)]
pub(super) struct View {
    pub(super) buckets: BTreeMap<Bucket, Held>,
    /// Counters of days that were written lately, by the key of their row.
    pub(super) days: BTreeMap<Vec<u8>, DayCells>,
    /// What was found damaged.
    pub(super) damage: BTreeSet<Damage>,
    /// For a check: reads a bucket although some of its markers are lost, and notes that here.
    pub(super) lenient: bool,
    pub(super) lost_marks: BTreeSet<Bucket>,
}

/// A bucket.
#[derive(Clone, Default)]
pub(super) struct Held {
    pub(super) row: BucketRow,
    /// Its removed rows, if they were read since the store was opened.
    pub(super) removed: Option<Removed>,
    /// The last list of markers, which may grow.
    pub(super) tail: Marks,
    /// How far it has been swept, and the first list of markers that is not yet swept.
    pub(super) sweep: Option<(u64, u64)>,
    /// Some of its markers cannot be read: it is left as it is.
    pub(super) unreadable: bool,
}

impl View {
    pub(super) fn fillings(&self) -> Vec<(Bucket, Filling)> {
        self.buckets.iter().map(|(&bucket, held)| (bucket, held.row.filling)).collect()
    }

    /// The removed rows that still take room.
    pub(super) fn removed_rows(&self) -> u64 {
        self.buckets.values().map(|held| held.row.removed).sum()
    }

    pub(super) fn keep_day(&mut self, key: Vec<u8>, cells: DayCells) {
        if self.days.len() >= DAYS {
            self.days.clear();
        }
        self.days.insert(key, cells);
    }

    /// The buckets around a moment, that is, those that a timer with this home may be in.
    pub(super) fn around(&self, home: Moment) -> Vec<Bucket> {
        let around = Level::ALL.map(|level| Bucket::of(level, home));
        around.into_iter().filter(|bucket| self.buckets.contains_key(bucket)).collect()
    }

    /// The removed rows of a bucket. `open` opens the table of its markers, if they are not in memory.
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

    /// Forgets what can be read again.
    fn limit_memory(&mut self, keep: Bucket) {
        let words = |held: &Held| held.removed.as_ref().map_or(0, Removed::words);
        if self.buckets.values().map(words).sum::<usize>() <= WORDS {
            return;
        }
        let others = self.buckets.iter_mut().filter(|(bucket, _)| **bucket != keep);
        others.for_each(|(_, held)| held.removed = None);
    }
}

/// Without one of its lists a bucket cannot be read: what was cancelled would live again.
fn read_removed(
    bucket: Bucket,
    open: impl FnOnce(&str) -> Outcome<Option<Rows>>,
    removed: &mut Removed,
) -> Outcome {
    let name = marks_name(bucket);
    let Some(table) = open(&name)? else { return Ok(()) };
    // The other lists are read also if one cannot be: a check makes do with them.
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

/// A table by its number or generation; `None` if it is not there.
pub(super) fn open_rows(transaction: &ReadTransaction, name: &str) -> Outcome<Option<Rows>> {
    match transaction.open_table(Numbered::new(name)) {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
