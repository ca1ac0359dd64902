//! Settings of an engine. Each has a default; an invalid setting is an error that contains the setting's name.

mod check;
mod defaults;

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{BootClock, Clock, Source, VirtualClock};
use crate::contain::{Kept, OnPanic};
use crate::engine::Driver;
use crate::engine::settings::Settings;
use crate::engine::wheels::Geometry;
use crate::error::BuildError;
use crate::queue::DelayQueue;
use crate::spawn::Spawn;
use crate::timer::{Executor, Timer, Where};
use crate::typed::{Batch, Engine};
use check::{processors, wrong};

/// Settings of a [`Timer`], an [`Engine`] or a [`DelayQueue`], each with a default.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::Timer;
///
/// let timer = Timer::builder().tick(Duration::from_millis(10)).limit(100_000).build()?;
///
/// let wrong = Timer::builder().tick(Duration::ZERO).build().unwrap_err();
/// assert_eq!(wrong.to_string(), "tick is 0ns: it must be at least 1ns");
/// # Ok::<(), tourbillon::BuildError>(())
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct Builder {
    tick: Duration,
    geometry: Geometry,
    shards: Option<usize>,
    limit: Option<usize>,
    budget: usize,
    source: Source,
    spawn: Spawn,
    on_panic: Option<OnPanic>,
    run: Option<Where>,
    /// Where callbacks run if `run` is not set.
    otherwise: Where,
    name: String,
}

impl Default for Builder {
    fn default() -> Self {
        Builder {
            tick: Duration::from_millis(1),
            geometry: Geometry::Hierarchical(vec![256]),
            shards: None,
            limit: None,
            budget: 1024,
            source: Source::Monotonic,
            spawn: Spawn::Std,
            on_panic: None,
            run: None,
            otherwise: Where::Pool(processors().max(4)),
            name: "tourbillon".into(),
        }
    }
}

impl Builder {
    /// The defaults of Netty's `HashedWheelTimer`: 512 slots, a tick of 100 ms, callbacks on the driver's thread.
    ///
    /// The wheel is a single ring in a single shard.
    ///
    /// ```
    /// use tourbillon::Builder;
    ///
    /// let like_netty = Builder::netty().build()?;
    /// let like_kafka = Builder::kafka().build()?;
    /// # Ok::<(), tourbillon::BuildError>(())
    /// ```
    pub fn netty() -> Self {
        let tick = Duration::from_millis(100);
        let builder = Builder::default().tick(tick).hashed(512).shards(1);
        Builder { otherwise: Where::Driver, ..builder }
    }

    /// The defaults of Kafka's `SystemTimer`: levels of 20 slots, a tick of 1 ms, callbacks on a thread of their own.
    ///
    /// The engine has a single shard; the pool has one thread.
    pub fn kafka() -> Self {
        let builder = Builder::default().hierarchical(&[20]).shards(1);
        let otherwise =
            planted!("settings.kafka-has-a-pool", builder.otherwise.clone(), Where::Pool(1));
        planted!(
            "fourth.kafka-cannot-be-driven",
            Builder { run: Some(otherwise), ..builder },
            Builder { otherwise, ..builder }
        )
    }

