//! Counts and forecasts. They must equal a count of the entries.
//!
//! Checked only while the shard is idle: nothing is in progress, and no time passes.

use tourbillon_durable::shard::{Counts, Stats};
use tourbillon_durable::values::{Moment, QueueName};

use super::answers::Outcomes;
use super::entry::{Entry, Phase};
use super::{Broken, Ledger, promise};

impl Ledger {
    pub(super) fn counted(&self, queue: &QueueName, counts: Option<Counts>) -> Outcomes {
        let entries =
            || self.entries.iter().filter(|(name, _)| name.0 == *queue).map(|(_, entry)| entry);
        let count = |wanted: &dyn Fn(&Entry) -> bool| {
            entries().filter(|entry| wanted(entry)).count() as u64
        };
        let counts = counts.unwrap_or_default();
        let pending = count(&|entry| entry.phase == Phase::Pending);
        let out = count(&|entry| entry.phase == Phase::Out);
        let dead_keep = self.dead_keep(queue);
        let range = (self.wall, self.wall);
        let dead = |sure: Option<bool>| {
            count(&|entry| {
                matches!(entry.phase, Phase::Dead(_)) && entry.is_there(range, dead_keep) == sure
            })
        };
        let (least, most) = (dead(Some(true)), dead(Some(true)) + dead(None));
        let due = |wall: u64| count(&|entry| entry.is_due(wall));
        let fine = counts.scheduled + counts.due == pending
            && counts.delivering == out
            && (least..=most).contains(&counts.dead)
            && (due(self.punctual(self.wall))..=due(self.wall)).contains(&counts.due);
        if fine {
            return Ok(());
        }
        let (wall, due) = (self.wall, entries().filter(|entry| entry.is_due(self.wall)));
        let due: Vec<_> = due.map(|entry| (&entry.spec.key, entry.next)).collect();
        let truth =
            format!("{pending} pending, {due:?} due, {out} out, {least} to {most} dead at {wall}");
        Err(Broken::new(promise::COUNTS, format!("{queue}: {counts:?}, in truth {truth}")))
    }

    /// Checks the next timer and the most overdue one.
    pub(super) fn looked(&self, queue: &QueueName, stats: Option<Box<Stats>>) -> Outcomes {
        let Some(stats) = stats else { return self.counted(queue, None) };
        self.counted(queue, Some(stats.counts))?;
        let pending = || {
            let of_queue = self.entries.iter().filter(|(name, _)| name.0 == *queue);
            let entries = of_queue.map(|(_, entry)| entry);
            entries.filter(|entry| entry.phase == Phase::Pending).map(|entry| entry.next)
        };
        let next = pending().filter(|&next| next > self.wall).min();
        let oldest = pending().filter(|&next| next <= self.wall).min();
        let (next_reported, oldest_reported) =
            (stats.next.map(Moment::millis), stats.oldest_due.map(Moment::millis));
        // Rows that a full window has not read yet may be missing from the answer.
        let late = oldest.is_some_and(|oldest| oldest > self.punctual(self.wall))
            && oldest_reported.is_none_or(|reported| pending().any(|next| next == reported));
        if next_reported == next && (oldest_reported == oldest || late) {
            return Ok(());
        }
        let truth = format!("next {next:?}, oldest {oldest:?} at {}", self.wall);
        let reported = format!("next {next_reported:?}, oldest {oldest_reported:?}");
        Err(Broken::new(promise::COUNTS, format!("{queue}: {reported}, in truth {truth}")))
    }

    pub(super) fn foretold(
        &self,
        queue: &QueueName,
        edges: &[Moment],
        pieces: &[(Moment, Moment, u64)],
    ) -> Outcomes {
        let broken = |why: String| Err(Broken::new(promise::FORECAST, why));
        for &(from, to, count) in pieces {
            let within = |entry: &&Entry| {
                entry.next >= from.millis() && (entry.next < to.millis() || to == Moment::MAX)
            };
            let entries =
                self.entries.iter().filter(|(name, _)| name.0 == *queue).map(|(_, entry)| entry);
            let truth =
                entries.filter(|entry| entry.phase == Phase::Pending).filter(within).count() as u64;
            if truth != count {
                return broken(format!(
                    "{queue} {from} to {to} at {}: {count}, in truth {truth}",
                    self.wall
                ));
            }
        }
        let grid = |edge: Moment| match edge.millis().saturating_sub(self.wall) {
            0..=86_400_000 => 60_000,
            86_400_001..=2_592_000_000 => 3_600_000,
            _ => 86_400_000,
        };
        let (Some(first), Some(last), [begin, .., end]) = (pieces.first(), pieces.last(), edges)
        else {
            return Ok(());
        };
        let wide =
            |edge: Moment, exact: Moment| edge.millis().abs_diff(exact.millis()) >= grid(edge);
        if first.0 > *begin || last.1 < *end || wide(*begin, first.0) || wide(*end, last.1) {
            return broken(format!("edges {begin} to {end} became {} to {}", first.0, last.1));
        }
        Ok(())
    }
}
