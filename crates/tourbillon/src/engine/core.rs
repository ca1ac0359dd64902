//! An engine: its shards, the lifecycle of its driver, and the operations that choose a shard.
//!
//! A handle or a face that knows its timer's shard calls the shard itself. The claims are in `shard.rs`.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tourbillon_wheel::{self as wheel, RescheduleError, Time};

use super::context::{EngineContext, ShuttingDown};
use super::counts::{Counts, Lateness};
use super::face::Face;
#[cfg(feature = "tracing")]
use super::instances::Instance;
use super::settings::Settings;
use super::shard::{Shard, Taken};
use crate::error::ScheduleError;
use crate::in_callback;
use crate::key::Key;
use crate::spawn::Spawn;
use crate::sync::thread::{ThreadId, current};
use crate::sync::{Mutex, lock};

pub(crate) struct Core<D: Face> {
    pub(crate) context: Arc<EngineContext>,
    pub(crate) shards: Box<[Arc<Shard<D>>]>,
    pub(crate) delivery: D,
    /// The number of timers that one pass makes ready, and cascades, in each shard.
    pub(crate) budget: usize,
    life: Mutex<Life>,
    spawn: Spawn,
    name: String,
    #[cfg(feature = "tracing")]
    _alive: Instance,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    New,
    /// This thread is starting the driver.
    Starting(ThreadId),
    Started,
    /// Pending timers still run, but no new timer is armed.
    Closing,
    Stopped,
}

/// How ready timers are delivered.
pub(crate) trait Deliver: Face {
    /// Delivers the timers of the shard that may be ready. Called by the driver with no lock held.
    fn deliver(core: &Arc<Core<Self>>, shard: &Arc<Shard<Self>>);
    /// Stops the engine and drops pending timers, with no lock held.
    /// Called when the last clone of the engine, or its driver, is dropped.
    fn abandon(core: &Core<Self>);
    /// Offers refused ready timers to the executor again. A virtual clock calls this while it waits for them to run.
    fn offer_again(_core: &Arc<Core<Self>>, _shard: &Arc<Shard<Self>>) {}
    /// Called when the wall clock was set: re-examines the timers that wait for it.
    fn wall_was_set(_core: &Arc<Core<Self>>) {}
    /// Called when the engine has stopped.
    fn close(&self) {}
}

impl<D: Deliver> Core<D> {
    // Never inlined, for the same reason as `make_wheel` of a shard: loom's small stacks.
    #[inline(never)]
    pub(crate) fn new(settings: Settings, delivery: D) -> Arc<Self> {
        let context =
            Arc::new(EngineContext::new(settings.context, settings.shards, settings.tick));
        let shard = |index| {
            let shard = Shard::new(index, context.clone(), &settings.geometry, settings.tick);
            shard.expect("the settings were checked")
        };
        let core = Arc::new(Core {
            shards: (0..settings.shards).map(shard).collect(),
            delivery,
            budget: settings.budget,
            life: Mutex::new(Life::New),
            spawn: settings.spawn,
            name: settings.name,
            context,
            #[cfg(feature = "tracing")]
            _alive: Instance::new(),
        });
        if let Some(clock) = core.context.clock.as_virtual() {
            let driven: std::sync::Weak<Self> = Arc::downgrade(&core);
            clock.attach(driven);
        }
        core
    }

    /// Arms a timer on a shard, which wakes the driver if needed (see [`Shard::arm`]). Starts the driver if this is the
    /// first timer.
    #[inline(always)]
    pub(crate) fn arm(
        self: &Arc<Self>,
        shard: &Shard<D>,
        deadline: Time,
        value: D::Value,
    ) -> Result<(wheel::Key, D::Given), ScheduleError<D::Value>> {
        match shard.arm(deadline, value) {
            Ok(armed) => Ok(armed),
            Err(error) => self.start_and_arm(shard, deadline, error),
        }
    }

    /// Called when a shard refused a timer: if the shard was not open yet, starts the driver and arms the timer.
    #[cold]
    #[inline(never)]
    fn start_and_arm(
        self: &Arc<Self>,
        shard: &Shard<D>,
        deadline: Time,
        refused: ScheduleError<D::Value>,
    ) -> Result<(wheel::Key, D::Given), ScheduleError<D::Value>> {
        let ScheduleError::Stopped(value) = refused else { return Err(refused) };
        match self.start() {
            Ok(()) => shard.arm(deadline, value),
            Err(StartError::Stopped) => Err(ScheduleError::Stopped(value)),
            Err(StartError::Thread(wrong)) => Err(ScheduleError::Thread(value, wrong)),
        }
    }

