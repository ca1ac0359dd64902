//! Answers: each one must be consistent with the ledger, and then updates it.

use std::sync::Arc;

use tourbillon_durable::record::Spec;
use tourbillon_durable::shard::{
    Answer, Cancelled, Change, Delivery, Many, NewTimer, Outcome, Request, RequestId, Scheduled,
    State, View, When,
};
use tourbillon_durable::values::{Key, Moment, QueueName, Span};

use super::entry::{Entry, Gone, Phase, period};
use super::{Asked, Broken, Ledger, Name, promise};

/// The range of the wall clock in which a request was decided.
pub(super) type Range = (u64, u64);
pub(super) type Outcomes = Result<(), Broken>;

pub(super) fn lie(detail: impl Into<String>) -> Outcomes {
    Err(Broken::new(promise::TRUE, detail))
}

impl Ledger {
    /// Checks the answer to a request.
    pub fn answered(&mut self, id: RequestId, answer: Answer) -> Outcomes {
        let Some(Asked { request, low, high, quiet, .. }) = self.asked.remove(&id) else {
            return lie(format!("{id:?} is answered twice"));
        };
        let range = (low, high);
        let judged = self.judge(request, answer, range, quiet);
        for entry in self.entries.values_mut() {
            entry.expired |=
                high > entry.expiry() && matches!(entry.phase, Phase::Pending | Phase::Out);
        }
        judged
    }

