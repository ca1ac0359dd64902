//! Errors: what can go wrong, and what to do about it.

use std::fmt;

use crate::runtime::Failure;
use crate::shard::{NewTimer, Stale, State};
use crate::values::{Generation, ValueError};

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A value is out of its limits. Nothing happened.
    Value(ValueError),
    /// There is no such timer. Nothing happened.
    UnknownTimer,
    /// There is no such queue. Nothing happened.
    UnknownQueue,
    /// This many timers of the queue are out, so it was not deleted. Nothing happened.
    Delivering(u64),
    /// A timer in this state cannot be moved or run. Nothing happened.
    State(State),
    /// The key belongs to this timer, or to none, but the request expected another one. Nothing happened.
    Mismatch(Option<Generation>),
    /// The delivery no longer belongs to the caller. Nothing happened.
    Stale(Stale),
    /// The commit failed: the request may or may not have taken effect. Check, or repeat it if that is safe.
    Unknown(String),
    /// The store cannot be written. Nothing happened; retry later.
    Unavailable(String),
    /// A row that the request needs cannot be read. Nothing happened; other timers are not affected.
    Damaged(String),
    /// Too many bytes wait to be committed. Nothing happened; wait for earlier receipts first.
    Full,
    /// The durable timers were closed. Nothing happened.
    Stopped,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Value(error) => error.fmt(f),
            Error::UnknownTimer => f.write_str("there is no such timer"),
            Error::UnknownQueue => f.write_str("there is no such queue"),
            Error::Delivering(count) => {
                write!(f, "{count} timers of the queue are out: wait for them, or delete it by force")
            }
            Error::State(state) => {
                write!(f, "the timer is {}: it cannot be moved or run", state.name())
            }
            Error::Mismatch(there) => write!(f, "{}", mismatch(*there)),
            Error::Stale(stale) => {
                write!(f, "the delivery counts no more: {}", reason(*stale))
            }
            Error::Unknown(why) => {
                write!(f, "it happened or not, because its commit failed ({why}): look before you repeat it")
            }
            Error::Unavailable(why) => {
                write!(f, "nothing happened, because the store cannot be opened ({why}): try again later")
            }
            Error::Damaged(what) => {
                write!(f, "nothing happened, because a row cannot be read ({what}): check the store")
            }
            Error::Full => {
                f.write_str("nothing happened, because too much waits to be committed: wait for earlier receipts")
            }
            Error::Stopped => f.write_str("nothing happened, because the durable timers are closed"),
        }
    }
}

impl std::error::Error for Error {}

impl From<ValueError> for Error {
    fn from(error: ValueError) -> Self {
        Error::Value(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unknown(why) => Error::Unknown(why.to_string()),
            Failure::Unavailable(why) => Error::Unavailable(why.to_string()),
            Failure::Damaged(what) => Error::Damaged(what.to_string()),
            Failure::Full => Error::Full,
            Failure::Stopped => Error::Stopped,
        }
    }
}

/// The failure of a schedule: the reason, and the timers of the request.
///
/// No timer was scheduled, unless the reason is [`Error::Unknown`].
#[derive(Clone, Debug)]
pub struct ScheduleError {
    /// The reason.
    pub reason: Refused,
    /// The timers of the request.
    pub timers: Vec<NewTimer>,
}

/// Why timers were not scheduled. An index is the position of a timer in the request, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// A key is taken by a timer in that state.
    KeyTaken(usize, State),
    /// A key belongs to this timer, or to none, but another one was to be replaced.
    Mismatch(usize, Option<Generation>),
    /// A key looks assigned, and no timer has it.
    NotAssigned(usize),
    /// An earlier timer of the request has the same key.
    KeyTwice(usize),
    /// Its recurrence has no future moment, or none before its end.
    Never(usize),
    /// Its payload is larger than 256 KiB.
    PayloadTooLarge(usize),
    /// The request has no timers, or more than 10 000.
    Count,
    /// There would be more timers than [`Limits`](crate::shard::Limits) allow.
    TooMany,
    /// The request was not carried out.
    Request(Error),
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = |index: usize| {
            let key = self.timers.get(index).and_then(|timer| timer.key.as_ref());
            key.map_or("", |key| key.as_str())
        };
        match &self.reason {
            Refused::KeyTaken(index, state) => write!(
                f,
                "the key {:?} is taken by a timer that is {}: choose another, replace it or keep it",
                key(*index),
                state.name()
            ),
            Refused::Mismatch(index, there) => {
                write!(f, "the key {:?}: {}", key(*index), mismatch(*there))
            }
            Refused::NotAssigned(index) => write!(
                f,
                "no timer has the key {:?}, and keys that begin with ~ are assigned: leave the key out",
                key(*index)
            ),
            Refused::KeyTwice(index) => {
                write!(f, "the key {:?} is in the request twice: leave one out", key(*index))
            }
            Refused::Never(index) => {
                write!(f, "timer {index} has no moment to come: look at its rhythm and its end")
            }
            Refused::PayloadTooLarge(index) => {
                write!(
                    f,
                    "the payload of timer {index} has more than 256 KiB: store it elsewhere and name it"
                )
            }
            Refused::Count => f.write_str("1 to 10000 timers fit in a request: split it"),
            Refused::TooMany => {
                f.write_str("the store has its most timers: cancel some, or raise the limit")
            }
            Refused::Request(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ScheduleError {}

fn mismatch(there: Option<Generation>) -> String {
    match there {
        Some(there) => {
            format!(
                "another timer has the key, of generation {}: look before you repeat it",
                there.0
            )
        }
        None => "no timer has the key: the one that was meant is gone".into(),
    }
}

fn reason(stale: Stale) -> &'static str {
    match stale {
        Stale::Acked => "it was acknowledged before",
        Stale::Nacked => "it was refused before",
        Stale::Lapsed => "its lease has ended",
        Stale::Moved => "the timer was moved",
        Stale::HandedAgain => "it was handed out again",
        Stale::Cancelled => "the timer was cancelled",
        Stale::Replaced => "the timer was replaced",
        Stale::GivenUp => "it was given up",
        Stale::Unknown => "nothing is known of it",
    }
}