    /// The shard on which this thread arms its timers.
    #[inline]
    pub(crate) fn own_shard(&self) -> &Arc<Shard<D>> {
        // The number of shards is a power of two.
        &self.shards[own_number() & (self.shards.len() - 1)]
    }

    /// Starts the driver if it is not running. If another thread is starting it, waits for the outcome.
    pub(crate) fn start(self: &Arc<Self>) -> Result<(), StartError> {
        loop {
            let mut life = lock(&self.life);
            match *life {
                Life::Closing if planted!("engine.closing-engine-starts", true, false) => {
                    return Ok(());
                }
                Life::Closing | Life::Stopped => return Err(StartError::Stopped),
                Life::Started => return Ok(()),
                Life::New => {
                    *life = Life::Starting(current().id());
                    drop(life);
                    return self.start_driver();
                }
                Life::Starting(by)
                    if planted!(
                        "engine.spawn-hook-that-schedules-hangs",
                        false,
                        by == current().id()
                    ) =>
                {
                    let wrong = "the spawn hook used the timer that it was to start a thread for";
                    return Err(StartError::Thread(io::Error::other(wrong)));
                }
                Life::Starting(_) => {}
            }
            drop(life);
            let starting = || matches!(*lock(&self.life), Life::Starting(_));
            self.context.quiescence.wait_until(None, || !starting());
        }
    }

    /// Starts the driver's thread. The spawn hook is user code: no lock is held.
    fn start_driver(self: &Arc<Self>) -> Result<(), StartError> {
        let mut started = Ok(());
        // A virtual clock or the caller's event loop drives the engine without a thread.
        if self.context.clock.as_virtual().is_none() && !self.context.signal.has_hook() {
            let core = self.clone();
            let body = Box::new(move || core.drive());
            started = self.spawn.run(format!("{}-driver", self.name), body);
        }
        let mut life = lock(&self.life);
        // If the engine was stopped during the start, the driver ends at once. If it was closed, its shards stay
        // closed, and the driver runs until the stop.
        let goes_on = matches!(*life, Life::Starting(_));
        if planted!("more.stop-during-the-start-is-forgotten", true, goes_on) {
            let failed = planted!("engine.failed-start-is-final", Life::Started, Life::New);
            *life = if started.is_ok() { Life::Started } else { failed };
            if started.is_ok() {
                self.shards.iter().for_each(|shard| shard.open());
            }
        }
        drop(life);
        planted!("engine.second-starter-not-told", (), self.context.quiescence.changed());
        started.map_err(StartError::Thread)
    }

    /// Cancels a timer of a typed engine; a `Timer` calls [`Shard::cancel`] itself. `settle` is called with the value
    /// under the shard's lock.
    #[inline(always)]
    pub(crate) fn cancel(
        &self,
        key: Key,
        settle: impl FnOnce(&mut D::Value, &mut D::Kept),
    ) -> Option<D::Value> {
        let shard = key.shard();
        let shard =
            planted!("engine.foreign-key-panics", &self.shards[shard], self.shards.get(shard)?);
        shard.cancel(key.inner(), settle)
    }

    #[inline]
    pub(crate) fn reschedule(&self, key: Key, deadline: Time) -> Result<(), RescheduleError> {
        let shard = planted!(
            "sixth.key-moved-by-another-thread-is-not-pending",
            self.own_shard(),
            self.shards.get(key.shard()).ok_or(RescheduleError::NotPending)?
        );
        shard.reschedule(key.inner(), deadline)
    }

    /// The deadline of a pending timer.
    pub(crate) fn deadline(&self, key: Key) -> Option<Instant> {
        let time = self.shards.get(key.shard())?.deadline(key.inner())?;
        Some(self.context.clock.instant(time))
    }

