//! Discarding: removes all timers of a queue in one commit, however many there are.
//!
//! The row of a queue has a **floor**: rows with a lower generation are discarded. Discarding all timers raises the
//! floor to the next generation, sets the counts of the queue to zero and removes its forecast counters, in one
//! commit. Discarded rows stay where they are; no reader treats one as a timer.
//!
//! - Any page that contains a discarded row removes that row, whatever the page was read for.
//! - A request that makes a timer under the key of a discarded row removes that row first. The same applies to a row
//!   whose retention has ended.
//! - The remaining discarded rows are found by a pass over all places, one page per turn, when nothing is more urgent.
//!   The pass skips remembered rows: they are removed when their retention ends.
//!
//! A deleted queue keeps its row until no discarded row is left: without the floor, discarded rows would be timers
//! again.

use std::collections::VecDeque;

use super::queue::{Order, Queue};
use super::source::Source;
use super::{Purpose, Shard};
use crate::message::{Answer, LoadId, Many, RequestId};
use crate::record::{Generation, Lane, Place, Record};
use crate::store::{QueueRow, Settings};
use crate::values::QueueName;

/// A queue as restored from the store.
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
        // Sorted, so that the order is the same in every run.
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
        // The rows that were out no longer count against the limits for all queues, so other queues may hand out more.
        self.stirred.extend(self.queues.keys().cloned());
    }

    /// The first generation of a queue that is not discarded.
    pub(super) fn floor(&self, queue: &QueueName) -> Generation {
        self.queues.get(queue).map_or(Generation(0), |queue| queue.row.floor)
    }

    /// Whether a row is discarded.
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
    /// Restarts the search for discarded rows in every place except the remembered rows.
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

    /// Loads the next page that may have discarded rows. Returns `false` if none is left.
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

    /// Processes a page of a reclaim.
    pub(super) fn reclaimed(&mut self, id: LoadId, source: Source, rows: Vec<(Place, Record)>) {
        let last = rows.last().filter(|_| rows.len() == self.limits.page).cloned();
        for (place, record) in rows {
            if !self.is_stale(id, &record) {
                self.drop_discarded(place, &record);
            }
        }
        let Some(last) = last else { return };
        let floor = self.queues.values().map(|queue| queue.row.floor).max().unwrap_or_default();
        // A bucket is ordered by generation: rows after this one are not discarded.
        let ordered = matches!(source, Source::Bucket(..));
        if !ordered || last.1.generation() < floor {
            self.reclaim.push_front(source.behind(&last));
        }
    }
}