    fn judge(&mut self, request: Request, answer: Answer, range: Range, quiet: bool) -> Outcomes {
        match (request, answer) {
            (Request::Schedule { queue, timers, conflict }, Answer::Scheduled(receipts)) => {
                self.conditions(&queue, &timers, conflict, &receipts)?;
                let mut pairs = timers.into_iter().zip(receipts);
                pairs.try_for_each(|(timer, receipt)| self.scheduled(&queue, timer, receipt, range))
            }
            (Request::Schedule { queue, timers, .. }, Answer::KeyTaken(nth, state)) => {
                let name = (queue, timers[nth].key.clone().expect("an assigned key is free"));
                self.key_taken(&name, state, range)
            }
            (Request::Schedule { .. }, Answer::Refused(_)) => Ok(()),
            (Request::Schedule { queue, timers, .. }, Answer::NotAssigned(nth)) => {
                let key = timers[nth].key.clone().filter(Key::is_assigned);
                let there = key.and_then(|key| self.is_there(&(queue, key), range));
                let lost = || Broken::new(promise::DURABLE, format!("{timers:?} is not there"));
                if there == Some(true) { Err(lost()) } else { Ok(()) }
            }
            (request, Answer::Mismatch(nth, there)) => self.mismatch(request, nth, there, range),
            (Request::Move { queue, key, only, .. }, Answer::Timer(Some(view)))
                if only.is_some_and(|only| only != view.generation) =>
            {
                lie(format!("{key} of {queue} is moved, and is not {only:?}: {view:?}"))
            }
            (Request::Move { queue, key, when, .. }, answer) => {
                self.moved(&(queue, key), when, answer, range)
            }
            (Request::Run { queue, key }, answer) => self.ran(&(queue, key), answer, range),
            (Request::Cancel { queue, keys, only }, Answer::Cancelled(outcomes)) => {
                let other = |key: &&Key| {
                    let known = self.generation(&queue, key);
                    let there = self.is_there(&(queue.clone(), (*key).clone()), range);
                    there == Some(true) && only.is_some_and(|only| known != Some(only))
                };
                if let Some(key) = keys.iter().find(other) {
                    return lie(format!("{key} of {queue} is cancelled, and is not {only:?}"));
                }
                let mut pairs = keys.into_iter().zip(outcomes);
                pairs.try_for_each(|(key, outcome)| {
                    self.cancelled((queue.clone(), key), outcome, range)
                })
            }
            (Request::Get { queue, key }, Answer::Timer(view)) => {
                self.shown(&(queue, key), view, range)
            }
            (Request::Receive { queue, lease, .. }, Answer::Deliveries(deliveries)) => {
                let foreign = |one: &&Delivery| one.webhook.is_some() || one.queue != queue;
                self.all_delivered(deliveries.iter().find(foreign), &deliveries, lease)
            }
            (Request::Push { margin, .. }, Answer::Deliveries(deliveries)) => {
                let foreign = |one: &&Delivery| one.webhook.is_none();
                self.all_delivered(deliveries.iter().find(foreign), &deliveries, margin)
            }
            (Request::Settle { queue, tokens, verdict }, Answer::Settled(outcomes)) => {
                let mut pairs = tokens.into_iter().zip(outcomes);
                pairs.try_for_each(|(token, outcome)| {
                    self.settle(&queue, token, &verdict, outcome, range)
                })
            }
            (Request::Set { queue, change }, Answer::Done) => {
                let mut settings = self.settings.get(&queue).cloned().unwrap_or_default();
                let Change { paused, retry, remember, dead_keep, rate, concurrency, webhook } =
                    change;
                paused.into_iter().for_each(|paused| settings.paused = paused);
                retry.into_iter().for_each(|retry| settings.retry = retry.over(settings.retry));
                remember.into_iter().for_each(|remember| settings.remember = remember);
                dead_keep.into_iter().for_each(|keep| settings.dead_keep = keep);
                rate.into_iter().for_each(|rate| settings.rate = rate);
                concurrency.into_iter().for_each(|most| settings.concurrency = most);
                webhook.into_iter().for_each(|webhook| settings.webhook = webhook);
                // Dead timers whose retention this setting ends are gone, even if the next setting would have kept
                // them.
                let dead_keep = Some(settings.dead_keep.millis());
                let entries = self.entries.iter_mut().filter(|(name, _)| name.0 == queue);
                entries.for_each(|(_, entry)| entry.age(range.1, dead_keep));
                self.since_set.remove(&queue);
                self.settings.insert(queue, settings);
                Ok(())
            }
            (Request::Queue(queue), Answer::Queue(found)) if quiet => {
                let settings = found.as_ref().map(|found| &found.1);
                if settings.is_some_and(|settings| self.settings.get(&queue) != Some(settings)) {
                    return lie(format!("{queue} is set to {settings:?}"));
                }
                self.counted(&queue, found.map(|found| found.0))
            }
            (Request::Stats(queue), Answer::Stats(stats)) if quiet => self.looked(&queue, stats),
            (Request::Queues, Answer::Queues(names)) if quiet => {
                let known: Vec<_> = self.settings.keys().cloned().collect();
                if names == known { Ok(()) } else { lie(format!("{names:?}, in truth {known:?}")) }
            }
            (request @ (Request::Clear(_) | Request::Delete { .. }), answer) => {
                self.discarded(&request, &answer, quiet)
            }
            (Request::List { .. }, Answer::List(views, next)) => self.page(views, next),
            (
                Request::CancelPrefix { queue, prefix },
                Answer::Many(Many { done, delivering, more: false }),
            ) => self.cancelled_all(&queue, &prefix, (done, delivering)),
            (Request::Redrive { queue, prefix }, Answer::Many(Many { done, more: false, .. })) => {
                self.redriven(&queue, prefix.as_deref(), done)
            }
            (Request::Forecast { queue, edges }, Answer::Forecast(pieces)) if quiet => {
                self.foretold(&queue, &edges, &pieces)
            }
            (Request::Leave(_, poll), Answer::Done) => {
                self.asked.remove(&poll);
                Ok(())
            }
            (_, Answer::Queue(_) | Answer::Queues(_) | Answer::Forecast(_) | Answer::Stats(_)) => {
                Ok(())
            }
            (request, answer) => lie(format!("{request:?} is answered with {answer:?}")),
        }
    }

