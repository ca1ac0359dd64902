//! A queue: its row, its takers, and the head of what is due.
//!
//! ```text
//!   waiting rows, by (next attempt, generation)
//!   ├──────── resident: `waiting` ────────┤ horizon ├──────── in the store only ────────▶
//!   popped: due timers of the near window, whose rows are still in their buckets
//!   coming: timers of the near window that are not due
//! ```
//!
//! **Every waiting row before the horizon is resident**; without a horizon all are. So the first of both sets is the
//! longest due of the queue, if it lies before the horizon; else a page from the horizon on is loaded first.

use std::collections::{BTreeSet, HashMap, VecDeque};

use tourbillon_wheel::Key as WheelKey;

use super::look::Far;
use crate::lateness::LastMinute;
use crate::message::{LoadId, RequestId};
use crate::pace::Pace;
use crate::record::Generation;
use crate::store::QueueRow;
use crate::values::{Key, Moment, Span};

/// The order of what is due: longest first.
pub(super) type Order = (Moment, Generation);

#[derive(Default)]
pub(super) struct Queue {
    pub(super) row: QueueRow,
    /// It is in the store, or will be with this turn: a poll alone makes no queue.
    pub(super) stored: bool,
    /// The resident timers by key.
    pub(super) keys: HashMap<Key, Generation>,
    /// Resident, and its row waits.
    pub(super) waiting: BTreeSet<Order>,
    /// Due, and its row is still in a bucket.
    pub(super) popped: BTreeSet<Order>,
    /// To come, and in the wheel.
    pub(super) coming: BTreeSet<Order>,
    pub(super) horizon: Option<Order>,
    /// The load of the page after the horizon.
    pub(super) refill: Option<LoadId>,
    /// The first row that left memory while that load was under way.
    pub(super) dropped: Option<Order>,
    pub(super) takers: VecDeque<Taker>,
    pub(super) pace: Pace,
    pub(super) lateness: LastMinute,
    /// The first to come that is in the store only.
    pub(super) far: Far,
    /// The last start, resumption or setting of the clock.
    pub(super) event: Moment,
    /// When what is due is to be looked at, or before.
    pub(super) sweep_at: Option<Moment>,
    pub(super) sweeping: bool,
    /// When the longest dead was given up, or before; `None`: there is none.
    pub(super) died: Option<Moment>,
}

/// Somebody who waits for what is due.
pub(super) struct Taker {
    pub(super) id: RequestId,
    pub(super) max: usize,
    pub(super) lease: Span,
    /// The end of its wait; `None`: it has passed, and the taker takes what is due now, or nothing.
    pub(super) poll: Option<WheelKey>,
}

impl Queue {
    /// A queue as it was stored. None of its timers is resident yet.
    pub(super) fn new(row: QueueRow) -> Self {
        let least = (Moment::ZERO, Generation(0));
        let horizon = (row.waiting > 0).then_some(least);
        let died = (row.dead > 0).then_some(Moment::ZERO);
        Queue { stored: !row.deleted, row, horizon, died, ..Queue::default() }
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
