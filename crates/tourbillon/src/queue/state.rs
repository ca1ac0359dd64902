//! What the lock of a queue guards: the wheel, what was counted, and who waits.
//!
//! Invariant: `armed = fired + cancelled + handed back + wheel.len()`. No foreign code runs here: what leaves is
//! returned, and a clock is read before the lock is taken.

use tourbillon_wheel::{Full, Key, Progress, RescheduleError, Time};

use super::error::PutError;
use crate::engine::counts::Counts;
use crate::engine::shard::{AGAIN, Taken};
use crate::engine::wheels::Geometry;
use crate::ordered::OrderedWheel;

/// How many values one look may make ready, or hand down, before it gives up the lock.
const BUDGET: usize = 256;

pub(super) struct QueueState<T> {
    wheel: OrderedWheel<T>,
    counts: Counts,
    most: usize,
    closed: bool,
    pub(super) waiting: Waiting,
}

/// Those who wait to take.
#[derive(Default)]
pub(super) struct Waiting {
    /// Until when the one who leads sleeps, if somebody does. [`AWAKE`] once it was woken.
    pub(super) leader: Option<u64>,
    /// How many wait to be called.
    pub(super) followers: usize,
    /// How many there are altogether, those included that have been called and are on their way.
    pub(super) all: usize,
    /// [Takers](super::Taker) that do not wait: they work on what they took, or have not come yet.
    pub(super) busy: usize,
    /// When those of them give up that have a limit. Not kept for the system's clock, by which each knows it by itself.
    pub(super) limits: Vec<u64>,
}

/// Nothing is due before: who leads was woken, and others need not wake it again.
const AWAKE: u64 = 0;

/// What there is to take.
pub(super) enum Look<T> {
    Due(Taken<T>),
    Nothing,
    /// There is no memory to look: not before this moment.
    Later(u64),
    /// Not known yet: the look has used up its budget.
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

    /// The moment from which the value can be taken.
    pub(super) fn due(&self, key: Key) -> u64 {
        self.wheel.due(key).map_or(u64::MAX, Time::units)
    }

    /// Whether who leads must be woken, because it would sleep past this moment. Asked once: then it is awake.
    pub(super) fn wakes_leader(&mut self, due: u64) -> bool {
        let wakes = self.waiting.leader.is_some_and(|until| until != AWAKE && due < until);
        if wakes {
            self.waiting.leader = Some(AWAKE);
        }
        wakes
    }

    /// Takes what is due first.
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

    /// Makes ready all that is due, and says whether something is.
    pub(super) fn make_ready(&mut self, now: Time) -> bool {
        self.wheel.make_ready(now);
        self.wheel.is_due(now)
    }

    pub(super) fn is_due(&mut self, now: Time) -> bool {
        self.wheel.is_due(now)
    }

    /// When the next of those is due that are not due now. It may have to walk the values of a slot.
    pub(super) fn upcoming(&mut self, now: Time) -> Option<u64> {
        self.wheel.upcoming(now).map(Time::units)
    }

    /// Refuses what comes from now on, and takes out all there is.
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

    /// Takes out all there is. Those who wait go on waiting.
    pub(super) fn drain(&mut self) -> Vec<Taken<T>> {
        let mut all = Vec::with_capacity(self.wheel.len());
        for (key, deadline) in self.wheel.sorted() {
            all.extend(self.wheel.cancel(key).map(|value| Taken { key, deadline, value }));
        }
        self.counts.cancelled += all.len() as u64;
        self.wheel.shrink();
        all
    }

    /// The keys and deadlines of all, in their order.
    pub(super) fn sorted(&self) -> Vec<(Key, Time)> {
        self.wheel.sorted()
    }

    /// The key and the deadline of the first.
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