    pub(super) fn dead_keep(&self, queue: &QueueName) -> u64 {
        self.settings.get(queue).cloned().unwrap_or_default().dead_keep.millis()
    }

    /// `Some` if the key is certainly taken or certainly free; `None` if uncertain.
    pub(super) fn is_there(&self, name: &Name, range: Range) -> Option<bool> {
        let Some(entry) = self.entries.get(name) else { return Some(false) };
        // Its last lease has lapsed, so it may have been given up and forgotten since.
        if entry.phase == Phase::Out
            && self.has_lapsed(name)
            && entry.failed + 1 >= entry.spec.retry.attempts
        {
            return None;
        }
        if self.may_have_ended(name) || entry.expired {
            return None;
        }
        entry.is_there(range, self.dead_keep(&name.0))
    }

    fn scheduled(
        &mut self,
        queue: &QueueName,
        timer: NewTimer,
        receipt: Scheduled,
        range: Range,
    ) -> Outcomes {
        let name = (queue.clone(), receipt.key.clone());
        let there = self.is_there(&name, range);
        let known = self.entries.get(&name).map(|entry| entry.spec.generation);
        match receipt.outcome {
            Outcome::Made if there == Some(true) => {
                return Err(Broken::new(
                    promise::DURABLE,
                    format!("{name:?} was taken, and is made again"),
                ));
            }
            Outcome::Replaced(old, _) if there == Some(false) || known != Some(old) => {
                return lie(format!("{name:?} replaces {old:?}, which is not there"));
            }
            Outcome::Kept => {
                let true_of_it = there != Some(false) && known == Some(receipt.generation);
                return if true_of_it {
                    Ok(())
                } else {
                    lie(format!("{name:?} keeps {receipt:?}: {known:?}"))
                };
            }
            _ => {}
        }
        // A generation identifies one timer permanently.
        if self.ended.contains_key(&receipt.generation.0) || known == Some(receipt.generation) {
            return lie(format!("{receipt:?} uses a generation again"));
        }
        if let Some(old) = known {
            self.ended.insert(old.0, "replaced");
        }
        let first = |wall: u64| match timer.when {
            When::In(span) => (Moment::from_millis(wall) + span).millis(),
            When::At(at) => at.millis(),
            When::Rhythm => match timer.recurrence.as_ref().map(|one| period(&one.rhythm)) {
                Some((period, Some(offset))) => (wall + period - offset) / period * period + offset,
                Some((period, None)) => wall + period,
                None => 0,
            },
        };
        let due = receipt.due.millis();
        if due < first(range.0) || due > first(range.1) {
            return Err(Broken::new(
                promise::EARLY,
                format!("{receipt:?} of {timer:?} in {range:?}"),
            ));
        }
        let settings = self.settings.get(queue).cloned().unwrap_or_default();
        self.settings.entry(queue.clone()).or_default();
        let chosen = timer.key.as_ref().is_some_and(|key| !key.is_assigned());
        let remember = if chosen { settings.remember } else { Span::ZERO };
        let spec = Spec {
            generation: receipt.generation,
            queue: queue.clone(),
            key: receipt.key,
            created: Moment::ZERO,
            payload: timer.payload,
            recurrence: timer.recurrence,
            remember: timer.remember.unwrap_or(remember),
            retry: timer.retry.unwrap_or(settings.retry),
            expires: timer.expires,
            webhook: timer.webhook.unwrap_or(settings.webhook),
        };
        let spec = Arc::new(spec);
        let entry = Entry {
            spec,
            due,
            next: due,
            behind: None,
            loose: false,
            expired: false,
            occurrence: 1,
            attempt: 0,
            failed: 0,
            phase: Phase::Pending,
            closed: false,
            unsure: None,
            given: self.events.count(),
            token: None,
        };
        self.entries.insert(name, entry);
        Ok(())
    }

