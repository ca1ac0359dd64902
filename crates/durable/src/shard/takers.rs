//! Takers: receives and delivery agents that wait for due timers.
//!
//! Takers of a queue wait for its [pull lane](Lane::Pull), delivery agents for the [push lanes](Lane::Push) of all
//! queues. Queues are served round-robin, one timer per lane at a time. So a flood in one queue or lane leaves the
//! others their share of the agents, and of a queue's rate and concurrency limits.
//!
//! A queue is **ready** while its push lane may have a due timer; an agent that finds none ends that. So a new agent
//! examines only ready queues, whatever the number of queues.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Bound;

use tourbillon_wheel::{Key as WheelKey, Time};

use super::Shard;
use super::hand_out::{Expiry, MOST_BYTES};
use crate::message::{Answer, Delivery, RequestId};
use crate::record::Lane;
use crate::values::{QueueName, Span};

/// A receive or an agent that waits for due timers.
pub(super) struct Taker {
    id: RequestId,
    max: usize,
    /// The lease of each delivery; for an agent, the margin added to the webhook's timeout.
    lease: Span,
    /// The end of its wait. `None` once it has passed: the taker gets the timers due now, or an empty answer.
    poll: Option<WheelKey>,
    /// The deliveries it was given in this turn, and the bytes of their payloads.
    given: Vec<Delivery>,
    bytes: usize,
}

/// Delivery agents, and the queues that may have work for them.
#[derive(Default)]
pub(super) struct Agents {
    takers: VecDeque<Taker>,
    /// Queues whose push lane may have a due timer.
    ready: BTreeSet<QueueName>,
    /// The queue served last. The one after it is next.
    last: Option<QueueName>,
    /// Pages of push lanes that are being loaded.
    pub(super) pages: usize,
}

impl Shard {
    /// Adds a taker, or an agent if there is no queue.
    pub(super) fn receive(
        &mut self,
        id: RequestId,
        from: Option<QueueName>,
        (max, wait, lease): (usize, Span, Span),
    ) {
        let until = Time::from((self.steady + wait).millis());
        let poll = (wait > Span::ZERO).then(|| {
            let poll = Expiry::Poll(from.clone(), id);
            self.expiries.insert(until, poll).expect("polls are bounded by the caller")
        });
        let taker = Taker { id, max: max.max(1), lease, poll, given: Vec::new(), bytes: 0 };
        match from {
            None => self.agents.takers.push_back(taker),
            Some(name) => {
                // A poll does not create a queue in the store, only in memory.
                self.queue_entry(&name).takers.push_back(taker);
                self.stirred.insert(name);
            }
        }
    }

    /// Removes a taker that left before it was given a delivery.
    pub(super) fn leave(&mut self, from: Option<&QueueName>, id: RequestId) {
        let Some(takers) = self.takers(from) else { return };
        let Some(nth) = takers.iter().position(|taker| taker.id == id) else { return };
        let left = takers.remove(nth);
        left.and_then(|taker| taker.poll).map(|poll| self.expiries.cancel(poll));
    }

    pub(super) fn expire_poll(&mut self, from: Option<QueueName>, id: RequestId) {
        let takers = self.takers(from.as_ref()).into_iter().flatten();
        takers.filter(|taker| taker.id == id).for_each(|taker| taker.poll = None);
        self.stirred.extend(from);
    }

    /// The takers of a queue, or the agents.
    fn takers(&mut self, from: Option<&QueueName>) -> Option<&mut VecDeque<Taker>> {
        match from {
            None => Some(&mut self.agents.takers),
            Some(name) => self.queues.get_mut(name).map(|queue| &mut queue.takers),
        }
    }

