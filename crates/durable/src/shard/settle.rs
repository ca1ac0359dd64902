//! Settling: the outcome of a delivery. Ack, nack, extend, release, the end of a lease, and giving up.
//!
//! An occurrence ends once: acknowledged, given up or cancelled. The next occurrence of a recurring timer is computed
//! from the last due moment, and is made in the same commit.

use std::sync::Arc;

use super::Shard;
use super::sweep::expiry;
use crate::message::{Settled, Stale, Token, Verdict};
use crate::record::{Fate, Generation, Lease, Place, Record};
use crate::values::{Happened, Moment, Span};

impl Shard {
    /// Applies the verdict of a delivery's holder.
    pub(super) fn settle(
        &mut self,
        found: Option<(Place, Record)>,
        token: &Token,
        verdict: &Verdict,
    ) -> Result<Settled, Stale> {
        let (place, record) = found.ok_or(Stale::Unknown)?;
        match (judge(place, &record, token), verdict) {
            // An ack counts even after the lease has ended, until the timer is handed out again.
            (Ok(()) | Err(Stale::Lapsed), Verdict::Ack) => Ok(self.ack(place, &record)),
            (Err(stale), _) => Err(stale),
            (Ok(()), Verdict::Nack(delay, error)) => {
                let seed = record.generation().0
                    ^ record.occurrence << 40
                    ^ u64::from(record.attempt) << 20;
                let delay =
                    delay.unwrap_or_else(|| record.spec.retry.delay(record.failed + 1, seed));
                Ok(self.fail(&record, Fate::Nacked, delay, error.clone()))
            }
            (Ok(()), Verdict::Extend(length)) => {
                let until = self.wall + *length;
                let lease = Some(Lease { until, length: *length });
                let longer = Record { lease, ..record.clone() };
                self.change(Some((place, &record)), Some((place, longer)));
                Ok(Settled::Extended(until))
            }
            (Ok(()), Verdict::GiveUp(error)) => {
                let last_error = error.clone().or_else(|| record.last_error.clone());
                let given_up = Record { last_error, ..record.clone() };
                Ok(match planted!("give-up-goes-on", true, false) {
                    true => self.give_up(place, given_up),
                    false => self.bury(place, &given_up),
                })
            }
            (Ok(()), Verdict::Release(delay)) => {
                // No attempt starts after the expiry: at that time the timer is given up.
                let latest = expiry(&record).map_or(Moment::MAX, |at| at + Span::from_millis(1));
                let next = (self.wall + *delay).min(latest.max(self.wall));
                Ok(self.again(&record, Fate::Released, next))
            }
        }
    }

    /// A lease has ended without an answer. This is a failed attempt, and the next one is due at once.
    pub(super) fn lapse(&mut self, generation: Generation) {
        let record = self.timers[&generation].record.clone();
        self.fail(&record, Fate::Lapsed, Span::ZERO, None);
    }

    fn ack(&mut self, place: Place, record: &Record) -> Settled {
        let fate = Fate::Acked { occurrence: record.occurrence, attempt: record.attempt };
        self.note(Happened::Acked, record);
        Settled::Acked(self.finish(place, record, fate))
    }

    /// An attempt has failed: schedules the next one after `delay`, if attempts are left.
    fn fail(
        &mut self,
        record: &Record,
        fate: Fate,
        delay: Span,
        error: Option<Arc<str>>,
    ) -> Settled {
        self.note(Happened::Failed, record);
        let last_error = error.or_else(|| record.last_error.clone());
        let failed =
            Record { failed: record.failed.saturating_add(1), last_error, ..record.clone() };
        let expires = expiry(record).unwrap_or(Moment::MAX);
        if failed.failed < record.spec.retry.attempts && expires >= self.wall {
            // No attempt starts after the expiry: at that time the timer is given up.
            let next = (self.wall + delay).min(expires + Span::from_millis(1));
            return self.again(&failed, fate, next);
        }
        self.give_up(Place::Out(record.next_attempt), failed)
    }

