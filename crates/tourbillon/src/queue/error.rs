//! The errors of a delay queue.

use std::fmt;

/// The reason why a value was not put.
///
/// The error holds the value; the queue is unchanged.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PutError<T> {
    /// The queue was closed.
    Closed(T),
    /// The limit on values is reached, or memory is exhausted.
    Full(T),
}

impl<T> PutError<T> {
    /// Returns the value that was not put.
    pub fn into_inner(self) -> T {
        match self {
            PutError::Closed(value) | PutError::Full(value) => value,
        }
    }
}

impl<T> fmt::Debug for PutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PutError::Closed(_) => "Closed(..)",
            PutError::Full(_) => "Full(..)",
        })
    }
}

impl<T> fmt::Display for PutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PutError::Closed(_) => "the queue was closed: put into another one",
            PutError::Full(_) => planted!(
                "queue.a-full-queue-says-it-was-closed",
                "the queue was closed: put into another one",
                "no room for another value: take some, raise the limit, or shed load"
            ),
        })
    }
}

impl<T> std::error::Error for PutError<T> {}

/// The reason why nothing was taken.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeError {
    /// No value is due, or none became due within the limit.
    NothingDue,
    /// The queue was closed. It stays closed.
    Closed,
}

impl fmt::Display for TakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TakeError::NothingDue => "nothing is due yet: wait longer, or come again",
            TakeError::Closed => "the queue was closed: there is nothing more to take",
        })
    }
}

impl std::error::Error for TakeError {}
