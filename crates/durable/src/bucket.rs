//! Buckets and cells: the only place that divides the future into pieces.
//!
//! A **bucket** is a table of the store. It holds the timers of one interval of time, is append-only, and is dropped
//! whole. Far buckets are wide, and are split when they come near:
//!
//! ```text
//!   now          2 days          2 months (of 32 days)      2 eras (of 1024 days)
//!    ├─ hours ─────┼─ days ────────┼─ months ─────────────────┼─ eras ──────────────── 9999
//! ```
//!
//! Minute and second buckets exist only within an hour whose timers do not fit into the in-memory window. A **cell** is
//! the unit of the forecast: a minute, or a day for timers in a bucket wider than a day.

use std::cmp::Ordering;

use crate::values::Moment;

/// The width of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// One second.
    Second,
    /// 60 seconds.
    Minute,
    /// 60 minutes.
    Hour,
    /// 24 hours.
    Day,
    /// 32 days.
    Month,
    /// 1024 days.
    Era,
}

use Level::{Day, Era, Hour, Minute, Month, Second};

impl Level {
    /// Its width in milliseconds.
    pub const fn width(self) -> u64 {
        match self {
            Second => 1000,
            Minute => 60_000,
            Hour => 3_600_000,
            Day => 86_400_000,
            Month => 32 * Day.width(),
            Era => 1024 * Day.width(),
        }
    }

    /// All levels, narrowest first. `level as u8` is the index here.
    pub const ALL: [Level; 6] = [Second, Minute, Hour, Day, Month, Era];

    /// The level of that number.
    pub(crate) fn from_number(number: u8) -> Option<Level> {
        Level::ALL.get(usize::from(number)).copied()
    }

    /// The next narrower level.
    pub fn below(self) -> Option<Level> {
        match self {
            Second => None,
            Minute => Some(Second),
            Hour => Some(Minute),
            Day => Some(Hour),
            Month => Some(Day),
            Era => Some(Month),
        }
    }

    /// The first millisecond for which buckets of this level are used. Earlier moments belong to a narrower level.
    pub fn begins(self, now: Moment) -> u64 {
        if self <= Hour { 0 } else { floor(now.millis(), self.width()) + 2 * self.width() }
    }

    /// The level for a moment, by its distance from `now` alone.
    pub fn of(moment: Moment, now: Moment) -> Level {
        let far = [Era, Month, Day].into_iter();
        far.into_iter().find(|level| moment.millis() >= level.begins(now)).unwrap_or(Hour)
    }
}

/// An interval of time whose timers share a table of the store. Ordered by start, wider ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bucket {
    level: Level,
    start: u64,
}

impl Bucket {
    /// The bucket of that level that contains that moment.
    ///
    /// ```
    /// use tourbillon_durable::bucket::{Bucket, Level};
    /// use tourbillon_durable::values::Moment;
    /// let hour = Bucket::of(Level::Hour, Moment::from_millis(3_600_001));
    /// assert_eq!((hour.start(), hour.end()), (3_600_000, 7_200_000));
    /// ```
    pub fn of(level: Level, moment: Moment) -> Self {
        Bucket { level, start: floor(moment.millis(), level.width()) }
    }

    /// The bucket of each level that contains that moment, widest first.
    pub(crate) fn around(moment: Moment) -> [Self; 6] {
        [Era, Month, Day, Hour, Minute, Second].map(|level| Bucket::of(level, moment))
    }

    /// The lower bound of all buckets that start at `start` or later.
    pub(crate) fn bound(start: u64) -> Self {
        Bucket { level: Era, start }
    }

    /// Its width.
    pub fn level(self) -> Level {
        self.level
    }

    /// Its first millisecond.
    pub fn start(self) -> u64 {
        self.start
    }

    /// The first millisecond after it.
    pub fn end(self) -> u64 {
        self.start + self.level.width()
    }
}

impl Ord for Bucket {
    fn cmp(&self, other: &Self) -> Ordering {
        self.start.cmp(&other.start).then(other.level.cmp(&self.level))
    }
}

impl PartialOrd for Bucket {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A minute or a day in which pending timers are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    /// Its first millisecond.
    pub start: u64,
    /// Its width in milliseconds.
    pub width: u64,
}

impl Cell {
    /// The cell of a moment in a bucket of that level.
    pub fn of(level: Level, moment: Moment) -> Self {
        let width = if level <= Day { Minute.width() } else { Day.width() };
        Cell { start: floor(moment.millis(), width), width }
    }
}

/// The grid on which a forecast edge is exact, in milliseconds.
///
/// Depends on the distance from `now`: a minute in the next day, an hour in the next 30 days, else a day.
pub fn grid(edge: Moment, now: Moment) -> u64 {
    match edge.since(now).millis() {
        0..=86_400_000 => Minute.width(),
        86_400_001..=2_592_000_000 => Hour.width(),
        _ => Day.width(),
    }
}

/// The last multiple of `width` that is not after `millis`.
pub fn floor(millis: u64, width: u64) -> u64 {
    millis - millis % width
}

/// The first multiple of `width` that is not before `millis`.
pub fn ceil(millis: u64, width: u64) -> u64 {
    millis.div_ceil(width) * width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_nest_and_widen_with_the_distance() {
        for (wide, narrow) in
            [(Era, Month), (Month, Day), (Day, Hour), (Hour, Minute), (Minute, Second)]
        {
            assert_eq!(wide.below(), Some(narrow));
            assert_eq!(wide.width() % narrow.width(), 0);
        }
        let day = Day.width();
        for now in [0, 1, day - 1, 40 * day + 7, 5000 * day] {
            let now = Moment::from_millis(now);
            let level = |days: u64| Level::of(Moment::from_millis(now.millis() + days * day), now);
            assert_eq!(
                [0, 1, 2, 32, 64, 1024, 2048].map(level),
                [Hour, Hour, Day, Day, Month, Month, Era]
            );
            for level in [Day, Month, Era] {
                let edge = Moment::from_millis(level.begins(now));
                assert_eq!(Level::of(edge, now), level);
                assert_eq!(
                    Level::of(Moment::from_millis(edge.millis() - 1), now),
                    level.below().unwrap()
                );
                let near = level.begins(Moment::from_millis(edge.millis() - level.width()));
                assert!(near > edge.millis(), "split a width before it begins");
                assert!(
                    edge.millis() > now.millis() + level.width(),
                    "the grid of the forecast is covered"
                );
            }
        }
    }

    #[test]
    fn buckets_are_ordered_by_time_and_the_wider_comes_first() {
        let at = Moment::from_millis(Day.width());
        let mut buckets = [
            Bucket::of(Second, at),
            Bucket::of(Day, at),
            Bucket::of(Hour, Moment::ZERO),
            Bucket::of(Hour, at),
        ];
        buckets.sort();
        assert_eq!(buckets.map(Bucket::level), [Hour, Day, Hour, Second]);
    }
}
