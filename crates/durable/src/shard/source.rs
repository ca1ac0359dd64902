//! Sources: the places that may hold rows. Each is read a page at a time.

use super::queue::Order;
use crate::bucket::Bucket;
use crate::record::{Generation, Lane, Place, Record};
use crate::store::Query;
use crate::values::QueueName;

/// A place, and how far it has been read.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// A bucket, with rows of all queues.
    Bucket(Bucket, Option<Generation>),
    /// One lane of the waiting rows of a queue.
    Waiting(QueueName, Lane, Order),
    /// The dead rows of a queue.
    Dead(QueueName, Option<Order>),
    /// The rows that are out, of all queues.
    Out(Option<Order>),
    /// The remembered rows of all queues.
    Remembered(Option<Order>),
}

impl Source {
    /// The query for the next page.
    pub(super) fn query(&self, limit: usize) -> Query {
        match self.clone() {
            Source::Bucket(bucket, after) => Query::Bucket { bucket, after, limit },
            Source::Waiting(queue, lane, from) => Query::Waiting { queue, lane, from, limit },
            Source::Dead(queue, after) => Query::Dead { queue, after, limit },
            Source::Out(after) => Query::Out { after, limit },
            Source::Remembered(after) => Query::Remembered { after, limit },
        }
    }

    /// The rest of the source after that row.
    pub(super) fn behind(self, (place, row): &(Place, Record)) -> Source {
        let generation = row.generation();
        match (self, *place) {
            (Source::Waiting(queue, lane, _), _) => {
                Source::Waiting(queue, lane, (row.next_attempt, Generation(generation.0 + 1)))
            }
            (Source::Dead(queue, _), Place::Dead(at)) => {
                Source::Dead(queue, Some((at, generation)))
            }
            (Source::Remembered(_), Place::Remembered(until)) => {
                Source::Remembered(Some((until, generation)))
            }
            (Source::Bucket(bucket, _), _) => Source::Bucket(bucket, Some(generation)),
            (_, _) => Source::Out(Some((row.next_attempt, generation))),
        }
    }
}
