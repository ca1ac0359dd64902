//! Answers to settles: the verdicts of deliveries' holders.

use tourbillon_durable::shard::{Settled, Stale, Token, Verdict};
use tourbillon_durable::values::{Moment, QueueName};

use super::answers::{Outcomes, Range, lie};
use super::entry::{Entry, Phase, period};
use super::{Broken, Ledger, promise};

impl Ledger {
    pub(super) fn settle(
        &mut self,
        queue: &QueueName,
        token: Token,
        verdict: &Verdict,
        outcome: Result<Settled, Stale>,
        range: Range,
    ) -> Outcomes {
        let name = (queue.clone(), token.key.clone());
        let lapsed = self.has_lapsed(&name);
        let live = |entry: &&mut Entry| {
            entry.spec.generation == token.generation
                && (entry.occurrence, entry.attempt) == (token.occurrence, token.attempt)
        };
        let Some(entry) = self.entries.get_mut(&name).filter(live) else {
            return if outcome.is_err() {
                Ok(())
            } else {
                lie(format!("{token:?} is stale, and {outcome:?}"))
            };
        };
        let acks_late = *verdict == Verdict::Ack
            && entry.phase == Phase::Pending
            && entry.attempt > 0
            && !entry.closed;
        if entry.phase != Phase::Out && !acks_late {
            return if outcome.is_err() {
                Ok(())
            } else {
                lie(format!("{token:?} has ended, and {outcome:?}: {entry:?}"))
            };
        }
        match outcome {
            Err(_) if lapsed || acks_late || entry.expired => Ok(()),
            // The answer, and the next attempt, depend on when the shard detected the expiry.
            Ok(Settled::Again(next)) if entry.spec.expires.is_some() => {
                (entry.phase, entry.next, entry.expired) = (Phase::Pending, next.millis(), true);
                entry.closed = true;
                Ok(())
            }
            Ok(Settled::GivenUp(None)) if matches!(verdict, Verdict::GiveUp(_)) => {
                entry.bury(range);
                Ok(())
            }
            Ok(Settled::GivenUp(_)) if entry.expired => Ok(()),
            Err(stale) => {
                Err(Broken::new(promise::LEASE, format!("{token:?} is out, and called {stale:?}")))
            }
            Ok(Settled::Acked(next)) if *verdict == Verdict::Ack => {
                let next = next.map(Moment::millis);
                Self::rhythm(entry, next, range)?;
                entry.finish(next, range);
                Ok(())
            }
            Ok(Settled::Again(next)) => {
                let next = next.millis();
                let (least, most) = match verdict {
                    Verdict::Nack(Some(delay), _) | Verdict::Release(delay) => {
                        (range.0 + delay.millis(), range.1 + delay.millis())
                    }
                    Verdict::Nack(None, _) => {
                        let retry = &entry.spec.retry;
                        let grown =
                            retry.first.millis() as f64 * retry.factor.powi(entry.failed as i32);
                        let base = grown.min(retry.longest.millis() as f64);
                        (
                            range.0 + base as u64,
                            range.1 + (base * (1.0 + retry.jitter)).ceil() as u64,
                        )
                    }
                    _ => range,
                };
                if !(least..=most).contains(&next) {
                    return Err(Broken::new(
                        promise::EARLY,
                        format!("{token:?} again at {next}, not in {least}..={most}"),
                    ));
                }
                entry.closed = true;
                if matches!(verdict, Verdict::Release(_)) {
                    (entry.phase, entry.next) = (Phase::Pending, next);
                } else {
                    entry.fail(next, range);
                }
                Ok(())
            }
            Ok(Settled::GivenUp(next))
                if matches!(verdict, Verdict::Nack(..))
                    && entry.failed + 1 >= entry.spec.retry.attempts =>
            {
                let next = next.map(Moment::millis);
                Self::rhythm(entry, next, range)?;
                match entry.spec.recurrence {
                    Some(_) => entry.finish(next, range),
                    None => entry.fail(0, range),
                }
                Ok(())
            }
            Ok(Settled::Extended(_)) => Ok(()),
            Ok(outcome) => {
                lie(format!("{token:?} of {entry:?}: {verdict:?} is answered {outcome:?}"))
            }
        }
    }

    /// Checks that the next occurrence is computed from the last due moment.
    fn rhythm(entry: &Entry, next: Option<u64>, (low, high): Range) -> Outcomes {
        if entry.loose || entry.expired {
            return Ok(());
        }
        let (one, other) = (entry.following(low), entry.following(high));
        let between = match (next, one, other) {
            (Some(next), Some(one), other) => {
                let on_beat = match entry.spec.recurrence.as_ref().map(|one| period(&one.rhythm)) {
                    Some((period, None)) if entry.behind.is_none() => {
                        (next - entry.due.min(next)) % period == 0
                    }
                    Some((period, Some(offset))) if entry.behind.is_none() => {
                        next % period == offset
                    }
                    _ => true,
                };
                next >= one && other.is_none_or(|other| next <= other) && on_beat
            }
            (next, one, other) => next == one || next == other,
        };
        if between {
            return Ok(());
        }
        let detail = format!("{entry:?} is due again at {next:?}, not from {one:?} to {other:?}");
        Err(Broken::new(promise::RHYTHM, detail))
    }
}
