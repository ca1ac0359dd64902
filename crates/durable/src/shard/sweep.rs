//! Sweeping: handles expired and missed timers that are due and not handed out.
//!
//! - A timer whose occurrence has **expired** is given up.
//! - A recurring timer whose moment was **missed** moves to the moment that its policy selects. A moment is missed if
//!   it lies more than 10 s before the last event (start of the shard, resumption of the queue, or setting of the
//!   clock), was not handed out, and no client has set it since that event. The shard concludes that the wall clock was
//!   set when it has advanced over 10 s more or less than the steady clock.
//!
//! A timer is checked before it is handed out, and before a request for its key is decided, so no caller sees a timer
//! that should have moved. For the remaining timers a sweep reads all waiting rows of the queue, in pages, when one of
//! them may have to move: after an event, and at the first whole second after the earliest expiry. A sweep may read a
//! missed timer that is not due, because the clock was set back. Then the queue is swept again when that timer is due.

use std::collections::HashSet;

use super::queue::Queue;
use super::{Purpose, Shard};
use crate::bucket::{Level, ceil};
use crate::message::LoadId;
use crate::record::{Generation, Lane, Place, Record};
use crate::store::Query;
use crate::values::{Moment, QueueName, Span};

/// A moment longer ago than this is missed. A clock off by more than this was set.
pub(super) const LATE: Span = Span::from_secs(10);

/// When the occurrence expires: no attempt of it starts later.
pub(super) fn expiry(record: &Record) -> Option<Moment> {
    record.spec.expires.map(|span| record.due + span)
}

impl Queue {
    /// Whether the moment of a timer was missed at the last event.
    fn has_missed(&self, record: &Record) -> bool {
        self.is_back(record) && !self.given.contains(&record.generation())
    }

    fn is_back(&self, record: &Record) -> bool {
        let fresh = record.attempt == 0 && record.behind.is_none();
        record.spec.recurrence.is_some() && fresh && record.due + LATE < self.event
    }
}

impl Shard {
    /// Changes a due timer that has expired or was missed. Returns whether it changed one.
    pub(super) fn mend(&mut self, place: Place, record: &Record) -> bool {
        let pending = matches!(place, Place::Waiting(..) | Place::Bucket(_));
        if !pending || record.next_attempt > self.wall {
            return false;
        }
        if expiry(record).is_some_and(|at| at < self.wall) {
            self.give_up(place, record.clone());
            return true;
        }
        let Some(queue) = self.queues.get(&record.spec.queue) else { return false };
        let (event, recurrence) = (queue.event, record.spec.recurrence.as_ref());
        let Some(recurrence) = recurrence.filter(|_| queue.has_missed(record)) else {
            return false;
        };
        match recurrence.missed(record.due, event) {
            Some(due) if due == record.due => return false,
            Some(due) => {
                // After a `run` its next attempt is later than the selected moment. It keeps its position in the queue.
                let next_attempt = due.max(record.next_attempt);
                let moved = Record { due, next_attempt, ..record.clone() };
                self.change(
                    Some((place, record)),
                    Some((self.place_for(&record.spec, next_attempt), moved)),
                );
            }
            None => self.retire(place, record, record.clone()),
        }
        true
    }

    /// Records an event: the shard was opened, the queue was resumed, or the clock was set.
    pub(super) fn note_event(&mut self, name: &QueueName) {
        let Some(queue) = self.queues.get_mut(name) else { return };
        (queue.event, queue.sweep_at) = (self.wall, Some(Moment::ZERO));
        queue.given = HashSet::new();
        self.sweep_at = Moment::ZERO;
    }

    /// Records that a client has set the moment of a timer, so that no earlier event makes it missed.
    pub(super) fn note_given(&mut self, record: &Record) {
        let queue = self.queue_entry(&record.spec.queue);
        if queue.is_back(record) {
            queue.given.insert(record.generation());
        }
    }

    /// Forgets that a client has set the moment of a timer, once the timer is handed out or has ended.
    pub(super) fn forget_given(&mut self, old: &Record, new: Option<&(Place, Record)>) {
        let waits = |(place, record): &(Place, Record)| {
            record.attempt == 0 && matches!(place, Place::Bucket(_) | Place::Waiting(..))
        };
        if old.spec.recurrence.is_some() && !new.is_some_and(waits) {
            self.queue_entry(&old.spec.queue).given.remove(&old.generation());
        }
    }

