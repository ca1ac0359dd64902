//! The handover: what a shard passes to the next one when the store fails and the process continues.
//!
//! It contains what the rows do not: which deliveries no taker has received, and when leases end by the steady clock.
//! Commits in progress may be lost, so it covers the rows as they are and as they were before each of these commits:
//! each commit in progress keeps what it makes obsolete (`outbox.rs`). A new shard keeps what it was passed until a
//! commit after its opening is durable.

use super::{Hold, Shard};
use crate::message::Delivery;
use crate::record::{Generation, Record};
use crate::values::{Moment, Steady};

/// A delivery: its generation, occurrence and attempt.
type Handed = (Generation, u64, u32);

/// What the next shard of this process has to know beside the rows. From [`Shard::hand_over`].
#[derive(Clone, Debug, Default)]
pub struct Handover {
    /// Deliveries that no taker has received.
    unreceived: Vec<Handed>,
    /// The ends of leases, oldest first. An extended lease has another end by the wall clock, and its own entry.
    leases: Vec<((Handed, Moment), Steady)>,
}

impl Handover {
    pub(super) fn append(&mut self, mut later: Handover) {
        self.unreceived.append(&mut later.unreceived);
        self.leases.append(&mut later.leases);
    }

    /// Notes deliveries that no taker has received.
    pub(super) fn unreceived(&mut self, deliveries: &[Delivery]) {
        let handed = deliveries.iter().map(|one| &one.token);
        let handed = handed.map(|token| (token.generation, token.occurrence, token.attempt));
        self.unreceived.extend(handed);
    }

    /// Notes the end of a record's lease.
    pub(super) fn lease(&mut self, record: &Record, end: Steady) {
        self.leases.extend(key(record).map(|key| (key, end)));
    }

    fn is_unreceived(&self, record: &Record) -> bool {
        self.unreceived.binary_search(&handed(record)).is_ok()
    }

    fn lease_end(&self, record: &Record) -> Option<Steady> {
        let key = key(record)?;
        let behind = self.leases.partition_point(|lease| lease.0 <= key);
        let last = self.leases[..behind].last().filter(|lease| lease.0 == key);
        last.map(|lease| lease.1)
    }
}

fn handed(record: &Record) -> Handed {
    (record.generation(), record.occurrence, record.attempt)
}

fn key(record: &Record) -> Option<(Handed, Moment)> {
    record.lease.map(|lease| (handed(record), lease.until))
}

impl Shard {
    /// What the next shard has to know, if this one is dropped because the store has failed.
    pub fn hand_over(&self) -> Handover {
        let mut all = self.before.clone();
        self.outbox.hand_over(&mut all);
        for timer in self.timers.values() {
            if let Hold::Lease(_) = timer.hold {
                all.lease(&timer.record, self.lease_end_of(&timer.hold));
            }
        }
        all
    }

    /// Takes over from the last shard of this process, before the first turn.
    pub fn take_over(&mut self, mut before: Handover) {
        before.unreceived.sort_unstable();
        // Stable: the last of equal entries is the latest.
        before.leases.sort_by_key(|lease| lease.0);
        self.before = before;
    }

    /// Whether the last shard handed this row out, and no taker has received it.
    pub(super) fn is_unreceived(&self, record: &Record) -> bool {
        planted!("unreceived-uses-up-an-attempt", false, self.before.is_unreceived(record))
    }

    /// When the last shard would have ended the lease of this row.
    pub(super) fn lease_before(&self, record: &Record) -> Option<Steady> {
        let end = self.before.lease_end(record);
        planted!("lease-by-the-wall-clock-after-a-failure", None, end)
    }

    /// When a lease ends. One that has left the wheel has ended.
    pub(super) fn lease_end_of(&self, hold: &Hold) -> Steady {
        let Hold::Lease(key) = hold else { return self.steady };
        let end = self.expiries.due(*key);
        end.map_or(self.steady, |end| Steady::from_millis(end.units()))
    }
}
