//! Messages: the inputs of a turn of the [shard](crate::shard), and its outputs.

use std::sync::Arc;

use crate::record::{Fate, Generation, Place, Record};
use crate::store::{Filling, Loaded, Op, Query, Settings};
pub use crate::values::{
    Cancelled, Conflict, Counts, Cursor, Delivery, Filter, Many, NewTimer, Outcome, Scheduled,
    Settled, Stale, State, Token, Verdict, View, When,
};
use crate::values::{Event, Key, Moment, QueueName, RetryChange, Span, Steady, Webhook};

/// The identity of a request. Chosen by the caller, and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// The identity of a commit. Increases by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(pub u64);

/// The identity of a load. Increasing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoadId(pub u64);

/// An input of a turn, beside the two clocks.
#[derive(Clone, Debug)]
pub enum Input {
    /// A request.
    Request(RequestId, Request),
    /// This commit and all before it are durable.
    Committed(CommitId),
    /// The answer to a load.
    Loaded(LoadId, Loaded),
    /// A row that a load needs cannot be read, with the reason.
    Damaged(LoadId, Arc<str>),
}

/// The work that a turn requests, in this order. A load sees every commit emitted before it, and perhaps later ones.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Commit these ops; confirm with [`Input::Committed`]. If it fails, drop the shard and reopen the store.
    Commit(CommitId, Vec<Op>),
    /// Load this; answer with [`Input::Loaded`].
    Load(LoadId, Query),
    /// Answer a request. All that the answer reports is durable.
    Answer(RequestId, Answer),
}

/// The outcome of a turn.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    /// The effects, in order.
    pub effects: Vec<Effect>,
    /// Take the next turn when the wall clock reads this, at the latest.
    pub wall: Option<Moment>,
    /// Take the next turn when the steady clock reads this, at the latest.
    pub steady: Option<Steady>,
    /// The events of this turn's commit, if the shard [listens](crate::shard::Shard::listen).
    pub events: Vec<Event>,
    /// The wall clock is far off.
    pub clock: Option<FarOff>,
}

/// The wall clock has an unlikely reading. Timers follow it even so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FarOff {
    /// The expected reading.
    ///
    /// At a start, the latest wall-clock reading so far; otherwise the last reading plus the time passed since.
    pub expected: Moment,
    /// The actual reading.
    pub reads: Moment,
}

/// A request to the shard.
#[derive(Clone, Debug)]
pub enum Request {
    /// Makes timers: all, or none.
    Schedule {
        /// The queue.
        queue: QueueName,
        /// The timers.
        timers: Vec<NewTimer>,
        /// What to do if a key is taken.
        conflict: Conflict,
    },
    /// Moves the occurrence of a timer; revives a dead one.
    Move {
        /// The queue.
        queue: QueueName,
        /// The key.
        key: Key,
        /// The new moment.
        when: When,
        /// Only if it has this generation.
        only: Option<Generation>,
    },
    /// Makes a timer due now; revives a dead one.
    Run {
        /// The queue.
        queue: QueueName,
        /// The key.
        key: Key,
    },
    /// Cancels timers.
    Cancel {
        /// The queue.
        queue: QueueName,
        /// The keys.
        keys: Vec<Key>,
        /// Only if each of them has this generation.
        only: Option<Generation>,
    },
    /// Returns a timer.
    Get {
        /// The queue.
        queue: QueueName,
        /// The key.
        key: Key,
    },
    /// Takes due timers that have no webhook.
    Receive {
        /// The queue.
        queue: QueueName,
        /// Maximum number of timers.
        max: usize,
        /// How long to wait if nothing is due.
        wait: Span,
        /// The lease of each delivery.
        lease: Span,
    },
    /// Takes due timers that have a webhook, round-robin over all queues. The lease of each is the timeout of its
    /// webhook plus a margin.
    Push {
        /// Maximum number of timers.
        max: usize,
        /// How long to wait if nothing is due.
        wait: Span,
        /// The margin.
        margin: Span,
    },
    /// Withdraws a receive or push whose taker has gone. The queue is the receive's; `None` for a push.
    Leave(Option<QueueName>, RequestId),
    /// Settles deliveries.
    Settle {
        /// The queue.
        queue: QueueName,
        /// The tokens.
        tokens: Vec<Token>,
        /// The verdict on each.
        verdict: Verdict,
    },
    /// Lists timers, one page.
    List {
        /// The queue.
        queue: QueueName,
        /// Which timers.
        filter: Filter,
        /// Where the previous page ended.
        after: Option<Cursor>,
        /// Maximum number of timers, at least 1.
        limit: usize,
    },
    /// Cancels the timers whose keys have a prefix, at most 100 000.
    CancelPrefix {
        /// The queue.
        queue: QueueName,
        /// The prefix of their keys.
        prefix: String,
    },
    /// Makes dead timers due now, at most 10 000.
    Redrive {
        /// The queue.
        queue: QueueName,
        /// The prefix of their keys.
        prefix: Option<String>,
    },
    /// Changes the settings of a queue. Creates the queue if it does not exist.
    Set {
        /// The queue.
        queue: QueueName,
        /// The changes.
        change: Change,
    },
    /// Cancels every timer of a queue in one commit. None of them is remembered, and remembered ones are forgotten.
    Clear(QueueName),
    /// Deletes a queue and all its timers.
    Delete {
        /// The queue.
        queue: QueueName,
        /// Even if timers are out.
        force: bool,
    },
    /// Returns the counts and settings of a queue.
    Queue(QueueName),
    /// Returns a queue with its next due timer and its lateness.
    Stats(QueueName),
    /// Lists the names of all queues.
    Queues,
    /// Counts pending timers between ordered edges.
    Forecast {
        /// The queue.
        queue: QueueName,
        /// The edges, at least two.
        edges: Vec<Moment>,
    },
}

