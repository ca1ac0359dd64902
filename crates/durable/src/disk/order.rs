//! The rows of one bucket by next attempt, cached in memory after the first list.
//!
//! A bucket is stored in the order of generations, so listing it by time reads all its rows once. The order of the
//! bucket and queue listed last is kept up to date, so that the next page costs only its own rows.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::error::Outcome;
use super::read::Reader;
use crate::bucket::Bucket;
use crate::codec::decode_order;
use crate::record::{Generation, Place, Record};
use crate::values::{Key, Moment, QueueName};

/// Maximum number of rows whose order is cached: about 64 MiB. For a larger bucket, each page reads the whole bucket.
pub(super) const MOST: u64 = 2_000_000;

pub(super) struct Order {
    pub(super) bucket: Bucket,
    pub(super) queue: QueueName,
    /// The order leaves out rows of lower generations.
    floor: Generation,
    /// May include rows that have left the bucket; reading such a row finds nothing.
    rows: BTreeSet<(Moment, Generation)>,
}

impl Order {
    fn new(bucket: Bucket, queue: QueueName, floor: Generation) -> Self {
        Order { bucket, queue, floor, rows: BTreeSet::new() }
    }

    /// Drops the rows below a raised floor.
    fn raise(&mut self, floor: Generation) {
        if self.floor < floor {
            self.floor = floor;
            self.rows.retain(|row| row.1 >= floor);
        }
    }

    /// Adds a row that enters a bucket.
    pub(super) fn put(&mut self, bucket: Bucket, record: &Record) {
        if bucket == self.bucket && record.spec.queue == self.queue {
            self.rows.insert((record.next_attempt, record.generation()));
        }
    }

    /// Rows with this next attempt or a later one.
    pub(super) fn from(&self, at: Moment) -> impl Iterator<Item = (Moment, Generation)> {
        self.rows.range((at, Generation(0))..).copied()
    }
}

impl Reader<'_> {
    /// Rows of a bucket and queue at or above a generation, by next attempt and key, after that position. `None` if the
    /// bucket is too large to cache.
    pub(super) fn sorted(
        &mut self,
        kept: &mut Option<Order>,
        (bucket, queue, floor): (Bucket, &QueueName, Generation),
        after: &(Moment, Option<Key>),
        limit: usize,
    ) -> Outcome<Option<Vec<(Place, Record)>>> {
        if self.view.buckets.get(&bucket).is_some_and(|held| held.row.filling.count > MOST) {
            return Ok(None);
        }
        let mut order = match kept.take() {
            Some(order)
                if order.bucket == bucket && order.queue == *queue && order.floor <= floor =>
            {
                order
            }
            _ => Order::new(bucket, queue.clone(), floor),
        };
        order.raise(floor);
        if order.rows.is_empty() {
            let mut rows = Vec::new();
            self.scan_values(bucket, floor.0, &mut |table, generation, value| {
                let key = generation.0.to_be_bytes();
                let (of, next_attempt) = decode_order(table, &key, value)?;
                if of == queue.as_str() {
                    rows.push((next_attempt, generation));
                }
                Ok(ControlFlow::Continue(()))
            })?;
            // Collected and sorted at once: inserting one by one takes several times as long.
            order.rows = rows.into_iter().collect();
        }
        let order = kept.insert(order);
        let (mut rows, mut same) = (Vec::new(), Vec::new());
        let mut moment = after.0;
        for (at, generation) in order.from(after.0) {
            if at != moment {
                append(&mut rows, &mut same, limit);
                if rows.len() >= limit {
                    break;
                }
                moment = at;
            }
            let found = self.at(Place::Bucket(bucket), queue, generation)?;
            same.extend(found.filter(|(_, row)| row.next_attempt == at && row.order() > *after));
        }
        append(&mut rows, &mut same, limit);
        Ok(Some(rows))
    }
}

/// Appends the rows of one moment, by key.
fn append(rows: &mut Vec<(Place, Record)>, same: &mut Vec<(Place, Record)>, limit: usize) {
    same.sort_by(|one, other| one.1.spec.key.cmp(&other.1.spec.key));
    rows.append(same);
    rows.truncate(limit);
}
