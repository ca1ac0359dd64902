//! Sweeping: physically removes rows marked as removed, a bounded number with each commit.
//!
//! A bucket whose removed rows outnumber half of its living ones is swept from its first generation to its last; the
//! lists of markers written before the sweep are then obsolete and deleted. Only removed rows are visited, so the cost
//! of a sweep depends on them alone. A bucket without a living row is dropped whole; if it has many removed rows, it is
//! swept first, because redb visits every page of a table that it drops.

use super::error::Outcome;
use super::table::{Numbered, bucket_name, marks_name};
use super::view::{Held, View};
use super::write::Writer;
use crate::bucket::Bucket;

/// The rows that one commit reclaims: twice what it removes, but at least the first number and at most the second.
///
/// With a smaller piece the sweep would fall behind. This crate's tests have few rows and use smaller limits.
const PIECE: (usize, usize) = if cfg!(test) { (2, 2) } else { (1024, 4096) };
/// A bucket with fewer removed rows is not swept.
const FEWEST: u64 = if cfg!(test) { 2 } else { 1024 };
/// Maximum number of rows of a table that is dropped at once.
const DROPPED: u64 = if cfg!(test) { 3 } else { 65_536 };

impl View {
    /// The bucket being swept, or the next one to sweep.
    pub(super) fn to_sweep(&self) -> Option<(Bucket, &Held)> {
        let readable = || self.buckets.iter().filter(|(_, held)| !held.unreadable);
        let begun = readable().find(|(_, held)| held.sweep.is_some());
        let full = readable().filter(|(_, held)| {
            held.row.removed >= FEWEST && held.row.removed > held.row.filling.count / 2
        });
        let chosen = begun.or_else(|| full.max_by_key(|(_, held)| held.row.removed));
        chosen.map(|(&bucket, held)| (bucket, held))
    }
}

impl Writer<'_, '_> {
    /// Drops a bucket without living rows. If it has too many removed rows, leaves it to the sweep.
    pub(super) fn drop_bucket(&mut self, bucket: Bucket) -> Outcome {
        let Some(held) = self.view.buckets.get(&bucket) else { return Ok(()) };
        if held.row.filling.count > 0 || held.row.removed > DROPPED {
            return Ok(());
        }
        self.delete(bucket)
    }

    fn delete(&mut self, bucket: Bucket) -> Outcome {
        self.rows.remove(&bucket);
        self.forget_marks(bucket);
        for name in [bucket_name(bucket), marks_name(bucket)] {
            self.transaction.delete_table(Numbered::new(&name))?;
            self.changes.drop_table(&name);
        }
        self.view.buckets.remove(&bucket);
        self.changed.insert(bucket);
        Ok(())
    }

    /// Sweeps a part of the bucket in progress, or of the one with the most removed rows.
    pub(super) fn sweep(&mut self) -> Outcome {
        let Some((bucket, held)) = self.view.to_sweep() else { return Ok(()) };
        if held.row.filling.count == 0 && held.row.removed <= DROPPED {
            return self.delete(bucket);
        }
        let (from, lists) = held.sweep.unwrap_or((0, held.row.next_marks));
        if !self.load_removed(bucket)? {
            return Ok(());
        }
        // Markers from now on go to a new list.
        if self.held(bucket).sweep.is_none() {
            self.held(bucket).tail.0.clear();
        }
        let set = self.held(bucket).removed.take().unwrap_or_default();
        let limit = (2 * self.marked()).clamp(PIECE.0, PIECE.1);
        let piece = set.from(from, limit);
        let (_, rows) = self.rows(bucket)?;
        // A row may have markers even after it is gone.
        let mut gone = Vec::with_capacity(piece.len());
        for &generation in &piece {
            if rows.remove(generation)?.is_some() {
                gone.push(generation);
            }
        }
        let name = bucket_name(bucket);
        gone.iter().for_each(|row| self.changes.remove(&name, &row.to_be_bytes()));
        let held = self.held(bucket);
        held.removed = Some(set);
        held.row.removed = held.row.removed.saturating_sub(gone.len() as u64);
        match piece.last().filter(|_| piece.len() == limit) {
            Some(last) => self.held(bucket).sweep = Some((last.saturating_add(1), lists)),
            None => self.end_sweep(bucket, lists)?,
        }
        Ok(())
    }

    fn end_sweep(&mut self, bucket: Bucket, lists: u64) -> Outcome {
        let name = marks_name(bucket);
        let mut marks = self.transaction.open_table(Numbered::new(&name))?;
        for list in marks.extract_from_if(..lists, |_, _| true)? {
            self.changes.remove(&name, &list?.0.value().to_be_bytes());
        }
        drop(marks);
        let held = self.held(bucket);
        held.sweep = None;
        // The set still contains the rows that are gone; it is reloaded from the remaining lists.
        held.removed = None;
        Ok(())
    }
}
