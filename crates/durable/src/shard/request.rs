//! Requests: looking up the timers that a request names, then deciding the request in one turn.
//!
//! A request is decided on the rows of all its keys at once. Keys that are not resident are looked up first. If one of
//! their timers changes during the lookup, its key is looked up again. So requests for one key are linearizable without
//! a lock.

use std::collections::{HashMap, HashSet};

use super::{Purpose, Shard};
use crate::message::state;
use crate::message::{
    Answer, Cancelled, Conflict, LoadId, NewTimer, Outcome, Request, RequestId, Scheduled, State,
    View, When,
};
use crate::record::{Fate, Generation, Place, Record, Spec};
use crate::store::Query;
use crate::values::{Happened, Key, Moment, QueueName, Span};

/// A request whose rows are being looked up.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) id: RequestId,
    /// When the request arrived. [`When::In`](crate::values::When::In) is counted from here.
    arrived: Moment,
    request: Request,
    /// The keys being looked up.
    keys: Vec<Key>,
}

/// Rows by key.
pub(super) type Found = HashMap<Key, Option<(Place, Record)>>;

impl Shard {
    pub(super) fn request(&mut self, id: RequestId, request: Request) {
        match request {
            Request::Receive { queue, max, wait, lease } => {
                self.receive(id, Some(queue), (max, wait, lease));
            }
            Request::Push { max, wait, margin } => self.receive(id, None, (max, wait, margin)),
            Request::Leave(queue, taker) => {
                self.leave(queue.as_ref(), taker);
                self.outbox.answer(id, Answer::Done);
            }
            Request::Set { queue, change } => {
                let resumes = change.paused == Some(false);
                change.apply(&mut self.queue_mut(&queue).row.settings);
                self.outbox.dirty(&queue);
                if resumes {
                    self.note_event(&queue);
                }
                self.stirred.insert(queue);
                self.purge_at = Moment::ZERO;
                self.outbox.answer(id, Answer::Done);
            }
            Request::Queue(queue) => {
                let found = self.counts(&queue);
                self.outbox.answer(id, Answer::Queue(found));
            }
            Request::Clear(queue) => self.clear(id, &queue),
            Request::Delete { queue, force } => self.delete(id, &queue, force),
            Request::Stats(queue) => self.look(id, queue),
            Request::Queues => {
                let stored = self.queues.iter().filter(|(_, queue)| queue.stored);
                let names = stored.map(|(name, _)| name.clone()).collect();
                self.outbox.answer(id, Answer::Queues(names));
            }
            Request::List { .. } | Request::CancelPrefix { .. } | Request::Redrive { .. } => {
                self.walk(id, request);
            }
            Request::Forecast { queue, edges } => self.load_forecast(id, queue, &edges),
            request => self.resolve(
                Pending { id, arrived: self.wall, request, keys: Vec::new() },
                Found::new(),
            ),
        }
    }

    /// Processes the rows of a request's keys.
    pub(super) fn found(
        &mut self,
        id: LoadId,
        mut pending: Pending,
        rows: Vec<Option<(Place, Record)>>,
    ) {
        let keys = std::mem::take(&mut pending.keys);
        let Some(queue) = pending.request.queue().cloned() else { return };
        let fresh =
            keys.into_iter().zip(rows).filter(|(key, _)| !self.loads.is_stale(id, &queue, key));
        let found = fresh.collect();
        self.resolve(pending, found);
    }

    /// Decides a request if every row is known; otherwise looks up the missing ones.
    fn resolve(&mut self, mut pending: Pending, found: Found) {
        let (Some(queue), keys) = (pending.request.queue(), pending.request.keys()) else { return };
        let resident = self.queues.get(queue).map(|queue| &queue.keys);
        let known = |key: &Key| {
            found.contains_key(key) || resident.is_some_and(|keys| keys.contains_key(key))
        };
        if keys.iter().all(known) {
            return self.decide(pending, found);
        }
        // Looks up all keys that are not resident, including those just found, so that all rows are of one age.
        let missing = |key: &&Key| !resident.is_some_and(|keys| keys.contains_key(*key));
        let missing: Vec<Key> = keys.iter().filter(missing).cloned().collect();
        let query = Query::Keys(missing.iter().map(|key| (queue.clone(), key.clone())).collect());
        pending.keys = missing;
        self.loads.emit(query, Purpose::Request(pending));
    }

    /// The row of a key of the request being decided. Includes rows whose retention has ended, so that the request can
    /// remove them.
    fn current(&self, key: &Key) -> Option<(Place, Record)> {
        self.deciding.get(key).cloned().flatten()
    }

    /// As `current`, without rows whose retention has ended.
    fn living(&self, key: &Key) -> Option<(Place, Record)> {
        self.current(key).filter(|(place, record)| !self.has_passed(*place, record))
    }

