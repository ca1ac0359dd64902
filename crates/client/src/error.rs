//! What can go wrong with a call.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

/// Why a call did not succeed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The server refused the call, for this reason.
    Refused(Box<Problem>),
    /// There is no connection: nothing was sent.
    Unreachable(String),
    /// The connection was lost, or the answer took too long: the call may or may not have been carried out.
    Lost(String),
    /// The answer does not follow the API: the call may or may not have been carried out.
    Unreadable(String),
    /// An argument cannot be sent: nothing was sent.
    Argument(String),
}

/// The server's description of a request that it refused.
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
    /// The index of the timer, key or token in the request, from 0.
    pub index: Option<usize>,
    /// The state of the existing timer.
    pub state: Option<String>,
    /// Whether an earlier try of the same call may have been carried out and have caused this refusal.
    ///
    /// With `key_taken`, the existing timer may be the one that this call made.
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

    /// Whether the call may have been carried out despite the error.
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
                    f.write_str("; an earlier try may have been carried out and be the cause")?;
                }
                Ok(())
            }
            Error::Unreachable(why) => write!(f, "cannot connect: {why}"),
            Error::Lost(why) => write!(f, "{why}: the call may or may not have been carried out"),
            Error::Unreadable(why) => write!(f, "the answer cannot be read: {why}"),
            Error::Argument(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}
