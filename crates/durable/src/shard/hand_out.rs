//! Handing out: which timer is next, leases, and loading pages of waiting rows.
//!
//! A hand-out is a change: its attempt and its lease are durable before the taker receives it. The most overdue timer
//! goes first. No timer is handed out before its next attempt by the wall clock of this turn.

use super::queue::Order;
use super::{Hold, Purpose, Shard};
use crate::message::{Delivery, LoadId, Opened, RequestId, Token};
use crate::record::{Fate, Generation, Lane, Lease, Place, Record};
use crate::store::{Filling, Query};
use crate::values::{Happened, QueueName, Span};
use tourbillon_wheel::Time;

/// Maximum bytes of payloads in one answer, unless a single payload is larger.
pub(super) const MOST_BYTES: usize = 16 << 20;

/// What expires by the steady clock.
pub(super) enum Expiry {
    /// The lease of a timer that is out.
    Lease(Generation),
    /// The wait of a taker; of an agent if there is no queue.
    Poll(Option<QueueName>, RequestId),
    /// The pause that a queue's rate limit imposes.
    Pace(QueueName),
}

impl Shard {
    /// A timer in the wheel has become due. Its row stays in its bucket.
    pub(super) fn come_due(&mut self, generation: Generation) {
        let timer = self.timers.get_mut(&generation).expect("what the wheel holds is resident");
        timer.hold = Hold::Queue;
        let (order, spec) = ((timer.record.next_attempt, generation), &timer.record.spec);
        let queue = self.queues.get_mut(&spec.queue).expect("a timer has a queue");
        queue.coming.remove(&order);
        queue.line_mut(spec.lane()).popped.insert(order);
        if !self.stirred.contains(&spec.queue) {
            self.stirred.insert(spec.queue.clone());
        }
        if self.events.is_some() || timer.record.is_watched() {
            let record = timer.record.clone();
            self.note(Happened::Due, &record);
            if record.is_watched() {
                self.note_due(&record);
            }
        }
    }

    /// The next timer of a lane to hand out. Loads a page if it is not resident.
    pub(super) fn next_due(&mut self, name: &QueueName, lane: Lane) -> Option<Generation> {
        loop {
            let queue = self.queues.get(name)?;
            let settings = &queue.row.settings;
            let crowded = settings.concurrency.is_some_and(|most| queue.row.out >= most.into());
            if settings.paused || crowded || self.is_out_full(self.held.out) {
                return None;
            }
            let line = queue.line(lane);
            let Some(order) = line.first().filter(|&order| line.is_before_horizon(order)) else {
                self.refill(name, lane);
                return None;
            };
            // The timer is no longer due, because the clock was set back. A pass is moving it to a bucket.
            if planted!("clock-set-back-fires-early", false, order.0 > self.wall) {
                return None;
            }
            let timer = &self.timers[&order.1];
            let watched = timer.record.is_watched();
            if !watched || !self.mend(timer.place, &timer.record.clone()) {
                return self.keeps_pace(name).then_some(order.1);
            }
        }
    }

    /// Loads a page of waiting rows if one may be due.
    fn refill(&mut self, name: &QueueName, lane: Lane) {
        let Some(queue) = self.queues.get_mut(name) else { return };
        let line = queue.line_mut(lane);
        let Some(from) = line.horizon.filter(|horizon| horizon.0 <= self.wall) else { return };
        if line.refill.is_none() {
            let query = Query::Waiting { queue: name.clone(), lane, from, limit: self.limits.page };
            line.refill = Some(self.loads.emit(query, Purpose::Refill(name.clone(), lane)));
            self.agents.pages += usize::from(lane == Lane::Push);
        }
    }

    /// Whether a queue's rate limit allows a hand-out now. If not, a timer on the steady clock resumes hand-outs.
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