    /// Decides a request on the rows of all its keys. The rows are copied before the first change, because a timer that
    /// the request makes may evict one of them from memory.
    fn decide(&mut self, pending: Pending, found: Found) {
        let Pending { id, arrived, request, .. } = pending;
        self.deciding = found;
        let resident = request.queue().and_then(|queue| self.queues.get(queue));
        for key in resident.iter().flat_map(|_| request.keys()) {
            let generation = resident.and_then(|queue| queue.keys.get(&key));
            if let Some(timer) = generation.and_then(|generation| self.timers.get(generation)) {
                self.deciding.insert(key, Some((timer.place, timer.record.clone())));
            }
        }
        for key in request.keys() {
            if let Some((place, record)) = self.living(&key) {
                self.mend(place, &record);
            }
        }
        let answer = match request {
            Request::Schedule { queue, timers, conflict } => {
                self.schedule(&queue, timers, conflict, arrived)
            }
            Request::Move { key, only, .. } if self.differs(&key, only) => {
                Answer::Mismatch(0, self.generation(&key))
            }
            Request::Move { key, when, .. } => match self.living(&key) {
                None => Answer::Timer(None),
                Some((place, record)) => self.move_to(place, &record, when, arrived),
            },
            Request::Run { key, .. } => match self.living(&key) {
                None => Answer::Timer(None),
                Some((place, record)) => self.run(place, &record),
            },
            Request::Cancel { keys, only, .. } => {
                if let Some(index) = keys.iter().position(|key| self.differs(key, only)) {
                    let there = self.generation(&keys[index]);
                    return self.conclude(id, Answer::Mismatch(index, there));
                }
                let one = |shard: &mut Shard, key| {
                    let found = shard.living(key);
                    found.map_or(Cancelled::Unknown, |(place, record)| shard.cancel(place, &record))
                };
                Answer::Cancelled(keys.iter().map(|key| one(self, key)).collect())
            }
            Request::Get { key, .. } => {
                let found = self.living(&key);
                Answer::Timer(found.map(|(place, record)| self.view(place, &record)))
            }
            Request::Settle { tokens, verdict, .. } => {
                let one = |shard: &mut Shard, token: &super::Token| {
                    let found = shard.living(&token.key);
                    shard.settle(found, token, &verdict)
                };
                Answer::Settled(tokens.iter().map(|token| one(self, token)).collect())
            }
            other => unreachable!("{other:?} names no keys"),
        };
        self.conclude(id, answer);
    }

    fn conclude(&mut self, id: RequestId, answer: Answer) {
        self.deciding.clear();
        self.outbox.answer(id, answer);
    }

    /// The generation of the timer under a key of the request.
    fn generation(&self, key: &Key) -> Option<Generation> {
        self.living(key).map(|(_, record)| record.generation())
    }

    /// Whether a key belongs to another timer than the expected one. For a key without a timer the caller reports the
    /// error.
    fn differs(&self, key: &Key, only: Option<Generation>) -> bool {
        self.generation(key).is_some_and(|there| only.is_some_and(|only| only != there))
    }

    /// Schedules all timers or none: checks every key first, then makes the timers.
    fn schedule(
        &mut self,
        queue: &QueueName,
        timers: Vec<NewTimer>,
        conflict: Conflict,
        arrived: Moment,
    ) -> Answer {
        let (mut keys, mut more) = (HashSet::new(), 0);
        for (index, timer) in timers.iter().enumerate() {
            if timer.key.as_ref().is_some_and(|key| !keys.insert(key))
                || timer.first_due(arrived).is_none()
            {
                return Answer::Refused(index);
            }
            let there = timer.key.as_ref().and_then(|key| self.living(key));
            let generation = there.as_ref().map(|(_, record)| record.generation());
            more +=
                u64::from(!there.as_ref().is_some_and(|(place, _)| adds_none(*place, conflict)));
            match (conflict, there) {
                (Conflict::ReplaceOnly(only), _) if generation != Some(only) => {
                    return Answer::Mismatch(index, generation);
                }
                (_, None) if timer.key.as_ref().is_some_and(Key::is_assigned) => {
                    return Answer::NotAssigned(index);
                }
                (Conflict::Refuse, Some((place, record))) => {
                    return Answer::KeyTaken(index, state(place, &record, self.wall));
                }
                _ => {}
            }
        }
        if self.held.living.saturating_add(more) > self.limits.timers {
            return Answer::TooMany;
        }
        self.queue_mut(queue);
        let alone = timers.len() == 1;
        let one = |timer| self.make(queue, timer, conflict, arrived, alone);
        Answer::Scheduled(timers.into_iter().map(one).collect())
    }

