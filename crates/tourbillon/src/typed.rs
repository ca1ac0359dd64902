//! `Engine`: delivers values in batches to one handler when they are due. No closure or allocation per timer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tourbillon_wheel::{RescheduleError, Time};

use crate::clock::{instant, nanoseconds};
use crate::contain::{Kept, contain};
use crate::engine::counts::{Counts, Lateness};
use crate::engine::face::Face;
use crate::engine::settings::Settings;
use crate::engine::shard::{Shard, Taken};
use crate::engine::{Core, Deliver, Driver, StartError};
use crate::error::ScheduleError;
use crate::key::Key;
use crate::stopped::Stopped;
use crate::sync::{Mutex, lock};
use crate::view::{Pending, Snapshot};

/// Delivers values in batches to one handler when they are due.
///
/// The handler runs on the driver's thread.
///
/// This is the engine beneath [`Timer`](crate::Timer), for uses that need no closures: no allocation per timer, and the
/// same guarantees. Clones share the same engine; dropping the last clone stops it.
///
/// A batch is claimed as a whole when the handler is called: until then its timers can be cancelled and rescheduled.
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use tourbillon::{Engine, Timer, VirtualClock};
///
/// let clock = VirtualClock::new();
/// let (expired, connections) = mpsc::channel();
/// let engine: Engine<u32> = Timer::builder().clock(&clock).deliver(move |batch| {
///     for timer in batch {
///         expired.send(timer.value).unwrap();
///     }
/// })?;
/// let seven = engine.schedule(Duration::from_secs(30), 7)?;
/// engine.schedule(Duration::from_secs(30), 8)?;
/// engine.reschedule(seven, Duration::from_secs(60))?;
///
/// clock.advance(Duration::from_secs(30))?;
/// assert_eq!(connections.try_iter().collect::<Vec<_>>(), [8]);
/// assert_eq!(engine.cancel(seven), Some(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Engine<T: Send + 'static> {
    owner: Arc<EngineOwner<T>>,
}

struct EngineOwner<T: Send + 'static> {
    core: Arc<Core<Handler<T>>>,
}

/// A timer that has fired, or that was handed back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fired<T> {
    /// Its key, which is stale now.
    pub key: Key,
    /// The scheduled value.
    pub value: T,
    /// The deadline, and `begin`, the beginning of time, from which [`deadline`](Fired::deadline) computes an
    /// [`Instant`]. This takes a division, which few callers need.
    deadline: Time,
    begin: Instant,
}

impl<T> Fired<T> {
    #[inline]
    pub(crate) fn new(shard: usize, taken: Taken<T>, begin: Instant) -> Self {
        let Taken { key, deadline, value } = taken;
        Fired { key: Key::new(shard, key), value, deadline, begin }
    }

    /// The deadline.
    pub fn deadline(&self) -> Instant {
        instant(self.begin, self.deadline)
    }
}

/// An iterator over the timers of a batch.
///
/// Timers that the handler leaves in the batch are dropped.
pub struct Batch<'a, T> {
    timers: &'a mut VecDeque<Taken<T>>,
    shard: usize,
    begin: Instant,
}

impl<T> Iterator for Batch<'_, T> {
    type Item = Fired<T>;

    #[inline]
    fn next(&mut self) -> Option<Fired<T>> {
        let next =
            planted!("later.batch-last-first", self.timers.pop_back(), self.timers.pop_front());
        let shard = planted!("blind.fired-key-names-the-first-shard", 0, self.shard);
        Some(Fired::new(shard, next?, self.begin))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.timers.len(), Some(self.timers.len()))
    }
}

impl<T> ExactSizeIterator for Batch<'_, T> {}

pub(crate) struct Handler<T> {
    /// The handler, while it does not run. Only the driver takes it: the driver's thread, or a thread that advances a
    /// virtual clock.
    state: Mutex<Option<HandlerState<T>>>,
}

/// The user's handler.
pub(crate) type Call<T> = Box<dyn FnMut(Batch<'_, T>) + Send>;

struct HandlerState<T> {
    call: Kept<Call<T>>,
    /// Kept so that its memory is reused.
    batch: VecDeque<Taken<T>>,
}

impl<T: Send + 'static> Face for Handler<T> {
    type Value = T;
    type Kept = ();
    type Shown = ();
    type Given = ();

    #[inline]
    fn arm(_value: &mut T, _kept: &mut ()) -> Option<()> {
        Some(())
    }
}

