//! Records: what is stored of a timer. Each timer has one row, in exactly one place.
//!
//! The immutable part is shared ([`Spec`]), so that moving a record costs a few words whatever its payload.
//! [`codec`](crate::codec) defines the binary form.

use std::sync::Arc;

use crate::bucket::Bucket;
pub use crate::values::Generation;
use crate::values::{Key, Moment, Payload, QueueName, Recurrence, Retry, Span, Webhook};

/// The immutable part of a timer. A replacement has its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Its generation.
    pub generation: Generation,
    /// Its queue.
    pub queue: QueueName,
    /// Its key, unique in the queue.
    pub key: Key,
    /// When it was scheduled.
    pub created: Moment,
    /// Its payload, passed to the holder of a delivery.
    pub payload: Payload,
    /// Its recurrence, if it recurs.
    pub recurrence: Option<Recurrence>,
    /// How long its key stays taken after it is done or cancelled.
    pub remember: Span,
    /// Its attempts and backoff.
    pub retry: Retry,
    /// No attempt of an occurrence starts later than this long after the occurrence is due.
    pub expires: Option<Span>,
    /// Its webhook, if it has one.
    pub webhook: Option<Arc<Webhook>>,
}

/// The lane in which a due timer waits. A flood in one lane of a queue neither hides nor delays the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// For the takers of its queue: timers without a webhook.
    #[default]
    Pull,
    /// For the delivery agents of all queues: timers with a webhook.
    Push,
}

impl Lane {
    /// Both lanes.
    pub const ALL: [Lane; 2] = [Lane::Pull, Lane::Push];
}

impl Spec {
    /// Its lane.
    pub fn lane(&self) -> Lane {
        let hooked = planted!("webhook-in-the-pull-lane", false, self.webhook.is_some());
        if hooked { Lane::Push } else { Lane::Pull }
    }
}

/// A timer as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The immutable part.
    pub spec: Arc<Spec>,
    /// The due moment of the occurrence. Retries do not change it.
    pub due: Moment,
    /// The earliest moment of the next hand-out.
    pub next_attempt: Moment,
    /// The moment of the next regular occurrence, if this one is an extra run outside the recurrence.
    pub behind: Option<Moment>,
    /// The number of the occurrence, from 1.
    pub occurrence: u64,
    /// Hand-outs of this occurrence so far.
    ///
    /// Never decreases within it. Generation, occurrence and attempt identify a delivery.
    pub attempt: u32,
    /// Failed attempts of this occurrence, since it began or was revived.
    pub failed: u32,
    /// How the last hand-out ended.
    pub fate: Fate,
    /// The lease, if it is out.
    pub lease: Option<Lease>,
    /// The text of the last failure.
    pub last_error: Option<Arc<str>>,
}

/// How the last hand-out of a timer ended. Decides the answer to a stale token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// It has not ended, or there was none.
    #[default]
    Open,
    /// It was acknowledged. For a recurring timer, the acknowledged occurrence is the one before the current one.
    Acked {
        /// The occurrence.
        occurrence: u64,
        /// The attempt.
        attempt: u32,
    },
    /// It was nacked.
    Nacked,
    /// Its lease ended without an answer. It may still be acknowledged.
    Lapsed,
    /// It was released, or a restart made its outcome unknown.
    Released,
    /// The timer was moved.
    Moved,
    /// The timer was given up.
    GivenUp,
    /// The timer was cancelled while it was not handed out.
    Cancelled,
    /// The timer was cancelled while it was handed out.
    CancelledOut,
}

/// The lease of a timer that is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// When it ends by the wall clock. Used only after a restart.
    pub until: Moment,
    /// Its full length. A restart never makes the rest of a lease longer than this.
    pub length: Span,
}

/// Where the row of a timer is. Queue, place and generation together are the row's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the bucket of its next attempt.
    Bucket(Bucket),
    /// Due and not handed out; in the timer's lane, ordered by next attempt.
    Waiting(Lane, Moment),
    /// Handed out; ordered by the next attempt at the hand-out.
    Out(Moment),
    /// Given up at that moment.
    Dead(Moment),
    /// Done or cancelled; its key stays taken until that moment.
    Remembered(Moment),
}

impl Record {
    /// A timer that was just scheduled.
    pub fn new(spec: Spec, due: Moment) -> Self {
        Record {
            spec: Arc::new(spec),
            due,
            next_attempt: due,
            behind: None,
            occurrence: 1,
            attempt: 0,
            failed: 0,
            fate: Fate::Open,
            lease: None,
            last_error: None,
        }
    }

    /// Its generation.
    pub fn generation(&self) -> Generation {
        self.spec.generation
    }

    /// Its position in a list by time: the next attempt, then the key.
    pub fn order(&self) -> (Moment, Option<Key>) {
        (self.next_attempt, Some(self.spec.key.clone()))
    }

    /// Whether it may have to be changed while it waits, because it expires or recurs.
    pub fn is_watched(&self) -> bool {
        self.spec.expires.is_some() || self.spec.recurrence.is_some()
    }

    /// Its approximate bytes in memory, as counted by the limits.
    pub fn size(&self) -> u64 {
        (size_of::<Record>()
            + size_of::<Spec>()
            + self.spec.payload.len()
            + self.spec.webhook.as_ref().map_or(0, |webhook| webhook.size())
            + self.spec.key.as_str().len()) as u64
    }
}
