//! A snapshot: every row of one state, read a page at a time in its own read transaction.

use std::collections::VecDeque;
use std::sync::Arc;

use redb::ReadTransaction;

use super::error::{Fault, Outcome, contain};
use super::read::Reader;
use super::table::{Small, small_row};
use super::view::View;
use crate::bucket::Bucket;
use crate::record::{Place, Record};
use crate::store::StoreError;

/// The number of rows in a page.
const PAGE: usize = 1000;

pub(super) struct Rows {
    transaction: ReadTransaction,
    view: View,
    /// While this is held, compaction keeps a file that it has replaced open.
    pub(super) held: Option<Arc<()>>,
    /// The remaining tables, current one first, each with the start of its next page.
    left: VecDeque<Source>,
    page: VecDeque<Result<(Place, Record), StoreError>>,
}

enum Source {
    Bucket(Bucket, u64),
    Small(Small, Vec<u8>),
}

impl Rows {
    pub(super) fn new(transaction: ReadTransaction, mut view: View) -> Self {
        view.damage.clear();
        let buckets = view.buckets.keys().map(|&bucket| Source::Bucket(bucket, 0));
        let left =
            buckets.chain(Small::ROWS.map(|small| Source::Small(small, Vec::new()))).collect();
        Rows { transaction, view, held: None, left, page: VecDeque::new() }
    }

    /// Reads the next page of the current table. Returns where the page after it starts.
    fn read(&mut self, source: Source) -> Outcome<Option<Source>> {
        let mut reader = Reader::new(&self.transaction, &mut self.view);
        let (rows, next) = match source {
            Source::Bucket(bucket, from) => {
                let rows = contain(|| reader.page(bucket, from, PAGE))?;
                let next = rows.last().map(|(_, row)| row.generation().0.saturating_add(1));
                (rows, next.map(|next| Source::Bucket(bucket, next)))
            }
            Source::Small(small, from) => {
                let rows = contain(|| reader.range(small, &from, &[], PAGE))?;
                let last = rows
                    .last()
                    .and_then(|(place, row)| small_row(*place, &row.spec.queue, row.generation()));
                // The first key after the last one.
                let next = last.map(|(_, key)| Source::Small(small, [&key[..], &[0]].concat()));
                (rows, next)
            }
        };
        let more = rows.len() == PAGE;
        self.page.extend(rows.into_iter().map(Ok));
        Ok(next.filter(|_| more))
    }
}

impl Iterator for Rows {
    type Item = Result<(Place, Record), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.page.pop_front() {
                return Some(row);
            }
            let source = self.left.pop_front()?;
            match self.read(source) {
                Ok(next) => next.into_iter().for_each(|next| self.left.push_front(next)),
                Err(Fault::Failed(why)) => {
                    self.left.clear();
                    self.page.push_back(Err(StoreError::Failed(why)));
                }
                Err(Fault::Damaged(damage)) => drop(self.view.damage.insert(damage)),
            }
            let damage = std::mem::take(&mut self.view.damage);
            self.page.extend(damage.into_iter().map(|damage| Err(StoreError::Damaged(damage))));
        }
    }
}
