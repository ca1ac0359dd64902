//! Handing out: takers, leases, and pages of what waits.
//!
//! A hand-out is a change: its attempt and its lease are durable before its taker hears of it. The longest due goes
//! first. Nothing is handed out before its next attempt by the wall clock of this turn.

use super::queue::{Order, Taker};
use super::{Purpose, Shard};
use crate::message::{Answer, Delivery, LoadId, RequestId, Token};
use crate::record::{Fate, Generation, Lease, Place, Record};
use crate::store::Query;
use crate::values::{QueueName, Span};
use tourbillon_wheel::Time;

/// The most bytes of payloads in one answer, unless one alone has more.
pub(super) const MOST_BYTES: usize = 16 << 20;

/// What the steady clock ends.
pub(super) enum Expiry {
    /// The lease of a timer that is out.
    Lease(Generation),
    /// The wait of a taker.
    Poll(QueueName, RequestId),
    /// What the rate of a queue forbids.
    Pace(QueueName),
}

impl Shard {
    /// A taker has come.
    pub(super) fn receive(
        &mut self,
        id: RequestId,
        name: &QueueName,
        (max, wait, lease): (usize, Span, Span),
    ) {
        let until = Time::from((self.steady + wait).millis());
        let poll = (wait > Span::ZERO).then(|| {
            let poll = Expiry::Poll(name.clone(), id);
            self.expiries.insert(until, poll).expect("polls are bounded by the caller")
        });
        // A poll makes no queue in the store, but it waits in one.
        let queue = self.queue_entry(name);
        queue.takers.push_back(Taker { id, max: max.max(1), lease, poll });
        self.stirred.insert(name.clone());
    }

    /// A taker has gone before it was given anything.
    pub(super) fn leave(&mut self, name: &QueueName, id: RequestId) {
        let Some(queue) = self.queues.get_mut(name) else { return };
        let Some(nth) = queue.takers.iter().position(|taker| taker.id == id) else { return };
        let left = queue.takers.remove(nth);
        left.and_then(|taker| taker.poll).map(|poll| self.expiries.cancel(poll));
    }

    pub(super) fn expire_poll(&mut self, name: &QueueName, id: RequestId) {
        let Some(queue) = self.queues.get_mut(name) else { return };
        if let Some(taker) = queue.takers.iter_mut().find(|taker| taker.id == id) {
            taker.poll = None;
            self.stirred.insert(name.clone());
        }
    }

    /// Serves the takers of every queue in which something may have become possible.
    pub(super) fn hand_out(&mut self) {
        for name in std::mem::take(&mut self.stirred) {
            while self.serve(&name) {}
            let Some(queue) = self.queues.get_mut(&name) else { continue };
            if queue.refill.is_some() {
                continue;
            }
            queue.takers.retain(|taker| {
                if taker.poll.is_none() {
                    self.outbox.answer(taker.id, Answer::Deliveries(Vec::new()));
                }
                taker.poll.is_some()
            });
        }
    }

    /// Serves the first taker of a queue, if something is due for it.
    fn serve(&mut self, name: &QueueName) -> bool {
        let Some(queue) = self.queues.get(name) else { return false };
        let Some(taker) = queue.takers.front() else { return false };
        let (id, max, lease) = (taker.id, taker.max, taker.lease);
        let (mut deliveries, mut bytes) = (Vec::new(), 0);
        while deliveries.len() < max {
            let Some(generation) = self.next_due(name) else { break };
            bytes += self.timers[&generation].record.spec.payload.len();
            if bytes > MOST_BYTES && !deliveries.is_empty() {
                break;
            }
            deliveries.push(self.hand(generation, lease));
        }
        if deliveries.is_empty() {
            return false;
        }
        let served = self.queues.get_mut(name).and_then(|queue| queue.takers.pop_front());
        served.and_then(|taker| taker.poll).map(|poll| self.expiries.cancel(poll));
        self.outbox.answer(id, Answer::Deliveries(deliveries));
        true
    }

    /// The timer of a queue that is to be handed out next; asks for a page if that is not resident.
    fn next_due(&mut self, name: &QueueName) -> Option<Generation> {
        loop {
            let queue = self.queues.get(name)?;
            let settings = &queue.row.settings;
            let crowded = settings.concurrency.is_some_and(|most| queue.row.out >= most.into());
            if settings.paused || crowded || self.out >= self.limits.out {
                return None;
            }
            let Some(order) = queue.first().filter(|&order| queue.is_before_horizon(order)) else {
                self.refill(name);
                return None;
            };
            // Ahead of a clock that was set back: it is on its way to a bucket.
            if planted!("clock-set-back-fires-early", false, order.0 > self.wall) {
                return None;
            }
            let timer = &self.timers[&order.1];
            let (place, record) = (timer.place, timer.record.clone());
            if !self.mend(place, &record) {
                return self.keeps_pace(name).then_some(order.1);
            }
        }
    }

    /// Asks for a page of waiting rows if one may be due.
    fn refill(&mut self, name: &QueueName) {
        let Some(queue) = self.queues.get_mut(name) else { return };
        let Some(from) = queue.horizon.filter(|horizon| horizon.0 <= self.wall) else { return };
        if queue.refill.is_none() {
            let query = Query::Waiting { queue: name.clone(), from, limit: self.limits.page };
            queue.refill = Some(self.loads.emit(query, Purpose::Refill(name.clone())));
        }
    }

