//! An entry: the ledger's state of one timer, with a second implementation of failing, recurring and ending.

use std::sync::Arc;

use tourbillon_durable::record::Spec;
use tourbillon_durable::shard::Token;
use tourbillon_durable::values::{Missed, Recurrence, Rhythm};

/// The ledger's state of a timer.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) spec: Arc<Spec>,
    pub(super) due: u64,
    pub(super) next: u64,
    /// The regular next occurrence, which an extra run has postponed.
    pub(super) behind: Option<u64>,
    /// The timer was run, and the effect depends on whether its moment was missed. Once the shard is idle, the row
    /// decides.
    pub(super) loose: bool,
    /// Its expiry has passed, so it may have been given up. Once the shard is idle, the row decides.
    pub(super) expired: bool,
    pub(super) occurrence: u64,
    pub(super) attempt: u32,
    pub(super) failed: u32,
    pub(super) phase: Phase,
    /// The last delivery was nacked, released or moved, so a late ack of it is stale.
    pub(super) closed: bool,
    /// A delivery that has lapsed, of which no client was informed yet. A crash may undo the lapse.
    pub(super) unsure: Option<(u64, u64, u32)>,
    /// The number of events at the time when a client learned that it had set the moment.
    pub(super) given: u64,
    /// The last delivery that a client received.
    pub(super) token: Option<Token>,
}

/// The cron expressions that clients use, all in UTC, each with its period and its offset from 1970.
pub const CRONS: [(&str, u64, u64); 4] = [
    ("* * * * *", 60_000, 0),
    ("*/5 * * * * *", 5_000, 0),
    ("30 6 * * *", 86_400_000, 23_400_000),
    ("15 * * * *", 3_600_000, 900_000),
];

/// The period of a rhythm, and the offset of a cron expression.
pub(super) fn period(rhythm: &Rhythm) -> (u64, Option<u64>) {
    match rhythm {
        Rhythm::Every(period) => (period.millis(), None),
        Rhythm::Cron { expression, .. } => {
            let known = CRONS.iter().find(|cron| cron.0 == &**expression);
            let (_, period, offset) = known.expect("clients use no other");
            (*period, Some(*offset))
        }
    }
}

/// The phase of a timer's life.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Phase {
    /// Scheduled or due.
    Pending,
    /// Handed out, or lapsed without a client being informed.
    Out,
    /// Given up, at a moment within this range.
    Dead(Kept),
    /// Done or cancelled, with the key taken for a while.
    Gone(Gone, Kept),
}

/// How a timer ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Gone {
    Done,
    Cancelled,
    CancelledOut,
}

/// The retention of a row: bounds of its start (dead timers) or of its end (done and cancelled ones).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kept {
    pub(super) low: u64,
    pub(super) high: u64,
    /// The greatest wall-clock reading since.
    pub(super) seen: u64,
    /// The retention has ended by some clock reading, so the row may be gone, whatever the clock reads now.
    pub(super) passed: bool,
}

impl Kept {
    fn age(&mut self, wall: u64, keep: u64) {
        self.seen = self.seen.max(wall);
        self.passed |= self.low + keep <= self.seen;
    }
}

impl Entry {
    pub(super) fn handed(&self) -> (u64, u64, u32) {
        (self.spec.generation.0, self.occurrence, self.attempt)
    }

    pub(super) fn is_due(&self, wall: u64) -> bool {
        self.phase == Phase::Pending && self.next <= wall
    }

    /// The last moment at which an attempt may start.
    pub(super) fn expiry(&self) -> u64 {
        self.spec.expires.map_or(u64::MAX, |span| self.due + span.millis())
    }

    /// Updates the entry to the wall clock `wall`. Dead timers are kept for `dead_keep`.
    pub(super) fn age(&mut self, wall: u64, dead_keep: Option<u64>) {
        self.expired |= wall > self.expiry() && matches!(self.phase, Phase::Pending | Phase::Out);
        match &mut self.phase {
            Phase::Dead(kept) => kept.age(wall, dead_keep.unwrap_or(0)),
            Phase::Gone(_, kept) => kept.age(wall, 0),
            _ => {}
        }
    }

    /// An attempt has failed: the next one is due at `next`. `wall` is the range of the clock at the decision.
    pub(super) fn fail(&mut self, next: u64, wall: (u64, u64)) {
        self.failed += 1;
        if self.failed < self.spec.retry.attempts {
            (self.phase, self.next) = (Phase::Pending, next);
            return;
        }
        if self.spec.recurrence.is_some() {
            let due = self.following(wall.0);
            return self.finish(due, wall);
        }
        self.bury(wall);
    }