impl<T: Send + 'static> Deliver for Handler<T> {
    fn deliver(core: &Arc<Core<Self>>, shard: &Arc<Shard<Self>>) {
        if !shard.has_ready() {
            return;
        }
        let _at_work = core.context.work();
        // Taken out of its mutex: the handler runs with no lock held.
        let Some(mut state) = lock(&core.delivery.state).take() else { return };
        let HandlerState { call, batch } = &mut state;
        let spent = shard.claim_batch(core.context.clock.now(), core.budget, batch);
        let begin = core.context.clock.begin();
        let timers = Batch { timers: batch, shard: shard.index, begin };
        if timers.len() > 0 {
            planted!(
                "engine.handler-lost-after-a-panic",
                if contain(shard, || call.get_mut()(timers)).is_none() {
                    return;
                },
                {
                    contain(shard, || call.get_mut()(timers));
                }
            );
        }
        // Dropped one by one, because a second panic during the unwinding of a first would abort.
        while let Some(taken) =
            planted!("engine.leftovers-delivered-later", None, batch.pop_front())
        {
            planted!("more.leftover-whose-drop-panics-ends-the-driver", drop(taken.value), {
                contain(shard, || drop(taken.value));
            });
        }
        *lock(&core.delivery.state) = Some(state);
        if spent {
            shard.release();
        }
    }

    fn abandon(core: &Core<Self>) {
        for (shard, taken) in core.stop().unwrap_or_default() {
            planted!("third.value-panics-out-of-the-last-clone", drop(taken.value), {
                contain(&core.shards[shard], || drop(taken.value));
            });
        }
    }
}

