//! Messages: what goes into a turn of the [shard](crate::shard), and what comes out.

use std::sync::Arc;

use crate::record::{Fate, Generation, Place, Record};
use crate::store::{Filling, Loaded, Op, Query, Settings};
pub use crate::values::{
    Cancelled, Conflict, Counts, Cursor, Delivery, Filter, Many, NewTimer, Outcome, Scheduled,
    Settled, Stale, State, Token, Verdict, View, When,
};
use crate::values::{Event, Key, Moment, QueueName, RetryChange, Span, Steady, Webhook};

/// Names a request. The caller chooses it, and never uses it twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Names a commit. Rising by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(pub u64);

/// Names a load. Rising.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoadId(pub u64);

/// What a turn is given, beside the two clocks.
#[derive(Clone, Debug)]
pub enum Input {
    /// Somebody wants something.
    Request(RequestId, Request),
    /// This commit is durable, and so are all before it.
    Committed(CommitId),
    /// The answer to a load.
    Loaded(LoadId, Loaded),
    /// A row that a load asks for cannot be read: why.
    Damaged(LoadId, Arc<str>),
}

/// What a turn wants done, in this order: a load sees every commit that was emitted before it, and perhaps later ones.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Commit these; say so with [`Input::Committed`]. If it fails, drop the shard and open the store anew.
    Commit(CommitId, Vec<Op>),
    /// Load this; answer with [`Input::Loaded`].
    Load(LoadId, Query),
    /// Answer a request. Everything that the answer says is durable.
    Answer(RequestId, Answer),
}

/// The outcome of a turn.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    /// What to do.
    pub effects: Vec<Effect>,
    /// Take the next turn when the wall clock reads this, at the latest.
    pub wall: Option<Moment>,
    /// Take the next turn when the steady clock reads this, at the latest.
    pub steady: Option<Steady>,
    /// What happens with this turn's commit, if somebody [listens](crate::shard::Shard::listen).
    pub events: Vec<Event>,
    /// The wall clock is far off.
    pub clock: Option<FarOff>,
}

/// The wall clock reads something unlikely. Timers follow it all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FarOff {
    /// What was expected: the greatest wall clock seen, at a start; else the last one and the time that has passed.
    pub expected: Moment,
    /// What it reads.
    pub reads: Moment,
}

