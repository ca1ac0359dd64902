//! Events: what happens to timers, for people who watch.

use super::{Generation, Key, Moment, QueueName};

/// Something has happened to a timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What.
    pub happened: Happened,
    /// Its queue.
    pub queue: QueueName,
    /// Its key; `None`: to every timer of the queue, and the numbers say nothing.
    pub key: Option<Key>,
    /// Its name for ever.
    pub generation: Generation,
    /// The occurrence.
    pub occurrence: u64,
    /// The attempt; 0: not yet handed out.
    pub attempt: u32,
    /// When it happened.
    pub at: Moment,
}

/// What happens to a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Happened {
    /// It was made or moved, or its next occurrence was.
    Scheduled,
    /// Its next attempt has come.
    Due,
    /// It was handed out.
    Handed,
    /// It was acknowledged.
    Acked,
    /// An attempt has failed.
    Failed,
    /// It was given up; of a recurring timer, this occurrence.
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
