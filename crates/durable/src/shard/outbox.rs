//! The outbox: the changes of this turn, and the answers that wait for a commit.
//!
//! **An answer leaves when everything that it says is durable.** It waits for the commit of its own turn; one whose
//! turn changes nothing waits for the last commit under way, because it may speak of what that commit holds.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::bucket::{Bucket, Cell};
use crate::message::{Answer, CommitId, Effect, RequestId};
use crate::record::{Place, Record};
use crate::store::Op;
use crate::values::QueueName;

#[derive(Default)]
pub(super) struct Outbox {
    ops: Vec<Op>,
    /// Counters that this turn changes, each once.
    cells: BTreeMap<(QueueName, Cell), i64>,
    /// Queues whose row this turn changes.
    queues: BTreeSet<QueueName>,
    answers: Vec<(RequestId, Answer)>,
    /// Commits under way, oldest first, with the answers that wait for them.
    under_way: VecDeque<(CommitId, Vec<(RequestId, Answer)>)>,
    /// Answers that may leave.
    free: Vec<(RequestId, Answer)>,
    next: u64,
}

impl Outbox {
    pub(super) fn put(&mut self, from: Option<Place>, to: Place, record: Record) {
        self.ops.push(Op::Put { from, to, record });
    }

    pub(super) fn remove(&mut self, from: Place, record: Record) {
        self.ops.push(Op::Remove { from, record });
    }

    pub(super) fn drop_bucket(&mut self, bucket: Bucket) {
        self.ops.push(Op::Drop(bucket));
    }

    pub(super) fn count(&mut self, queue: &QueueName, cell: Cell, delta: i64) {
        *self.cells.entry((queue.clone(), cell)).or_default() += delta;
    }

    /// The counters of a queue go, also those that this turn has changed.
    pub(super) fn clear(&mut self, queue: &QueueName) {
        if planted!("cleared-queue-keeps-its-forecast", false, true) {
            self.cells.retain(|(of, _), _| of != queue);
            self.ops.push(Op::Clear(queue.clone()));
        }
        self.dirty(queue);
    }

    /// The row of this queue changes.
    pub(super) fn dirty(&mut self, queue: &QueueName) {
        if !self.queues.contains(queue) {
            self.queues.insert(queue.clone());
        }
    }

    pub(super) fn answer(&mut self, id: RequestId, answer: Answer) {
        self.answers.push((id, answer));
    }

    /// This commit is durable, and all before it.
    pub(super) fn committed(&mut self, id: CommitId) {
        while self.under_way.front().is_some_and(|(under_way, _)| *under_way <= id) {
            self.free
                .extend(self.under_way.pop_front().into_iter().flat_map(|(_, answers)| answers));
        }
    }

    /// Whether this turn changes anything, and the queues whose rows do.
    pub(super) fn take_dirty(&mut self) -> (bool, BTreeSet<QueueName>) {
        (!self.ops.is_empty() || !self.queues.is_empty(), std::mem::take(&mut self.queues))
    }

    /// The effects of this turn: the commit with these rows, and the answers that may leave.
    pub(super) fn flush(&mut self, rows: Vec<Op>, effects: &mut Vec<Effect>) {
        if rows.is_empty() {
            match self.under_way.back_mut() {
                Some((_, waiting)) => waiting.append(&mut self.answers),
                None => self.free.append(&mut self.answers),
            }
        } else {
            let cells =
                std::mem::take(&mut self.cells).into_iter().filter(|(_, delta)| *delta != 0);
            self.ops.extend(cells.map(|((queue, cell), delta)| Op::Count { queue, cell, delta }));
            self.ops.extend(rows);
            let id = CommitId(self.next);
            self.next += 1;
            effects.push(Effect::Commit(id, std::mem::take(&mut self.ops)));
            self.under_way.push_back((id, std::mem::take(&mut self.answers)));
        }
        effects.extend(self.free.drain(..).map(|(id, answer)| Effect::Answer(id, answer)));
    }
}
