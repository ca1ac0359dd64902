//! The state under a queue's lock: the wheel, the counts, and the waiting threads.
//!
//! Invariant: `armed = fired + cancelled + handed back + wheel.len()`. No user code runs here: removed values are
//! returned to the caller, and the clock, which may be the user's, is read before the lock is taken.

use tourbillon_wheel::{Full, Key, Progress, RescheduleError, Time};

use super::error::PutError;
use crate::engine::counts::Counts;
use crate::engine::shard::{AGAIN, Taken};
use crate::engine::wheels::Geometry;
use crate::ordered::OrderedWheel;

/// The largest number of values that one look makes ready or cascades before it releases the lock.
const BUDGET: usize = 256;

pub(super) struct QueueState<T> {
    wheel: OrderedWheel<T>,
    counts: Counts,
    most: usize,
    closed: bool,
    pub(super) waiting: Waiting,
}

/// The threads that wait to take.
#[derive(Default)]
pub(super) struct Waiting {
    /// The time until which the leader sleeps, if there is a leader. [`AWAKE`] once it was woken.
    pub(super) leader: Option<u64>,
    /// The number of followers.
    pub(super) followers: usize,
    /// The number of all waiting threads, including threads that were woken and have not looked again yet.
    pub(super) all: usize,
    /// The number of [takers](super::Taker) that do not wait: they process a value, or have not begun to take.
    pub(super) busy: usize,
    /// The times at which waiting threads with a limit give up. Empty with the system clock, where each thread times
    /// out by itself.
    pub(super) limits: Vec<u64>,
}

/// The value of `leader` once the leader was woken: it will look again, so other threads need not wake it.
const AWAKE: u64 = 0;

/// The result of a search for a due value.
pub(super) enum Look<T> {
    Due(Taken<T>),
    Nothing,
    /// Out of memory: do not retry before this time.
    Later(u64),
    /// Unknown: the search has used up its budget.
    Unknown,
}

impl<T> QueueState<T> {
    pub(super) fn new(geometry: &Geometry, tick: u64, limit: Option<usize>) -> Self {
        let wheel = OrderedWheel::new(geometry, tick);
        QueueState {
            wheel: wheel.expect("the settings were checked"),
            counts: Counts::default(),
            most: limit.unwrap_or(usize::MAX),
            closed: false,
            waiting: Waiting::default(),
        }
    }

    pub(super) fn put(&mut self, deadline: Time, now: Time, value: T) -> Result<Key, PutError<T>> {
        if self.closed {
            return Err(PutError::Closed(value));
        }
        let full = self.wheel.len() >= self.most;
        if planted!("queue.holds-one-more-than-its-limit", self.wheel.len() > self.most, full) {
            return Err(PutError::Full(value));
        }
        let put = self.wheel.insert(deadline, now, value);
        let key = put.map_err(|Full(value)| PutError::Full(value))?;
        self.counts.armed += 1;
        Ok(key)
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let value = self.wheel.cancel(key)?;
        self.counts.cancelled += planted!("queue.does-not-count-what-was-removed", 0, 1);
        if self.wheel.is_spent() {
            self.wheel.shrink();
        }
        Some(value)
    }

    pub(super) fn reschedule(
        &mut self,
        key: Key,
        deadline: Time,
        now: Time,
    ) -> Result<(), RescheduleError> {
        self.wheel.reschedule(key, deadline, now)
    }

    pub(super) fn deadline(&self, key: Key) -> Option<Time> {
        self.wheel.deadline(key)
    }

    /// The moment from which the value can be taken: its tick, or its deadline if the wheel's hand is past that tick.
    pub(super) fn due(&self, key: Key) -> u64 {
        self.wheel.due(key).map_or(u64::MAX, Time::units)
    }

    /// Returns whether the caller must wake the leader, which would sleep past `due`. If so, marks the leader as awake.
    pub(super) fn wakes_leader(&mut self, due: u64) -> bool {
        let wakes = self.waiting.leader.is_some_and(|until| until != AWAKE && due < until);
        if wakes {
            self.waiting.leader = Some(AWAKE);
        }
        wakes
    }

    /// Takes the first value that is due.
    pub(super) fn look(&mut self, now: Time) -> Look<T> {
        let progress = self.wheel.gather(now, BUDGET);
        let taken = if progress == Progress::Done { self.wheel.pop(now) } else { None };
        if let Some(taken) = taken {
            self.counts.fired += 1;
            let spent = self.wheel.is_spent();
            if planted!("third.crowd-that-was-taken-keeps-its-memory", false, spent) {
                self.wheel.shrink();
            }
            return Look::Due(taken);
        }
        match progress {
            Progress::Done => Look::Nothing,
            Progress::More => {
                planted!("queue.a-look-that-was-cut-finds-nothing", Look::Nothing, Look::Unknown)
            }
            Progress::OutOfMemory => Look::Later((now + AGAIN).units()),
        }
    }

    /// Makes ready all values that are due, and returns whether there is one.
    pub(super) fn make_ready(&mut self, now: Time) -> bool {
        self.wheel.make_ready(now);
        self.wheel.is_due(now)
    }

    pub(super) fn is_due(&mut self, now: Time) -> bool {
        self.wheel.is_due(now)
    }

    /// When the next value that is not yet due becomes due. May walk the values of a slot.
    pub(super) fn upcoming(&mut self, now: Time) -> Option<u64> {
        self.wheel.upcoming(now).map(Time::units)
    }

    /// Closes the queue and removes all values.
    pub(super) fn close(&mut self) -> Vec<Taken<T>> {
        self.closed = true;
        let mut all = Vec::with_capacity(self.wheel.len());
        for key in self.wheel.keys() {
            let Some(deadline) = self.wheel.deadline(key) else { continue };
            let Some(value) = self.wheel.cancel(key) else { continue };
            let counts = &mut self.counts;
            *planted!(
                "more.closed-in-counts-as-removed",
                &mut counts.cancelled,
                &mut counts.handed_back
            ) += 1;
            all.push(Taken { key, deadline, value });
        }
        self.wheel.shrink();
        all
    }

    /// Removes all values. Waiting threads continue to wait.
    pub(super) fn drain(&mut self) -> Vec<Taken<T>> {
        let mut all = Vec::with_capacity(self.wheel.len());
        for (key, deadline) in self.wheel.sorted() {
            all.extend(self.wheel.cancel(key).map(|value| Taken { key, deadline, value }));
        }
        self.counts.cancelled +=
            planted!("fifth.drained-values-are-not-counted", 0, all.len() as u64);
        self.wheel.shrink();
        all
    }

    /// The keys and deadlines of all values, the earliest first.
    pub(super) fn sorted(&self) -> Vec<(Key, Time)> {
        self.wheel.sorted()
    }

    /// The key and the deadline of the first value.
    pub(super) fn first(&mut self) -> Option<(Key, Time)> {
        self.wheel.first_key()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts.with_pending(self.wheel.len())
    }

    pub(super) fn shrink(&mut self) {
        self.wheel.shrink();
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.wheel.check()?;
        self.counts().check()
    }
}
