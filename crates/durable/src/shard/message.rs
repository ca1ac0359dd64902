//! Messages: what goes into a turn of the shard, and what comes out.

use std::sync::Arc;

use crate::record::Generation;
use crate::store::{Loaded, Op, Query, Settings};
use crate::values::{Key, Moment, QueueName, Recurrence, Retry, Span, Steady};

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

/// When a timer is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// So long after the request arrived.
    In(Span),
    /// At a moment; a past one is due at once.
    At(Moment),
    /// At the first moment of its rhythm.
    Rhythm,
}

/// A timer to be made.
#[derive(Clone, Debug)]
pub struct NewTimer {
    /// Its key; `None` for an assigned one.
    pub key: Option<Key>,
    /// When it is due first.
    pub when: When,
    /// What the holder of a delivery gets.
    pub payload: Arc<[u8]>,
    /// How it recurs.
    pub recurrence: Option<Recurrence>,
    /// How long its key stays taken afterwards; `None` for the queue's default, or nothing for an assigned key.
    pub remember: Option<Span>,
    /// How often it is tried; `None` for the queue's default.
    pub retry: Option<Retry>,
}

/// What to do with a key that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Schedule nothing of the request.
    Refuse,
    /// Leave the one that is there.
    Keep,
    /// Replace it.
    Replace,
}

/// Names a delivery for ever.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    /// The key.
    pub key: Key,
    /// The timer.
    pub generation: Generation,
    /// Its occurrence.
    pub occurrence: u64,
    /// Its attempt.
    pub attempt: u32,
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

/// What the holder of a delivery says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is done.
    Ack,
    /// It failed: try again after so long, or by its backoff.
    Nack(Option<Span>, Option<Arc<str>>),
    /// It takes so long from now.
    Extend(Span),
    /// It never reached its holder: due again at once, and not a failed attempt.
    Release,
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

/// What became of a timer of a schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheduled {
    /// Its key.
    pub key: Key,
    /// Its name for ever.
    pub generation: Generation,
    /// When it is due.
    pub due: Moment,
    /// What happened.
    pub outcome: Outcome,
}

/// What happened to the key of a new timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was free.
    Made,
    /// It was taken by this one, in that state, which is gone.
    Replaced(Generation, State),
    /// It was taken, and the receipt names the one that is there.
    Kept,
}

/// The state of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Its next attempt is to come.
    Scheduled,
    /// It has come, and nobody has it.
    Due,
    /// Somebody has it.
    Delivering,
    /// It was given up.
    Dead,
    /// It was acknowledged for the last time, and is remembered.
    Done,
    /// It was cancelled, and is remembered.
    Cancelled,
}

/// A timer as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Its state.
    pub state: State,
    /// Its name for ever.
    pub generation: Generation,
    /// The moment of its occurrence.
    pub due: Moment,
    /// The earliest moment of its next hand-out.
    pub next_attempt: Moment,
    /// The number of its occurrence.
    pub occurrence: u64,
    /// Hand-outs of this occurrence so far.
    pub attempt: u32,
    /// What the holder of a delivery gets.
    pub payload: Arc<[u8]>,
    /// What the last failure said.
    pub last_error: Option<Arc<str>>,
}

/// What became of a key of a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// Nobody had it, and nobody will be handed it.
    Cancelled,
    /// Somebody has it, and nobody else will be handed it.
    Delivering,
    /// It was done before.
    Done,
    /// There is no such timer.
    Unknown,
}

/// A timer in the hands of a taker.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// Its name for ever.
    pub token: Token,
    /// What was scheduled.
    pub payload: Arc<[u8]>,
    /// The moment of the occurrence.
    pub due: Moment,
    /// When it was handed out.
    pub handed: Moment,
    /// When the lease ends, by the wall clock of then.
    pub lease_until: Moment,
}

/// What became of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Done; a recurring timer is due again then.
    Acked(Option<Moment>),
    /// The next attempt is due then.
    Again(Moment),
    /// It was the last attempt: given up. A recurring timer is due again then.
    GivenUp(Option<Moment>),
    /// The lease ends then, by the wall clock.
    Extended(Moment),
}

/// Why a token does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stale {
    /// It was acknowledged before, by this token.
    Acked,
    /// It was refused before.
    Nacked,
    /// Its lease has ended.
    Lapsed,
    /// The timer was moved.
    Moved,
    /// The occurrence was handed out again.
    HandedAgain,
    /// The timer was cancelled.
    Cancelled,
    /// The timer was replaced.
    Replaced,
    /// The last attempt had failed.
    GivenUp,
    /// None of these is known.
    Unknown,
}

/// How many timers of a queue are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Their next attempt is to come.
    pub scheduled: u64,
    /// It has come, and nobody has them.
    pub due: u64,
    /// Somebody has them.
    pub delivering: u64,
    /// They were given up.
    pub dead: u64,
}
