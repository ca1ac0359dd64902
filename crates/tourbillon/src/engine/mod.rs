//! The engine: shards, and the driver that turns them.
//!
//! ```text
//!   arm, cancel, move ──► shard 0 ┐  wheel + lock        driver: sleeps until the least of the shards' next
//!   (any thread)          shard 1 ├──── next ──────────► moments, makes ready what is due, and has it delivered
//!                         …       ┘  (signal.rs)         (to the pool, on its own thread, or to a handler)
//! ```
//!
//! Lock order: the quiet mutex, then the life of the engine, then a shard, then the key of a timer that can repeat or
//! the plan of one that waits for the wall clock. Nobody holds two shards.

#[cfg(feature = "tracing")]
mod alive;
pub(crate) mod counts;
mod driven;
mod driver;
pub(crate) mod hub;
pub(crate) mod leases;
pub(crate) mod shard;
mod signal;
pub(crate) mod typed;
pub(crate) mod wheels;

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tourbillon_wheel::{self as wheel, RescheduleError, Time};

use crate::inside;
use crate::key::Key;
use crate::settings::Settings;
use crate::spawn::Spawn;
use crate::sync::thread::{ThreadId, current};
use crate::sync::{Mutex, lock};
use counts::{Counts, Lateness};
#[cfg(target_os = "linux")]
pub use driven::WakeFd;
pub use driven::{Driver, Turn};
pub(crate) use driver::Deliver;
use hub::Hub;
use leases::{Lease, Leases};
use shard::{Refused, Shard, Taken};
pub use signal::Sleeper;

pub(crate) struct Core<T, D> {
    pub(crate) hub: Arc<Hub>,
    pub(crate) shards: Box<[Arc<Shard<T>>]>,
    pub(crate) delivery: D,
    pub(crate) budget: usize,
    /// Nanoseconds.
    pub(crate) tick: u64,
    life: Mutex<Life>,
    spawn: Spawn,
    name: String,
    #[cfg(feature = "tracing")]
    _alive: alive::Alive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    New,
    /// That thread starts the driver.
    Starting(ThreadId),
    Started,
    Stopped,
}

/// Why a value was not armed.
pub(crate) enum Unarmed<T> {
    Stopped(T),
    Full(T),
    Thread(T, io::Error),
}