    fn key_taken(&mut self, name: &Name, state: State, range: Range) -> Outcomes {
        if self.is_there(name, range) == Some(false) {
            return lie(format!("{name:?} is free, and said to be taken by one that is {state:?}"));
        }
        Ok(())
    }

    fn moved(&mut self, name: &Name, when: When, answer: Answer, range: Range) -> Outcomes {
        let there = self.is_there(name, range);
        match answer {
            Answer::Timer(Some(view)) if there != Some(false) => {
                self.apply_lapse(name);
                let entry = self.entries.get_mut(name).expect("what may be there is known");
                entry.given = self.events.count();
                entry.expired |= entry.spec.expires.is_some() && entry.phase != Phase::Pending;
                let target = |wall: u64| match when {
                    When::In(span) => (Moment::from_millis(wall) + span).millis(),
                    When::At(at) => at.millis(),
                    When::Rhythm => 0,
                };
                let due = view.due.millis();
                if !(target(range.0)..=target(range.1)).contains(&due) {
                    return Err(Broken::new(
                        promise::EARLY,
                        format!("{name:?} is moved by {when:?} to {view:?}"),
                    ));
                }
                match entry.phase {
                    Phase::Pending => {}
                    Phase::Dead(_) => entry.failed = 0,
                    _ if entry.expired => {}
                    phase => return lie(format!("{name:?} is {phase:?}, and is moved")),
                }
                (entry.due, entry.next, entry.phase) = (due, due, Phase::Pending);
                entry.closed = true;
                Ok(())
            }
            Answer::Timer(None) if there != Some(true) => Ok(()),
            Answer::NotMoved(_) if there != Some(false) => Ok(()),
            answer => lie(format!("{name:?} (there: {there:?}) is moved: {answer:?}")),
        }
    }

    fn ran(&mut self, name: &Name, answer: Answer, range: Range) -> Outcomes {
        let there = self.is_there(name, range);
        let view = match answer {
            Answer::Timer(Some(view)) if there != Some(false) => view,
            Answer::Timer(None) if there != Some(true) => return Ok(()),
            Answer::NotMoved(_) if there != Some(false) => return Ok(()),
            answer => return lie(format!("{name:?} (there: {there:?}) is run: {answer:?}")),
        };
        self.apply_lapse(name);
        let moments = self.entries.get(name).map(|entry| self.moments(&name.0, entry));
        let entry = self.entries.get_mut(name).expect("what may be there is known");
        let (due, next) = (view.due.millis(), view.next_attempt.millis());
        if entry.loose || entry.expired || moments.is_some_and(|moments| moments.len() > 1) {
            (entry.due, entry.next, entry.loose) = (due, next, true);
            entry.phase = Phase::Pending;
            return Ok(());
        }
        let extra = entry.spec.recurrence.is_some() && entry.attempt == 0 && entry.due > next;
        match entry.phase {
            Phase::Pending if extra => entry.behind = entry.behind.or(Some(entry.due)),
            Phase::Pending => {}
            Phase::Dead(_) => entry.failed = 0,
            phase => return lie(format!("{name:?} is {phase:?}, and is run")),
        }
        let moves = extra || entry.phase != Phase::Pending;
        if !(range.0..=range.1).contains(&next) || due != if moves { next } else { entry.due } {
            return Err(Broken::new(promise::EARLY, format!("{entry:?} is run: {view:?}")));
        }
        (entry.due, entry.next, entry.phase) = (due, next, Phase::Pending);
        Ok(())
    }

