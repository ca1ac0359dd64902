//! How the times of an expression map to a zone: the two rules for gaps and folds.
//!
//! An expression [that repeats within the day](Cron::repeats_within_the_day) maps by real time, any other by time of
//! day.
//!
//! ```text
//!   Berlin, 30 March 2025               26 October 2025
//!   01:59:59+01 ──▶ 03:00:00+02         02:59:59+02 ──▶ 02:00:00+01
//!                gap: 02:00 to 03:00                 fold: 02:00 to 03:00, twice
//!
//!   30 2 * * *     03:00+02             02:30+02                     by time of day: once
//!   */30 * * * *   01:30+01, 03:00+02   02:00+02, 02:30+02, 02:00+01, 02:30+01   by real time
//! ```
//!
//! croner's own rules are not used: it is called only for dates and times of day, without a zone. It treats a list of
//! hours as an interval, so `30 1,13` would run twice in a fold and `30 2,14` would be skipped in a gap; and it fails
//! in a gap of more than two hours, such as when Samoa skipped a day.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::Cron;

const SECOND: SignedDuration = SignedDuration::from_secs(1);
const TWO_DAYS: SignedDuration = SignedDuration::from_hours(48);

/// Maps each time of day of the expression to one moment.
///
/// A later time of day never maps to an earlier moment, so the first time of day that maps to a moment after `after`
/// gives the next run.
pub(super) fn by_time_of_day(cron: &Cron, after: Timestamp) -> Option<Timestamp> {
    let zone = cron.zone();
    let mut civil = zone.to_datetime(after);
    loop {
        civil = cron.next_civil(civil)?;
        // In the second half of a fold, the times of the first half have passed.
        if let Some(at) =
            once(zone, civil).filter(|&at| planted!("wall.fold-goes-back", true, at > after))
        {
            return Some(at);
        }
    }
}

/// The single moment for a time of day; `None` if its whole day is skipped.
fn once(zone: &TimeZone, civil: DateTime) -> Option<Timestamp> {
    let zoned = zone.to_ambiguous_timestamp(civil);
    match zoned.offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(civil).ok(),
        // The first occurrence, before the clock goes back.
        AmbiguousOffset::Fold { before, .. } => {
            planted!("wall.fold-runs-the-second-time", zoned.later(), before.to_timestamp(civil))
                .ok()
        }
        AmbiguousOffset::Gap { before, after } => end_of_gap(zone, civil, before, after),
    }
}

fn end_of_gap(
    zone: &TimeZone,
    civil: DateTime,
    before: Offset,
    after: Offset,
) -> Option<Timestamp> {
    // Converted with the offset that applies after the gap, the time falls before the gap.
    let end = zone.following(after.to_timestamp(civil).ok()?).next()?.timestamp();
    let (from, to) = (before.to_datetime(end), after.to_datetime(end));
    let midnight = civil.date().to_datetime(jiff::civil::Time::midnight());
    let begins = planted!("wall.left-out-day-runs", from < midnight, from <= midnight);
    let whole_day = begins && civil.date().tomorrow().is_ok_and(|next| next <= to.date());
    (!whole_day).then_some(end)
}

/// Maps to every moment at which the zone's clock shows a time of the expression.
///
/// Between two transitions the offset is constant, so a time of day is at most one moment.
pub(super) fn by_real_time(cron: &Cron, after: Timestamp) -> Option<Timestamp> {
    let zone = cron.zone();
    let mut offset = zone.to_offset(after);
    let mut from = offset.to_datetime(after);
    let mut next = cron.next_civil(from);
    for change in zone.following(after) {
        if let Some(next) = next {
            let at = offset.to_timestamp(next).ok()?;
            let change = change.timestamp();
            if planted!("wall.first-time-of-a-gap-runs", at <= change, at < change) {
                return Some(at);
            }
        } else if planted!(
            "later.last-fold-left-out",
            true,
            after.duration_until(change.timestamp()) > TWO_DAYS
        ) {
            // No later time matches, and no zone's clock is ever set back far enough to reach an earlier one.
            return None;
        }
        offset = change.offset();
        // Start one second early to include the transition itself. The time found so far stays the next one, unless
        // the clock jumps past it, or goes back to before the time from which it was searched.
        let begin = offset
            .to_datetime(change.timestamp())
            .checked_sub(planted!("wall.run-at-a-change-left-out", SignedDuration::ZERO, SECOND))
            .ok()?;
        let back = planted!("more.second-hour-of-a-fold-left-out", false, begin < from);
        let passed = |next: DateTime| {
            planted!("later.last-second-of-a-gap-goes-back", begin > next, begin >= next)
        };
        if back || next.is_some_and(passed) {
            (from, next) = (begin, cron.next_civil(begin));
        }
    }
    offset.to_timestamp(next?).ok()
}
