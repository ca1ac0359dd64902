//! The errors of a cron expression.

use std::fmt;
use std::ops::Range;

/// Why a cron expression was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CronError {
    /// A field is invalid.
    #[non_exhaustive]
    Field {
        /// The field: second, minute, hour, day, month, weekday, year, or name for an expression that begins with `@`.
        field: &'static str,
        /// The text of the field.
        text: String,
        /// The byte range of the field in the expression.
        span: Range<usize>,
        /// A description of what the field must be.
        must: &'static str,
    },
    /// There are too few fields or too many.
    #[non_exhaustive]
    Fields {
        /// The number of fields.
        count: usize,
    },
    /// No date matches in any year.
    Never,
    /// The time zone does not exist.
    #[non_exhaustive]
    Zone {
        /// The name that was given.
        name: String,
    },
}

impl CronError {
    /// The byte range of the invalid field; `None` if the error is not in a single field.
    pub fn span(&self) -> Option<Range<usize>> {
        match self {
            CronError::Field { span, .. } => {
                Some(planted!("wall.span-begins-at-zero", 0..span.len(), span.clone()))
            }
            _ => None,
        }
    }
}

impl fmt::Display for CronError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CronError::Field { field, text, must, .. } => {
                write!(f, "{field} is {text:?}: it must be {must}")
            }
            CronError::Fields { count } => write!(
                f,
                "{count} field{}: give 5 (minute hour day month weekday), 6 with seconds before \
                 them, or 7 with a year after those",
                if *count == 1 { "" } else { "s" }
            ),
            CronError::Never => {
                f.write_str("no date matches, ever: change the day, the month or the year")
            }
            CronError::Zone { name } => write!(
                f,
                "there is no time zone {name:?}: give one as Europe/Berlin, or UTC; a system \
                 without a time zone database has few"
            ),
        }
    }
}

impl std::error::Error for CronError {}
