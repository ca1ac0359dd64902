//! Recurrence: computes the next moment from the last one.
//!
//! The next moment is computed from the last due moment, never from the clock. The clock only decides which moments
//! have passed.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tourbillon::Cron;

use super::{Moment, Span, ValueError};

/// Maximum length of a cron expression in bytes, because every view and every row contains it.
const LONGEST: usize = 256;

/// When a recurring timer is due again, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recurrence {
    /// The moments.
    pub rhythm: Rhythm,
    /// What happens to moments that passed before the last occurrence was settled.
    pub missed: Missed,
    /// No occurrence is due after this moment.
    pub until: Option<Moment>,
    /// Maximum number of occurrences.
    pub times: Option<u64>,
}

/// The moments of a recurring timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rhythm {
    /// This long after the last due moment.
    Every(Span),
    /// By a cron expression in a time zone.
    #[non_exhaustive]
    Cron {
        /// The expression.
        expression: Arc<str>,
        /// The name of its time zone.
        zone: Arc<str>,
    },
}

/// What happens to missed moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missed {
    /// All are skipped; the next occurrence is in the future.
    Skip,
    /// Only the latest missed moment is delivered, instead of all of them.
    #[default]
    Once,
    /// Every missed moment is delivered, in order, up to the newest 1000.
    All,
}

/// Maximum number of missed moments that [`Missed::All`] delivers.
const MOST_MISSED: u64 = 1000;

impl Rhythm {
    /// A period of at least one second.
    ///
    /// # Errors
    /// The period is shorter.
    pub fn every(period: Span) -> Result<Self, ValueError> {
        if period < Span::from_secs(1) {
            return Err(ValueError::new("every", &period.to_string(), "at least 1s"));
        }
        Ok(Rhythm::Every(period))
    }

    /// A cron expression of five fields, or six with seconds, in a time zone such as `Europe/Berlin` or `UTC`.
    ///
    /// # Errors
    /// The expression is invalid or longer than 256 bytes, the zone is unknown, or no date ever matches.
    ///
    /// ```
    /// use tourbillon_durable::values::{Moment, Rhythm};
    /// let daily = Rhythm::cron("0 9 * * *", "UTC")?;
    /// assert_eq!(daily.after(Moment::ZERO), Some("1970-01-01T09:00:00Z".parse()?));
    /// assert!(Rhythm::cron("0 25 * * *", "UTC").is_err());
    /// # Ok::<(), tourbillon_durable::values::ValueError>(())
    /// ```
    pub fn cron(expression: &str, zone: &str) -> Result<Self, ValueError> {
        let fields = expression.split_whitespace().count();
        if expression.len() > LONGEST {
            let length = format!("{} bytes long", expression.len());
            return Err(ValueError::new("cron", &length, "at most 256 bytes long"));
        }
        let wrong = |must: String| ValueError::new("cron", expression, must);
        if !(5..=6).contains(&fields) {
            return Err(wrong("five fields, or six with seconds before them".into()));
        }
        Cron::parse(expression, zone).map_err(|error| wrong(format!("valid; {error}")))?;
        Ok(Rhythm::Cron { expression: expression.into(), zone: zone.into() })
    }

    /// The first moment after that one.
    pub fn after(&self, last: Moment) -> Option<Moment> {
        self.read()?.after(last)
    }

    fn read(&self) -> Option<Moments> {
        match self {
            Rhythm::Every(period) => Some(Moments::Every(*period)),
            // The expression was valid when the timer was made; its zone may have left the system's database since.
            Rhythm::Cron { expression, zone } => {
                Cron::parse(expression, zone).ok().map(Moments::Cron)
            }
        }
    }
}

/// A parsed rhythm.
enum Moments {
    Every(Span),
    Cron(Cron),
}

impl Moments {
    fn after(&self, last: Moment) -> Option<Moment> {
        match self {
            Moments::Every(period) => (last < Moment::MAX).then(|| last + *period),
            Moments::Cron(cron) => {
                let next =
                    cron.next_after(SystemTime::UNIX_EPOCH + Duration::from_millis(last.millis()))?;
                let millis = u64::try_from(next.timestamp().as_millisecond()).ok()?;
                (millis <= Moment::MAX.millis()).then(|| Moment::from_millis(millis))
            }
        }
    }

