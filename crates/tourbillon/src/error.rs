//! Errors. Each message says what to do, and an error contains the value that was refused.

use std::{fmt, io};

/// Why a timer was not scheduled.
///
/// The error holds the callback or value; nothing else has changed.
#[non_exhaustive]
pub enum ScheduleError<T> {
    /// The engine was stopped.
    Stopped(T),
    /// The limit on pending timers is reached, or there is no memory for another.
    Full(T),
    /// The thread of the driver, or the thread that watches the wall clock, could not be started.
    Thread(T, io::Error),
    /// The cron expression has no further run.
    Never(T),
}

impl<T> ScheduleError<T> {
    /// Returns the callback or value that was not scheduled.
    pub fn into_inner(self) -> T {
        match self {
            ScheduleError::Stopped(value)
            | ScheduleError::Full(value)
            | ScheduleError::Thread(value, _)
            | ScheduleError::Never(value) => value,
        }
    }

    /// Drops the callback or value and returns the error without it.
    ///
    /// Needed for `?` where the error must be `Sync`, as with `Box<dyn Error + Send + Sync>` or `anyhow`: an error that
    /// contains a closure is `Sync` only if the closure is.
    ///
    /// ```
    /// use std::cell::Cell;
    /// use std::time::Duration;
    /// use tourbillon::{ScheduleError, Timer};
    ///
    /// fn arm(timer: &Timer) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    ///     let calls = Cell::new(0);
    ///     let count = move |_: &tourbillon::Context<'_>| calls.set(calls.get() + 1);
    ///     timer.schedule(Duration::from_secs(1), count).map_err(ScheduleError::reason)?;
    ///     Ok(())
    /// }
    ///
    /// let timer = Timer::new();
    /// arm(&timer).unwrap();
    /// timer.stop();
    /// assert!(arm(&timer).is_err());
    /// ```
    pub fn reason(self) -> ScheduleError<()> {
        self.map(drop)
    }

    pub(crate) fn map<U>(self, back: impl FnOnce(T) -> U) -> ScheduleError<U> {
        match self {
            ScheduleError::Stopped(value) => ScheduleError::Stopped(back(value)),
            ScheduleError::Full(value) => {
                let value = back(value);
                planted!(
                    "error.full-says-stopped",
                    ScheduleError::Stopped(value),
                    ScheduleError::Full(value)
                )
            }
            ScheduleError::Thread(value, wrong) => ScheduleError::Thread(back(value), wrong),
            ScheduleError::Never(value) => ScheduleError::Never(back(value)),
        }
    }
}

impl<T> fmt::Debug for ScheduleError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScheduleError::Stopped(_) => f.write_str("Stopped(..)"),
            ScheduleError::Full(_) => f.write_str("Full(..)"),
            ScheduleError::Thread(_, wrong) => write!(f, "Thread(.., {wrong:?})"),
            ScheduleError::Never(_) => f.write_str("Never(..)"),
        }
    }
}

impl<T> fmt::Display for ScheduleError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScheduleError::Stopped(_) => {
                f.write_str("the timer was stopped: schedule on another one")
            }
            ScheduleError::Full(_) => {
                f.write_str("no room for another timer: cancel some, raise the limit, or shed load")
            }
            ScheduleError::Thread(_, wrong) => {
                write!(f, "the driver's thread could not be started ({wrong}): try again")
            }
            ScheduleError::Never(_) => {
                f.write_str("the cron expression has no run to come: look at its year")
            }
        }
    }
}

impl<T> std::error::Error for ScheduleError<T> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ScheduleError::Thread(_, wrong) => {
                planted!("error.thread-has-no-source", None, Some(wrong))
            }
            _ => None,
        }
    }
}

/// An invalid setting of a [`Builder`](crate::Builder). No thread was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    pub(crate) setting: &'static str,
    pub(crate) value: String,
    pub(crate) must: &'static str,
}

impl BuildError {
    /// The name of the setting.
    pub fn setting(&self) -> &'static str {
        self.setting
    }

    /// The invalid value, as text.
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BuildError { setting, value, must } = self;
        write!(f, "{setting} is {value}: it must be {must}")
    }
}

impl std::error::Error for BuildError {}
