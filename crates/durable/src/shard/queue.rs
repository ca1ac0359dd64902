//! A queue: its row, its takers, and the resident heads of its due timers.
//!
//! Due timers lie in two lines, one per lane:
//!
//! ```text
//!   waiting rows, by (next attempt, generation)
//!   ├──────── resident: `waiting` ────────┤ horizon ├──────── in the store only ────────▶
//!   popped: due timers of the near window, whose rows are still in their buckets
//!   coming: timers of the near window that are not due
//! ```
//!
//! **Every waiting row before the horizon is resident**; without a horizon all waiting rows are. So if the first
//! element of both sets lies before the horizon, it is the most overdue timer of the line. Otherwise a page starting at
//! the horizon is loaded first.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use super::Shard;
use super::look::Far;
use super::takers::Taker;
use crate::lateness::LastMinute;
use crate::message::LoadId;
use crate::pace::Pace;
use crate::record::{Generation, Lane};
use crate::store::QueueRow;
use crate::values::{Key, Moment, QueueName, Span};

/// How often unused queues are removed from memory.
const PRUNE: Span = Span::from_secs(60);

/// The order of due timers: most overdue first.
pub(super) type Order = (Moment, Generation);

#[derive(Default)]
pub(super) struct Queue {
    pub(super) row: QueueRow,
    /// Whether it is in the store, or will be with this turn. A poll alone does not create a queue in the store.
    pub(super) stored: bool,
    /// The resident timers by key.
    pub(super) keys: HashMap<Key, Generation>,
    /// Not due yet, and in the wheel.
    pub(super) coming: BTreeSet<Order>,
    pub(super) lines: [Line; 2],
    /// Receives that wait for timers of [`Lane::Pull`].
    pub(super) takers: VecDeque<Taker>,
    /// The lane of the last hand-out. The other lane is next.
    pub(super) last: Lane,
    pub(super) pace: Pace,
    pub(super) lateness: LastMinute,
    /// The earliest row in a bucket that is not resident.
    pub(super) far: Far,
    /// The last event: the start of the shard, the resumption of the queue, or the setting of the clock.
    pub(super) event: Moment,
    /// Recurring timers whose moment a client has set since that event. Such a moment is not missed, however long ago
    /// it is.
    pub(super) given: HashSet<Generation>,
    /// No sweep is needed before this moment.
    pub(super) sweep_at: Option<Moment>,
    pub(super) sweeping: bool,
    /// How often a timer has moved to an earlier place, such as from out to a bucket.
    pub(super) went_back: u64,
    /// No dead row was given up before this moment. `None` if there is no dead row.
    pub(super) died: Option<Moment>,
}

/// The due timers in one lane of a queue.
#[derive(Default)]
pub(super) struct Line {
    /// Resident, with a waiting row.
    pub(super) waiting: BTreeSet<Order>,
    /// Due, with the row still in a bucket.
    pub(super) popped: BTreeSet<Order>,
    pub(super) horizon: Option<Order>,
    /// The load of the page after the horizon.
    pub(super) refill: Option<LoadId>,
    /// The first row released from memory while that load was in progress.
    pub(super) dropped: Option<Order>,
}

impl Queue {
    /// A queue as stored, with none of its timers resident yet.
    pub(super) fn new(row: QueueRow) -> Self {
        let least = (Moment::ZERO, Generation(0));
        let died = (row.dead > 0).then_some(Moment::ZERO);
        let mut queue = Queue { stored: !row.deleted, row, died, ..Queue::default() };
        for lane in Lane::ALL {
            queue.line_mut(lane).horizon = (queue.row.waits(lane) > 0).then_some(least);
        }
        queue
    }

    /// The due timers in a lane.
    pub(super) fn line(&self, lane: Lane) -> &Line {
        &self.lines[lane as usize]
    }

    pub(super) fn line_mut(&mut self, lane: Lane) -> &mut Line {
        &mut self.lines[lane as usize]
    }

    /// Due timers of both lanes whose rows are still in their buckets.
    pub(super) fn popped(&self) -> impl Iterator<Item = Generation> {
        self.lines.iter().flat_map(|line| line.popped.iter().map(|order| order.1))
    }
}

impl Shard {
    /// The queue; created in the store if it does not exist.
    pub(super) fn queue_mut(&mut self, name: &QueueName) -> &mut Queue {
        if self.queues.get(name).is_none_or(|queue| queue.row.deleted) {
            self.outbox.dirty(name);
        }
        let queue = self.queue_entry(name);
        (queue.row.deleted, queue.stored) = (false, true);
        queue
    }

    /// The queue; created in memory only if it does not exist.
    pub(super) fn queue_entry(&mut self, name: &QueueName) -> &mut Queue {
        let event = self.event;
        let new = || Queue { event, far: Far::empty(), ..Queue::default() };
        self.queues.entry(name.clone()).or_insert_with(new)
    }
}

impl Shard {
    /// Forgets unused queues that exist only in memory: those of ended polls, and deleted ones. Runs at most once per
    /// [`PRUNE`], in a turn that happens anyway.
    pub(super) fn prune_queues(&mut self) {
        // A load in progress may have recorded the queue's change counters. A new queue would restart them.
        if self.steady < self.prune_at || self.loads.is_under_way() {
            return;
        }
        self.prune_at = self.steady + PRUNE;
        self.queues.retain(|_, queue| !queue.is_idle());
    }
}

impl Queue {
    /// Whether it exists only in memory and is unused.
    fn is_idle(&self) -> bool {
        let Queue { row, stored, takers, pace, .. } = self;
        !stored && row.discarded == 0 && takers.is_empty() && !pace.waits && self.keys.is_empty()
    }
}

impl Line {
    /// Whether no due timer is in this line, in memory or in the store.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.popped.is_empty() && self.horizon.is_none()
    }

    /// The most overdue resident timer.
    pub(super) fn first(&self) -> Option<Order> {
        let firsts = [self.waiting.first(), self.popped.first()];
        firsts.into_iter().flatten().min().copied()
    }

    /// Moves the horizon back for a row that is released from memory.
    pub(super) fn draw_horizon(&mut self, order: Order) {
        self.horizon = self.horizon.into_iter().chain([order]).min();
        if self.refill.is_some() {
            self.dropped = self.dropped.into_iter().chain([order]).min();
        }
    }

    /// Whether every waiting row up to this one is resident.
    pub(super) fn is_before_horizon(&self, order: Order) -> bool {
        self.horizon.is_none_or(|horizon| order < horizon)
    }
}