    /// The latest moment after `last` and not after `now`. `None` if there is none.
    fn latest(&self, last: Moment, now: Moment) -> Option<Moment> {
        let first = self.after(last).filter(|&first| first <= now)?;
        if let Moments::Every(period) = self {
            let whole = now.since(last).millis() / period.millis() * period.millis();
            return Some(last + Span::from_millis(whole));
        }
        // Bisects for the last `x` whose next moment has passed. For a year of seconds this takes 35 steps, not 31
        // million.
        let (mut low, mut high, mut best) = (first.millis(), now.millis(), first);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.after(Moment::from_millis(middle)).filter(|&next| next <= now) {
                Some(next) => (best, low) = (next, next.millis()),
                None => high = middle,
            }
        }
        Some(best)
    }

    /// Whether at least 1000 moments lie after `last` and not after `now`.
    fn are_many(&self, last: Moment, now: Moment) -> bool {
        if let Moments::Every(period) = self {
            return now.since(last).millis() / period.millis() >= MOST_MISSED;
        }
        let moments = std::iter::successors(self.after(last), |&last| self.after(last));
        moments.take_while(|&moment| moment <= now).nth(MOST_MISSED as usize - 1).is_some()
    }

    /// The earliest of the newest 1000 moments after `last` and not after `now`.
    fn earliest_of_newest(&self, last: Moment, now: Moment) -> Option<Moment> {
        if let Moments::Every(period) = self {
            let latest = self.latest(last, now)?;
            let back = Span::from_millis(period.millis().saturating_mul(MOST_MISSED - 1));
            return Some(latest.back(back).max(last + *period));
        }
        let few = |from: Moment| {
            let moments = std::iter::successors(self.after(from), |&last| self.after(last));
            moments.take_while(|&moment| moment <= now).nth(MOST_MISSED as usize).is_none()
        };
        let (mut low, mut high) = (last.millis(), now.millis());
        if few(last) {
            return self.after(last).filter(|&first| first <= now);
        }
        // Cron has a resolution of one second.
        while high - low > 1000 {
            let middle = low + (high - low) / 2;
            if few(Moment::from_millis(middle)) { high = middle } else { low = middle }
        }
        self.after(Moment::from_millis(high)).filter(|&first| first <= now)
    }
}

impl Recurrence {
    /// Whether this occurrence was the last, by number.
    pub fn is_over(&self, occurrence: u64) -> bool {
        self.times.is_some_and(|times| occurrence >= times)
    }

    /// The moment of the occurrence after the one that was due at `last` and is settled at `now`.
    ///
    /// `None` if that was the last. `occurrence` is the number of the settled occurrence.
    pub fn next(&self, last: Moment, now: Moment, occurrence: u64) -> Option<Moment> {
        if self.is_over(occurrence) {
            return None;
        }
        let (moments, until) = (self.rhythm.read()?, self.until.unwrap_or(Moment::MAX));
        let passed = now.min(until);
        let missed = match self.missed {
            Missed::Skip => None,
            Missed::Once => moments.latest(last, passed),
            Missed::All => moments.earliest_of_newest(last, passed),
        };
        let to_come = || moments.after(moments.latest(last, now).unwrap_or(last));
        missed.or_else(to_come).filter(|&next| next <= until)
    }
}

