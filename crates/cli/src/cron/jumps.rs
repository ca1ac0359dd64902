//! Where a zone's clock jumps, and what becomes of an expression there.

use jiff::civil::DateTime;
use jiff::{Span, Timestamp, Zoned};
use tourbillon::Cron;

/// So many changes of the clock are looked at: fifty years of most zones.
pub(super) const LOOKED_AT: usize = 100;

/// So many are told.
const TOLD: usize = 8;

/// A change of the clock at which the expression names a time.
pub(super) struct Jump {
    pub(super) at: Timestamp,
    /// What the clock shows before it, and after.
    pub(super) before: DateTime,
    pub(super) after: DateTime,
    /// The first time that the expression names in the gap or the fold.
    pub(super) first: DateTime,
    /// Whether it names more than that one.
    pub(super) more: bool,
    /// Whether it runs when a gap ends.
    pub(super) runs_after: bool,
}

impl Jump {
    pub(super) fn is_gap(&self) -> bool {
        self.before < self.after
    }

    /// The times of day that do not exist, or come twice.
    pub(super) fn range(&self) -> (DateTime, DateTime) {
        (self.before.min(self.after), self.before.max(self.after))
    }
}

/// The changes between the two moments that touch the expression; and then the first gap and the first fold, if they
/// come later.
pub(super) fn touching(cron: &Cron, from: &Zoned, until: &Zoned) -> Vec<Jump> {
    let (mut gap, mut fold) = (false, false);
    let mut jumps = Vec::new();
    let mut offset = from.offset();
    for change in cron.zone().following(from.timestamp()).take(LOOKED_AT) {
        let at = change.timestamp();
        let (before, after) = (offset.to_datetime(at), change.offset().to_datetime(at));
        offset = change.offset();
        if jumps.len() == TOLD || at > until.timestamp() && gap && fold {
            break;
        }
        let Some(jump) = touch(cron, at, before, after) else { continue };
        let is_first = !std::mem::replace(if jump.is_gap() { &mut gap } else { &mut fold }, true);
        if is_first || at <= until.timestamp() {
            jumps.push(jump);
        }
    }
    jumps
}

fn touch(cron: &Cron, at: Timestamp, before: DateTime, after: DateTime) -> Option<Jump> {
    let (first, last) = (before.min(after), before.max(after));
    let second = Span::new().seconds(1);
    // From the first second on.
    let first = cron.next_civil(first.checked_sub(second).ok()?).filter(|&civil| civil < last)?;
    let more = cron.next_civil(first).is_some_and(|civil| civil < last);
    let next = cron.next_after(at.checked_sub(second).ok()?);
    let runs_after = next.is_some_and(|next| next.timestamp() == at);
    Some(Jump { at, before, after, first, more, runs_after })
}
