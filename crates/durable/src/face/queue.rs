//! A queue: scheduling, cancelling, reading.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::error::{Error, Refused, ScheduleError};
use super::receipt::Receipt;
use crate::message::Stats;
use crate::runtime::{Failure, Runtime};
use crate::shard::{Answer, Cancelled, Conflict, Counts, NewTimer, Request, Scheduled, View, When};
use crate::store::Settings;
use crate::values::{Generation, Key, Moment, QueueName, Rhythm, Span, ValueError};

const MOST_TIMERS: usize = 10_000;
const LARGEST_PAYLOAD: usize = 256 << 10;

/// A queue of durable timers. A handle: clones share the same queue, and each keeps the store open.
///
/// The queue is created by its first timer or setting.
#[derive(Clone)]
pub struct Queue {
    pub(super) runtime: Arc<Runtime>,
    pub(super) name: QueueName,
    pub(super) lease: Span,
}

impl Queue {
    pub(super) fn new(runtime: Arc<Runtime>, name: QueueName) -> Self {
        Queue { runtime, name, lease: Span::from_secs(30) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Sets the lease of deliveries received by this handle. The default is 30 s.
    ///
    /// # Errors
    /// The lease is shorter than a second or longer than 12 hours.
    pub fn lease(mut self, length: Duration) -> Result<Self, ValueError> {
        self.lease = lease(length)?;
        Ok(self)
    }

    /// Posts a request whose answer resolves a receipt.
    pub(super) fn request<T: Send + 'static, E: Send + 'static>(
        &self,
        request: Request,
        read: impl FnOnce(Result<Answer, Failure>) -> Result<T, E> + Send + 'static,
    ) -> Receipt<T, E> {
        let (receipt, slot) = Receipt::new();
        self.runtime.post(request, Box::new(move |answer| drop(slot.fill(read(answer)))));
        receipt
    }

    /// Converts a delay to a moment by the current clock, rounded up so that it is never early.
    fn fixed(&self, when: When) -> When {
        match when {
            When::In(span) => When::At(self.runtime.now() + span),
            when => when,
        }
    }
}

/// Scheduling.
impl Queue {
    /// Schedules a timer. It is durable when the receipt resolves.
    ///
    /// A timer whose key is taken is refused. The key of a finished timer stays taken while the timer is remembered. So
    /// a schedule with a key is safe to repeat.
    pub fn schedule(&self, timer: NewTimer) -> Receipt<Scheduled, ScheduleError> {
        self.schedule_with(timer, Conflict::Refuse)
    }

    /// Schedules a timer, replacing the timer that has its key.
    ///
    /// A receiver may currently hold the replaced timer; the answer tells its state.
    pub fn replace(&self, timer: NewTimer) -> Receipt<Scheduled, ScheduleError> {
        self.schedule_with(timer, Conflict::Replace)
    }

    /// Schedules a timer. `conflict` decides what happens if its key is taken.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon_durable::{Conflict, Durable, NewTimer, Outcome, Refused, State};
    ///
    /// let durable = Durable::memory()?;
    /// let jobs = durable.queue("jobs")?;
    /// let timer = || NewTimer::after(Duration::from_secs(60)).key("a");
    /// let first = jobs.schedule(timer()?).wait()?;
    /// let kept = jobs.schedule_with(timer()?, Conflict::Keep).wait()?;
    /// assert_eq!((kept.generation, kept.outcome), (first.generation, Outcome::Kept));
    ///
    /// let only = Conflict::ReplaceOnly(first.generation);
    /// let second = jobs.schedule_with(timer()?, only).wait()?;
    /// assert_eq!(second.outcome, Outcome::Replaced(first.generation, State::Scheduled));
    /// let late = jobs.schedule_with(timer()?, only).wait().unwrap_err();
    /// assert_eq!(late.reason, Refused::Mismatch(0, Some(second.generation)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schedule_with(
        &self,
        timer: NewTimer,
        conflict: Conflict,
    ) -> Receipt<Scheduled, ScheduleError> {
        self.schedule_as(vec![timer], conflict, |mut scheduled| {
            scheduled.pop().expect("each timer of a request is answered")
        })
    }

    /// Schedules up to 10 000 timers, all or none.
    pub fn schedule_all(
        &self,
        timers: Vec<NewTimer>,
        conflict: Conflict,
    ) -> Receipt<Vec<Scheduled>, ScheduleError> {
        self.schedule_as(timers, conflict, |scheduled| scheduled)
    }

    fn schedule_as<T: Send + 'static>(
        &self,
        mut timers: Vec<NewTimer>,
        conflict: Conflict,
        read: fn(Vec<Scheduled>) -> T,
    ) -> Receipt<T, ScheduleError> {
        if let Err(reason) = check(&timers) {
            return Receipt::ready(Err(ScheduleError { reason, timers }));
        }
        for timer in &mut timers {
            // With a period, the first occurrence is due one period from now.
            timer.when = match timer.recurrence.as_ref().map(|recurrence| &recurrence.rhythm) {
                Some(Rhythm::Every(period)) if timer.when == When::Rhythm => When::In(*period),
                _ => timer.when,
            };
            timer.when = self.fixed(timer.when);
        }
        // Clones of shared data, for the caller in case the request is refused.
        let back = timers.clone();
        let request = Request::Schedule { queue: self.name.clone(), timers, conflict };
        self.request(request, move |answer| {
            let reason = match answer {
                Ok(Answer::Scheduled(scheduled)) => return Ok(read(scheduled)),
                Ok(Answer::KeyTaken(index, state)) => Refused::KeyTaken(index, state),
                Ok(Answer::Refused(index)) => Refused::Never(index),
                Ok(Answer::TooMany) => Refused::TooMany,
                Ok(Answer::NotAssigned(index)) => Refused::NotAssigned(index),
                Ok(Answer::Mismatch(index, there)) => Refused::Mismatch(index, there),
                Ok(other) => unreachable!("a schedule was answered with {other:?}"),
                Err(failure) => Refused::Request(failure.into()),
            };
            Err(ScheduleError { reason, timers: back })
        })
    }
}

