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

use super::queue::{Order, Queue};
use super::source::Source;
use super::{Purpose, Shard};
use crate::message::{Answer, LoadId, Many, RequestId};
use crate::record::{Generation, Lane, Place, Record};
use crate::store::{QueueRow, Settings};
use crate::values::QueueName;

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

    /// The first generation of a queue that is not discarded.
    pub(super) fn floor(&self, queue: &QueueName) -> Generation {
        self.queues.get(queue).map_or(Generation(0), |queue| queue.row.floor)
    }

    /// Whether a row is no timer of its queue any more.
    pub(super) fn is_discarded(&self, record: &Record) -> bool {
        record.generation() < self.floor(&record.spec.queue)
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
            Lane::ALL.map(|lane| Source::Waiting(name.clone(), lane, Order::default()))
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
        if matches!(&source, Source::Bucket(bucket, _) if !self.window.buckets.contains_key(bucket))
        {
            return true;
        }
        let query = source.query(self.limits.page);
        let load = self.loads.emit(query, Purpose::Pass);
        self.window.reclaims(source, load);
        true
    }

    /// A page of a place has come.
    pub(super) fn reclaimed(&mut self, id: LoadId, source: Source, rows: Vec<(Place, Record)>) {
        let last = rows.last().filter(|_| rows.len() == self.limits.page).cloned();
        for (place, record) in rows {
            if !self.is_stale(id, &record) {
                self.drop_discarded(place, &record);
            }
        }
        let Some(last) = last else { return };
        let floor = self.queues.values().map(|queue| queue.row.floor).max().unwrap_or_default();
        // By generation: later ones are not discarded.
        let ordered = matches!(source, Source::Bucket(..));
        if !ordered || last.1.generation() < floor {
            self.reclaim.push_front(source.behind(&last));
        }
    }
}
