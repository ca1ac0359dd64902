//! Looking at a queue: its counts, its most overdue timer, its next timer, and the lateness of its hand-outs.
//!
//! Most of this is in memory. Two things may have to be read from the store: the most overdue timer if it lies beyond
//! the horizon, and the next timer if it lies beyond the window. The forecast counters show the cell of that next
//! timer, and the buckets around that cell have its row. The answer is cached until a row enters or leaves a bucket of
//! the queue.

use std::collections::{BTreeSet, VecDeque};

use super::{Purpose, Shard};
use crate::bucket::{Bucket, Cell, Level, floor};
use crate::message::{Answer, LoadId, RequestId, Stats};
use crate::record::{Lane, Place, Record};
use crate::store::Query;
use crate::values::{Moment, QueueName};

/// How often a look restarts because buckets changed. After that it reports its result so far.
const AGAIN: u32 = 16;

/// A look whose rows are being read.
#[derive(Debug)]
pub(super) struct Look {
    id: RequestId,
    queue: QueueName,
    oldest: Option<Moment>,
    /// Lanes whose most overdue timer is only in the store.
    unread: Vec<Lane>,
    next: Known,
    /// The remaining cells, and the buckets of the first one still to read.
    cells: VecDeque<Cell>,
    sources: VecDeque<Query>,
    /// The change count of the queue's buckets when the look began.
    changes: u64,
    /// How often it may still restart because buckets changed. A restart for a stale page does not count.
    again: u32,
}

/// A moment, or no such moment, or not yet known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Known {
    #[default]
    No,
    Is(Option<Moment>),
}

impl Known {
    fn moment(self) -> Option<Moment> {
        match self {
            Known::No => None,
            Known::Is(moment) => moment,
        }
    }
}

/// The earliest moment of a queue's rows in non-resident buckets, maintained as rows enter and leave buckets.
#[derive(Default)]
pub(super) struct Far {
    first: Known,
    changes: u64,
}

impl Far {
    /// For a queue that has no rows in buckets.
    pub(super) fn empty() -> Self {
        Far { first: Known::Is(None), changes: 0 }
    }

    /// A row enters a bucket of the queue or leaves one. `last`: the queue has no row in a bucket afterwards.
    pub(super) fn change(&mut self, at: Moment, by: i64, last: bool) {
        self.changes += 1;
        self.first = match self.first {
            _ if last => Known::Is(None),
            Known::Is(first) if by > 0 => Known::Is(Some(first.map_or(at, |first| first.min(at)))),
            Known::Is(Some(first)) if first == at => Known::No,
            known => known,
        };
    }

    /// Every row was discarded.
    pub(super) fn clear(&mut self) {
        self.changes += 1;
        self.first = Known::Is(None);
    }

    /// Resident rows left memory, or due timers are in the future again. A look in progress has missed them.
    pub(super) fn forget(&mut self) {
        self.changes += 1;
        self.first = Known::No;
    }
}

impl Look {
    pub(super) fn id(&self) -> RequestId {
        self.id
    }
}

impl Shard {
    pub(super) fn look(&mut self, id: RequestId, name: QueueName) {
        self.begin_look(id, name, AGAIN);
    }

    fn begin_look(&mut self, id: RequestId, name: QueueName, again: u32) {
        let Some(queue) = self.queues.get(&name).filter(|queue| queue.stored) else {
            return self.outbox.answer(id, Answer::Stats(None));
        };
        let (mut oldest, mut unread) = (None, Vec::new());
        for lane in Lane::ALL {
            let line = queue.line(lane);
            let first = line.first().filter(|order| order.0 <= self.wall);
            let known = match (first, line.horizon) {
                (Some(first), _) => line.is_before_horizon(first),
                (None, horizon) => horizon.is_none_or(|horizon| horizon.0 > self.wall),
            };
            oldest = oldest.into_iter().chain(first.map(|order| order.0)).min();
            unread.extend((!known).then_some(lane));
        }
        let (next, changes) = (self.next_known(&name), queue.far.changes);
        let (cells, sources) = (VecDeque::new(), VecDeque::new());
        self.go_on_looking(Look {
            id,
            queue: name,
            oldest,
            unread,
            next,
            cells,
            sources,
            changes,
            again,
        });
    }

    /// The next due moment, as far as it can be told from memory.
    fn next_known(&self, name: &QueueName) -> Known {
        let Some(queue) = self.queues.get(name) else { return Known::Is(None) };
        let after = (Moment::from_millis(self.wall.millis() + 1), crate::record::Generation(0));
        let coming = queue.coming.range(after..).next();
        match (coming, queue.far.first) {
            _ if self.window.is_reading() => Known::No,
            (Some(order), _) => Known::Is(Some(order.0)),
            // A full window leaves some rows unread, and those may be due by now.
            (None, Known::Is(Some(first)))
                if first.millis() < self.window.end.max(after.0.millis()) =>
            {
                Known::No
            }
            (None, far) => far,
        }
    }

