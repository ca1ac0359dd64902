//! Messages: what goes into a turn of the shard, and what comes out.

use crate::store::{Loaded, Op, Query, Settings};
pub use crate::values::{
    Cancelled, Conflict, Counts, Delivery, NewTimer, Outcome, Scheduled, Settled, Stale, State,
    Token, Verdict, View, When,
};
use crate::values::{Key, Moment, QueueName, Span, Steady};

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
    },
    /// Shows a timer.
    Get {
        /// Where.
        queue: QueueName,
        /// Which.
        key: Key,
    },
    /// Takes what is due.
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
    /// The taker of that request has gone and wants nothing any more.
    Leave(QueueName, RequestId),
    /// Settles, extends or gives back deliveries.
    Settle {
        /// Where.
        queue: QueueName,
        /// Which.
        tokens: Vec<Token>,
        /// How.
        verdict: Verdict,
    },
    /// Sets what a queue's owner decides. Makes the queue.
    Set {
        /// Which.
        queue: QueueName,
        /// What.
        settings: Settings,
    },
    /// Counts the timers of a queue.
    Counts(QueueName),
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
            | Request::Leave(queue, _)
            | Request::Settle { queue, .. }
            | Request::Set { queue, .. }
            | Request::Counts(queue)
            | Request::Forecast { queue, .. } => Some(queue),
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
    /// To a get, a move and a run; `None`: there is no such timer.
    Timer(Option<View>),
    /// A timer in this state cannot be moved or run.
    NotMoved(State),
    /// To a cancel, in its order.
    Cancelled(Vec<Cancelled>),
    /// To a receive. Empty: its wait has passed.
    Deliveries(Vec<Delivery>),
    /// To a settle, in its order.
    Settled(Vec<Result<Settled, Stale>>),
    /// To a setting, and to a leave.
    Done,
    /// To a count; `None`: there is no such queue.
    Counts(Option<Counts>),
    /// To a forecast: pieces with their true edges, and how many are due in each.
    Forecast(Vec<(Moment, Moment, u64)>),
}
