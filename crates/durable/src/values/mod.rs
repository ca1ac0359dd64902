//! Values: what callers write and read, parsed and limited in one place.
//!
//! A type with private fields is valid by construction: its constructors check its limits. [`Retry`] and [`Webhook`]
//! have public fields and a `checked` method instead. Invalid text is answered with a [`ValueError`] that names the
//! field and states what it must be.

mod event;
mod name;
mod payload;
mod recurrence;
mod retry;
mod time;
mod timer;
mod token;
mod webhook;

use std::fmt;

pub use event::{Event, Happened};
pub use name::{Key, QueueName};
pub use payload::{Content, Payload};
pub use recurrence::{Missed, Recurrence, Rhythm};
pub use retry::{Retry, RetryChange};
pub use time::{Moment, Span, Steady};
pub use timer::{
    Cancelled, Conflict, Counts, Cursor, Delivery, Filter, Generation, Many, NewTimer, Outcome,
    Scheduled, State, View, When,
};
pub use token::{Settled, Stale, Token, Verdict};
pub use webhook::{Secret, Webhook};

/// A value was refused: the field, its text, and what it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueError {
    /// The field, as in the HTTP interface.
    pub field: &'static str,
    /// The refused text, truncated to 80 characters.
    pub text: String,
    /// What it must be.
    pub must: String,
}

impl ValueError {
    pub(crate) fn new(field: &'static str, text: &str, must: impl Into<String>) -> Self {
        ValueError { field, text: text.chars().take(80).collect(), must: must.into() }
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {:?}: it must be {}", self.field, self.text, self.must)
    }
}

impl std::error::Error for ValueError {}