impl Recurrence {
    /// The new moment for an occurrence that was due at `due` and was missed by `now`.
    ///
    /// `None` if the timer has no further occurrence.
    pub fn missed(&self, due: Moment, now: Moment) -> Option<Moment> {
        let Some(moments) = self.rhythm.read() else { return Some(due) };
        let until = self.until.unwrap_or(Moment::MAX);
        let passed = now.min(until);
        match self.missed {
            Missed::Skip => {
                let next = moments.after(moments.latest(due, now).unwrap_or(due));
                next.filter(|&next| next <= until)
            }
            Missed::Once => Some(moments.latest(due, passed).unwrap_or(due)),
            Missed::All if !moments.are_many(due, passed) => Some(due),
            Missed::All => moments.earliest_of_newest(due, passed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_millis(seconds * 1000)
    }

    fn next(rhythm: &Rhythm, missed: Missed, last: u64, now: u64) -> Option<u64> {
        let recurrence = Recurrence { rhythm: rhythm.clone(), missed, until: None, times: None };
        recurrence.next(at(last), at(now), 1).map(|next| next.millis() / 1000)
    }

    #[test]
    fn a_cron_expression_is_short() {
        let padded = |length: usize| format!("{:<length$}", "0 9 * * *");
        assert!(Rhythm::cron(&padded(LONGEST), "UTC").is_ok());
        let wrong = Rhythm::cron(&padded(LONGEST + 1), "UTC").unwrap_err().to_string();
        assert!(wrong.len() < 100 && wrong.contains("256 bytes"), "{wrong}");
    }

    #[test]
    fn both_rhythms_go_by_the_last_due_moment() {
        let every = Rhythm::every(Span::from_secs(60)).unwrap();
        let cron = Rhythm::cron("* * * * *", "UTC").unwrap();
        for rhythm in [every, cron] {
            for (now, skip, once, all) in [
                (60, 120, 120, 120),
                (119, 120, 120, 120),
                (120, 180, 120, 120),
                (400, 420, 360, 120),
                (60 * 5000, 60 * 5001, 60 * 5000, 60 * 4001),
            ] {
                assert_eq!(next(&rhythm, Missed::Skip, 60, now), Some(skip), "{now}");
                assert_eq!(next(&rhythm, Missed::Once, 60, now), Some(once), "{now}");
                assert_eq!(next(&rhythm, Missed::All, 60, now), Some(all), "{now}");
            }
        }
    }

    #[test]
    fn a_missed_occurrence_takes_another_moment() {
        let every = Rhythm::every(Span::from_secs(60)).unwrap();
        let cron = Rhythm::cron("* * * * *", "UTC").unwrap();
        for rhythm in [every, cron] {
            for (now, skip, once, all) in [
                (100, 120, 60, 60),
                (120, 180, 120, 60),
                (400, 420, 360, 60),
                (60 * 1000, 60 * 1001, 60 * 1000, 60),
                (60 * 1001, 60 * 1002, 60 * 1001, 120),
                (60 * 5000, 60 * 5001, 60 * 5000, 60 * 4001),
            ] {
                let missed = |missed| {
                    let rhythm = rhythm.clone();
                    let recurrence = Recurrence { rhythm, missed, until: None, times: None };
                    recurrence.missed(at(60), at(now)).map(|at| at.millis() / 1000)
                };
                assert_eq!(missed(Missed::Skip), Some(skip), "{now}");
                assert_eq!(missed(Missed::Once), Some(once), "{now}");
                assert_eq!(missed(Missed::All), Some(all), "{now}");
            }
            let until = Some(at(125));
            let ended = Recurrence { rhythm, missed: Missed::Skip, until, times: None };
            assert_eq!(ended.missed(at(60), at(400)), None);
            let once = Recurrence { missed: Missed::Once, ..ended };
            assert_eq!(once.missed(at(60), at(400)), Some(at(120)));
        }
    }

    #[test]
    fn until_and_times_end_it() {
        let rhythm = Rhythm::every(Span::from_secs(10)).unwrap();
        let mut recurrence =
            Recurrence { rhythm, missed: Missed::Once, until: Some(at(35)), times: None };
        assert_eq!(recurrence.next(at(10), at(100), 1), Some(at(30)));
        assert_eq!(recurrence.next(at(30), at(100), 2), None);
        recurrence.times = Some(2);
        assert_eq!(recurrence.next(at(10), at(11), 1), Some(at(20)));
        assert_eq!(recurrence.next(at(10), at(11), 2), None);
        recurrence = Recurrence { until: None, times: None, ..recurrence };
        assert_eq!(recurrence.next(Moment::MAX, at(11), 1), None);
    }

    #[test]
    fn a_period_has_a_least_length() {
        assert!(Rhythm::every(Span::from_millis(999)).is_err());
        assert!(Rhythm::cron("* * * *", "UTC").is_err());
        assert!(Rhythm::cron("* * * * *", "Nowhere/There").is_err());
    }
}