    fn cancelled(&mut self, name: Name, outcome: Cancelled, range: Range) -> Outcomes {
        let there = self.is_there(&name, range);
        if outcome == Cancelled::Unknown {
            let lost = Broken::new(promise::DURABLE, format!("{name:?} is unknown to a cancel"));
            return if there == Some(true) { Err(lost) } else { Ok(()) };
        }
        let (lapsed, ended) = (self.has_lapsed(&name), self.may_have_ended(&name));
        if outcome == Cancelled::Cancelled {
            self.apply_lapse(&name);
        }
        let Some(entry) = self.entries.get_mut(&name).filter(|_| there != Some(false)) else {
            return lie(format!("{name:?} is not there, and a cancel says {outcome:?}"));
        };
        let gone = match (entry.phase, outcome) {
            (Phase::Pending | Phase::Dead(_), Cancelled::Cancelled) => Gone::Cancelled,
            (Phase::Out, Cancelled::Delivering) => Gone::CancelledOut,
            // A recurring timer may be done after its lapsed lease. This depends on when the lease lapsed.
            (Phase::Out | Phase::Gone(Gone::Done, _), Cancelled::Cancelled) if lapsed => {
                Gone::Cancelled
            }
            (Phase::Gone(Gone::Done, _), Cancelled::Done)
            | (Phase::Gone(Gone::Cancelled, _), Cancelled::Cancelled)
            | (Phase::Gone(Gone::CancelledOut, _), Cancelled::Delivering) => return Ok(()),
            // The last lease of a recurring timer has lapsed, so the timer was done.
            (Phase::Out, Cancelled::Done) if lapsed => return Ok(()),
            (Phase::Pending, Cancelled::Done) if ended => return Ok(()),
            (Phase::Out, Cancelled::Cancelled) if entry.expired => Gone::Cancelled,
            (_, Cancelled::Done) if entry.expired => return Ok(()),
            (phase, outcome) => {
                return lie(format!("{name:?} is {phase:?}, and a cancel says {outcome:?}"));
            }
        };
        entry.end(gone, range);
        self.ended.insert(entry.spec.generation.0, "cancelled");
        Ok(())
    }

    pub(super) fn has_lapsed(&self, name: &Name) -> bool {
        let entry = self.entries.get(name);
        let lease = entry.and_then(|entry| self.leases.get(&entry.handed()));
        lease.is_some_and(|lease| lease.lapsed.is_some())
    }

    fn shown(&mut self, name: &Name, view: Option<View>, range: Range) -> Outcomes {
        let there = self.is_there(name, range);
        let Some(view) = view else {
            let lost = Broken::new(promise::DURABLE, format!("{name:?} is not there"));
            return if there == Some(true) { Err(lost) } else { Ok(()) };
        };
        let Some(entry) = self.entries.get(name).filter(|_| there != Some(false)) else {
            return lie(format!("{name:?} is not there, and is shown as {view:?}"));
        };
        let same = view.generation == entry.spec.generation
            && view.payload == entry.spec.payload
            && view.webhook == entry.spec.webhook;
        if same && entry.expired {
            return Ok(());
        }
        let fine = match entry.phase {
            Phase::Pending => {
                let state = if entry.next <= range.0 { State::Due } else { State::Scheduled };
                let sure = entry.next <= range.0 || entry.next > range.1;
                let moments = self.moments(&name.0, entry);
                if entry.loose
                    || view.state == State::Done && moments.contains(&None)
                    || moments.len() > 1
                        && view.next_attempt.millis() == view.due.millis().max(entry.next)
                        && moments.contains(&Some(view.due.millis()))
                {
                    return Ok(());
                }
                (view.due.millis(), view.next_attempt.millis()) == (entry.due, entry.next)
                    && (view.occurrence, view.attempt) == (entry.occurrence, entry.attempt)
                    && (!sure || view.state == state)
            }
            Phase::Out => view.state == State::Delivering || self.has_lapsed(name),
            Phase::Dead(_) => view.state == State::Dead,
            Phase::Gone(Gone::Done, _) => view.state == State::Done,
            Phase::Gone(..) => view.state == State::Cancelled,
        };
        if same && fine { Ok(()) } else { lie(format!("{entry:?} is shown as {view:?}")) }
    }
}