    /// Gives the timer up for good.
    pub(super) fn bury(&mut self, (low, high): (u64, u64)) {
        self.phase = Phase::Dead(Kept { low, high, seen: high, passed: false });
    }

    /// Revives a dead timer.
    pub(super) fn revive(&mut self, wall: u64) {
        (self.due, self.next, self.failed) = (wall, wall, 0);
        self.phase = Phase::Pending;
    }

    /// Ends the occurrence; the next one is due at `due`.
    pub(super) fn finish(&mut self, due: Option<u64>, wall: (u64, u64)) {
        let Some(due) = due else { return self.end(Gone::Done, wall) };
        (self.due, self.next, self.phase) = (due, due, Phase::Pending);
        self.behind = None;
        self.occurrence += 1;
        (self.attempt, self.failed) = (0, 0);
    }

    pub(super) fn end(&mut self, how: Gone, (low, high): (u64, u64)) {
        let remember = self.spec.remember.millis();
        // A timer with a retention of zero may be gone already.
        let passed = low + remember <= high;
        let kept = Kept { low: low + remember, high: high + remember, seen: high, passed };
        self.phase = Phase::Gone(how, kept);
    }

    /// The moment of the next occurrence if this one is settled at `wall`.
    pub(super) fn following(&self, wall: u64) -> Option<u64> {
        let Recurrence { rhythm, missed, until, times } = self.spec.recurrence.as_ref()?;
        let (period, until) = (period(rhythm).0, until.map_or(u64::MAX, |until| until.millis()));
        if times.is_some_and(|times| self.occurrence >= times) {
            return None;
        }
        if self.behind.is_some() {
            return self.behind;
        }
        let first = self.beat_after(self.due)?;
        let passed = |at: u64| (at + 1).saturating_sub(first).div_ceil(period);
        // The number of moments that have passed, and how many of them may still be delivered.
        let (all, allowed) = (passed(wall), passed(wall.min(until)));
        let next = match (missed, allowed) {
            (Missed::Skip, _) | (_, 0) => first + all * period,
            (Missed::Once, allowed) => first + (allowed - 1) * period,
            (Missed::All, allowed) => first + allowed.saturating_sub(1000) * period,
        };
        (next <= until).then_some(next)
    }

    /// The moment that replaces `due` if `due` was missed: `due` itself, another one, or none.
    pub(super) fn selected(&self, due: u64, event: u64) -> Option<u64> {
        let Recurrence { rhythm, missed, until, .. } = self.spec.recurrence.as_ref()?;
        let (period, until) = (period(rhythm).0, until.map_or(u64::MAX, |until| until.millis()));
        let first = self.beat_after(due)?;
        let passed = |at: u64| (at + 1).saturating_sub(first).div_ceil(period);
        let (all, allowed) = (passed(event), passed(event.min(until)));
        match (missed, allowed) {
            (Missed::Skip, _) => Some(first + all * period).filter(|&next| next <= until),
            (Missed::Once, 1..) => Some(first + (allowed - 1) * period),
            (Missed::All, 1000..) => Some(first + (allowed - 1000) * period),
            _ => Some(due),
        }
    }

    /// The first moment of the rhythm after that one.
    pub(super) fn beat_after(&self, last: u64) -> Option<u64> {
        match period(&self.spec.recurrence.as_ref()?.rhythm) {
            (period, None) => Some(last + period),
            (period, Some(offset)) => {
                let whole = (last + period - offset) / period * period;
                Some(whole + offset)
            }
        }
    }

    /// `Some` if the key is certainly taken, or certainly free, while the clock is in that range; `None` if uncertain.
    pub(super) fn is_there(&self, (low, high): (u64, u64), dead_keep: u64) -> Option<bool> {
        let kept = match self.phase {
            Phase::Pending | Phase::Out => return Some(true),
            Phase::Dead(kept) => {
                Kept { low: kept.low + dead_keep, high: kept.high + dead_keep, ..kept }
            }
            Phase::Gone(_, kept) => kept,
        };
        if kept.high <= low
            || self.spec.remember.millis() == 0 && matches!(self.phase, Phase::Gone(..))
        {
            return Some(false);
        }
        (kept.low > high && !kept.passed).then_some(true)
    }
}
