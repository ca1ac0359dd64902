//! Events: what happens to timers, for observers.

use super::{Generation, Key, Moment, QueueName};

/// An event of a timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub happened: Happened,
    /// Its queue.
    pub queue: QueueName,
    /// Its key. `None` if the event concerns every timer of the queue; the numbers are then meaningless.
    pub key: Option<Key>,
    /// Its generation.
    pub generation: Generation,
    /// The occurrence.
    pub occurrence: u64,
    /// The attempt; 0 if not yet handed out.
    pub attempt: u32,
    /// When it happened.
    pub at: Moment,
}

/// What happened to a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Happened {
    /// It was scheduled, moved or run, or its next occurrence was scheduled.
    Scheduled,
    /// Its next attempt is due.
    Due,
    /// It was handed out.
    Handed,
    /// It was acknowledged.
    Acked,
    /// An attempt has failed.
    Failed,
    /// It was given up; for a recurring timer, this occurrence was.
    Dead,
    /// It was cancelled.
    Cancelled,
}

impl Happened {
    /// Its name, as in the HTTP interface.
    pub const fn name(self) -> &'static str {
        match self {
            Happened::Scheduled => "scheduled",
            Happened::Due => "due",
            Happened::Handed => "handed",
            Happened::Acked => "acked",
            Happened::Failed => "failed",
            Happened::Dead => "dead",
            Happened::Cancelled => "cancelled",
        }
    }
}
