//! The types of a timer: for making it, for showing it, and for holding its delivery.

use std::sync::Arc;

use super::{Key, Moment, Payload, QueueName, Recurrence, Retry, Span, Token, Webhook};

/// Identifies one timer permanently: increasing, unique in the store, never reused, below 2^53.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

/// When a timer is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// This long after the request arrived.
    In(Span),
    /// At a moment. A past moment is due at once.
    At(Moment),
    /// At the first moment of its recurrence.
    Rhythm,
}

/// A timer to be made.
#[derive(Clone, Debug)]
pub struct NewTimer {
    /// Its key; `None` for an assigned one. An assigned key may be given only to replace the timer that has it.
    pub key: Option<Key>,
    /// When it is due first.
    pub when: When,
    /// Its payload, passed to the holder of a delivery.
    pub payload: Payload,
    /// Its recurrence, if it recurs.
    pub recurrence: Option<Recurrence>,
    /// How long its key stays taken afterwards; `None` for the queue's default, or zero for an assigned key.
    pub remember: Option<Span>,
    /// Its attempts and backoff; `None` for the queue's default.
    pub retry: Option<Retry>,
    /// No attempt of an occurrence starts later than this long after the occurrence is due.
    pub expires: Option<Span>,
    /// Its webhook; `None` for the queue's default, `Some(None)` for no webhook.
    pub webhook: Option<Option<Arc<Webhook>>>,
}

/// What to do if a key is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Schedule nothing of the request.
    Refuse,
    /// Keep the existing timer.
    Keep,
    /// Replace the existing timer.
    Replace,
    /// Replace the timer if it has this generation. If it has another, or the key is free, nothing of the request is
    /// scheduled.
    ReplaceOnly(Generation),
}

/// The outcome for one timer of a schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheduled {
    /// Its key.
    pub key: Key,
    /// Its generation.
    pub generation: Generation,
    /// When it is due.
    pub due: Moment,
    /// What happened.
    pub outcome: Outcome,
    /// The timer that has the key now. Only in the answer to a request for one timer; omitted for a batch.
    pub timer: Option<Box<View>>,
}

/// What happened to the key of a new timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The key was free.
    Made,
    /// The key was taken by this timer, in that state, which was replaced.
    Replaced(Generation, State),
    /// The key was taken; the receipt names the existing timer.
    Kept,
}

/// The state of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Its next attempt is in the future.
    Scheduled,
    /// Its next attempt is due, and it is not handed out.
    Due,
    /// It is handed out.
    Delivering,
    /// It was given up.
    Dead,
    /// Its last occurrence was acknowledged, and it is remembered.
    Done,
    /// It was cancelled, and is remembered.
    Cancelled,
}

/// A timer as shown to callers.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Its key.
    pub key: Key,
    /// Its state.
    pub state: State,
    /// Its generation.
    pub generation: Generation,
    /// The due moment of its occurrence.
    pub due: Moment,
    /// The earliest moment of its next hand-out.
    pub next_attempt: Moment,
    /// The number of its occurrence.
    pub occurrence: u64,
    /// Hand-outs of this occurrence so far.
    pub attempt: u32,
    /// When it was scheduled.
    pub created: Moment,
    /// Its payload, passed to the holder of a delivery.
    pub payload: Payload,
    /// Its recurrence, if it recurs.
    pub recurrence: Option<Recurrence>,
    /// How long its key stays taken afterwards.
    pub remember: Span,
    /// Its attempts and backoff.
    pub retry: Retry,
    /// No attempt of an occurrence starts later than this long after the occurrence is due.
    pub expires: Option<Span>,
    /// Its webhook, if it has one.
    pub webhook: Option<Arc<Webhook>>,
    /// The text of the last failure.
    pub last_error: Option<Arc<str>>,
}

/// Which timers a list shows.
///
/// With a prefix, ordered by key; otherwise by next attempt, then key. Exception: dead timers alone are ordered by the
/// time they were given up, and done or cancelled ones by the time they are forgotten. A prefix of assigned keys, which
/// start with `~`, requires reading every timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// In this state; `None`: scheduled, due, delivering and dead.
    pub state: Option<State>,
    /// Only keys with this prefix.
    pub prefix: Option<String>,
    /// Only next attempts at or after this moment.
    pub from: Moment,
    /// Only next attempts before this moment.
    pub to: Moment,
}

/// All timers that are not done or cancelled.
impl Default for Filter {
    fn default() -> Self {
        Filter { state: None, prefix: None, from: Moment::ZERO, to: Moment::MAX }
    }
}

/// The outcome of a bulk operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Many {
    /// The number of timers cancelled or revived.
    pub done: u64,
    /// The number of timers cancelled while handed out.
    pub delivering: u64,
    /// Whether there may be more timers. If so, repeat the request.
    pub more: bool,
}

/// Where a page of a list ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// In the order of keys.
    Key(Key),
    /// In the order of time. Without a key: before all timers of that moment.
    Time(Moment, Option<Key>),
    /// In the order in which timers were given up, or are forgotten.
    Ended(Moment, Generation),
}

/// The outcome for a key of a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// It was not handed out, and never will be.
    Cancelled,
    /// It is handed out, and will not be handed out again.
    Delivering,
    /// It was already done.
    Done,
    /// There is no such timer.
    Unknown,
}

/// A timer handed out to a taker.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// Its queue.
    pub queue: QueueName,
    /// Its permanent identity.
    pub token: Token,
    /// The payload of the timer.
    pub payload: Payload,
    /// The due moment of the occurrence.
    pub due: Moment,
    /// When it was handed out.
    pub handed: Moment,
    /// When the lease ends, by the wall clock at the hand-out.
    pub lease_until: Moment,
    /// Its webhook, if it has one.
    pub webhook: Option<Arc<Webhook>>,
    /// Its attempts and backoff.
    pub retry: Retry,
}

/// The number of a queue's timers in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Their next attempt is in the future.
    pub scheduled: u64,
    /// Their next attempt is due, and they are not handed out.
    pub due: u64,
    /// They are handed out.
    pub delivering: u64,
    /// They were given up.
    pub dead: u64,
}

impl State {
    /// All states, in the order of a timer's life.
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
    /// Its first due moment if it is scheduled at `now`; `None` if there is none.
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
    /// Whether the filter admits a timer in a list by key, or of dead timers.
    pub(crate) fn fits(&self, view: &View) -> bool {
        let kept = matches!(view.state, State::Done | State::Cancelled);
        let wanted = self.state.map_or(!kept, |state| state == view.state);
        wanted && (self.from..self.to).contains(&view.next_attempt)
    }
}
