//! A timer as callers make it, see it and hold it.

use std::sync::Arc;

use super::{Key, Moment, Payload, QueueName, Recurrence, Retry, Span, Token, Webhook};

/// Names one timer for ever: rising, unique in the store, never used again, below 2^53.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

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
    /// Its key; `None` for an assigned one. One that was assigned before only replaces the timer that has it.
    pub key: Option<Key>,
    /// When it is due first.
    pub when: When,
    /// What the holder of a delivery gets.
    pub payload: Payload,
    /// How it recurs.
    pub recurrence: Option<Recurrence>,
    /// How long its key stays taken afterwards; `None` for the queue's default, or nothing for an assigned key.
    pub remember: Option<Span>,
    /// How often it is tried; `None` for the queue's default.
    pub retry: Option<Retry>,
    /// No attempt of an occurrence starts later than so long after it is due.
    pub expires: Option<Span>,
    /// Where it is posted; `None` for the queue's default, `Some(None)` for nowhere.
    pub webhook: Option<Option<Arc<Webhook>>>,
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
    /// Replace it if it is this one; if it is another, or the key is free, schedule nothing of the request.
    ReplaceOnly(Generation),
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
    /// The timer that has the key now, in the answer to a request for one timer; a batch leaves it out.
    pub timer: Option<Box<View>>,
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
    /// Its key.
    pub key: Key,
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
    /// When it was made.
    pub created: Moment,
    /// What the holder of a delivery gets.
    pub payload: Payload,
    /// How it recurs.
    pub recurrence: Option<Recurrence>,
    /// How long its key stays taken afterwards.
    pub remember: Span,
    /// How often it is tried.
    pub retry: Retry,
    /// No attempt of an occurrence starts later than so long after it is due.
    pub expires: Option<Span>,
    /// Where it is posted.
    pub webhook: Option<Arc<Webhook>>,
    /// What the last failure said.
    pub last_error: Option<Arc<str>>,
}

/// Which timers a list shows.
///
/// With a prefix it goes by key; else by next attempt, then key. If only the dead are asked for, they go by when they
/// were given up; those that are done or cancelled go by when they are forgotten. A prefix of assigned keys, which
/// begin with `~`, costs a read of every timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// In this state; `None`: scheduled, due, delivering and dead.
    pub state: Option<State>,
    /// Only keys that begin so.
    pub prefix: Option<String>,
    /// Only next attempts from here on.
    pub from: Moment,
    /// Only next attempts before this.
    pub to: Moment,
}

/// Everything.
impl Default for Filter {
    fn default() -> Self {
        Filter { state: None, prefix: None, from: Moment::ZERO, to: Moment::MAX }
    }
}

/// What a request for many timers has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Many {
    /// How many were cancelled or revived.
    pub done: u64,
    /// How many were cancelled while somebody has them.
    pub delivering: u64,
    /// There may be more: ask again.
    pub more: bool,
}

/// Where a page of a list ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// In the order of keys.
    Key(Key),
    /// In the order of time; without a key, before all of that moment.
    Time(Moment, Option<Key>),
    /// In the order of being given up, or of being forgotten.
    Ended(Moment, Generation),
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
    /// Its queue.
    pub queue: QueueName,
    /// Its name for ever.
    pub token: Token,
    /// What was scheduled.
    pub payload: Payload,
    /// The moment of the occurrence.
    pub due: Moment,
    /// When it was handed out.
    pub handed: Moment,
    /// When the lease ends, by the wall clock of then.
    pub lease_until: Moment,
    /// Where it is posted.
    pub webhook: Option<Arc<Webhook>>,
    /// How often it is tried.
    pub retry: Retry,
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

impl State {
    /// All of them, in the order of a timer's life.
    pub const ALL: [State; 6] = [
        State::Scheduled,
        State::Due,
        State::Delivering,
        State::Dead,
        State::Done,
        State::Cancelled,
    ];

    /// Its name, as in the HTTP interface.
    pub const fn name(self) -> &'static str {
        match self {
            State::Scheduled => "scheduled",
            State::Due => "due",
            State::Delivering => "delivering",
            State::Dead => "dead",
            State::Done => "done",
            State::Cancelled => "cancelled",
        }
    }
}

impl NewTimer {
    /// Its first moment, if it is scheduled then; `None`: it has none.
    pub(crate) fn first_due(&self, now: Moment) -> Option<Moment> {
        let recurrence = self.recurrence.as_ref();
        let due = match self.when {
            When::In(span) => now + span,
            When::At(moment) => moment,
            When::Rhythm => recurrence?.rhythm.after(now)?,
        };
        let until = recurrence.and_then(|recurrence| recurrence.until);
        (due <= until.unwrap_or(Moment::MAX)).then_some(due)
    }
}

impl Filter {
    /// Whether a list by key, or of the dead, shows this one.
    pub(crate) fn fits(&self, view: &View) -> bool {
        let kept = matches!(view.state, State::Done | State::Cancelled);
        let wanted = self.state.map_or(!kept, |state| state == view.state);
        wanted && (self.from..self.to).contains(&view.next_attempt)
    }
}