    /// Sets the tick: a timer fires at the first tick that is not before its deadline. Default: 1 ms.
    ///
    /// Ticks are counted from the beginning of the clock's time: the creation of a [`VirtualClock`], otherwise the
    /// moment at which the timer is built.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = tick;
        self
    }

    /// Uses a hierarchical wheel with this number of slots in each level, lowest first. The default, with 256.
    ///
    /// The last number repeats for all higher levels.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::Timer;
    ///
    /// // Seconds, minutes and hours.
    /// let timer = Timer::builder().tick(Duration::from_secs(1)).hierarchical(&[60, 60, 24]).build()?;
    /// # Ok::<(), tourbillon::BuildError>(())
    /// ```
    pub fn hierarchical(mut self, slots: &[u32]) -> Self {
        self.geometry = Geometry::Hierarchical(slots.to_vec());
        self
    }

    /// Uses a hashed wheel, one ring with `slots` slots, rounded up to a power of two.
    ///
    /// It is fastest when one turn is as long as most delays: when a timer of a slot is due, the driver examines every
    /// timer in that slot, including those of later turns.
    ///
    /// ```
    /// use tourbillon::Timer;
    ///
    /// let timer = Timer::builder().hashed(60_000).build()?;
    /// let wrong = Timer::builder().hashed(0).build().unwrap_err();
    /// assert_eq!((wrong.setting(), wrong.value()), ("hashed", "0"));
    /// # Ok::<(), tourbillon::BuildError>(())
    /// ```
    pub fn hashed(mut self, slots: u32) -> Self {
        self.geometry = Geometry::Hashed(slots);
        self
    }

    /// Sets the number of shards, rounded up to a power of two. Default: one per processor.
    ///
    /// Each shard is a wheel with its own lock; timers are spread over the shards.
    ///
    /// ```
    /// use tourbillon::Timer;
    ///
    /// let timer = Timer::builder().shards(8).budget(256).build()?;
    /// assert_eq!(timer.snapshot().shards.len(), 8);
    /// # Ok::<(), tourbillon::BuildError>(())
    /// ```
    pub fn shards(mut self, shards: usize) -> Self {
        self.shards = Some(shards);
        self
    }

    /// Limits the number of pending timers. Default: no limit.
    ///
    /// Callbacks and sleeping tasks count together. A repeating timer counts even while it runs. The limit costs a
    /// counter that all threads write.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{ScheduleError, Timer};
    ///
    /// let timer = Timer::builder().limit(1).build()?;
    /// let first = timer.schedule(Duration::from_secs(1), |_| ())?;
    /// let refused = timer.schedule(Duration::from_secs(1), |_| ()).unwrap_err();
    /// assert!(matches!(refused, ScheduleError::Full(_)));
    /// let callback = refused.into_inner();
    /// first.cancel();
    /// timer.schedule(Duration::from_secs(1), callback)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn limit(mut self, timers: usize) -> Self {
        self.limit = Some(timers);
        self
    }

    /// Limits how many timers one pass of the driver makes ready, and cascades, in each shard. Default: 1024.
    pub fn budget(mut self, timers: usize) -> Self {
        self.budget = timers;
        self
    }

    /// Sets the clock: a `&`[`VirtualClock`], the [`BootClock`], or [your own](Clock). Default: the monotonic clock.
    pub fn clock(mut self, clock: impl Into<AnyClock>) -> Self {
        self.source = clock.into().0;
        self
    }

    /// Runs callbacks on a pool of at most `threads` threads, started when first needed. The default.
    ///
    /// By default the pool has four threads, or one for each processor if there are more.
    ///
    /// As long as callbacks return promptly, one thread per shard runs those that are due at the same moment. If a
    /// callback does not return promptly, another thread is woken after an eighth of a tick, at most 125 µs, to run the
    /// callbacks behind it. While callbacks still wait after that, the number of threads doubles each time. This is for
    /// the default clock; with any other clock, a thread is woken at once for each callback that is due.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).pool(2).build()?;
    /// // Two callbacks that wait for each other need two threads.
    /// let meet = std::sync::Arc::new(std::sync::Barrier::new(2));
    /// for _ in 0..2 {
    ///     let meet = meet.clone();
    ///     timer.schedule(Duration::from_secs(1), move |_| drop(meet.wait()))?;
    /// }
    /// clock.advance(Duration::from_secs(1))?;
    /// assert_eq!(timer.counts().fired, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pool(mut self, threads: usize) -> Self {
        self.run = Some(Where::Pool(threads));
        self
    }

    /// Runs callbacks on the driver's thread: cheapest, for short callbacks that never block.
    ///
    /// A slow callback delays all other callbacks.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use tourbillon::Timer;
    ///
    /// let timer = Timer::builder().on_driver().name("mine").build()?;
    /// let (sender, receiver) = mpsc::channel();
    /// timer.schedule(Duration::ZERO, move |_| {
    ///     sender.send(std::thread::current().name().map(str::to_string)).unwrap();
    /// })?;
    /// assert_eq!(receiver.recv()?.as_deref(), Some("mine-driver"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_driver(mut self) -> Self {
        planted!(
            "sixth.on-driver-does-not-undo-a-pool",
            self.otherwise = Where::Driver,
            self.run = Some(Where::Driver)
        );
        self
    }

    /// Runs callbacks on your own executor.
    pub fn executor(mut self, executor: impl Executor) -> Self {
        let executor = Kept::new(executor);
        self.run = Some(Where::Own(Arc::new(move |job| executor.get().execute(job))));
        self
    }

    /// Sets the function that starts the engine's threads. Default: `std::thread`.
    ///
    /// The function receives the thread's name and body, and must start the thread without waiting for it to finish.
    ///
    /// ```
    /// use tourbillon::Timer;
    ///
    /// let timer = Timer::builder()
    ///     .spawn(|name, body| {
    ///         std::thread::Builder::new().name(name).stack_size(64 << 10).spawn(body).map(drop)
    ///     })
    ///     .build()?;
    /// timer.start().unwrap();
    /// # Ok::<(), tourbillon::BuildError>(())
    /// ```
    pub fn spawn<S>(mut self, spawn: S) -> Self
    where
        S: Fn(String, Box<dyn FnOnce() + Send>) -> io::Result<()> + Send + Sync + 'static,
    {
        let spawn = Kept::new(spawn);
        self.spawn = Spawn::Own(Arc::new(move |name, body| spawn.get()(name, body)));
        self
    }

    /// Sets a hook that is called with the payload of every panic of a callback.
    ///
    /// It is also called for panics of handlers, wakers and the executor, and for panics while captured values are
    /// dropped. All of these panics are contained and counted, with or without a hook.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use tourbillon::{Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let (sender, reports) = mpsc::channel();
    /// let timer = Timer::builder()
    ///     .clock(&clock)
    ///     .on_panic(move |payload| {
    ///         let text = payload.downcast_ref::<&str>().copied();
    ///         sender.send(text.unwrap_or("something else")).unwrap();
    ///     })
    ///     .build()?;
    /// timer.schedule(Duration::ZERO, |_| panic!("oh no"))?;
    /// clock.advance(Duration::ZERO)?;
    /// assert_eq!(reports.recv()?, "oh no");
    /// assert_eq!(timer.counts().panicked, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_panic(mut self, report: impl Fn(&(dyn Any + Send)) + Send + Sync + 'static) -> Self {
        let report = Kept::new(report);
        self.on_panic = Some(Arc::new(move |payload| report.get()(payload)));
        self
    }

    /// Sets the prefix of the engine's thread names. Default: "tourbillon".
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Builds a [`Timer`]. Starts no thread.
    ///
    /// # Errors
    /// A setting is invalid; the error contains its name and value.
    pub fn build(mut self) -> Result<Timer, BuildError> {
        let otherwise = self.otherwise.clone();
        match self.run.take().unwrap_or(otherwise) {
            Where::Pool(0) => Err(wrong("pool", 0, "at least 1")),
            run => Ok(Timer::with(self.settings()?, run)),
        }
    }

    /// Builds a [`Timer`] without a driver thread, and the [`Driver`] that runs it, for example from an event loop.
    ///
    /// Callbacks run on the thread that calls [`Driver::turn`]. Sleeping tasks are woken by another thread, which
    /// starts with the first task; on a [`VirtualClock`], the clock wakes them.
    ///
    /// # Errors
    /// A setting is invalid; the error contains its name and value. A pool or an executor is invalid here, because a
    /// turn runs the callbacks itself and reports how many it ran.
    pub fn build_driven(mut self) -> Result<(Timer, Driver), BuildError> {
        self.on_driver_only("left out: callbacks run where the driver is turned")?;
        Ok(Timer::with_driver(self.driven_settings()?))
    }

    /// Builds an [`Engine`] of values, which are delivered in batches to `handler`. Starts no thread.
    ///
    /// # Errors
    /// A setting is invalid; the error contains its name and value. A pool or an executor is invalid here, because an
    /// engine runs no callbacks.
    pub fn deliver<T, H>(mut self, handler: H) -> Result<Engine<T>, BuildError>
    where
        T: Send + 'static,
        H: FnMut(Batch<'_, T>) + Send + 'static,
    {
        self.on_driver_only(HANDLERS)?;
        Ok(Engine::with(self.settings()?, Box::new(handler)))
    }

    /// Builds an [`Engine`] without a thread, and its [`Driver`].
    ///
    /// `handler` runs on the thread that calls [`Driver::turn`].
    ///
    /// # Errors
    /// As [`deliver`](Builder::deliver).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Engine, Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let (sender, received) = std::sync::mpsc::channel();
    /// let (engine, mut driver) = Timer::builder().clock(&clock).deliver_driven(move |batch| {
    ///     batch.for_each(|timer| sender.send(timer.value).unwrap());
    /// })?;
    /// engine.schedule(Duration::from_secs(5), "five")?;
    /// assert_eq!(driver.turn_within(Duration::from_secs(60)).ran, 1);
    /// assert_eq!(received.try_recv()?, "five");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn deliver_driven<T, H>(mut self, handler: H) -> Result<(Engine<T>, Driver), BuildError>
    where
        T: Send + 'static,
        H: FnMut(Batch<'_, T>) + Send + 'static,
    {
        self.on_driver_only(HANDLERS)?;
        let settings = planted!(
            "fifth.driven-engine-has-a-thread-too",
            self.settings()?,
            self.driven_settings()?
        );
        Ok(Engine::with_driver(settings, Box::new(handler)))
    }

    fn on_driver_only(&mut self, must: &'static str) -> Result<(), BuildError> {
        match self.run.take() {
            None | Some(Where::Driver) => Ok(()),
            Some(Where::Pool(most)) => {
                planted!("settings.pool-without-a-thread", Ok(()), Err(wrong("pool", most, must)))
            }
            Some(Where::Own(_)) => Err(wrong("executor", "one of your own", must)),
        }
    }

    /// Builds a [`DelayQueue`] with the tick, wheel, clock and limit of these settings.
    ///
    /// The queue has no threads, no shards and no callbacks; settings for those have no effect. The number of shards,
    /// the budget and the name must still be valid.
    ///
    /// # Errors
    /// A setting is invalid; the error contains its name and value.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{DelayQueue, Timer};
    ///
    /// let queue: DelayQueue<u32> = Timer::builder().tick(Duration::from_micros(100)).limit(1).queue()?;
    /// queue.put(Duration::ZERO, 7)?;
    /// assert_eq!(queue.put(Duration::ZERO, 8).unwrap_err().into_inner(), 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn queue<T: Send + 'static>(self) -> Result<DelayQueue<T>, BuildError> {
        Ok(DelayQueue::with(self.settings()?))
    }

    fn driven_settings(self) -> Result<Settings, BuildError> {
        let mut settings = self.settings()?;
        settings.context.driven = true;
        Ok(settings)
    }
}

const HANDLERS: &str = "left out: a handler runs on the driver";

/// The argument of [`Builder::clock`].
///
/// Made from a `&`[`VirtualClock`], the [`BootClock`], or your own [`Clock`].
pub struct AnyClock(Source);

impl<C: Clock> From<C> for AnyClock {
    fn from(clock: C) -> Self {
        AnyClock(Source::Own(Arc::new(clock)))
    }
}

impl From<BootClock> for AnyClock {
    fn from(_: BootClock) -> Self {
        AnyClock(Source::boot())
    }
}

impl From<&VirtualClock> for AnyClock {
    fn from(clock: &VirtualClock) -> Self {
        AnyClock(Source::Virtual(clock.clone()))
    }
}