    /// Stops the engine and takes out all pending timers; `None` if it was already stopped. No timer starts after this,
    /// and the driver ends.
    pub(crate) fn stop(&self) -> Option<Vec<(usize, Taken<D::Value>)>> {
        if std::mem::replace(&mut *lock(&self.life), Life::Stopped) == Life::Stopped {
            return None;
        }
        let mut all = Vec::new();
        for shard in &self.shards {
            all.extend(shard.stop().into_iter().map(|taken| (shard.index, taken)));
        }
        self.context.signal.stop();
        let first = planted!("engine.stop-does-not-wake-the-loop", None, self.shards.first());
        first.into_iter().for_each(|shard| shard.tell_loop());
        self.delivery.close();
        planted!(
            "third.who-waits-for-the-start-misses-the-stop",
            (),
            self.context.quiescence.changed()
        );
        Some(all)
    }

    /// Refuses new timers from now on. Pending timers run at their time.
    pub(crate) fn refuse(&self) {
        let mut life = lock(&self.life);
        if planted!(
            "sixth.shutdown-of-a-timer-not-yet-started-takes-new-timers",
            *life == Life::Started,
            *life != Life::Stopped
        ) {
            *life = Life::Closing;
            self.shards.iter().for_each(|shard| shard.close());
        }
    }

    /// Begins a shutdown: until the guard is dropped, no shutdown waits for the callbacks on the caller's own stack.
    pub(crate) fn shut_down(&self) -> ShuttingDown<'_> {
        let own = planted!("engine.shutdown-in-a-callback-waits-for-itself", 0, self.depth());
        self.context.shut_down(planted!("later.shutdown-in-a-nested-job-hangs", own.min(1), own))
    }

    /// Waits until nothing is pending and no callback runs, except callbacks that wait in a
    /// [shutdown](Core::shut_down) themselves; `false` if `limit` (real time) passes first.
    ///
    /// Once the engine is stopped and nothing is pending, the running callbacks are left to the stop, which may be
    /// waiting for a callback on the caller's stack.
    pub(crate) fn wait_until_idle(&self, limit: Option<Duration>) -> bool {
        self.context.watch();
        let rest = || {
            planted!(
                "later.two-shutdowns-from-inside-wait-for-each-other",
                self.context.busy() <= self.depth(),
                self.context.rest_shuts_down()
            )
        };
        let stopped = || planted!("later.shutdown-waits-for-a-stop", false, self.is_stopped());
        let silent =
            || planted!("fourth.shutdown-cuts-off-the-last-run", true, stopped() || rest());
        let none = || self.counts().pending == 0 && silent();
        self.context.quiescence.wait_until(limit, none)
    }

    /// The number of this engine's callbacks on the current thread's stack.
    pub(crate) fn depth(&self) -> usize {
        in_callback::depth(self.context.id())
    }

    /// Waits until no callback runs, except callbacks on the caller's own stack; `false` if `limit` (real time) passes
    /// first. Does not join threads: the driver may be blocked in a user's executor, and each thread ends by itself.
    pub(crate) fn wait_for_silence(&self, limit: Option<Duration>) -> bool {
        let own = self.depth();
        let own = planted!("engine.stop-does-not-wait", own + 1, own);
        self.context.watch();
        self.context.quiescence.wait_until(limit, || self.context.busy() <= own)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        let life = *lock(&self.life);
        planted!(
            "fifth.timer-that-shuts-down-has-stopped",
            matches!(life, Life::Closing | Life::Stopped),
            life == Life::Stopped
        )
    }

    pub(crate) fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        self.shards.iter().for_each(|shard| sum.add(shard.counts()));
        sum
    }

    pub(crate) fn lateness(&self) -> Lateness {
        let mut sum = Lateness::new();
        self.shards.iter().for_each(|shard| shard.add_lateness(&mut sum));
        sum
    }
}

/// Why an engine did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The engine was stopped, and cannot be started again.
    Stopped,
    /// The driver's thread could not be started.
    Thread(io::Error),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartError::Stopped => f.write_str("the timer was stopped: make a new one"),
            StartError::Thread(wrong) => {
                write!(f, "the driver's thread could not be started ({wrong}): try again")
            }
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartError::Stopped => None,
            StartError::Thread(wrong) => Some(wrong),
        }
    }
}

/// The number of the current thread, which assigns it to a shard.
#[inline]
fn own_number() -> usize {
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    let number = NUMBER.get();
    if number != usize::MAX { number } else { first_number(&NUMBER) }
}

#[cold]
fn first_number(own: &'static std::thread::LocalKey<Cell<usize>>) -> usize {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: the number only spreads threads over shards.
    let number = LAST.fetch_add(1, Ordering::Relaxed) & (usize::MAX >> 1);
    own.set(number);
    number
}
