//! Records: what is stored of a timer. One row for each timer, in exactly one place.
//!
//! The part that never changes is shared ([`Spec`]), so that moving a record costs a few words whatever its payload.
//! [`codec`](crate::codec) has the binary form.

use std::sync::Arc;

use crate::bucket::Bucket;
pub use crate::values::Generation;
use crate::values::{Key, Moment, Payload, QueueName, Recurrence, Retry, Span, Webhook};

/// What a timer was made with. It never changes; a replacement has another.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Its name for ever.
    pub generation: Generation,
    /// Its queue.
    pub queue: QueueName,
    /// Its key, unique in the queue.
    pub key: Key,
    /// When it was made.
    pub created: Moment,
    /// What the holder of a delivery gets.
    pub payload: Payload,
    /// How it recurs.
    pub recurrence: Option<Recurrence>,
    /// How long its key stays taken after it is done or cancelled.
    pub remember: Span,
    /// How often it is tried.
    pub retry: Retry,
    /// No attempt of an occurrence starts later than so long after it is due.
    pub expires: Option<Span>,
    /// Where it is posted.
    pub webhook: Option<Arc<Webhook>>,
}

/// Who is handed a timer that is due. A flood in one lane of a queue neither hides nor delays the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Takers of its queue: it has no webhook.
    #[default]
    Pull,
    /// Delivery agents, of all queues: it has a webhook.
    Push,
}

impl Lane {
    /// Both.
    pub const ALL: [Lane; 2] = [Lane::Pull, Lane::Push];
}

impl Spec {
    /// Its lane.
    pub fn lane(&self) -> Lane {
        let hooked = planted!("webhook-in-the-pull-lane", false, self.webhook.is_some());
        if hooked { Lane::Push } else { Lane::Pull }
    }
}

/// A timer as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What never changes.
    pub spec: Arc<Spec>,
    /// The moment of the occurrence. Retries leave it as it is.
    pub due: Moment,
    /// The earliest moment of the next hand-out.
    pub next_attempt: Moment,
    /// The moment of the next occurrence, if this one is an extra run outside the rhythm.
    pub behind: Option<Moment>,
    /// The number of the occurrence, from 1.
    pub occurrence: u64,
    /// Hand-outs of this occurrence so far. Never falls, and names a delivery with the two numbers above.
    pub attempt: u32,
    /// Failed attempts of this occurrence, since it began or was revived.
    pub failed: u32,
    /// How the last hand-out ended.
    pub fate: Fate,
    /// The lease, if it is out.
    pub lease: Option<Lease>,
    /// What the last failure said.
    pub last_error: Option<Arc<str>>,
}

/// How the last hand-out of a timer ended: what a stale token is answered with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// It has not ended, or there was none.
    #[default]
    Open,
    /// It was acknowledged; of a recurring timer, the occurrence before the one that is shown.
    Acked {
        /// The occurrence.
        occurrence: u64,
        /// The attempt.
        attempt: u32,
    },
    /// It was refused.
    Nacked,
    /// Its lease ended without an answer. It may still be acknowledged.
    Lapsed,
    /// It was given back before it was delivered.
    Released,
    /// The timer was moved.
    Moved,
    /// The last attempt failed.
    GivenUp,
    /// The timer was cancelled while nobody had it.
    Cancelled,
    /// The timer was cancelled while somebody had it.
    CancelledOut,
}

/// The lease of a timer that is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// When it ends by the wall clock: what a restart goes by.
    pub until: Moment,
    /// Its full length: no restart makes it longer.
    pub length: Span,
}

/// Where the row of a timer is. With the queue and the generation it is the row's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the bucket of its next attempt.
    Bucket(Bucket),
    /// Due, and nobody has it; in the lane of the timer, ordered by its next attempt.
    Waiting(Lane, Moment),
    /// Somebody has it; ordered by its next attempt, as it was handed out.
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

    /// Its name for ever.
    pub fn generation(&self) -> Generation {
        self.spec.generation
    }

    /// Its place in a list by time: the next attempt, then the key.
    pub fn order(&self) -> (Moment, Option<Key>) {
        (self.next_attempt, Some(self.spec.key.clone()))
    }

    /// Whether it may have to be changed while it waits: it expires or recurs.
    pub fn is_watched(&self) -> bool {
        self.spec.expires.is_some() || self.spec.recurrence.is_some()
    }

    /// The bytes that it takes in memory, roughly: what the window's limit counts.
    pub fn size(&self) -> u64 {
        (size_of::<Record>()
            + size_of::<Spec>()
            + self.spec.payload.len()
            + self.spec.webhook.as_ref().map_or(0, |webhook| webhook.size())
            + self.spec.key.as_str().len()) as u64
    }
}
