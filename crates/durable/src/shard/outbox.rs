//! The outbox: the changes of this turn, and the answers that wait for a commit.
//!
//! **An answer is sent once everything it reports is durable.** It waits for the commit of its own turn. If its turn
//! changes nothing, it waits for the last commit in progress, because it may report changes of that commit.
//!
//! A commit may be lost. Until it is durable, it keeps the handover for the rows as they were before it
//! (`handover.rs`).

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::handover::Handover;
use crate::bucket::{Bucket, Cell};
use crate::message::{Answer, CommitId, Effect, RequestId};
use crate::record::{Generation, Place, Record};
use crate::store::Op;
use crate::values::{QueueName, Steady};

#[derive(Default)]
pub(super) struct Outbox {
    ops: Vec<Option<Op>>,
    /// Index of the op by which a row starts waiting. If the row is handed out in the same turn, a single op replaces
    /// both, and the store never contains the waiting row.
    waits: HashMap<Generation, usize>,
    /// Counters that this turn changes, each once.
    cells: BTreeMap<(QueueName, Cell), i64>,
    /// Queues whose row this turn changes.
    queues: BTreeSet<QueueName>,
    answers: Vec<(RequestId, Answer)>,
    /// What this turn makes obsolete, if its commit is not lost.
    undone: Handover,
    /// Commits in progress, oldest first.
    under_way: VecDeque<UnderWay>,
    /// Answers that may be sent.
    free: Vec<(RequestId, Answer)>,
    next: u64,
}

/// A commit in progress.
struct UnderWay {
    id: CommitId,
    /// The answers that wait for it.
    answers: Vec<(RequestId, Answer)>,
    undone: Handover,
}

impl Outbox {
    pub(super) fn put(&mut self, from: Option<Place>, to: Place, record: Record) {
        let generation = record.generation();
        let mut from = from;
        if let (Some(Place::Waiting(..)), Some(nth)) = (from, self.waits.remove(&generation))
            && let Some(Op::Put { from: before, .. }) = self.ops[nth].take()
        {
            from = before;
        }
        if matches!((from, to), (None | Some(Place::Bucket(_)), Place::Waiting(..))) {
            self.waits.insert(generation, self.ops.len());
        }
        self.ops.push(Some(Op::Put { from, to, record }));
    }

    pub(super) fn remove(&mut self, from: Place, record: Record) {
        self.waits.remove(&record.generation());
        self.ops.push(Some(Op::Remove { from, record }));
    }

    pub(super) fn drop_bucket(&mut self, bucket: Bucket) {
        // An op that precedes the drop must not be merged into one that follows it.
        self.waits.clear();
        self.ops.push(Some(Op::Drop(bucket)));
    }

    pub(super) fn count(&mut self, queue: &QueueName, cell: Cell, delta: i64) {
        *self.cells.entry((queue.clone(), cell)).or_default() += delta;
    }

    /// Removes the counters of a queue, including those changed in this turn.
    pub(super) fn clear(&mut self, queue: &QueueName) {
        if planted!("cleared-queue-keeps-its-forecast", false, true) {
            self.cells.retain(|(of, _), _| of != queue);
            self.ops.push(Some(Op::Clear(queue.clone())));
        }
        self.dirty(queue);
    }

    /// Marks the row of this queue as changed.
    pub(super) fn dirty(&mut self, queue: &QueueName) {
        if !self.queues.contains(queue) {
            self.queues.insert(queue.clone());
        }
    }

    pub(super) fn answer(&mut self, id: RequestId, answer: Answer) {
        self.answers.push((id, answer));
    }

    /// Notes that this turn ends or extends the lease of this row, which would have ended at `end`.
    pub(super) fn ends(&mut self, record: &Record, end: Steady) {
        self.undone.lease(record, end);
    }

    /// Notes what this turn makes obsolete.
    pub(super) fn undone(&mut self, before: Handover) {
        self.undone.append(before);
    }

    /// Adds what the next shard has to know, whichever commits in progress are lost.
    pub(super) fn hand_over(&self, all: &mut Handover) {
        for UnderWay { answers, undone, .. } in &self.under_way {
            all.append(undone.clone());
            for (_, answer) in answers {
                if let Answer::Deliveries(deliveries) = answer {
                    all.unreceived(deliveries);
                }
            }
        }
    }

