//! Discarding all timers of a queue, by a clear or a delete of the queue. None is remembered.

use tourbillon_durable::record::{Place, Record};
use tourbillon_durable::shard::{Answer, Many, Request};
use tourbillon_durable::values::QueueName;

use super::answers::{Outcomes, lie};
use super::entry::{Entry, Phase};
use super::{Asked, Broken, Ledger, promise};

/// The end of a discarded timer.
const DISCARDED: &str = "discarded";

impl Ledger {
    pub(super) fn discarded(
        &mut self,
        request: &Request,
        answer: &Answer,
        quiet: bool,
    ) -> Outcomes {
        let (queue, force) = match request {
            Request::Clear(queue) => (queue, true),
            Request::Delete { queue, force } => (queue, *force),
            _ => return Ok(()),
        };
        let deletes = matches!(request, Request::Delete { .. });
        let (least, most, out) = self.living_of(queue);
        let fine = match answer {
            Answer::Many(Many { done, delivering, more: false }) if !deletes => {
                (least..=most).contains(done) && *delivering == out
            }
            Answer::Done if deletes => (force || out == 0) && self.settings.contains_key(queue),
            Answer::Delivering(count) if deletes && !force => *count == out && out > 0,
            Answer::NoQueue if deletes => !self.settings.contains_key(queue),
            _ => return lie(format!("{request:?} is answered with {answer:?}")),
        };
        if quiet && !fine {
            let truth = format!("in truth {least} to {most} and {out} out");
            return lie(format!("{request:?} is answered with {answer:?}, {truth}"));
        }
        if matches!(answer, Answer::Many(_) | Answer::Done) {
            self.discard(queue);
        }
        if let Answer::Done = answer {
            self.settings.remove(queue);
            self.since_set.remove(queue);
        }
        Ok(())
    }

    /// The minimum and maximum number of timers that a clear cancels, and the number that are out.
    fn living_of(&self, queue: &QueueName) -> (u64, u64, u64) {
        let (range, dead_keep) = ((self.wall, self.wall), self.dead_keep(queue));
        let (mut least, mut most, mut out) = (0, 0, 0);
        let of_queue = self.entries.iter().filter(|(name, _)| name.0 == *queue);
        for entry in of_queue.map(|(_, entry): (_, &Entry)| entry) {
            match (entry.phase, entry.is_there(range, dead_keep)) {
                (Phase::Gone(..), _) => {}
                (Phase::Out, _) => out += 1,
                (Phase::Pending, _) | (_, Some(true)) => (least, most) = (least + 1, most + 1),
                // A dead timer whose retention has ended counts until the shard removes it.
                _ => most += 1,
            }
        }
        (least, most, out)
    }

    /// Discards the timers of a queue: none may be handed out again, and their tokens are stale.
    fn discard(&mut self, queue: &QueueName) {
        for (name, entry) in self.entries.iter().filter(|(name, _)| name.0 == *queue) {
            self.ended.insert(entry.spec.generation.0, DISCARDED);
            let token = entry.token.clone().map(|token| (name.0.clone(), token));
            self.stale.extend(token);
        }
        self.stale.truncate(8);
        self.entries.retain(|name, _| name.0 != *queue);
    }

    /// The shard has emitted a clear of a queue.
    pub(super) fn cleared(&mut self, queue: &QueueName) -> Outcomes {
        if !self.asked.values().any(|asked| clears(asked, queue)) {
            let detail = format!("{queue} is cleared, and nobody has asked for it");
            return Err(Broken::new(promise::DURABLE, detail));
        }
        let queue_of = &self.queue_of;
        self.out.retain(|generation, _| queue_of.get(generation) != Some(queue));
        Ok(())
    }

    /// When the shard is idle, no discarded row may be left, except remembered rows until their retention ends.
    pub(super) fn is_reclaimed(&self, place: Place, record: &Record) -> Outcomes {
        let discarded = self.ended.get(&record.generation().0) == Some(&DISCARDED);
        if discarded && !matches!(place, Place::Remembered(_)) {
            return Err(Broken::new(promise::ROOM, format!("{place:?} has {record:?}")));
        }
        Ok(())
    }
}

/// Whether a request discards all timers of a queue.
pub(super) fn clears(asked: &Asked, queue: &QueueName) -> bool {
    match &asked.request {
        Request::Clear(of) | Request::Delete { queue: of, .. } => of == queue,
        _ => false,
    }
}