/// Changing and reading.
impl Queue {
    /// Cancels a timer. The answer is definite.
    ///
    /// [`Cancelled::Cancelled`]: the timer will not be handed out. [`Cancelled::Delivering`]: its current holder may
    /// finish it, and it will not be handed out again.
    pub fn cancel(&self, key: impl AsRef<str>) -> Receipt<Cancelled> {
        let key = match Key::new(key.as_ref()) {
            Ok(key) => key,
            Err(error) => return Receipt::ready(Err(error.into())),
        };
        self.cancel_as(vec![key], None, one)
    }

    /// [Cancels](Queue::cancel) a timer if it has that generation; otherwise fails with [`Error::Mismatch`].
    pub fn cancel_only(&self, key: impl AsRef<str>, generation: Generation) -> Receipt<Cancelled> {
        match Key::new(key.as_ref()) {
            Ok(key) => self.cancel_as(vec![key], Some(generation), one),
            Err(error) => Receipt::ready(Err(error.into())),
        }
    }

    /// Cancels timers. The answers are in the order of the keys.
    pub fn cancel_all<K: AsRef<str>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Receipt<Vec<Cancelled>> {
        match keys.into_iter().map(|key| Key::new(key.as_ref())).collect() {
            Ok(keys) => self.cancel_as(keys, None, |cancelled| cancelled),
            Err(error) => Receipt::ready(Err(Error::Value(error))),
        }
    }

