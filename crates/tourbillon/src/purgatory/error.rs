//! Why an operation is not watched, and why a wait ended without a value.

use std::{fmt, io};

use crate::error::ScheduleError;

/// Why an operation is not watched.
///
/// The error holds the operation, which is watched under no key. Its condition may have been tried.
#[non_exhaustive]
pub enum WatchError<T> {
    /// There are no keys, so no event could ever complete the operation.
    NoKeys(T),
    /// The purgatory or its timer was stopped.
    Stopped(T),
    /// The timer's limit on pending timers is reached, or there is no memory for another.
    Full(T),
    /// The thread of the timer's driver could not be started.
    Thread(T, io::Error),
}

impl<T> WatchError<T> {
    /// Returns the operation that is not watched.
    pub fn into_inner(self) -> T {
        match self {
            WatchError::NoKeys(value)
            | WatchError::Stopped(value)
            | WatchError::Full(value)
            | WatchError::Thread(value, _) => value,
        }
    }

    pub(super) fn map<U>(self, map: impl FnOnce(T) -> U) -> WatchError<U> {
        match self {
            WatchError::NoKeys(value) => WatchError::NoKeys(map(value)),
            WatchError::Stopped(value) => WatchError::Stopped(map(value)),
            WatchError::Full(value) => WatchError::Full(map(value)),
            WatchError::Thread(value, wrong) => WatchError::Thread(map(value), wrong),
        }
    }

    /// Converts a refusal by the timer; the new error holds `value`.
    pub(super) fn from_schedule<U>(error: ScheduleError<U>, value: T) -> Self {
        match error {
            ScheduleError::Stopped(_) => WatchError::Stopped(value),
            ScheduleError::Full(_) => {
                planted!(
                    "purgatory.full-told-as-stopped",
                    WatchError::Stopped(value),
                    WatchError::Full(value)
                )
            }
            ScheduleError::Thread(_, wrong) => WatchError::Thread(value, wrong),
            ScheduleError::Never(_) => unreachable!("a timeout is not by the calendar"),
        }
    }
}

impl<T> fmt::Debug for WatchError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WatchError::NoKeys(_) => f.write_str("NoKeys(..)"),
            WatchError::Stopped(_) => f.write_str("Stopped(..)"),
            WatchError::Full(_) => f.write_str("Full(..)"),
            WatchError::Thread(_, wrong) => write!(f, "Thread(.., {wrong:?})"),
        }
    }
}

impl<T> fmt::Display for WatchError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WatchError::NoKeys(_) => {
                f.write_str("no keys: give at least one, whose checks can complete the operation")
            }
            WatchError::Stopped(_) => {
                f.write_str("the purgatory or its timer was stopped: use another one")
            }
            WatchError::Full(_) => {
                f.write_str("no room for another timer: raise the timer's limit, or shed load")
            }
            WatchError::Thread(_, wrong) => {
                write!(f, "the driver's thread could not be started ({wrong}): try again")
            }
        }
    }
}

impl<T> std::error::Error for WatchError<T> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WatchError::Thread(_, wrong) => Some(wrong),
            _ => None,
        }
    }
}

/// The reason why a [wait](crate::Purgatory::wait) ended without a value, or a [closure](crate::Purgatory::when)
/// received none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitError {
    /// The timeout came first.
    Expired,
    /// One of the wait's keys was [cancelled](crate::Purgatory::cancel_key).
    Cancelled,
    /// The purgatory or its timer was stopped.
    Stopped,
    /// There were no keys: no event could ever complete it.
    NoKeys,
    /// The timer's limit on pending timers is reached, or there is no memory for another.
    Full,
    /// The thread of the timer's driver could not be started.
    Thread,
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WaitError::Expired => "the timeout came before the condition was met",
            WaitError::Cancelled => "the key was cancelled before the condition was met",
            WaitError::Stopped => "the purgatory or its timer was stopped: use another one",
            WaitError::NoKeys => "no keys: give at least one, whose checks can complete the wait",
            WaitError::Full => "no room for another timer: raise the timer's limit, or shed load",
            WaitError::Thread => "the driver's thread could not be started: try again",
        })
    }
}

impl std::error::Error for WaitError {}

impl<T> From<&WatchError<T>> for WaitError {
    fn from(error: &WatchError<T>) -> Self {
        match error {
            WatchError::NoKeys(_) => WaitError::NoKeys,
            WatchError::Stopped(_) => WaitError::Stopped,
            WatchError::Full(_) => WaitError::Full,
            WatchError::Thread(..) => {
                planted!(
                    "purgatory.wait-without-a-thread-says-full",
                    WaitError::Full,
                    WaitError::Thread
                )
            }
        }
    }
}
