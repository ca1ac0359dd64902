//! A queue: its row, its takers, and the heads of what is due.
//!
//! What is due lies in two lines, one for each lane:
//!
//! ```text
//!   waiting rows, by (next attempt, generation)
//!   ├──────── resident: `waiting` ────────┤ horizon ├──────── in the store only ────────▶
//!   popped: due timers of the near window, whose rows are still in their buckets
//!   coming: timers of the near window that are not due
//! ```
//!
//! **Every waiting row before the horizon is resident**; without a horizon all are. So the first of both sets is the
//! longest due of the line, if it lies before the horizon; else a page from the horizon on is loaded first.

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

/// Queues are looked over so often, to forget those that have no use.
const PRUNE: Span = Span::from_secs(60);

/// The order of what is due: longest first.
pub(super) type Order = (Moment, Generation);

#[derive(Default)]
pub(super) struct Queue {
    pub(super) row: QueueRow,
    /// It is in the store, or will be with this turn: a poll alone makes no queue.
    pub(super) stored: bool,
    /// The resident timers by key.
    pub(super) keys: HashMap<Key, Generation>,
    /// To come, and in the wheel.
    pub(super) coming: BTreeSet<Order>,
    pub(super) lines: [Line; 2],
    /// Those who wait for what is due in [`Lane::Pull`].
    pub(super) takers: VecDeque<Taker>,
    /// The lane of the last hand-out: the other one is next.
    pub(super) last: Lane,
    pub(super) pace: Pace,
    pub(super) lateness: LastMinute,
    /// The first to come that is in the store only.
    pub(super) far: Far,
    /// The last start, resumption or setting of the clock.
    pub(super) event: Moment,
    /// Recurring timers whose moment a client has set since that event: it is not missed, however far back it lies.
    pub(super) given: HashSet<Generation>,
    /// When what is due is to be looked at, or before.
    pub(super) sweep_at: Option<Moment>,
    pub(super) sweeping: bool,
    /// How often a timer went to an earlier place, as from its taker back to a bucket.
    pub(super) went_back: u64,
    /// When the longest dead was given up, or before; `None`: there is none.
    pub(super) died: Option<Moment>,
}

/// What is due in one lane of a queue.
#[derive(Default)]
pub(super) struct Line {
    /// Resident, and its row waits.
    pub(super) waiting: BTreeSet<Order>,
    /// Due, and its row is still in a bucket.
    pub(super) popped: BTreeSet<Order>,
    pub(super) horizon: Option<Order>,
    /// The load of the page after the horizon.
    pub(super) refill: Option<LoadId>,
    /// The first row that left memory while that load was under way.
    pub(super) dropped: Option<Order>,
}

impl Queue {
    /// A queue as it was stored. None of its timers is resident yet.
    pub(super) fn new(row: QueueRow) -> Self {
        let least = (Moment::ZERO, Generation(0));
        let died = (row.dead > 0).then_some(Moment::ZERO);
        let mut queue = Queue { stored: !row.deleted, row, died, ..Queue::default() };
        for lane in Lane::ALL {
            queue.line_mut(lane).horizon = (queue.row.waits(lane) > 0).then_some(least);
        }
        queue
    }

    /// What is due in a lane.
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
    /// The queue, made if it is not there.
    pub(super) fn queue_mut(&mut self, name: &QueueName) -> &mut Queue {
        if self.queues.get(name).is_none_or(|queue| queue.row.deleted) {
            self.outbox.dirty(name);
        }
        let queue = self.queue_entry(name);
        (queue.row.deleted, queue.stored) = (false, true);
        queue
    }

    /// The queue, in memory alone if it is not there.
    pub(super) fn queue_entry(&mut self, name: &QueueName) -> &mut Queue {
        let event = self.event;
        let new = || Queue { event, far: Far::empty(), ..Queue::default() };
        self.queues.entry(name.clone()).or_insert_with(new)
    }
}

impl Shard {
    /// Forgets queues that are in memory alone and have no use: of polls that have ended, and deleted ones. Now and
    /// then, in a turn that is taken anyway.
    pub(super) fn prune_queues(&mut self) {
        // A load may have noted the changes of a queue, which a new one would count from the beginning.
        if self.steady < self.prune_at || self.loads.is_under_way() {
            return;
        }
        self.prune_at = self.steady + PRUNE;
        self.queues.retain(|_, queue| !queue.is_idle());
    }
}

impl Queue {
    /// It is in memory alone, and nothing of it is in use.
    fn is_idle(&self) -> bool {
        let Queue { row, stored, takers, pace, .. } = self;
        !stored && row.discarded == 0 && takers.is_empty() && !pace.waits && self.keys.is_empty()
    }
}

impl Line {
    /// Nothing is due here, in memory or in the store.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.popped.is_empty() && self.horizon.is_none()
    }

    /// The longest due among the resident.
    pub(super) fn first(&self) -> Option<Order> {
        let firsts = [self.waiting.first(), self.popped.first()];
        firsts.into_iter().flatten().min().copied()
    }

    /// This row leaves memory, and so the horizon is not after it.
    pub(super) fn draw_horizon(&mut self, order: Order) {
        self.horizon = self.horizon.into_iter().chain([order]).min();
        if self.refill.is_some() {
            self.dropped = self.dropped.into_iter().chain([order]).min();
        }
    }

    /// Whether everything before this one is resident.
    pub(super) fn is_before_horizon(&self, order: Order) -> bool {
        self.horizon.is_none_or(|horizon| order < horizon)
    }
}
