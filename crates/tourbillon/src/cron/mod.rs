//! Cron expressions in a time zone, and timers that follow them.
//!
//! croner parses the grammar and finds the next matching date; jiff provides the zones. `zone.rs` decides what happens
//! where a zone's clock jumps; `fields.rs` locates the error in an invalid expression.

mod error;
mod fields;
mod zone;

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use jiff::civil::{DateTime, date};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use crate::error::ScheduleError;
use crate::timer::{Context, Timeout, Timer};
pub use error::CronError;

/// A cron expression in a time zone. Cheap to clone.
///
/// Zones, dates and times are the types of [jiff 0.2](https://docs.rs/jiff/0.2), re-exported as `tourbillon::jiff`.
///
/// # The expression
/// Five fields: `minute hour day month weekday`. Six fields begin with `second`; seven also end with `year`.
/// Alternatively, one of `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.
///
/// | field | values | also |
/// |---|---|---|
/// | second, minute | 0 to 59 | `*`, lists `0,30`, ranges `9-17`, steps `*/15`, `10-50/20` |
/// | hour | 0 to 23 | |
/// | day | 1 to 31 | `L` the last, `15W` the weekday nearest to the 15th, `LW` the last weekday |
/// | month | 1 to 12, JAN to DEC | |
/// | weekday | 0 to 7, SUN to SAT; 0 and 7 are Sunday | `5#2` the second Friday, `5L` the last |
/// | year | 1 to 4999 | |
///
/// If both day and weekday are restricted, a date has to match either of them, or both if `+` precedes the weekday.
///
/// # Daylight saving time
/// Twice a year, the clocks of many zones skip an hour (a gap) or repeat one (a fold).
///
/// - An expression with **fixed times of day**, such as `30 2 * * *` or `0 9,17 * * *`, runs once a day for each of
///   them. A time within a gap runs when the gap ends: 02:30 runs at 03:00. A time within a fold runs at its first
///   occurrence. (Two times in the same gap are one run. A day that is skipped as a whole has no runs.)
/// - An expression that **repeats within the day**, with `*` or `*/n` for the second, minute or hour, such as
///   `*/15 * * * *` or `0 * * * *`, follows real time: times within a gap are skipped, and times within a fold run
///   twice, so every 15 minutes stays every 15 minutes. (A `*` stands for all values: `0-59/15` is `*/15`.)
///
/// ```
/// use tourbillon::{Cron, jiff::Zoned};
///
/// let daily = Cron::parse("30 2 * * *", "Europe/Berlin")?;
/// let before: Zoned = "2025-03-29T12:00[Europe/Berlin]".parse()?;
/// let runs: Vec<String> = std::iter::successors(Some(before), |last| daily.next_after(last))
///     .skip(1)
///     .take(2)
///     .map(|run| run.to_string())
///     .collect();
/// assert_eq!(runs, [
///     "2025-03-30T03:00:00+02:00[Europe/Berlin]", // 02:30 does not exist
///     "2025-03-31T02:30:00+02:00[Europe/Berlin]",
/// ]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Cron {
    inner: Arc<Inner>,
}

struct Inner {
    expression: String,
    pattern: croner::Cron,
    zone: TimeZone,
    repeats_within_the_day: bool,
}

impl Cron {
    /// Parses an expression for a zone of the time zone database, such as `Europe/Berlin` or `UTC`.
    ///
    /// # Errors
    /// The expression is invalid (see [`span`](CronError::span)), the zone does not exist, or no date ever matches, as
    /// for 31 February.
    ///
    /// ```
    /// use tourbillon::Cron;
    ///
    /// let wrong = Cron::parse("0 25 * * *", "UTC").unwrap_err();
    /// assert_eq!(wrong.to_string(), "hour is \"25\": it must be 0 to 23");
    /// assert_eq!(wrong.span(), Some(2..4));
    ///
    /// let wrong = Cron::parse("0 0 31 2 *", "UTC").unwrap_err();
    /// assert_eq!(wrong.to_string(), "no date matches, ever: change the day, the month or the year");
    /// ```
    pub fn parse(expression: &str, zone: &str) -> Result<Self, CronError> {
        let known = TimeZone::get(zone).map_err(|_| CronError::Zone { name: zone.into() });
        // An error in the expression takes precedence over one in the zone.
        let pattern = fields::read(expression)?;
        Cron::with(expression, pattern, known?)
    }

    /// As [`parse`](Cron::parse), for a given zone, such as `TimeZone::system()`.
    ///
    /// # Errors
    /// As [`parse`](Cron::parse).
    pub fn in_zone(expression: &str, zone: TimeZone) -> Result<Self, CronError> {
        Cron::with(expression, fields::read(expression)?, zone)
    }

