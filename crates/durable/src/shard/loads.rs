//! Loads in progress, and the timers changed since each of them was emitted.
//!
//! **A loaded row is trusted only if its timer has not changed since the load was emitted.** A load sees every earlier
//! commit and may see later ones. For a timer changed since, memory always has the newer state. The tempting
//! alternative, to trust the page, revives timers that were cancelled while it was read.
//!
//! A timer's name, its queue and key, is kept only while a load in progress could return an older state of it.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::look::Look;
use super::request::Pending;
use super::walk::Walk;
use crate::message::{LoadId, RequestId};
use crate::record::Lane;
use crate::store::Query;
use crate::values::{Key, QueueName};

type Name = (QueueName, Key);

/// What a load is for.
#[derive(Debug)]
pub(super) enum Purpose {
    /// A request about keys that are not resident.
    Request(Pending),
    /// The rows that are out, when the shard is opened.
    Out,
    /// The window's pass over a bucket, over waiting rows, or over a source that may have discarded rows.
    Pass,
    /// A sweep over the waiting rows in a lane of a queue.
    Sweep(QueueName, Lane),
    /// More waiting rows for the takers of a lane of a queue.
    Refill(QueueName, Lane),
    /// The dead rows of a queue, first given up first.
    Dead(QueueName),
    /// The remembered rows whose retention ends first.
    Remembered,
    /// Rows or counters for a look at a queue.
    Look(Box<Look>),
    /// A page of a request over many rows.
    Walk(Box<Walk>),
    /// The counters of a forecast.
    Forecast(RequestId, Vec<u64>),
}

impl Purpose {
    /// The request that the load answers, if any.
    pub(super) fn asked(&self) -> Option<RequestId> {
        match self {
            Purpose::Request(pending) => Some(pending.id),
            Purpose::Look(look) => Some(look.id()),
            Purpose::Walk(walk) => Some(walk.id()),
            Purpose::Forecast(request, _) => Some(*request),
            _ => None,
        }
    }
}

#[derive(Default)]
pub(super) struct Loads {
    next: u64,
    under_way: BTreeMap<LoadId, Purpose>,
    /// For each name: the number of the first load emitted after the timer's last change.
    changed: HashMap<Name, u64>,
    /// The same entries, oldest first, for pruning.
    order: VecDeque<(u64, Name)>,
    /// The loads emitted in this turn.
    pub(super) emitted: Vec<(LoadId, Query)>,
}

impl Loads {
    /// Emits a load with the effects of this turn.
    pub(super) fn emit(&mut self, query: Query, purpose: Purpose) -> LoadId {
        let id = LoadId(self.next);
        self.next += 1;
        self.under_way.insert(id, purpose);
        self.emitted.push((id, query));
        id
    }

    /// Removes a load that was answered or is no longer wanted.
    pub(super) fn take(&mut self, id: LoadId) -> Option<Purpose> {
        self.under_way.remove(&id)
    }

    /// Records that this timer changes in this turn.
    pub(super) fn touch(&mut self, queue: &QueueName, key: &Key) {
        if self.under_way.is_empty() {
            return;
        }
        let name = (queue.clone(), key.clone());
        // Repeated changes of a name between two loads share one entry.
        if self.changed.insert(name.clone(), self.next) != Some(self.next) {
            self.order.push_back((self.next, name));
        }
    }

    /// Whether this timer has changed since the load was emitted.
    pub(super) fn is_stale(&self, id: LoadId, queue: &QueueName, key: &Key) -> bool {
        self.changed.get(&(queue.clone(), key.clone())).is_some_and(|&next| next > id.0)
    }

    /// Forgets the names whose change is older than every load in progress.
    pub(super) fn prune(&mut self) {
        let oldest = self.under_way.keys().next().map_or(self.next, |id| id.0);
        while let Some((next, name)) = self.order.front().filter(|(next, _)| *next <= oldest) {
            if self.changed.get(name) == Some(next) {
                self.changed.remove(name);
            }
            self.order.pop_front();
        }
    }

    /// Whether any load is in progress.
    pub(super) fn is_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// The number of names kept.
    pub(super) fn touched(&self) -> usize {
        self.changed.len()
    }
}
