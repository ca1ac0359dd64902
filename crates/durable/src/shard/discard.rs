//! Discarding: every timer of a queue at once, whatever their number.
//!
//! The row of a queue has a **floor**: rows of generations below it are discarded. To discard all timers raises the
//! floor to the next generation, sets the counts of the queue to zero and removes its counters of the forecast, in one
//! commit. Discarded rows lie where they are; no reader takes one for a timer.
//!
//! - A page that comes across one removes it, whatever the page was read for.
//! - A request that makes a timer under the key of one removes it first, as a row that was kept long enough.
//! - For the others a pass goes over all places, a page a turn, when nothing is more urgent. What is remembered is left
//!   to its end, when it would have gone anyway.
//!
//! A deleted queue keeps its row until it has no discarded row: without its floor they would be timers again.

use std::collections::VecDeque;

use super::queue::Queue;
use super::{Purpose, Shard};
use crate::bucket::Bucket;
use crate::message::{Answer, LoadId, Many, RequestId};
use crate::record::{Generation, Lane, Place, Record};
use crate::store::{Query, QueueRow, Settings};
use crate::values::{Moment, QueueName};

/// A place in which discarded rows may be, and how far it was read.
pub(super) enum Source {
    Bucket(Bucket, Option<Generation>),
    Waiting(QueueName, Lane, (Moment, Generation)),
    Dead(QueueName, Option<(Moment, Generation)>),
    Out(Option<Generation>),
}

/// A queue as it was stored.
pub(super) fn restored((name, row): (QueueName, QueueRow)) -> (QueueName, Queue) {
    let floor = planted!("discarded-rows-live-after-a-restart", Generation(0), row.floor);
    (name, Queue::new(QueueRow { floor, ..row }))
}

impl Shard {
    /// Cancels every timer of a queue.
    pub(super) fn clear(&mut self, id: RequestId, name: &QueueName) {
        let row = self.queues.get(name).filter(|queue| queue.stored).map(|queue| &queue.row);
        let many = row.map_or(Many::default(), |row| Many {
            done: row.pending + row.dead,
            delivering: row.out,
            more: false,
        });
        if row.is_some() {
            self.discard_all(name);
        }
        self.outbox.answer(id, Answer::Many(many));
    }

    pub(super) fn delete(&mut self, id: RequestId, name: &QueueName, force: bool) {
        let Some(queue) = self.queues.get_mut(name).filter(|queue| queue.stored) else {
            return self.outbox.answer(id, Answer::NoQueue);
        };
        if queue.row.out > 0 && !force {
            return self.outbox.answer(id, Answer::Delivering(queue.row.out));
        }
        self.discard_all(name);
        if let Some(queue) = self.queues.get_mut(name) {
            (queue.row.deleted, queue.stored) = (true, false);
            queue.row.settings = Settings::default();
        }
        self.outbox.answer(id, Answer::Done);
    }

    fn discard_all(&mut self, name: &QueueName) {
        let Some(queue) = self.queues.get_mut(name) else { return };
        let mut resident: Vec<Generation> = queue.keys.values().copied().collect();
        // In an order that is the same in every run.
        resident.sort_unstable();
        resident.into_iter().for_each(|generation| self.release(generation));
        let Some(queue) = self.queues.get_mut(name) else { return };
        queue.row.discard(self.row.next_generation);
        queue.far.clear();
        (queue.died, queue.sweep_at) = (None, None);
        for lane in Lane::ALL {
            let line = queue.line_mut(lane);
            (line.horizon, line.dropped) = (None, None);
            if let Some(load) = line.refill.take() {
                self.loads.take(load);
                self.agents.pages -= usize::from(lane == Lane::Push);
            }
        }
        self.count_living();
        self.outbox.clear(name);
        self.note_cleared(name);
        self.begin_reclaim();
        // Places of those that were out are free.
        self.stirred.extend(self.queues.keys().cloned());
    }

    /// Whether a row is no timer of its queue any more.
    pub(super) fn is_discarded(&self, record: &Record) -> bool {
        let queue = self.queues.get(&record.spec.queue);
        queue.is_some_and(|queue| record.generation() < queue.row.floor)
    }

    /// Removes a loaded row if it is discarded. Returns whether it was.
    pub(super) fn drop_discarded(&mut self, place: Place, record: &Record) -> bool {
        let discarded = planted!("discarded-row-is-kept", false, self.is_discarded(record));
        if discarded {
            self.change(Some((place, record)), None);
        }
        discarded
    }
}

/// Reclaiming.
impl Shard {
    /// Discarded rows are looked for in every place, from the beginning.
    pub(super) fn begin_reclaim(&mut self) {
        let full = self.queues.iter().filter(|(_, queue)| queue.row.discarded > 0);
        let full: Vec<QueueName> = full.map(|(name, _)| name.clone()).collect();
        self.reclaim = VecDeque::new();
        if full.is_empty() {
            return;
        }
        let waiting = full.iter().flat_map(|name| {
            Lane::ALL.map(|lane| Source::Waiting(name.clone(), lane, Default::default()))
        });
        let dead = full.iter().map(|name| Source::Dead(name.clone(), None));
        let buckets = self.window.buckets.keys().map(|&bucket| Source::Bucket(bucket, None));
        self.reclaim = waiting.chain(dead).chain([Source::Out(None)]).chain(buckets).collect();
    }

    /// Asks for the next page that may have discarded rows; `false` if there is none.
    pub(super) fn reclaim(&mut self) -> bool {
        let Some(source) = self.reclaim.pop_front() else { return false };
        if self.queues.values().all(|queue| queue.row.discarded == 0) {
            self.reclaim.clear();
            return false;
        }
        let limit = self.limits.page;
        let query = match &source {
            Source::Bucket(bucket, _) if !self.window.buckets.contains_key(bucket) => return true,
            Source::Bucket(bucket, after) => {
                Query::Bucket { bucket: *bucket, after: *after, limit }
            }
            Source::Waiting(queue, lane, from) => {
                Query::Waiting { queue: queue.clone(), lane: *lane, from: *from, limit }
            }
            Source::Dead(queue, after) => {
                Query::Dead { queue: queue.clone(), after: *after, limit }
            }
            Source::Out(after) => Query::Out { after: *after, limit },
        };
        let load = self.loads.emit(query, Purpose::Pass);
        self.window.reclaims(source, load);
        true
    }

    /// A page of a place has come.
    pub(super) fn reclaimed(&mut self, id: LoadId, source: Source, rows: Vec<(Place, Record)>) {
        let last = rows.last().filter(|_| rows.len() == self.limits.page).map(|row| row.1.clone());
        let at = rows.last().map(|(place, _)| *place);
        for (place, record) in rows {
            if !self.is_stale(id, &record) {
                self.drop_discarded(place, &record);
            }
        }
        let Some(last) = last else { return };
        let generation = last.generation();
        let floor = self.queues.values().map(|queue| queue.row.floor).max().unwrap_or_default();
        let next = match (source, at) {
            // Later ones are not discarded.
            (Source::Bucket(..) | Source::Out(_), _) if generation >= floor => return,
            (Source::Bucket(bucket, _), _) => Source::Bucket(bucket, Some(generation)),
            (Source::Out(_), _) => Source::Out(Some(generation)),
            (Source::Waiting(queue, lane, _), _) => {
                Source::Waiting(queue, lane, (last.next_attempt, Generation(generation.0 + 1)))
            }
            (Source::Dead(queue, _), Some(Place::Dead(at))) => {
                Source::Dead(queue, Some((at, generation)))
            }
            (Source::Dead(..), _) => return,
        };
        self.reclaim.push_front(next);
    }
}