    /// Hands out a timer under a lease. For a webhook the lease is extended by the webhook's timeout.
    pub(super) fn hand(&mut self, generation: Generation, lease: Span) -> Delivery {
        let timer = &self.timers[&generation];
        let (place, old) = (timer.place, timer.record.clone());
        if let Some(queue) = self.queues.get_mut(&old.spec.queue) {
            queue.lateness.count(self.steady, self.wall.since(old.next_attempt));
            queue.last = old.spec.lane();
            if queue.row.settings.rate.is_some() {
                queue.pace.count(self.steady);
            }
        }
        let timeout = old.spec.webhook.as_ref().map_or(Span::ZERO, |webhook| webhook.timeout);
        let timeout = planted!("push-lease-without-its-timeout", Span::ZERO, timeout);
        let length = Span::from_millis(timeout.millis() + lease.millis());
        let lease_until = self.wall + length;
        let attempt = planted!("attempt-not-raised", old.attempt.max(1), old.attempt + 1);
        let lease = Some(Lease { until: lease_until, length });
        let record = Record { attempt, lease, fate: Fate::Open, ..old.clone() };
        let delivery = Delivery {
            queue: old.spec.queue.clone(),
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
        self.note(Happened::Handed, &record);
        let out = Place::Out(record.next_attempt);
        self.change(Some((place, &old)), Some((out, record)));
        delivery
    }

    /// Whether the limit of deliveries that are out is reached.
    pub(super) fn is_out_full(&self, out: Filling) -> bool {
        out.count >= self.limits.out as u64 || out.bytes >= self.limits.out_bytes
    }

    /// Keeps a waiting row resident if it lies before the horizon. Beyond a limit, the last row of the line is released
    /// from memory and the horizon moves back. Each line may always hold a page of rows, and one row beyond the byte
    /// limit.
    pub(super) fn keep_waiting(&mut self, name: &QueueName, lane: Lane, order: Order) -> bool {
        let queue = self.queues.get_mut(name).expect("a timer has a queue");
        let line = queue.line_mut(lane);
        // The page being loaded may have been read before this row was written.
        if !line.is_before_horizon(order) && line.refill.is_none() {
            return false;
        }
        self.stirred.insert(name.clone());
        let (held, limits) = (self.held.waiting, self.limits);
        let rows = held.count >= limits.waiting as u64 && line.waiting.len() >= limits.page;
        let bytes =
            held.bytes >= planted!("waiting-counts-no-bytes", u64::MAX, limits.waiting_bytes);
        if rows || bytes && !line.waiting.is_empty() {
            let last = line.waiting.last().copied().filter(|&last| last > order);
            line.draw_horizon(last.unwrap_or(order));
            let Some(last) = last else { return false };
            self.release(last.1);
        }
        let queue = self.queues.get_mut(name).expect("a timer has a queue");
        queue.line_mut(lane).waiting.insert(order);
        true
    }

    /// Processes a page of waiting rows.
    pub(super) fn refilled(
        &mut self,
        id: LoadId,
        (name, lane): (&QueueName, Lane),
        rows: Vec<(Place, Record)>,
    ) {
        self.agents.pages -= usize::from(lane == Lane::Push);
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
        let line = queue.line_mut(lane);
        line.refill = None;
        line.horizon = last.filter(|_| !whole).into_iter().chain(line.dropped.take()).min();
        self.stirred.insert(name.clone());
    }

    /// Whether a loaded row is older than the timer's state in memory.
    pub(super) fn is_stale(&self, id: LoadId, record: &Record) -> bool {
        let stale = self.loads.is_stale(id, &record.spec.queue, &record.spec.key);
        planted!("cancel-read-after-batch", false, stale)
    }
}

/// Opening.
impl Shard {
    pub(super) fn load_out(&mut self, after: Option<Order>) {
        let query = Query::Out { after, limit: self.limits.page };
        self.loads.emit(query, Purpose::Out);
    }

    /// Processes a page of the rows that are out. After the last page, processes the inputs that were held back.
    pub(super) fn loaded_out(&mut self, rows: Vec<(Place, Record)>) {
        let whole = rows.len() < self.limits.page;
        let last = rows.last().map(|(_, record)| (record.next_attempt, record.generation()));
        for (place, record) in rows {
            if self.drop_discarded(place, &record) {
                continue;
            }
            let unknown = record.spec.lane() == Lane::Push && self.opened_as == Opened::Started;
            let unknown = planted!("push-lease-runs-on-at-restart", false, unknown);
            if unknown || self.is_unreceived(&record) {
                // Its agent belonged to a process that has ended, so the outcome of the delivery is unknown. Or the
                // store failed before its taker was answered, so nobody has it.
                self.retry_unknown(&record);
                continue;
            }
            self.keep(place, planted!("lease-lost-at-restart", lapsed(record, self.wall), record));
        }
        if !whole {
            return self.load_out(last);
        }
        self.outbox.undone(std::mem::take(&mut self.before));
        for input in self.opening.take().unwrap_or_default() {
            self.take(input);
        }
        self.stirred.extend(self.queues.keys().cloned());
    }
}

/// A planted fault: the lease ends with the process that granted it.
#[cfg(planted)]
fn lapsed(record: Record, now: crate::values::Moment) -> Record {
    Record { lease: Some(Lease { until: now, length: Span::ZERO }), ..record }
}
