//! Conditions of requests (a certain timer has the key, or the key is free), and the timer that a receipt shows.

use tourbillon_durable::shard::{Conflict, NewTimer, Outcome, Request, Scheduled};
use tourbillon_durable::values::{Generation, Key, QueueName};

use super::Ledger;
use super::answers::{Outcomes, Range, lie};

impl Ledger {
    /// Timers were scheduled: checks that the conditions of the request held.
    pub(super) fn conditions(
        &self,
        queue: &QueueName,
        timers: &[NewTimer],
        conflict: Conflict,
        receipts: &[Scheduled],
    ) -> Outcomes {
        for (timer, receipt) in timers.iter().zip(receipts) {
            let fine = match (conflict, receipt.outcome) {
                (Conflict::ReplaceOnly(only), Outcome::Replaced(old, _)) => only == old,
                (Conflict::ReplaceOnly(_), _) => false,
                (_, Outcome::Made) => !timer.key.as_ref().is_some_and(Key::is_assigned),
                (Conflict::Keep, Outcome::Kept) | (Conflict::Replace, Outcome::Replaced(..)) => {
                    true
                }
                _ => false,
            };
            let shown = receipt.timer.as_ref();
            let same = shown.is_none_or(|view| {
                (&view.key, view.generation, view.due)
                    == (&receipt.key, receipt.generation, receipt.due)
            });
            if !fine || !same || shown.is_some() != (timers.len() == 1) {
                return lie(format!("{timer:?} of {queue} by {conflict:?}: {receipt:?}"));
            }
        }
        Ok(())
    }

    /// A request was refused because the key belongs to that timer, not the expected one.
    pub(super) fn mismatch(
        &self,
        request: Request,
        nth: usize,
        there: Option<Generation>,
        range: Range,
    ) -> Outcomes {
        let (queue, key, only) = match &request {
            Request::Schedule { queue, timers, conflict: Conflict::ReplaceOnly(only) } => {
                (queue, timers[nth].key.clone(), Some(*only))
            }
            Request::Move { queue, key, only, .. } => (queue, Some(key.clone()), *only),
            Request::Cancel { queue, keys, only } => (queue, keys.get(nth).cloned(), *only),
            _ => return lie(format!("{request:?} has no condition")),
        };
        let (Some(key), Some(only)) = (key, only) else {
            // The key was assigned by the request itself, so it must have been free.
            return if there.is_none() { Ok(()) } else { lie(format!("{request:?}: {there:?}")) };
        };
        let known = self.generation(queue, &key);
        let is = self.is_there(&(queue.clone(), key), range);
        let fine = there != Some(only)
            && match there {
                Some(_) => is != Some(false) && known == there,
                None => is != Some(true),
            };
        if fine {
            Ok(())
        } else {
            lie(format!("{request:?} does not fit {there:?}: {known:?}, {is:?}"))
        }
    }
}
