//! Sources: the places that rows may be in, each read a page at a time.

use super::queue::Order;
use crate::bucket::Bucket;
use crate::record::{Generation, Lane, Place, Record};
use crate::store::Query;
use crate::values::QueueName;

/// A place, and how far it was read.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// A bucket, with rows of all queues.
    Bucket(Bucket, Option<Generation>),
    /// A lane of what waits in a queue.
    Waiting(QueueName, Lane, Order),
    /// The dead of a queue.
    Dead(QueueName, Option<Order>),
    /// What is out, of all queues.
    Out(Option<Order>),
    /// What is remembered, of all queues.
    Remembered(Option<Order>),
}

impl Source {
    /// Asks for the next page.
    pub(super) fn query(&self, limit: usize) -> Query {
        match self.clone() {
            Source::Bucket(bucket, after) => Query::Bucket { bucket, after, limit },
            Source::Waiting(queue, lane, from) => Query::Waiting { queue, lane, from, limit },
            Source::Dead(queue, after) => Query::Dead { queue, after, limit },
            Source::Out(after) => Query::Out { after, limit },
            Source::Remembered(after) => Query::Remembered { after, limit },
        }
    }

    /// What is left of it behind that row.
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
