//! Where a zone's clock jumps, and what happens to an expression there.

use jiff::civil::{DateTime, Time};
use jiff::{Span, Timestamp, Zoned};
use tourbillon::Cron;

/// The number of clock changes after the last run that are examined: fifty years in most zones.
pub(super) const LOOKED_AT: usize = 100;

/// A clock change that skips or repeats a time that the expression matches.
pub(super) struct Jump {
    pub(super) at: Timestamp,
    /// What the clock shows before the change, and after.
    pub(super) before: DateTime,
    pub(super) after: DateTime,
    /// The first matching time in the gap or the fold; in a gap, preferably one on a day that is not skipped entirely.
    pub(super) first: DateTime,
    /// Whether the expression matches another time in the gap or the fold.
    pub(super) more: bool,
    /// Whether every matching time is on a day that the gap skips entirely. Such a day has no runs.
    pub(super) no_such_day: bool,
}

impl Jump {
    pub(super) fn is_gap(&self) -> bool {
        self.before < self.after
    }

    /// The local times that do not exist, or occur twice.
    pub(super) fn range(&self) -> (DateTime, DateTime) {
        (self.before.min(self.after), self.before.max(self.after))
    }
}

/// The clock changes that affect the expression, between the two moments.
///
/// If no gap or no fold lies between them, the first later one of that kind is included.
pub(super) fn touching(cron: &Cron, from: &Zoned, until: &Zoned) -> Vec<Jump> {
    let (mut gap, mut fold, mut beyond) = (false, false, 0);
    let mut jumps = Vec::new();
    let mut offset = from.offset();
    for change in cron.zone().following(from.timestamp()) {
        let at = change.timestamp();
        let (before, after) = (offset.to_datetime(at), change.offset().to_datetime(at));
        offset = change.offset();
        let is_beyond = at > until.timestamp();
        beyond += usize::from(is_beyond);
        if is_beyond && (gap && fold || beyond > LOOKED_AT) {
            break;
        }
        let Some(jump) = touch(cron, at, before, after) else { continue };
        let is_first = !std::mem::replace(if jump.is_gap() { &mut gap } else { &mut fold }, true);
        if is_first || !is_beyond {
            jumps.push(jump);
        }
    }
    jumps
}

fn touch(cron: &Cron, at: Timestamp, before: DateTime, after: DateTime) -> Option<Jump> {
    let (begin, end) = (before.min(after), before.max(after));
    let named = |from: DateTime| {
        let second = Span::new().seconds(1);
        cron.next_civil(from.checked_sub(second).ok()?).filter(|&civil| civil < end)
    };
    let mut first = named(begin)?;
    let mut no_such_day = false;
    if before < after {
        // On a day that the gap skips entirely no time has a run, but a time just before or after that day may have
        // one.
        let left_out = |time: DateTime| Some(time).filter(|&time| is_left_out(time, begin, end));
        let day_after =
            |time: DateTime| Some(time.date().tomorrow().ok()?.to_datetime(Time::midnight()));
        let mut next = Some(first);
        while let Some(time) = next.and_then(left_out) {
            next = day_after(time).and_then(named);
        }
        no_such_day = next.is_none();
        first = next.unwrap_or(first);
    }
    let more = cron.next_civil(first).is_some_and(|civil| civil < end);
    Some(Jump { at, before, after, first, more, no_such_day })
}

/// Whether the gap skips the whole day.
fn is_left_out(time: DateTime, begin: DateTime, end: DateTime) -> bool {
    let midnight = time.date().to_datetime(Time::midnight());
    begin <= midnight
        && time.date().tomorrow().is_ok_and(|next| next.to_datetime(Time::midnight()) <= end)
}