    /// Answers if everything is known; otherwise reads the next page.
    fn go_on_looking(&mut self, mut look: Look) {
        let queue = look.queue.clone();
        if let Some(&lane) = look.unread.last() {
            let horizon = self.queues.get(&queue).and_then(|queue| queue.line(lane).horizon);
            let from = horizon.unwrap_or_default();
            let query = Query::Waiting { queue, lane, from, limit: self.limits.page };
            self.loads.emit(query, Purpose::Look(Box::new(look)));
            return;
        }
        if look.next == Known::No {
            let from = floor(self.wall.millis(), Level::Day.width());
            let query = Query::Cells { queue, from, to: u64::MAX };
            self.loads.emit(query, Purpose::Look(Box::new(look)));
            return;
        }
        while look.sources.is_empty() {
            // A cell that starts after the moment found contains no earlier moment.
            let found = look.next.moment().map_or(u64::MAX, Moment::millis);
            let Some(cell) = look.cells.pop_front().filter(|cell| cell.start <= found) else {
                return self.looked(look);
            };
            if cell.start + cell.width > self.wall.millis() {
                look.sources = self.buckets_of(&queue, cell);
            }
        }
        if let Some(query) = look.sources.pop_front() {
            self.loads.emit(query, Purpose::Look(Box::new(look)));
        }
    }

    /// Queries for the first future rows in each bucket whose timers this cell counts.
    fn buckets_of(&self, queue: &QueueName, cell: Cell) -> VecDeque<Query> {
        let from = Moment::from_millis(cell.start.max(self.wall.millis() + 1));
        let within = Bucket::bound(cell.start)..Bucket::bound(cell.start + cell.width);
        let within = self.window.buckets.range(within).map(|(&bucket, _)| bucket);
        let around = Bucket::around(Moment::from_millis(cell.start)).into_iter();
        let around = around.filter(|bucket| self.window.buckets.contains_key(bucket));
        let counted = |bucket: &Bucket| Cell::of(bucket.level(), from).width == cell.width;
        let buckets: BTreeSet<Bucket> = within.chain(around).filter(counted).collect();
        let floor = self.floor(queue);
        let query = |bucket| Query::Sorted {
            bucket,
            queue: queue.clone(),
            floor,
            after: (from, None),
            limit: self.limits.page,
        };
        buckets.into_iter().map(query).collect()
    }

    /// Processes the forecast counters.
    pub(super) fn look_at_cells(&mut self, mut look: Look, cells: &[(Cell, u64)]) {
        look.next = Known::Is(None);
        look.cells = cells.iter().map(|(cell, _)| *cell).collect();
        self.go_on_looking(look);
    }

    /// Processes a page of rows, possibly empty.
    pub(super) fn look_at_rows(&mut self, id: LoadId, mut look: Look, rows: Vec<(Place, Record)>) {
        let (mut at, full) = (None, rows.len() == self.limits.page);
        for (place, record) in rows {
            if self.is_stale(id, &record) {
                return self.begin_look(look.id, look.queue, look.again);
            }
            if !self.drop_discarded(place, &record) {
                at = Some(record.next_attempt);
                break;
            }
        }
        if at.is_none() && full {
            return self.begin_look(look.id, look.queue, look.again);
        }
        if let Some(lane) = look.unread.pop() {
            let first = self.queues.get(&look.queue).and_then(|queue| queue.line(lane).first());
            let resident = first.map(|order| order.0);
            let oldest = look.oldest.into_iter().chain(resident).chain(at).min();
            look.oldest = oldest.filter(|&oldest| oldest <= self.wall);
        } else {
            look.next = Known::Is(look.next.moment().into_iter().chain(at).min());
        }
        self.go_on_looking(look);
    }

    fn looked(&mut self, look: Look) {
        // A row that moved between buckets may have been missed in both when they were read.
        let changes = self.queues.get(&look.queue).map(|queue| queue.far.changes);
        if changes.is_some_and(|changes| changes != look.changes) && look.again > 0 {
            return self.begin_look(look.id, look.queue, look.again - 1);
        }
        let counts = self.counts(&look.queue);
        let (steady, end) = (self.steady, self.window.end);
        let queue = self.queues.get_mut(&look.queue);
        let stats = queue.zip(counts).map(|(queue, (counts, settings))| {
            let next = look.next.moment();
            if look.changes == queue.far.changes && next.is_none_or(|next| next.millis() >= end) {
                queue.far.first = look.next;
            }
            let (lateness, per_second) = queue.lateness.summary(steady);
            let oldest_due = look.oldest;
            Box::new(Stats { counts, settings, next, oldest_due, lateness, per_second })
        });
        self.outbox.answer(look.id, Answer::Stats(stats));
    }
}