    /// Whether the rate of a queue allows a hand-out now. If not, the steady clock says when it does.
    fn keeps_pace(&mut self, name: &QueueName) -> bool {
        let Some(queue) = self.queues.get_mut(name) else { return false };
        let rate = queue.row.settings.rate;
        let Some(next) = rate.and_then(|rate| queue.pace.next(rate, self.steady)) else {
            return true;
        };
        if !std::mem::replace(&mut queue.pace.waits, true) {
            let (at, pace) = (Time::from(next.millis()), Expiry::Pace(name.clone()));
            self.expiries.insert(at, pace).expect("one for each queue");
        }
        false
    }

    fn hand(&mut self, generation: Generation, length: Span) -> Delivery {
        let timer = &self.timers[&generation];
        let (place, old) = (timer.place, timer.record.clone());
        if let Some(queue) = self.queues.get_mut(&old.spec.queue) {
            queue.lateness.count(self.steady, self.wall.since(old.next_attempt));
            if queue.row.settings.rate.is_some() {
                queue.pace.count(self.steady);
            }
        }
        let lease_until = self.wall + length;
        let attempt = planted!("attempt-not-raised", old.attempt.max(1), old.attempt + 1);
        let lease = Some(Lease { until: lease_until, length });
        let record = Record { attempt, lease, fate: Fate::Open, ..old.clone() };
        let delivery = Delivery {
            token: Token {
                key: old.spec.key.clone(),
                generation,
                occurrence: old.occurrence,
                attempt,
            },
            payload: old.spec.payload.clone(),
            due: old.due,
            handed: self.wall,
            lease_until,
            webhook: old.spec.webhook.clone(),
            retry: old.spec.retry,
        };
        self.change(Some((place, &old)), Some((Place::Out, record)));
        delivery
    }

    /// Keeps a waiting row resident if it lies before the horizon. Beyond the limit, the last of the queue leaves and
    /// the horizon comes nearer; a page of each queue may always be there.
    pub(super) fn keep_waiting(&mut self, name: &QueueName, order: Order) -> bool {
        let queue = self.queues.get_mut(name).expect("a timer has a queue");
        // The page that is under way may have been read before this row was written.
        if !queue.is_before_horizon(order) && queue.refill.is_none() {
            return false;
        }
        self.stirred.insert(name.clone());
        if self.waiting >= self.limits.waiting && queue.waiting.len() >= self.limits.page {
            let last = queue.waiting.last().copied().filter(|&last| last > order);
            queue.draw_horizon(last.unwrap_or(order));
            let Some(last) = last else { return false };
            self.release(last.1);
        }
        let queue = self.queues.get_mut(name).expect("a timer has a queue");
        queue.waiting.insert(order);
        self.waiting += 1;
        true
    }

    /// A page of waiting rows has come.
    pub(super) fn refilled(&mut self, id: LoadId, name: &QueueName, rows: Vec<(Place, Record)>) {
        let whole = rows.len() < self.limits.page;
        let last = rows
            .last()
            .map(|(_, record)| (record.next_attempt, Generation(record.generation().0 + 1)));
        for (place, record) in rows {
            let resident = self.timers.contains_key(&record.generation());
            let fresh = !resident && !self.is_stale(id, &record);
            if fresh && !self.drop_discarded(place, &record) {
                self.keep(place, record);
            }
        }
        let Some(queue) = self.queues.get_mut(name) else { return };
        queue.refill = None;
        queue.horizon = last.filter(|_| !whole).into_iter().chain(queue.dropped.take()).min();
        self.stirred.insert(name.clone());
    }

    /// Whether a loaded row is older than what memory knows of its timer.
    pub(super) fn is_stale(&self, id: LoadId, record: &Record) -> bool {
        let stale = self.loads.is_stale(id, &record.spec.queue, &record.spec.key);
        planted!("cancel-read-after-batch", false, stale)
    }
}

/// Opening.
impl Shard {
    pub(super) fn load_out(&mut self, after: Option<Generation>) {
        let query = Query::Out { after, limit: self.limits.page };
        self.loads.emit(query, Purpose::Out);
    }

    /// A page of what is out has come. After the last, the inputs that were held are taken.
    pub(super) fn loaded_out(&mut self, rows: Vec<(Place, Record)>) {
        let whole = rows.len() < self.limits.page;
        let last = rows.last().map(|(_, record)| record.generation());
        for (place, record) in rows {
            if self.drop_discarded(place, &record) {
                continue;
            }
            self.keep(place, planted!("lease-lost-at-restart", lapsed(record, self.wall), record));
        }
        if !whole {
            return self.load_out(last);
        }
        for input in self.opening.take().unwrap_or_default() {
            self.take(input);
        }
        self.stirred.extend(self.queues.keys().cloned());
    }
}

/// A planted fault: the lease ends with the process that gave it.
#[cfg(planted)]
fn lapsed(record: Record, now: crate::values::Moment) -> Record {
    Record { lease: Some(Lease { until: now, length: Span::ZERO }), ..record }
}