impl<T: Send + 'static, D: Deliver<T>> Core<T, D> {
    // Never inlined, as that of a shard.
    #[inline(never)]
    pub(crate) fn new(settings: Settings, delivery: D) -> Arc<Self> {
        let hub = Arc::new(Hub::new(settings.hub, settings.shards));
        let shard = |index| {
            let shard = Shard::new(index, hub.clone(), &settings.geometry, settings.tick);
            Arc::new(shard.expect("the settings were checked"))
        };
        let core = Arc::new(Core {
            shards: (0..settings.shards).map(shard).collect(),
            delivery,
            budget: settings.budget,
            tick: settings.tick,
            life: Mutex::new(Life::New),
            spawn: settings.spawn,
            name: settings.name,
            hub,
            #[cfg(feature = "tracing")]
            _alive: alive::Alive::new(),
        });
        #[cfg(feature = "tasks")]
        core.hub.know(Arc::<Self>::downgrade(&core));
        if let Some(clock) = core.hub.clock.as_virtual() {
            let driven: std::sync::Weak<Self> = Arc::downgrade(&core);
            clock.attach(driven);
        }
        core
    }

    /// Arms a timer on the thread's own shard, and starts the driver if this is the first.
    #[inline]
    pub(crate) fn arm(self: &Arc<Self>, deadline: Time, value: T) -> Result<Key, Unarmed<T>> {
        let shard = self.own_shard();
        self.arm_on(shard, deadline, value).map(|key| Key::new(shard.index, key))
    }

    /// The shard that this thread keeps to.
    #[inline]
    pub(crate) fn own_shard(&self) -> &Arc<Shard<T>> {
        // The number of shards is a power of two.
        &self.shards[own_number() & (self.shards.len() - 1)]
    }

    /// Arms a timer on a shard.
    #[inline]
    pub(crate) fn arm_on(
        self: &Arc<Self>,
        shard: &Shard<T>,
        deadline: Time,
        value: T,
    ) -> Result<wheel::Key, Unarmed<T>> {
        self.arm_by(value, |value| shard.arm(deadline, value))
    }

    /// Arms a timer that has a handle, on the thread's own shard. `lend` is given the lease of both, under the lock.
    #[inline]
    pub(crate) fn arm_leased(
        self: &Arc<Self>,
        deadline: Time,
        value: T,
        lend: impl Fn(&mut T, Lease),
    ) -> Result<(Key, Lease), Unarmed<T>> {
        let shard = self.own_shard();
        let (key, lease) = self.arm_by(value, |value| shard.arm_leased(deadline, value, &lend))?;
        Ok((Key::new(shard.index, key), lease))
    }

    /// Arms a timer, and if it is the first, starts the driver and arms it then.
    #[inline]
    fn arm_by<R>(
        self: &Arc<Self>,
        value: T,
        mut arm: impl FnMut(T) -> Result<R, Refused<T>>,
    ) -> Result<R, Unarmed<T>> {
        match arm(value) {
            Ok(armed) => Ok(armed),
            Err(refused) => self.refused(refused, arm),
        }
    }

    #[cold]
    fn refused<R>(
        self: &Arc<Self>,
        refused: Refused<T>,
        mut arm: impl FnMut(T) -> Result<R, Refused<T>>,
    ) -> Result<R, Unarmed<T>> {
        Err(match refused {
            Refused::New(value) => match self.start() {
                Ok(()) => match arm(value) {
                    Ok(armed) => return Ok(armed),
                    Err(Refused::New(value) | Refused::Stopped(value)) => Unarmed::Stopped(value),
                    Err(Refused::Full(value)) => Unarmed::Full(value),
                },
                Err(StartError::Stopped) => Unarmed::Stopped(value),
                Err(StartError::Thread(wrong)) => Unarmed::Thread(value, wrong),
            },
            Refused::Stopped(value) => Unarmed::Stopped(value),
            Refused::Full(value) => {
                planted!(
                    "engine.full-is-called-stopped",
                    Unarmed::Stopped(value),
                    Unarmed::Full(value)
                )
            }
        })
    }

    /// Starts the driver, unless it was. Who comes while another starts it waits for the outcome.
    pub(crate) fn start(self: &Arc<Self>) -> Result<(), StartError> {
        loop {
            let mut life = lock(&self.life);
            match *life {
                Life::Stopped => return Err(StartError::Stopped),
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
            self.hub.quiet.wait_until(None, || !starting());
        }
    }

    /// Foreign code may start the thread: no lock is held.
    fn start_driver(self: &Arc<Self>) -> Result<(), StartError> {
        let mut started = Ok(());
        // An engine on a virtual clock is driven by the clock, and one with a hook by the caller.
        if self.hub.clock.as_virtual().is_none() && !self.hub.signal.has_hook() {
            let core = self.clone();
            let body = Box::new(move || core.drive());
            started = self.spawn.run(format!("{}-driver", self.name), body);
        }
        let mut life = lock(&self.life);
        // It may have been stopped meanwhile: then the driver ends as soon as it starts.
        let goes_on = matches!(*life, Life::Starting(_));
        if planted!("more.stop-during-the-start-is-forgotten", true, goes_on) {
            let failed = planted!("engine.failed-start-is-final", Life::Started, Life::New);
            *life = if started.is_ok() { Life::Started } else { failed };
            if started.is_ok() {
                self.shards.iter().for_each(|shard| shard.open());
            }
        }
        drop(life);
        planted!("engine.second-starter-not-told", (), self.hub.quiet.changed());
        started.map_err(StartError::Thread)
    }

    #[inline]
    pub(crate) fn cancel<R>(&self, key: Key, then: impl FnOnce(T, &mut Leases) -> R) -> Option<R> {
        let shard = key.shard();
        let shard =
            planted!("engine.foreign-key-panics", &self.shards[shard], self.shards.get(shard)?);
        shard.cancel(key.inner(), then)
    }

    #[inline]
    pub(crate) fn reschedule(
        &self,
        key: Key,
        deadline: Time,
        mark: impl FnOnce(&T),
    ) -> Result<(), RescheduleError> {
        let shard = self.shards.get(key.shard()).ok_or(RescheduleError::NotPending)?;
        shard.reschedule(key.inner(), deadline, mark)
    }

    /// The deadline of a pending timer.
    pub(crate) fn deadline(&self, key: Key) -> Option<Instant> {
        let time = self.shards.get(key.shard())?.deadline(key.inner())?;
        Some(self.hub.clock.instant(time))
    }

    /// Takes out all that is pending, once, and ends the driver. Nothing starts after this. `None` if it was stopped
    /// before.
    pub(crate) fn stop(
        &self,
        mut mark: impl FnMut(&mut T, &mut Leases),
    ) -> Option<Vec<(usize, Taken<T>)>> {
        if std::mem::replace(&mut *lock(&self.life), Life::Stopped) == Life::Stopped {
            return None;
        }
        let mut all = Vec::new();
        for shard in &self.shards {
            all.extend(shard.stop(&mut mark).into_iter().map(|taken| (shard.index, taken)));
        }
        self.hub.signal.stop();
        let first = planted!("engine.stop-does-not-wake-the-loop", None, self.shards.first());
        first.into_iter().for_each(|shard| shard.tell_loop());
        self.delivery.close();
        planted!("third.who-waits-for-the-start-misses-the-stop", (), self.hub.quiet.changed());
        Some(all)
    }

    /// How many callbacks of this engine the thread is inside of. Two that stop the same engine from inside must not
    /// wait for each other: only the first waits.
    pub(crate) fn depth(&self) -> usize {
        inside::depth(self.hub.id())
    }

    /// Waits until no callback runs, except those that the caller is inside of. Threads end by themselves after that;
    /// to wait for them too would be to wait for a driver that waits in an executor for who knows what.
    pub(crate) fn wait_for_silence(&self, limit: Option<Duration>) -> bool {
        let own = self.depth();
        let own = planted!("engine.stop-does-not-wait", own + 1, own);
        self.hub.watch();
        self.hub.quiet.wait_until(limit, || self.hub.busy() <= own)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        *lock(&self.life) == Life::Stopped
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

#[cfg(feature = "tasks")]
impl<T: Send + 'static, D: Deliver<T>> hub::Start for Core<T, D> {
    fn start(self: Arc<Self>) -> Result<(), StartError> {
        Core::start(&self)
    }
}

/// Why an engine did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// It was stopped, and stays so.
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

/// The number of this thread, which spreads threads over shards.
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
    // Relaxed: it spreads threads over shards, and orders nothing.
    let number = LAST.fetch_add(1, Ordering::Relaxed) & (usize::MAX >> 1);
    own.set(number);
    number
}
