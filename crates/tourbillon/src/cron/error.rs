//! What is wrong with a cron expression, and where.

use std::fmt;
use std::ops::Range;

/// Why a cron expression was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CronError {
    /// A field cannot be read.
    #[non_exhaustive]
    Field {
        /// Which one: second, minute, hour, day, month, weekday, year, or name for what begins with `@`.
        field: &'static str,
        /// What it says.
        text: String,
        /// Where it is in the expression, in bytes.
        span: Range<usize>,
        /// What it must be.
        must: &'static str,
    },
    /// There are too few fields, or too many.
    #[non_exhaustive]
    Fields {
        /// So many.
        count: usize,
    },
    /// No date matches, in any year.
    Never,
    /// There is no such time zone.
    #[non_exhaustive]
    Zone {
        /// Its name.
        name: String,
    },
}

impl CronError {
    /// Where in the expression it is wrong, in bytes, if it is one field.
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