    fn make(
        &mut self,
        queue: &QueueName,
        timer: NewTimer,
        conflict: Conflict,
        arrived: Moment,
        alone: bool,
    ) -> Scheduled {
        let due = timer.first_due(arrived).expect("a timer without a moment was refused");
        let mut outcome = Outcome::Made;
        if let Some((place, old)) = timer.key.as_ref().and_then(|key| self.current(key)) {
            if !self.has_passed(place, &old) {
                let generation = old.generation();
                if conflict == Conflict::Keep {
                    return Scheduled {
                        key: old.spec.key.clone(),
                        generation,
                        due: old.due,
                        outcome: Outcome::Kept,
                        timer: alone.then(|| Box::new(self.view(place, &old))),
                    };
                }
                outcome = Outcome::Replaced(generation, state(place, &old, self.wall));
            }
            self.change(Some((place, &old)), None);
        }
        let generation = self.row.next_generation;
        self.row.next_generation = Generation(generation.0 + 1);
        let settings = self.queue_mut(queue).row.settings.clone();
        let chosen = timer.key.as_ref().is_some_and(|key| !key.is_assigned());
        let remember = if chosen { settings.remember } else { Span::ZERO };
        let key = timer.key.unwrap_or_else(|| Key::assigned(generation.0, due.millis()));
        let spec = Spec {
            generation,
            queue: queue.clone(),
            key: key.clone(),
            created: self.wall,
            payload: timer.payload,
            recurrence: timer.recurrence,
            remember: timer.remember.unwrap_or(remember),
            retry: timer.retry.unwrap_or(settings.retry),
            expires: timer.expires,
            webhook: timer.webhook.unwrap_or(settings.webhook),
        };
        let (place, record) = (self.place_for(&spec, due), Record::new(spec, due));
        let timer = alone.then(|| Box::new(self.view(place, &record)));
        self.note(Happened::Scheduled, &record);
        self.note_given(&record);
        self.change(None, Some((place, record)));
        Scheduled { key, generation, due, outcome, timer }
    }

    fn move_to(&mut self, place: Place, record: &Record, when: When, arrived: Moment) -> Answer {
        let state = state(place, record, self.wall);
        let due = match when {
            When::In(span) => Some(arrived + span),
            When::At(moment) => Some(moment),
            When::Rhythm => record
                .spec
                .recurrence
                .as_ref()
                .and_then(|recurrence| recurrence.rhythm.after(arrived)),
        };
        let (Some(due), State::Scheduled | State::Due | State::Dead) = (due, state) else {
            return Answer::NotMoved(state);
        };
        // A dead timer is revived with all its attempts available; attempt numbers keep rising.
        let failed = if state == State::Dead { 0 } else { record.failed };
        let fate = if record.attempt == 0 { record.fate } else { Fate::Moved };
        let moved = Record { due, next_attempt: due, failed, fate, ..record.clone() };
        let to = self.place_for(&record.spec, due);
        let view = self.view(to, &moved);
        self.note(Happened::Scheduled, &moved);
        self.note_given(&moved);
        self.change(Some((place, record)), Some((to, moved)));
        Answer::Timer(Some(view))
    }

    /// Makes a timer due now. For a recurring timer not yet due this is an extra occurrence; the regular one follows.
    pub(super) fn run(&mut self, place: Place, record: &Record) -> Answer {
        let (now, state) = (self.wall, state(place, record, self.wall));
        let extra = record.spec.recurrence.is_some() && record.due > now && record.attempt == 0;
        let run = match state {
            State::Dead => Record { due: now, next_attempt: now, failed: 0, ..record.clone() },
            State::Scheduled | State::Due if extra => {
                let behind = record.behind.or(Some(record.due));
                Record { due: now, next_attempt: now, behind, ..record.clone() }
            }
            State::Scheduled | State::Due => Record { next_attempt: now, ..record.clone() },
            _ => return Answer::NotMoved(state),
        };
        let to = self.place_for(&record.spec, now);
        let view = self.view(to, &run);
        self.note(Happened::Scheduled, &run);
        self.change(Some((place, record)), Some((to, run)));
        Answer::Timer(Some(view))
    }

    pub(super) fn cancel(&mut self, place: Place, record: &Record) -> Cancelled {
        let (fate, answer) = match (state(place, record, self.wall), record.fate) {
            (State::Done, _) => return Cancelled::Done,
            (State::Cancelled, Fate::CancelledOut) => return Cancelled::Delivering,
            (State::Cancelled, _) => return Cancelled::Cancelled,
            (State::Delivering, _) => (Fate::CancelledOut, Cancelled::Delivering),
            _ => (Fate::Cancelled, Cancelled::Cancelled),
        };
        self.note(Happened::Cancelled, record);
        self.retire(place, record, Record { fate, ..record.clone() });
        answer
    }

    pub(super) fn view(&self, place: Place, record: &Record) -> View {
        View::new(state(place, record, self.wall), record)
    }
}

/// Whether a schedule under a taken key leaves the number of timers unchanged: that timer is kept, or counts already.
fn adds_none(place: Place, conflict: Conflict) -> bool {
    conflict == Conflict::Keep || !matches!(place, Place::Remembered(_))
}