impl<T: Send + 'static> Engine<T> {
    pub(crate) fn with(settings: Settings, call: Call<T>) -> Self {
        let call = Kept::new(call);
        let state = Mutex::new(Some(HandlerState { call, batch: VecDeque::new() }));
        Engine { owner: Arc::new(EngineOwner { core: Core::new(settings, Handler { state }) }) }
    }

    pub(crate) fn with_driver(settings: Settings, call: Call<T>) -> (Self, Driver) {
        let engine = Engine::with(settings, call);
        let driver = Driver::new(engine.core().clone());
        (engine, driver)
    }

    /// Delivers `value` after `after`, never earlier.
    ///
    /// # Errors
    /// The engine was stopped or is full, or its driver could not be started. The error holds the value.
    #[inline]
    pub fn schedule(&self, after: Duration, value: T) -> Result<Key, ScheduleError<T>> {
        self.arm(self.core().context.clock.now() + nanoseconds(after), value)
    }

    /// Delivers `value` at `at`, never earlier.
    ///
    /// # Errors
    /// As [`schedule`](Engine::schedule).
    pub fn schedule_at(&self, at: Instant, value: T) -> Result<Key, ScheduleError<T>> {
        self.arm(self.core().context.clock.time(at), value)
    }

    #[inline]
    fn arm(&self, at: Time, value: T) -> Result<Key, ScheduleError<T>> {
        let shard = self.core().own_shard();
        let (key, ()) = self.core().arm(shard, at, value)?;
        Ok(Key::new(shard.index, key))
    }

    /// Cancels a timer and returns its value, which will never be delivered. `None` if it is not pending.
    #[inline]
    pub fn cancel(&self, key: Key) -> Option<T> {
        self.core().cancel(key, |_, ()| ())
    }

    /// Reschedules a timer to `after` from now.
    ///
    /// # Errors
    /// The timer is not pending, or there is no memory to move it. In either case nothing has changed.
    pub fn reschedule(&self, key: Key, after: Duration) -> Result<(), RescheduleError> {
        self.core().reschedule(key, self.core().context.clock.now() + nanoseconds(after))
    }

    /// Reschedules a timer to `at`.
    ///
    /// # Errors
    /// As [`reschedule`](Engine::reschedule).
    pub fn reschedule_at(&self, key: Key, at: Instant) -> Result<(), RescheduleError> {
        self.core().reschedule(key, self.core().context.clock.time(at))
    }

    /// Whether the timer is pending.
    pub fn is_pending(&self, key: Key) -> bool {
        self.deadline(key).is_some()
    }

    /// The deadline of a timer, if it is pending.
    pub fn deadline(&self, key: Key) -> Option<Instant> {
        self.core().deadline(key)
    }

    /// Starts the driver now instead of with the first timer.
    ///
    /// # Errors
    /// The engine was stopped, or the thread could not be started.
    pub fn start(&self) -> Result<(), StartError> {
        self.core().start()
    }

    /// Stops the engine and returns every value that was not delivered, each once.
    ///
    /// Waits until the handler has returned, unless the handler itself makes the call. A second stop returns nothing.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Engine, Timer};
    ///
    /// let engine: Engine<&str> = Timer::builder().deliver(|_batch| ())?;
    /// engine.schedule(Duration::from_secs(60), "late")?;
    /// let unfired = engine.stop();
    /// assert_eq!(unfired[0].value, "late");
    /// assert_eq!(engine.schedule(Duration::ZERO, "too late").unwrap_err().into_inner(), "too late");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stop(&self) -> Vec<Fired<T>> {
        self.stop_and_wait(None).unfired
    }

    /// As [`stop`](Engine::stop), but waits for the handler for at most `limit` of real time.
    pub fn stop_within(&self, limit: Duration) -> Stopped<Fired<T>> {
        self.stop_and_wait(Some(limit))
    }

    fn stop_and_wait(&self, limit: Option<Duration>) -> Stopped<Fired<T>> {
        let core = self.core();
        let first = core.stop();
        let outside = planted!("engine.second-stop-does-not-wait", false, core.depth() == 0);
        let finished = (first.is_some() || outside)
            && core.wait_for_silence(planted!("sixth.stop-within-outwaits-its-limit", None, limit));
        let begin = core.context.clock.begin();
        let unfired = first.into_iter().flatten().map(|(shard, taken)| {
            let shard = planted!("sixth.handed-back-value-names-the-first-shard", 0, shard);
            Fired::new(shard, taken, begin)
        });
        Stopped { unfired: unfired.collect(), finished }
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.core().is_stopped()
    }

    /// The current time of its clock.
    pub fn now(&self) -> Instant {
        self.core().context.clock.instant(self.core().context.clock.now())
    }

    /// The number of pending timers.
    pub fn len(&self) -> usize {
        self.counts().pending as usize
    }

    /// Whether no timer is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pending timers, in no particular order.
    pub fn pending(&self) -> Vec<Pending> {
        crate::view::pending(self.core())
    }

    /// Counters of what the engine has done.
    pub fn counts(&self) -> Counts {
        self.core().counts()
    }

    /// How late its timers fired, measured from their deadlines, even from deadlines that were past when scheduled.
    pub fn lateness(&self) -> Lateness {
        self.core().lateness()
    }

    /// The contents of its wheels, slot by slot.
    pub fn snapshot(&self) -> Snapshot {
        crate::view::snapshot(self.core())
    }

    /// Frees the memory of a peak that has passed.
    pub fn shrink(&self) {
        planted!(
            "fourth.shrink-frees-only-the-callers-shard",
            self.core().own_shard().shrink(),
            self.core().shards.iter().for_each(|shard| shard.shrink())
        );
    }

    /// Checks the invariants of its wheels. For tests.
    ///
    /// # Errors
    /// The first invariant that does not hold, which is a bug in this crate.
    pub fn check(&self) -> Result<(), String> {
        self.core().shards.iter().try_for_each(|shard| shard.check())
    }

    #[inline]
    pub(crate) fn core(&self) -> &Arc<Core<Handler<T>>> {
        &self.owner.core
    }
}

impl<T: Send + 'static> Clone for Engine<T> {
    fn clone(&self) -> Self {
        Engine { owner: self.owner.clone() }
    }
}

impl<T: Send + 'static> Drop for EngineOwner<T> {
    fn drop(&mut self) {
        Handler::abandon(&self.core);
    }
}

impl<T: Send + 'static> std::fmt::Debug for Engine<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("counts", &self.counts()).finish_non_exhaustive()
    }
}