    /// Serves the takers of every queue in which a hand-out may have become possible, and the agents.
    pub(super) fn hand_out(&mut self) {
        let stirred = std::mem::take(&mut self.stirred);
        for name in &stirred {
            let queue = self.queues.get(name);
            if queue.is_some_and(|queue| !queue.line(Lane::Push).is_empty()) {
                self.agents.ready.insert(name.clone());
            }
        }
        let (mut turn, mut ends) = (stirred.clone(), stirred);
        let come = !self.agents.takers.is_empty();
        if planted!("agents-miss-what-was-due", false, come) {
            turn.extend(self.agents.ready.iter().cloned());
        }
        let mut last = self.agents.last.take();
        while let Some(name) = after(&turn, last.as_ref()) {
            match self.serve(&name) {
                true => drop(ends.insert(name.clone())),
                false => drop(turn.remove(&name)),
            }
            last = Some(name);
        }
        self.agents.last = last;
        ends.iter().for_each(|name| self.end_turn(Some(name)));
        self.end_turn(None);
    }

    /// Hands out one timer of each lane of a queue, if one is due and a taker waits for it.
    fn serve(&mut self, name: &QueueName) -> bool {
        let Some(queue) = self.queues.get(name) else {
            self.agents.ready.remove(name);
            return false;
        };
        let lanes = match queue.last {
            Lane::Pull => [Lane::Push, Lane::Pull],
            Lane::Push => [Lane::Pull, Lane::Push],
        };
        // Serves both lanes, whatever the result of the first.
        let [first, second] = lanes.map(|lane| self.serve_lane(name, lane));
        first || second
    }

    fn serve_lane(&mut self, name: &QueueName, lane: Lane) -> bool {
        let from = (lane == Lane::Pull).then_some(name);
        let first = self.takers(from).and_then(|takers| takers.front());
        let Some((lease, bytes)) = first.map(|taker| (taker.lease, taker.bytes)) else {
            return false;
        };
        let Some(generation) = self.next_due(name, lane) else {
            if lane == Lane::Push {
                self.agents.ready.remove(name);
            }
            return false;
        };
        let bytes = bytes + self.timers[&generation].record.spec.payload.len();
        // The answer is full, so the next taker gets this timer.
        if self.answer_if(from, |taker| bytes > MOST_BYTES && !taker.given.is_empty()) {
            return true;
        }
        let delivery = self.hand(generation, lease);
        if let Some(taker) = self.takers(from).and_then(VecDeque::front_mut) {
            taker.given.push(delivery);
            taker.bytes = bytes;
        }
        self.answer_if(from, |taker| taker.given.len() >= taker.max);
        true
    }

    /// Answers the first taker if it is full.
    fn answer_if(
        &mut self,
        from: Option<&QueueName>,
        is_full: impl FnOnce(&Taker) -> bool,
    ) -> bool {
        let Some(takers) = self.takers(from) else { return false };
        let full = takers.front().is_some_and(is_full);
        let taker = if full { takers.pop_front() } else { None };
        taker.into_iter().for_each(|taker| self.answer(taker));
        full
    }

    /// Answers the takers that have deliveries, and those whose wait has passed and for whom nothing is due.
    fn end_turn(&mut self, from: Option<&QueueName>) {
        let loads = match from.map(|name| self.queues.get(name)) {
            Some(queue) => queue.is_some_and(|queue| queue.line(Lane::Pull).refill.is_some()),
            None => self.agents.pages > 0,
        };
        let Some(takers) = self.takers(from) else { return };
        let ends = |taker: &Taker| !taker.given.is_empty() || taker.poll.is_none() && !loads;
        if !takers.iter().any(ends) {
            return;
        }
        let (ended, waiting) = std::mem::take(takers).into_iter().partition::<VecDeque<_>, _>(ends);
        *takers = waiting;
        ended.into_iter().for_each(|taker| self.answer(taker));
    }

    fn answer(&mut self, taker: Taker) {
        taker.poll.map(|poll| self.expiries.cancel(poll));
        self.outbox.answer(taker.id, Answer::Deliveries(taker.given));
    }
}

/// The first name after the last one, wrapping around.
fn after(names: &BTreeSet<QueueName>, last: Option<&QueueName>) -> Option<QueueName> {
    let begin = last.map_or(Bound::Unbounded, Bound::Excluded);
    let next = names.range::<QueueName, _>((begin, Bound::Unbounded)).next();
    next.or_else(|| names.first()).cloned()
}
