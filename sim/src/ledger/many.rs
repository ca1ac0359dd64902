//! Requests over many timers: lists, cancelling by prefix, redriving.
//!
//! They are sent only to an idle shard, so that the expected answer is exact.

use tourbillon_durable::shard::{Cursor, Filter, State, View};
use tourbillon_durable::values::QueueName;

use super::answers::{Outcomes, lie};
use super::entry::{Entry, Gone, Phase};
use super::{Ledger, Name};

impl Ledger {
    /// Records a page of a list.
    pub(super) fn page(&mut self, views: Vec<View>, next: Option<Cursor>) -> Outcomes {
        self.listed.extend(views);
        self.cursor = next;
        Ok(())
    }

    /// Where the last page of a list ended, if there may be more.
    pub fn cursor(&self) -> Option<Cursor> {
        self.cursor.clone()
    }

    /// Checks that the pages since the last call make up the whole list.
    pub fn listed(&mut self, queue: &QueueName, filter: &Filter) -> Outcomes {
        let listed = std::mem::take(&mut self.listed);
        let by_key = filter.prefix.is_some();
        let sorted = match (by_key, filter.state) {
            (true, _) => listed.is_sorted_by_key(|view| view.key.clone()),
            (_, Some(State::Dead | State::Done | State::Cancelled)) => true,
            _ => listed.is_sorted_by_key(|view| (view.next_attempt, view.key.clone())),
        };
        if !sorted {
            return lie(format!("a list by {filter:?} is not in order: {listed:?}"));
        }
        let range = (self.wall, self.wall);
        for (name, entry) in self.entries.iter().filter(|(name, _)| name.0 == *queue) {
            let shown = listed.iter().filter(|view| view.key == name.1).count();
            let there = entry.is_there(range, self.dead_keep(queue));
            let fits = self.fits(name, entry, filter);
            let fine = match (there, fits) {
                (Some(true), true) => shown == 1,
                (None, true) => shown <= 1,
                _ => shown == 0,
            };
            if !fine {
                let entry = format!("{entry:?}, there: {there:?}");
                return lie(format!("a list by {filter:?} shows {name:?} {shown} times: {entry}"));
            }
        }
        let known = |view: &&View| self.entries.contains_key(&(queue.clone(), view.key.clone()));
        match listed.iter().find(|view| !known(view)) {
            Some(view) => lie(format!("a list shows {view:?}, which is not known")),
            None => Ok(()),
        }
    }

    fn fits(&self, name: &Name, entry: &Entry, filter: &Filter) -> bool {
        let state = match entry.phase {
            Phase::Pending if entry.next <= self.wall => State::Due,
            Phase::Pending => State::Scheduled,
            Phase::Out => State::Delivering,
            Phase::Dead(_) => State::Dead,
            Phase::Gone(Gone::Done, _) => State::Done,
            Phase::Gone(..) => State::Cancelled,
        };
        let kept = matches!(state, State::Done | State::Cancelled);
        let wanted = filter.state.map_or(!kept, |wanted| wanted == state);
        let begins =
            filter.prefix.as_ref().is_none_or(|prefix| name.1.as_str().starts_with(prefix));
        wanted && begins && (filter.from.millis()..filter.to.millis()).contains(&entry.next)
    }

    /// Whether the living timers of a queue are known with certainty. If not, an answer cannot be checked.
    pub fn is_sure(&self, queue: &QueueName) -> bool {
        let range = (self.wall, self.wall);
        let entries = self.entries.iter().filter(|(name, _)| name.0 == *queue);
        entries.fold(true, |sure, (_, entry)| {
            sure && entry.is_there(range, self.dead_keep(queue)).is_some()
        })
    }

    /// Records that every living timer with this key prefix was cancelled.
    pub(super) fn cancelled_all(
        &mut self,
        queue: &QueueName,
        prefix: &str,
        (done, delivering): (u64, u64),
    ) -> Outcomes {
        let (range, dead_keep) = ((self.wall, self.wall), self.dead_keep(queue));
        let (mut least, mut most, mut out) = (0, 0, 0);
        for (name, entry) in &mut self.entries {
            if name.0 != *queue || !name.1.as_str().starts_with(prefix) {
                continue;
            }
            let gone = match entry.phase {
                Phase::Gone(..) => continue,
                Phase::Out => Gone::CancelledOut,
                _ => Gone::Cancelled,
            };
            match entry.is_there(range, dead_keep) {
                Some(false) => continue,
                _ if gone == Gone::CancelledOut => out += 1,
                Some(true) => (least, most) = (least + 1, most + 1),
                None => most += 1,
            }
            entry.end(gone, range);
            self.ended.insert(entry.spec.generation.0, "cancelled");
        }
        if (least..=most).contains(&done) && delivering == out {
            return Ok(());
        }
        lie(format!("{done} and {delivering} cancelled, in truth {least} to {most} and {out}"))
    }

    /// Records that every dead timer with this key prefix was revived.
    pub(super) fn redriven(
        &mut self,
        queue: &QueueName,
        prefix: Option<&str>,
        done: u64,
    ) -> Outcomes {
        let (range, dead_keep, wall) = ((self.wall, self.wall), self.dead_keep(queue), self.wall);
        let revived = std::mem::take(&mut self.revived);
        let (mut least, mut most) = (revived, revived);
        for (name, entry) in &mut self.entries {
            let begins = prefix.is_none_or(|prefix| name.1.as_str().starts_with(prefix));
            if name.0 != *queue || !begins || !matches!(entry.phase, Phase::Dead(_)) {
                continue;
            }
            match entry.is_there(range, dead_keep) {
                Some(false) => continue,
                Some(true) => (least, most) = (least + 1, most + 1),
                None => most += 1,
            }
            entry.revive(wall);
        }
        if (least..=most).contains(&done) {
            return Ok(());
        }
        lie(format!("{done} revived, in truth {least} to {most}"))
    }
}