/// What somebody wants.
#[derive(Clone, Debug)]
pub enum Request {
    /// Makes timers: all, or none.
    Schedule {
        /// Where.
        queue: QueueName,
        /// Which.
        timers: Vec<NewTimer>,
        /// What to do with a key that is taken.
        conflict: Conflict,
    },
    /// Moves the occurrence of a timer; revives a dead one.
    Move {
        /// Where.
        queue: QueueName,
        /// Which.
        key: Key,
        /// To when.
        when: When,
        /// Only if it is this one.
        only: Option<Generation>,
    },
    /// Makes a timer due now; revives a dead one.
    Run {
        /// Where.
        queue: QueueName,
        /// Which.
        key: Key,
    },
    /// Cancels timers.
    Cancel {
        /// Where.
        queue: QueueName,
        /// Which.
        keys: Vec<Key>,
        /// Only if each of them is this one.
        only: Option<Generation>,
    },
    /// Shows a timer.
    Get {
        /// Where.
        queue: QueueName,
        /// Which.
        key: Key,
    },
    /// Takes what is due and has no webhook.
    Receive {
        /// From where.
        queue: QueueName,
        /// The most.
        max: usize,
        /// How long to wait if nothing is due.
        wait: Span,
        /// How long the taker has each of them.
        lease: Span,
    },
    /// Takes what is due and has a webhook, from all queues in turn. Each is its taker's for the timeout of its webhook
    /// and a margin.
    Push {
        /// The most.
        max: usize,
        /// How long to wait if nothing is due.
        wait: Span,
        /// The margin.
        margin: Span,
    },
    /// The taker of that request has gone and wants nothing any more. The queue is that of its receive; a push has
    /// none.
    Leave(Option<QueueName>, RequestId),
    /// Settles, extends or gives back deliveries.
    Settle {
        /// Where.
        queue: QueueName,
        /// Which.
        tokens: Vec<Token>,
        /// How.
        verdict: Verdict,
    },
    /// Lists timers, a page.
    List {
        /// Where.
        queue: QueueName,
        /// Which.
        filter: Filter,
        /// Where the page before ended.
        after: Option<Cursor>,
        /// The most, at least 1.
        limit: usize,
    },
    /// Cancels the timers whose keys begin so, at most 100 000.
    CancelPrefix {
        /// Where.
        queue: QueueName,
        /// The beginning of their keys.
        prefix: String,
    },
    /// Makes dead timers due now, at most 10 000.
    Redrive {
        /// Where.
        queue: QueueName,
        /// The beginning of their keys.
        prefix: Option<String>,
    },
    /// Changes what a queue's owner decides. Makes the queue.
    Set {
        /// Which.
        queue: QueueName,
        /// What.
        change: Change,
    },
    /// Cancels every timer of a queue at once. Nothing of them is remembered, nor what was.
    Clear(QueueName),
    /// Deletes a queue and all its timers.
    Delete {
        /// Which.
        queue: QueueName,
        /// Also if some of them are out.
        force: bool,
    },
    /// Shows a queue.
    Queue(QueueName),
    /// Shows a queue, with what is due next and how late it is.
    Stats(QueueName),
    /// Names every queue.
    Queues,
    /// Counts pending timers between edges, in order.
    Forecast {
        /// Where.
        queue: QueueName,
        /// At least two.
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

    /// The keys that it names.
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

/// What to change of a queue's settings; `None` leaves it as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// Hands out nothing.
    pub paused: Option<bool>,
    /// The default of new timers: some of its fields, or all.
    pub retry: Option<RetryChange>,
    /// The default of new timers with a chosen key.
    pub remember: Option<Span>,
    /// How long the dead are kept.
    pub dead_keep: Option<Span>,
    /// The most hand-outs in any second.
    pub rate: Option<Option<u32>>,
    /// The most timers that are out at once.
    pub concurrency: Option<Option<u32>>,
    /// Where new timers are posted that do not say so themselves.
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
    /// The key of this timer of the request is taken, by one in that state: nothing was scheduled.
    KeyTaken(usize, State),
    /// This timer of the request has the key of an earlier one, or a rhythm with no moment: nothing was scheduled.
    Refused(usize),
    /// This timer of the request has an assigned key that no timer has: nothing was scheduled.
    NotAssigned(usize),
    /// There would be more timers than the limit: nothing was scheduled.
    TooMany,
    /// This timer of the request was to be another one; its key has that one, or none. Nothing was changed.
    Mismatch(usize, Option<Generation>),
    /// To a get, a move and a run; `None`: there is no such timer.
    Timer(Option<View>),
    /// A timer in this state cannot be moved or run.
    NotMoved(State),
    /// A row that it needs cannot be read: why. Nothing was changed.
    Damaged(Arc<str>),
    /// To a cancel, in its order.
    Cancelled(Vec<Cancelled>),
    /// To a receive and a push. Empty: its wait has passed.
    Deliveries(Vec<Delivery>),
    /// To a settle, in its order.
    Settled(Vec<Result<Settled, Stale>>),
    /// To a list, with where it ended if there may be more.
    List(Vec<View>, Option<Cursor>),
    /// To a cancel by prefix or of all, and to a redrive.
    Many(Many),
    /// To a setting, to a leave, and to a delete.
    Done,
    /// To a delete: so many timers are out. Nothing was changed.
    Delivering(u64),
    /// To a delete: there is no such queue.
    NoQueue,
    /// To a look at a queue; `None`: there is no such queue.
    Queue(Option<(Counts, Settings)>),
    /// To a look at a queue with all that is known of it; `None`: there is no such queue.
    Stats(Option<Box<Stats>>),
    /// To a question for all queues.
    Queues(Vec<QueueName>),
    /// To a forecast: pieces with their true edges, and how many are due in each.
    Forecast(Vec<(Moment, Moment, u64)>),
}

/// A queue as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// Its timers by state.
    pub counts: Counts,
    /// What it is set to.
    pub settings: Settings,
    /// When the next timer becomes due.
    pub next: Option<Moment>,
    /// Since when the longest due has waited for a taker.
    pub oldest_due: Option<Moment>,
    /// How late the timers of the last minute were handed out.
    pub lateness: Lateness,
    /// Hand-outs a second, over the last minute.
    pub per_second: f64,
}

/// How long after its next attempt was due a timer was handed out: zero if none was. The percentiles are rounded up, by
/// an eighth at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Half of them were not later.
    pub p50: Span,
    /// 99 in a hundred were not later.
    pub p99: Span,
    /// The latest.
    pub max: Span,
}

impl Answer {
    /// Whether a delivery agent is told of a delivery.
    pub fn tells_agents(&self) -> bool {
        matches!(self, Answer::Deliveries(all) if all.iter().any(|one| one.webhook.is_some()))
    }
}

/// Why a shard is opened: what is known of deliveries to agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// No agent of this process was told of a delivery yet. What an earlier process had under way is tried again at
    /// once, and does not count as a failed attempt.
    Started,
    /// The store failed, and this process goes on: its agents are at work, and their leases run.
    Recovered,
}

/// What a shard may hold in memory.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most timers of the near window.
    pub window: u64,
    /// The most bytes of the near window.
    pub window_bytes: u64,
    /// The most waiting timers that are kept at the heads of queues, beside a page of each.
    pub waiting: usize,
    /// The most bytes of them, beside one timer of each queue.
    pub waiting_bytes: u64,
    /// The most timers that are out at once.
    pub out: usize,
    /// The most bytes of them, beside one.
    pub out_bytes: u64,
    /// The most timers of all queues that are not done or cancelled. More are refused.
    pub timers: u64,
    /// The rows of a page.
    pub page: usize,
}

/// A million timers and 256 MiB in the window, 100 000 and 64 MiB waiting, a million and 256 MiB out, pages of 1000,
/// any number of timers.
///
/// The window is so large because a second whose timers do not fit is delivered from the disk when it has passed, and
/// half a million timers with payloads of 100 bytes take 175 MiB.
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

/// How much a shard holds in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resident {
    /// Timers of the near window.
    pub window: u64,
    /// Their bytes, roughly.
    pub window_bytes: u64,
    /// Waiting timers at the heads of queues, and their bytes.
    pub waiting: Filling,
    /// Timers that are out, and their bytes.
    pub out: Filling,
    /// Names that were changed while a load is under way.
    pub touched: usize,
    /// Queues, also those that are in memory alone.
    pub queues: usize,
}

/// How a timer is shown.
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
    /// A timer as it is shown.
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
