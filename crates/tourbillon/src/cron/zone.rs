//! What a zone makes of the times that an expression names: the two rules for gaps and folds.
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
//! croner would decide as well. It takes a list of hours for an interval, so that `30 1,13` runs twice in a fold and
//! `30 2,14` is left out in a gap; and of a gap of more than two hours, as when Samoa left out a day, it finds no way
//! out. So it is asked only for dates and times of day, which know no zone.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::Cron;

const SECOND: SignedDuration = SignedDuration::from_secs(1);
const TWO_DAYS: SignedDuration = SignedDuration::from_hours(48);

/// Each time of day that the expression names, once.
///
/// Later times of day never become earlier moments: so the first whose moment lies after `after` is the next.
pub(super) fn by_time_of_day(cron: &Cron, after: Timestamp) -> Option<Timestamp> {
    let zone = cron.zone();
    let mut civil = zone.to_datetime(after);
    loop {
        civil = cron.next_civil(civil)?;
        // In the second half of a fold, what happened in the first has passed.
        if let Some(at) =
            once(zone, civil).filter(|&at| planted!("wall.fold-goes-back", true, at > after))
        {
            return Some(at);
        }
    }
}

/// The one moment for a time of day; `None` if the whole day is left out.
fn once(zone: &TimeZone, civil: DateTime) -> Option<Timestamp> {
    let zoned = zone.to_ambiguous_timestamp(civil);
    match zoned.offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(civil).ok(),
        // The first time: the clock has not gone back yet.
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
    // By the clock as it is after the gap, the time lies before it.
    let end = zone.following(after.to_timestamp(civil).ok()?).next()?.timestamp();
    let (from, to) = (before.to_datetime(end), after.to_datetime(end));
    let midnight = civil.date().to_datetime(jiff::civil::Time::midnight());
    let begins = planted!("wall.left-out-day-runs", from < midnight, from <= midnight);
    let whole_day = begins && civil.date().tomorrow().is_ok_and(|next| next <= to.date());
    (!whole_day).then_some(end)
}

/// Every moment at which the clock of the zone shows a time that the expression names.
///
/// Between two changes of the clock the offset is the same, so a time of day is one moment, if it lies there.
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
            // Nothing follows, and no clock goes back that far.
            return None;
        }
        offset = change.offset();
        // From the change itself on. The next one is known already, unless the clock has jumped over it, or back.
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