    /// Schedules the sweep that a timer needs once it is due.
    pub(super) fn note_due(&mut self, record: &Record) {
        let queue = self.queues.get_mut(&record.spec.queue).expect("a timer has a queue");
        let missed = queue.has_missed(record).then_some(record.next_attempt);
        let expires = expiry(record)
            .map(|at| Moment::from_millis(ceil(at.millis() + 1, Level::Second.width())));
        queue.sweep_at = queue.sweep_at.into_iter().chain(missed).chain(expires).min();
        self.sweep_at = self.sweep_at.min(queue.sweep_at.unwrap_or(Moment::MAX));
    }

    /// Begins the sweeps that are due.
    pub(super) fn sweep(&mut self) {
        if self.sweep_at > self.wall {
            return;
        }
        self.sweep_at = Moment::MAX;
        let mut begin = Vec::new();
        for (name, queue) in self.queues.iter_mut().filter(|(_, queue)| !queue.sweeping) {
            let Some(at) = queue.sweep_at else { continue };
            if at > self.wall {
                self.sweep_at = self.sweep_at.min(at);
                continue;
            }
            queue.sweep_at = None;
            let popped: Vec<Generation> = queue.popped().collect();
            begin.push((name.clone(), popped));
        }
        for (name, popped) in begin {
            for generation in popped {
                let timer = &self.timers[&generation];
                let (place, record) = (timer.place, timer.record.clone());
                self.look_at(place, &record);
            }
            let queue = self.queues.get_mut(&name).expect("its name was just read");
            if queue.row.watched > 0 {
                queue.sweeping = true;
                self.sweep_lane(name, Lane::Pull);
            }
        }
    }

    /// Sweeps that lane, or the next lane if that one has no waiting rows.
    fn sweep_lane(&mut self, name: QueueName, lane: Lane) {
        let Some(queue) = self.queues.get(&name) else { return };
        let lane = [lane, Lane::Push].into_iter().find(|&lane| queue.row.waits(lane) > 0);
        if let Some(lane) = lane {
            return self.load_sweep(name, lane, (Moment::ZERO, Generation(0)));
        }
        self.end_sweep(&name);
    }

    fn end_sweep(&mut self, name: &QueueName) {
        let Some(queue) = self.queues.get_mut(name) else { return };
        queue.sweeping = false;
        self.sweep_at = self.sweep_at.min(queue.sweep_at.unwrap_or(Moment::MAX));
    }

    fn look_at(&mut self, place: Place, record: &Record) {
        if self.mend(place, record) {
            return;
        }
        // The clock was set back. To leave this row to the pass that moves it to a bucket would be wrong: if the row is
        // due again before that pass begins, the pass does not read it.
        if record.next_attempt > self.wall {
            return self.note_due(record);
        }
        // A missed timer whose moment is already right needs no second check; raising `attempt` excludes it.
        if record.spec.expires.is_some() {
            self.note_due(&Record { attempt: record.attempt.max(1), ..record.clone() });
        }
    }

    fn load_sweep(&mut self, queue: QueueName, lane: Lane, from: (Moment, Generation)) {
        let query = Query::Waiting { queue: queue.clone(), lane, from, limit: self.limits.page };
        self.loads.emit(query, Purpose::Sweep(queue, lane));
    }

    /// Processes a page of waiting rows.
    pub(super) fn swept(
        &mut self,
        id: LoadId,
        (name, lane): (QueueName, Lane),
        rows: Vec<(Place, Record)>,
    ) {
        let last = rows.last().filter(|_| rows.len() == self.limits.page);
        let last = last.map(|(_, row)| (row.next_attempt, Generation(row.generation().0 + 1)));
        for (place, record) in rows {
            if self.is_stale(id, &record) || self.drop_discarded(place, &record) {
                continue;
            }
            if record.is_watched() {
                self.look_at(place, &record);
            }
        }
        match (last, lane) {
            (Some(from), lane) => self.load_sweep(name, lane, from),
            (None, Lane::Pull) => self.sweep_lane(name, Lane::Push),
            (None, Lane::Push) => self.end_sweep(&name),
        }
    }
}