    /// This commit and all before it are durable.
    pub(super) fn committed(&mut self, id: CommitId) {
        while self.under_way.front().is_some_and(|under_way| under_way.id <= id) {
            self.free
                .extend(self.under_way.pop_front().into_iter().flat_map(|commit| commit.answers));
        }
    }

    /// Whether this turn changes anything, and the queues whose rows change.
    pub(super) fn take_dirty(&mut self) -> (bool, BTreeSet<QueueName>) {
        (!self.ops.is_empty() || !self.queues.is_empty(), std::mem::take(&mut self.queues))
    }

    /// Emits the effects of this turn: the commit with these rows, and the answers that may be sent.
    pub(super) fn flush(&mut self, rows: Vec<Op>, effects: &mut Vec<Effect>) {
        let undone = std::mem::take(&mut self.undone);
        if rows.is_empty() {
            match self.under_way.back_mut() {
                Some(last) => {
                    last.answers.append(&mut self.answers);
                    last.undone.append(undone);
                }
                None => self.free.append(&mut self.answers),
            }
        } else {
            let cells =
                std::mem::take(&mut self.cells).into_iter().filter(|(_, delta)| *delta != 0);
            let mut ops: Vec<Op> = std::mem::take(&mut self.ops).into_iter().flatten().collect();
            ops.extend(cells.map(|((queue, cell), delta)| Op::Count { queue, cell, delta }));
            ops.extend(rows);
            let id = CommitId(self.next);
            self.next += 1;
            self.waits.clear();
            effects.push(Effect::Commit(id, ops));
            let answers = std::mem::take(&mut self.answers);
            self.under_way.push_back(UnderWay { id, answers, undone });
        }
        effects.extend(self.free.drain(..).map(|(id, answer)| Effect::Answer(id, answer)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Lane;
    use crate::values::{Key, Moment, Payload, Retry, Span};

    fn record(generation: u64) -> Record {
        let spec = crate::record::Spec {
            generation: Generation(generation),
            queue: QueueName::new("q").unwrap(),
            key: Key::new("k").unwrap(),
            created: Moment::ZERO,
            payload: Payload::default(),
            recurrence: None,
            remember: Span::ZERO,
            retry: Retry::default(),
            expires: None,
            webhook: None,
        };
        Record::new(spec, Moment::ZERO)
    }

    fn ops(outbox: &mut Outbox) -> Vec<(Option<Place>, Option<Place>)> {
        let mut effects = Vec::new();
        let rows = vec![Op::Forget(QueueName::new("q").unwrap())];
        outbox.flush(rows, &mut effects);
        let Some(Effect::Commit(_, ops)) = effects.pop() else { panic!("no commit") };
        let places = ops.into_iter().filter_map(|op| match op {
            Op::Put { from, to, .. } => Some((from, Some(to))),
            Op::Remove { from, .. } => Some((Some(from), None)),
            _ => None,
        });
        places.collect()
    }

    #[test]
    fn a_row_that_is_handed_out_at_once_never_waits() {
        let (waits, out) = (Place::Waiting(Lane::Pull, Moment::ZERO), Place::Out(Moment::ZERO));
        let mut outbox = Outbox::default();
        outbox.put(None, waits, record(1));
        outbox.put(None, waits, record(2));
        outbox.put(Some(waits), out, record(1));
        assert_eq!(ops(&mut outbox), [(None, Some(waits)), (None, Some(out))]);
        outbox.put(Some(waits), out, record(2));
        assert_eq!(ops(&mut outbox), [(Some(waits), Some(out))], "the commit before is under way");
        // The end of a lease is visible to callers, so it stays a separate change.
        outbox.put(Some(out), waits, record(1));
        outbox.put(Some(waits), out, record(1));
        assert_eq!(ops(&mut outbox), [(Some(out), Some(waits)), (Some(waits), Some(out))]);
        outbox.put(None, waits, record(3));
        outbox.remove(waits, record(3));
        assert_eq!(ops(&mut outbox), [(None, Some(waits)), (Some(waits), None)]);
        // A row leaves its bucket before the bucket is dropped.
        let bucket = Bucket::of(crate::bucket::Level::Second, Moment::ZERO);
        outbox.put(Some(Place::Bucket(bucket)), waits, record(4));
        outbox.drop_bucket(bucket);
        outbox.put(Some(waits), out, record(4));
        let apart = [(Some(Place::Bucket(bucket)), Some(waits)), (Some(waits), Some(out))];
        assert_eq!(ops(&mut outbox), apart);
    }
}