    fn cancel_as<T: Send + 'static>(
        &self,
        keys: Vec<Key>,
        only: Option<Generation>,
        read: fn(Vec<Cancelled>) -> T,
    ) -> Receipt<T> {
        let request = Request::Cancel { queue: self.name.clone(), keys, only };
        self.request(request, move |answer| match answer? {
            Answer::Cancelled(cancelled) => Ok(read(cancelled)),
            Answer::Mismatch(_, there) => Err(Error::Mismatch(there)),
            other => unreachable!("a cancel was answered with {other:?}"),
        })
    }

    /// Moves the occurrence of a timer to a delay from now, or to a moment. A recurrence continues from there.
    ///
    /// A dead timer is revived with all its attempts available.
    pub fn reschedule(&self, key: impl AsRef<str>, when: impl Into<When>) -> Receipt<View> {
        let when = self.fixed(when.into());
        self.change(key, |queue, key| Request::Move { queue, key, when, only: None })
    }

    /// [Moves](Queue::reschedule) a timer if it has that generation; otherwise fails with [`Error::Mismatch`].
    pub fn reschedule_only(
        &self,
        key: impl AsRef<str>,
        when: impl Into<When>,
        generation: Generation,
    ) -> Receipt<View> {
        let (when, only) = (self.fixed(when.into()), Some(generation));
        self.change(key, |queue, key| Request::Move { queue, key, when, only })
    }

    /// Makes a timer due now. A dead timer is revived; a recurring timer not yet due gets an extra occurrence.
    pub fn run_now(&self, key: impl AsRef<str>) -> Receipt<View> {
        self.change(key, |queue, key| Request::Run { queue, key })
    }

    fn change(
        &self,
        key: impl AsRef<str>,
        request: impl FnOnce(QueueName, Key) -> Request,
    ) -> Receipt<View> {
        let key = match Key::new(key.as_ref()) {
            Ok(key) => key,
            Err(error) => return Receipt::ready(Err(error.into())),
        };
        self.request(request(self.name.clone(), key), |answer| match answer? {
            Answer::Timer(view) => view.ok_or(Error::UnknownTimer),
            Answer::NotMoved(state) => Err(Error::State(state)),
            Answer::Mismatch(_, there) => Err(Error::Mismatch(there)),
            other => unreachable!("a change was answered with {other:?}"),
        })
    }

    /// Returns a timer, including a dead or remembered one.
    pub fn get(&self, key: impl AsRef<str>) -> Receipt<Option<View>> {
        let key = match Key::new(key.as_ref()) {
            Ok(key) => key,
            Err(error) => return Receipt::ready(Err(error.into())),
        };
        self.request(Request::Get { queue: self.name.clone(), key }, |answer| match answer? {
            Answer::Timer(view) => Ok(view),
            other => unreachable!("a get was answered with {other:?}"),
        })
    }

    /// Counts of its timers by state. Reads no timer. `None` if the queue does not exist.
    pub fn count(&self) -> Receipt<Option<Counts>> {
        self.look(|(counts, _)| counts)
    }

    /// Its settings. `None` if the queue does not exist.
    pub fn settings(&self) -> Receipt<Option<Settings>> {
        self.look(|(_, settings)| settings)
    }

    /// Counts, the most overdue timer, the next due timer, and lateness. `None` if the queue does not exist.
    ///
    /// Reads at most a few rows.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon_durable::{Durable, NewTimer};
    ///
    /// let durable = Durable::memory()?;
    /// let jobs = durable.queue("jobs")?;
    /// let due = jobs.schedule(NewTimer::after(Duration::from_secs(86_400))).wait()?.due;
    /// let stats = jobs.stats().wait()?.expect("a timer has made it");
    /// assert_eq!((stats.counts.scheduled, stats.next, stats.oldest_due), (1, Some(due), None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stats(&self) -> Receipt<Option<Stats>> {
        self.request(Request::Stats(self.name.clone()), |answer| match answer? {
            Answer::Stats(stats) => Ok(stats.map(|stats| *stats)),
            other => unreachable!("a look was answered with {other:?}"),
        })
    }

    fn look<T: Send + 'static>(&self, read: fn((Counts, Settings)) -> T) -> Receipt<Option<T>> {
        self.request(Request::Queue(self.name.clone()), move |answer| match answer? {
            Answer::Queue(found) => Ok(found.map(read)),
            other => unreachable!("a look was answered with {other:?}"),
        })
    }

    /// Counts the pending timers due in each of `pieces` equal parts of the time from `from` to `to`.
    ///
    /// Rounds the edges outward to a grid: to a minute in the next day, to an hour in the next 30 days, else to a day.
    /// Returns the rounded edges; the counts between them are exact. Reads no timer. `pieces` is clamped to 1 to
    /// 10 000.
    pub fn forecast(
        &self,
        from: impl Into<Moment>,
        to: impl Into<Moment>,
        pieces: usize,
    ) -> Receipt<Vec<(Moment, Moment, u64)>> {
        let (from, to): (Moment, Moment) = (from.into(), to.into());
        let (pieces, length) = (pieces.clamp(1, 10_000) as u64, to.since(from).millis());
        let edge = |nth: u64| {
            let part = u128::from(length) * u128::from(nth) / u128::from(pieces);
            from + Span::from_millis(part as u64)
        };
        let request =
            Request::Forecast { queue: self.name.clone(), edges: (0..=pieces).map(edge).collect() };
        self.request(request, |answer| match answer? {
            Answer::Forecast(pieces) => Ok(pieces),
            other => unreachable!("a forecast was answered with {other:?}"),
        })
    }
}

/// The answer to a cancel of one key.
fn one(mut cancelled: Vec<Cancelled>) -> Cancelled {
    cancelled.pop().unwrap_or(Cancelled::Unknown)
}

/// Checks everything that depends on the request alone.
fn check(timers: &[NewTimer]) -> Result<(), Refused> {
    if timers.is_empty() || timers.len() > MOST_TIMERS {
        return Err(Refused::Count);
    }
    let mut keys = HashSet::new();
    for (index, timer) in timers.iter().enumerate() {
        if timer.payload.len() > LARGEST_PAYLOAD {
            return Err(Refused::PayloadTooLarge(index));
        }
        if timers.len() > 1 && timer.key.as_ref().is_some_and(|key| !keys.insert(key)) {
            return Err(Refused::KeyTwice(index));
        }
    }
    Ok(())
}

/// Checks the length of a lease.
pub(super) fn lease(length: Duration) -> Result<Span, ValueError> {
    let span = Span::from(length);
    if !(Span::from_secs(1)..=Span::from_secs(12 * 3600)).contains(&span) {
        return Err(ValueError::new("lease", &span.to_string(), "1s to 12h"));
    }
    Ok(span)
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Queue").field(&self.name()).finish()
    }
}