impl Request {
    /// Its queue.
    pub(crate) fn queue(&self) -> Option<&QueueName> {
        match self {
            Request::Schedule { queue, .. }
            | Request::Move { queue, .. }
            | Request::Run { queue, .. }
            | Request::Cancel { queue, .. }
            | Request::Get { queue, .. }
            | Request::Receive { queue, .. }
            | Request::Settle { queue, .. }
            | Request::List { queue, .. }
            | Request::CancelPrefix { queue, .. }
            | Request::Redrive { queue, .. }
            | Request::Set { queue, .. }
            | Request::Clear(queue)
            | Request::Delete { queue, .. }
            | Request::Queue(queue)
            | Request::Stats(queue)
            | Request::Forecast { queue, .. } => Some(queue),
            Request::Leave(queue, _) => queue.as_ref(),
            Request::Queues | Request::Push { .. } => None,
        }
    }

    /// The keys of the timers that the request names.
    pub(crate) fn keys(&self) -> Vec<Key> {
        match self {
            Request::Schedule { timers, .. } => {
                timers.iter().filter_map(|timer| timer.key.clone()).collect()
            }
            Request::Cancel { keys, .. } => keys.clone(),
            Request::Settle { tokens, .. } => {
                tokens.iter().map(|token| token.key.clone()).collect()
            }
            Request::Move { key, .. } | Request::Run { key, .. } | Request::Get { key, .. } => {
                vec![key.clone()]
            }
            _ => Vec::new(),
        }
    }
}

/// Changes to a queue's settings; `None` leaves a field unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// Whether hand-outs are paused.
    pub paused: Option<bool>,
    /// The default of new timers. May set only some of its fields.
    pub retry: Option<RetryChange>,
    /// The default of new timers with a chosen key.
    pub remember: Option<Span>,
    /// How long dead timers are kept.
    pub dead_keep: Option<Span>,
    /// Maximum hand-outs in any second.
    pub rate: Option<Option<u32>>,
    /// Maximum number of timers that are out at once.
    pub concurrency: Option<Option<u32>>,
    /// The default webhook of new timers.
    pub webhook: Option<Option<Arc<Webhook>>>,
}

impl Change {
    pub(crate) fn apply(self, settings: &mut Settings) {
        settings.paused = self.paused.unwrap_or(settings.paused);
        settings.retry = self.retry.unwrap_or_default().over(settings.retry);
        settings.remember = self.remember.unwrap_or(settings.remember);
        settings.dead_keep = self.dead_keep.unwrap_or(settings.dead_keep);
        settings.rate = self.rate.unwrap_or(settings.rate);
        settings.concurrency = self.concurrency.unwrap_or(settings.concurrency);
        if let Some(webhook) = self.webhook {
            settings.webhook = webhook;
        }
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// To a schedule, in its order.
    Scheduled(Vec<Scheduled>),
    /// The key of this timer of the request is taken by a timer in that state. Nothing was scheduled.
    KeyTaken(usize, State),
    /// This timer of the request repeats an earlier key, or has no due moment. Nothing was scheduled.
    Refused(usize),
    /// This timer of the request has an assigned key that no timer has. Nothing was scheduled.
    NotAssigned(usize),
    /// There would be more timers than the limit. Nothing was scheduled.
    TooMany,
    /// The key at this index belongs to that timer, or to none, but another one was expected. Nothing was changed.
    Mismatch(usize, Option<Generation>),
    /// To a get, a move or a run; `None` if there is no such timer.
    Timer(Option<View>),
    /// A timer in this state cannot be moved or run.
    NotMoved(State),
    /// A row that the request needs cannot be read, with the reason. Nothing was changed.
    Damaged(Arc<str>),
    /// To a cancel, in its order.
    Cancelled(Vec<Cancelled>),
    /// To a receive or a push. Empty if its wait has passed.
    Deliveries(Vec<Delivery>),
    /// To a settle, in its order.
    Settled(Vec<Result<Settled, Stale>>),
    /// To a list, with the cursor if there may be more.
    List(Vec<View>, Option<Cursor>),
    /// To a cancel by prefix, a clear or a redrive.
    Many(Many),
    /// To a setting, a leave or a delete.
    Done,
    /// To a delete: this many timers are out. Nothing was changed.
    Delivering(u64),
    /// To a delete: there is no such queue.
    NoQueue,
    /// To a queue request; `None` if there is no such queue.
    Queue(Option<(Counts, Settings)>),
    /// To a stats request; `None` if there is no such queue.
    Stats(Option<Box<Stats>>),
    /// To a request for all queues.
    Queues(Vec<QueueName>),
    /// To a forecast: intervals with their actual edges, and the number of timers due in each.
    Forecast(Vec<(Moment, Moment, u64)>),
}

/// The statistics of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// Its timers by state.
    pub counts: Counts,
    /// Its settings.
    pub settings: Settings,
    /// When the next timer becomes due.
    pub next: Option<Moment>,
    /// The next attempt of the timer that has been due longest.
    pub oldest_due: Option<Moment>,
    /// The lateness of the hand-outs of the last minute.
    pub lateness: Lateness,
    /// Hand-outs per second, over the last minute.
    pub per_second: f64,
}