    fn with(expression: &str, read: fields::Read, zone: TimeZone) -> Result<Self, CronError> {
        let fields::Read { pattern, repeats_within_the_day } = read;
        let expression = expression.trim().to_owned();
        let cron =
            Cron { inner: Arc::new(Inner { expression, pattern, zone, repeats_within_the_day }) };
        let from =
            planted!("fourth.years-gone-by-never-match", Zoned::now().datetime(), DateTime::MIN);
        match cron.next_civil(from) {
            Some(_) => Ok(cron),
            None => Err(CronError::Never),
        }
    }

    /// Returns the first run after `after`; `None` if there is none before the year 5000.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use tourbillon::Cron;
    ///
    /// let cron = Cron::parse("0 9 * * MON-FRI", "America/New_York")?;
    /// let first = cron.next_after(SystemTime::UNIX_EPOCH).unwrap();
    /// assert_eq!(first.to_string(), "1970-01-01T09:00:00-05:00[America/New_York]");
    /// # Ok::<(), tourbillon::CronError>(())
    /// ```
    pub fn next_after(&self, after: impl Into<SystemTime>) -> Option<Zoned> {
        let after = after.into();
        let after = Timestamp::try_from(after).or_else(|wrong| {
            let is_early = after < SystemTime::UNIX_EPOCH;
            if planted!("wall.nothing-after-a-time-too-early", false, is_early) {
                Ok(Timestamp::MIN)
            } else {
                Err(wrong)
            }
        });
        let repeats = self.inner.repeats_within_the_day;
        let at = if planted!("wall.daily-run-in-a-gap-left-out", true, repeats) {
            zone::by_real_time(self, after.ok()?)
        } else {
            zone::by_time_of_day(self, after.ok()?)
        };
        at.map(|at| at.to_zoned(self.inner.zone.clone()))
    }

    /// Returns the first matching date and time of day after `after`, ignoring the zone.
    ///
    /// ```
    /// use tourbillon::{Cron, jiff::civil::date};
    ///
    /// let cron = Cron::parse("30 2 * * *", "Europe/Berlin")?;
    /// let gap = date(2025, 3, 30).at(2, 0, 0, 0);
    /// assert_eq!(cron.next_civil(gap), Some(date(2025, 3, 30).at(2, 30, 0, 0)));
    /// # Ok::<(), tourbillon::CronError>(())
    /// ```
    pub fn next_civil(&self, after: DateTime) -> Option<DateTime> {
        // croner's calendar begins with the year 1.
        let begin = date(1, 1, 1).at(0, 0, 0, 0);
        let found = match after < begin {
            true => self.inner.pattern.find_next_occurrence(&begin, true),
            false => self.inner.pattern.find_next_occurrence(&after, false),
        };
        found.ok()
    }

    /// Whether it repeats within the day, and so follows real time where the clock jumps.
    pub fn repeats_within_the_day(&self) -> bool {
        self.inner.repeats_within_the_day
    }

    /// Returns its zone.
    pub fn zone(&self) -> &TimeZone {
        &self.inner.zone
    }
}

/// Writes the expression.
impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.expression)
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zone = self.inner.zone.iana_name().unwrap_or("unnamed");
        write!(f, "Cron({:?}, {zone})", self.inner.expression)
    }
}

/// Scheduling by the calendar, with the feature `calendar`.
impl Timer {
    /// Runs `callback` whenever a cron expression matches, until it is cancelled, panics or has no further run.
    ///
    /// It follows the wall clock, as [`schedule_wall`](Timer::schedule_wall) does. If the clock is set forward past one
    /// or more runs, it runs once, for the first of them. If the clock is set back, the timer waits: it never runs
    /// twice for the same moment, but it does run for a moment that was skipped. Runs never overlap: moments that pass
    /// during a run are skipped.
    ///
    /// [`Context::wall_deadline`] returns the moment that a run is for. [`Context::again`] and [`Timeout::reschedule`]
    /// set the time of the next run: moments of the expression before that run are skipped, and the expression applies
    /// again after it. A timer without a further run has ended. There is one exception: if the clock was set forward
    /// past the last run and the timer has not made all runs, the timer stays pending, and makes them if the clock is
    /// set back.
    ///
    /// # Errors
    /// As [`schedule`](Timer::schedule), and [`ScheduleError::Never`] if there is no further run.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Cron, Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// let cron = Cron::parse("0 9,17 * * *", "Asia/Tokyo")?;
    /// let job = timer.schedule_cron(&cron, |_| println!("as every day"))?;
    ///
    /// // The virtual wall clock begins at 09:00 in Tokyo, so the first run is at 17:00.
    /// clock.advance(Duration::from_secs(24 * 3600))?;
    /// assert_eq!(timer.counts().fired, 2);
    /// assert!(job.cancel(), "no further run starts");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schedule_cron<F>(&self, cron: &Cron, callback: F) -> Result<Timeout, ScheduleError<F>>
    where
        F: FnMut(&Context<'_>) + Send + 'static,
    {
        let next = |cron: &Cron, after| cron.next_after(after).map(SystemTime::from);
        let own = cron.clone();
        self.schedule_rule(|now| next(cron, now), move |after| next(&own, after), callback)
    }
}
