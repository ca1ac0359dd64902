//! A queue: its row, its takers, and the head of what is due.
//!
//! ```text
//!   waiting rows, by (next attempt, generation)
//!   ├──────── resident: `waiting` ────────┤ horizon ├──────── in the store only ────────▶
//!   popped: due timers of the near window, whose rows are still in their buckets
//! ```
//!
//! **Every waiting row before the horizon is resident**; without a horizon all are. So the first of both sets is the
//! longest due of the queue, if it lies before the horizon; else a page from the horizon on is loaded first.

use std::collections::{BTreeSet, HashMap, VecDeque};

use tourbillon_wheel::Key as WheelKey;

use crate::message::{LoadId, RequestId};
use crate::record::Generation;
use crate::store::QueueRow;
use crate::values::{Key, Moment, Span, Steady};

const SECOND: Span = Span::from_secs(1);

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
    pub(super) horizon: Option<Order>,
    /// The load of the page after the horizon.
    pub(super) refill: Option<LoadId>,
    /// The first row that left memory while that load was under way.
    pub(super) dropped: Option<Order>,
    pub(super) takers: VecDeque<Taker>,
    pub(super) pace: Pace,
    /// When the longest dead was given up, or before; `None`: there is none.
    pub(super) died: Option<Moment>,
}

/// The hand-outs of the last second in a queue with a rate. A restart forgets them.
#[derive(Default)]
pub(super) struct Pace {
    /// By millisecond, so it is bounded.
    handed: VecDeque<(Steady, u32)>,
    total: u32,
    /// The steady clock will say when the next one is allowed.
    pub(super) waits: bool,
}

impl Pace {
    /// When the next hand-out is allowed, if it is not now.
    pub(super) fn next(&mut self, rate: u32, now: Steady) -> Option<Steady> {
        while self.handed.front().is_some_and(|(at, _)| *at + SECOND <= now) {
            self.total -= self.handed.pop_front().map_or(0, |(_, count)| count);
        }
        let first = self.handed.front().map(|(at, _)| *at + SECOND);
        first.filter(|_| self.total >= rate)
    }

    pub(super) fn count(&mut self, now: Steady) {
        self.total += 1;
        match self.handed.back_mut().filter(|(at, _)| *at == now) {
            Some((_, count)) => *count += 1,
            None => self.handed.push_back((now, 1)),
        }
    }
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
        Queue { row, stored: true, horizon, died, ..Queue::default() }
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