    /// Gives up an occurrence. A recurring timer continues with the next one.
    pub(super) fn give_up(&mut self, place: Place, record: Record) -> Settled {
        self.note(Happened::Dead, &record);
        if record.spec.recurrence.is_some() {
            return Settled::GivenUp(self.finish(place, &record, Fate::GivenUp));
        }
        self.bury(place, &record)
    }

    /// Ends a timer as dead, even if it recurs.
    fn bury(&mut self, place: Place, record: &Record) -> Settled {
        let dead = Record { fate: Fate::GivenUp, lease: None, ..record.clone() };
        self.change(Some((place, record)), Some((Place::Dead(self.wall), dead)));
        Settled::GivenUp(None)
    }

    /// The outcome of a delivery is unknown: the timer is due again at once, and no attempt counts as failed.
    pub(super) fn retry_unknown(&mut self, record: &Record) {
        let failed = planted!("unknown-counts-as-failed", record.failed + 1, record.failed);
        self.again(&Record { failed, ..record.clone() }, Fate::Released, self.wall);
    }

    /// Makes a timer that was out pending again, until its next attempt.
    fn again(&mut self, record: &Record, fate: Fate, next_attempt: Moment) -> Settled {
        let next = Record { next_attempt, fate, lease: None, ..record.clone() };
        self.change(
            Some((Place::Out(record.next_attempt), record)),
            Some((self.place_for(&record.spec, next_attempt), next)),
        );
        Settled::Again(next_attempt)
    }

    /// Ends an occurrence. Returns the moment of the next one.
    fn finish(&mut self, place: Place, record: &Record, fate: Fate) -> Option<Moment> {
        let last = planted!("recurring-from-the-clock", self.wall, record.due);
        let recurrence = record.spec.recurrence.as_ref();
        let next = recurrence.and_then(|recurrence| match record.behind {
            Some(behind) => (!recurrence.is_over(record.occurrence)).then_some(behind),
            None => recurrence.next(last, self.wall, record.occurrence),
        });
        let ended = Record { fate, lease: None, ..record.clone() };
        let Some(due) = next else {
            self.retire(place, record, ended);
            return None;
        };
        let occurrence = record.occurrence + 1;
        let next = Record {
            due,
            next_attempt: due,
            occurrence,
            behind: None,
            attempt: 0,
            failed: 0,
            ..ended
        };
        self.note(Happened::Scheduled, &next);
        self.change(Some((place, record)), Some((self.place_for(&record.spec, due), next)));
        Some(due)
    }

    /// Ends a timer as done or cancelled: its row is remembered, or removed.
    pub(super) fn retire(&mut self, place: Place, old: &Record, ended: Record) {
        let remember = ended.spec.remember;
        let remembered = (Place::Remembered(self.wall + remember), Record { lease: None, ..ended });
        self.change(Some((place, old)), (remember > Span::ZERO).then_some(remembered));
    }
}

/// Whether the token identifies the delivery that is out. Otherwise, why it is stale.
fn judge(place: Place, record: &Record, token: &Token) -> Result<(), Stale> {
    if record.generation() != token.generation {
        return Err(if record.generation() > token.generation {
            Stale::Replaced
        } else {
            Stale::Unknown
        });
    }
    if matches!(record.fate, Fate::Cancelled | Fate::CancelledOut) {
        return Err(Stale::Cancelled);
    }
    let acked = Fate::Acked { occurrence: token.occurrence, attempt: token.attempt };
    if record.fate == acked {
        return Err(Stale::Acked);
    }
    if token.occurrence != record.occurrence || token.attempt > record.attempt {
        let before = token.occurrence + 1 == record.occurrence && record.fate == Fate::GivenUp;
        return Err(if before { Stale::GivenUp } else { Stale::Unknown });
    }
    if token.attempt < record.attempt {
        return Err(Stale::HandedAgain);
    }
    match (place, record.fate) {
        (Place::Out(_), _) => Ok(()),
        (_, Fate::Nacked) => Err(Stale::Nacked),
        (_, Fate::Lapsed) => Err(Stale::Lapsed),
        (_, Fate::Moved) => Err(Stale::Moved),
        (_, Fate::GivenUp) => Err(Stale::GivenUp),
        _ => Err(Stale::Unknown),
    }
}