/// The time from a timer's next attempt to its hand-out. All zero if there were no hand-outs.
///
/// Percentiles are rounded up by at most an eighth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// The median.
    pub p50: Span,
    /// The 99th percentile.
    pub p99: Span,
    /// The maximum.
    pub max: Span,
}

impl Answer {
    /// Whether this answer hands a delivery to an agent.
    pub fn tells_agents(&self) -> bool {
        matches!(self, Answer::Deliveries(all) if all.iter().any(|one| one.webhook.is_some()))
    }
}

/// Why a shard is opened, which decides what happens to deliveries held by agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// No agent of this process has been handed a delivery yet. Deliveries held by agents of an earlier process are
    /// retried at once, and do not count as failed attempts.
    Started,
    /// The store failed and this process continues: its agents are at work, and their leases run.
    Recovered,
}

/// What a shard may hold in memory.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of timers of the near window.
    pub window: u64,
    /// Maximum bytes of the near window.
    pub window_bytes: u64,
    /// Maximum number of waiting timers kept at the heads of queues. Each lane may hold a page beyond that.
    pub waiting: usize,
    /// Maximum bytes of waiting timers kept there. Each lane may hold one timer beyond that.
    pub waiting_bytes: u64,
    /// Maximum number of timers that are out at once.
    pub out: usize,
    /// Maximum bytes of timers that are out, exceeded by one timer at most.
    pub out_bytes: u64,
    /// Maximum number of timers of all queues that are not done or cancelled. More are refused.
    pub timers: u64,
    /// The number of rows in a page.
    pub page: usize,
}

/// Window: 1 000 000 timers, 256 MiB. Waiting: 100 000 timers, 64 MiB. Out for delivery: 1 000 000 timers, 256 MiB.
/// Pages of 1000 rows. The total number of timers is unlimited.
///
/// The window is this large because, if the timers due in one second do not all fit, the rest are delivered from disk
/// after that second. Half a million timers with payloads of 100 bytes take 175 MiB.
impl Default for Limits {
    fn default() -> Self {
        Limits {
            window: 1_000_000,
            window_bytes: 256 << 20,
            waiting: 100_000,
            waiting_bytes: 64 << 20,
            out: 1_000_000,
            out_bytes: 256 << 20,
            timers: u64::MAX,
            page: 1000,
        }
    }
}

/// What a shard holds in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resident {
    /// Timers of the near window.
    pub window: u64,
    /// Their approximate bytes.
    pub window_bytes: u64,
    /// Waiting timers at the heads of queues, and their bytes.
    pub waiting: Filling,
    /// Timers that are out, and their bytes.
    pub out: Filling,
    /// Timers changed while a load is in progress.
    pub touched: usize,
    /// Queues, including those that exist only in memory.
    pub queues: usize,
}

/// The state of a timer as shown to callers.
pub(crate) fn state(place: Place, record: &Record, now: Moment) -> State {
    match (place, record.fate) {
        (Place::Bucket(_) | Place::Waiting(..), _) if record.next_attempt <= now => State::Due,
        (Place::Bucket(_) | Place::Waiting(..), _) => State::Scheduled,
        (Place::Out(_), _) => State::Delivering,
        (Place::Dead(_), _) => State::Dead,
        (Place::Remembered(_), Fate::Cancelled | Fate::CancelledOut) => State::Cancelled,
        (Place::Remembered(_), _) => State::Done,
    }
}

impl View {
    /// A timer as shown to callers.
    pub(crate) fn new(state: State, record: &Record) -> Self {
        let spec = &record.spec;
        View {
            key: spec.key.clone(),
            state,
            generation: spec.generation,
            due: record.due,
            next_attempt: record.next_attempt,
            occurrence: record.occurrence,
            attempt: record.attempt,
            created: spec.created,
            payload: spec.payload.clone(),
            recurrence: spec.recurrence.clone(),
            remember: spec.remember,
            retry: spec.retry,
            expires: spec.expires,
            webhook: spec.webhook.clone(),
            last_error: record.last_error.clone(),
        }
    }
}
