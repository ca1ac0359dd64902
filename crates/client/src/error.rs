//! What can go wrong with a call.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

/// Why a call did not succeed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The server refused it and says why.
    Refused(Box<Problem>),
    /// There is no connection: nothing was sent.
    Unreachable(String),
    /// The connection was lost, or the answer took too long: the call was carried out or it was not.
    Lost(String),
    /// The answer is not what the API says: the call was carried out or it was not.
    Unreadable(String),
    /// An argument cannot be sent: nothing was.
    Argument(String),
}

/// What the server says of a request that it refused.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Problem {
    /// The status.
    pub status: u16,
    /// The kind of problem, for programs. Stable.
    pub code: String,
    /// What is wrong, and what would be right.
    pub detail: String,
    /// The field or parameter that is wrong.
    pub field: Option<String>,
    /// Which timer, key or token of the request, from 0.
    pub index: Option<usize>,
    /// The state of the timer that is there.
    pub state: Option<String>,
    /// An earlier try of the same call was perhaps carried out, and this may be its trace: a `key_taken` may be the
    /// timer that this call made.
    #[serde(skip)]
    pub after_lost: bool,
    #[serde(skip)]
    pub(crate) retry_after: Option<Duration>,
}

impl Error {
    /// The code of a refusal, as `key_taken`.
    pub fn code(&self) -> Option<&str> {
        match self {
            Error::Refused(problem) => Some(&problem.code),
            _ => None,
        }
    }

    /// Whether the call may have been carried out all the same.
    pub fn may_have_happened(&self) -> bool {
        match self {
            Error::Refused(problem) => problem.code == "unknown" || problem.after_lost,
            Error::Lost(_) | Error::Unreadable(_) => true,
            Error::Unreachable(_) | Error::Argument(_) => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused(problem) => {
                write!(f, "{} ({})", problem.detail, problem.code)?;
                if let Some(index) = problem.index {
                    write!(f, ", number {index} of the request, from 0")?;
                }
                if problem.after_lost {
                    f.write_str("; an earlier try was lost, and this may be what it did")?;
                }
                Ok(())
            }
            Error::Unreachable(why) => write!(f, "cannot connect: {why}"),
            Error::Lost(why) => write!(f, "{why}: it was carried out, or not"),
            Error::Unreadable(why) => write!(f, "the answer cannot be read: {why}"),
            Error::Argument(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}
