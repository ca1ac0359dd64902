//! The results of advancing a wheel.

use crate::{Key, Place, Time};

/// A timer that has fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expired<T> {
    /// The key it had. It is stale now.
    pub key: Key,
    /// The moment it was due: its deadline, rounded up to a tick.
    pub due: Time,
    /// What was inserted.
    pub value: T,
}

/// A timer cascaded to a lower level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Moved {
    /// The timer.
    pub key: Key,
    /// The slot it was in.
    pub from: Place,
    /// The slot it is in now.
    pub to: Place,
}

/// How far an [`advance`](crate::Wheel::advance) got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "work may remain"]
pub enum Progress {
    /// Everything that is due has been made ready.
    Done,
    /// The budget is used up: pop what is ready, and advance again.
    More,
    /// There was no memory to cascade timers or to make them ready. Nothing is lost: advance again when there is.
    OutOfMemory,
}
