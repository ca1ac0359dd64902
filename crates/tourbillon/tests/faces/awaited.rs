//! The rows: everything in the crate that can be polled, behind one interface.

use std::any::Any;
use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_lite::Stream;
use tourbillon::tasks;
use tourbillon::{Builder, Driver, Purgatory, Timer, VirtualClock};

use crate::common::{HOUR, accounted};

/// The engine and the clock of the futures of a case.
pub(crate) struct Env {
    pub(crate) clock: VirtualClock,
    /// `Some` if callbacks run in an event loop. Tasks have a thread even then.
    pub(crate) driver: Option<Driver>,
    pub(crate) timer: Timer,
    /// The number of panics that were reported as they were thrown, by [`panic_quietly`].
    reported: Arc<AtomicU64>,
    purgatory: Purgatory<u32>,
    met: Arc<AtomicBool>,
}

impl Env {
    pub(crate) fn new() -> Self {
        Env::with(|builder| (builder.build().unwrap(), None))
    }

    /// Callbacks run on the thread that advances the clock.
    pub(crate) fn on_driver() -> Self {
        Env::with(|builder| (builder.on_driver().build().unwrap(), None))
    }

    pub(crate) fn driven() -> Self {
        Env::with(|builder| {
            let (timer, driver) = builder.build_driven().unwrap();
            (timer, Some(driver))
        })
    }

    fn with(build: fn(Builder) -> (Timer, Option<Driver>)) -> Self {
        let (clock, reported) = (VirtualClock::new(), Arc::<AtomicU64>::default());
        let count = reported.clone();
        let report = move |payload: &(dyn Any + Send)| {
            count.fetch_add(u64::from(payload.is::<&'static str>()), SeqCst);
        };
        let (timer, driver) = build(Timer::builder().shards(1).clock(&clock).on_panic(report));
        // The time at which engines begin is a special case: move past it.
        clock.advance(HOUR).unwrap();
        let (purgatory, met) = (Purgatory::new(&timer), Arc::default());
        Env { clock, driver, timer, reported, purgatory, met }
    }

    /// Every timer is accounted for, and every panic was reported once.
    #[track_caller]
    pub(crate) fn accounted(&self) {
        accounted(&self.timer);
        assert_eq!(self.timer.counts().panicked, self.reported.load(SeqCst), "it is reported");
    }

    fn at(&self, after: Duration) -> Instant {
        self.clock.now() + after
    }

    /// A queue with an item that expires after this long, and another item.
    fn queue(&self, after: Duration) -> Queue {
        let mut queue = self.timer.delay_queue();
        queue.insert("due", (), after).unwrap();
        queue.insert("later", (), 1000 * HOUR).unwrap();
        queue
    }
}

/// Something that becomes ready. Keeps no timer alive.
pub(crate) trait Awaited: Send {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()>;
    /// Moves it to this long after now. `false` if this face cannot be moved.
    fn reset(&mut self, env: &Env, after: Duration) -> bool;
}

/// One face of the crate.
pub(crate) struct Face {
    pub(crate) name: &'static str,
    /// Creates a future that becomes ready after this long, or at the face's event.
    pub(crate) make: fn(&Env, Duration) -> Box<dyn Awaited>,
    event: Option<fn(&Env)>,
    /// Whether a panic in its poll ends it, as for every `async` block.
    pub(crate) ends_with_a_panic: bool,
}

impl Face {
    const fn new(name: &'static str, make: fn(&Env, Duration) -> Box<dyn Awaited>) -> Self {
        Face { name, make, event: None, ends_with_a_panic: false }
    }

    /// Becomes ready by an event instead of by time.
    const fn by(self, event: fn(&Env)) -> Self {
        Face { event: Some(event), ..self }
    }

    /// Is an `async` block.
    const fn block(self) -> Self {
        Face { ends_with_a_panic: true, ..self }
    }

    /// Whether it becomes ready by an event instead of by time.
    pub(crate) fn has_event(&self) -> bool {
        self.event.is_some()
    }

    /// Makes the futures ready that were created with this delay.
    pub(crate) fn make_ready(&self, env: &Env, after: Duration) {
        match self.event {
            Some(event) => event(env),
            None => env.clock.advance(after).unwrap(),
        }
    }
}

/// All faces, on a timer of the caller's. A new face is a new row.
pub(crate) const FACES: &[Face] = &[
    Face::new("Timer::sleep", |env, after| {
        future(env.timer.sleep(after), |sleep, _, after| sleep.reset_after(after))
    }),
    Face::new("Timer::sleep_until", |env, after| {
        let sleep = env.timer.sleep_until(env.at(after));
        future(sleep, |sleep, env, after| sleep.reset(env.at(after)))
    }),
    Face::new("Timer::timeout", |env, after| {
        let timeout = Box::pin(env.timer.timeout(after, pending::<()>()));
        future(timeout, |timeout, _, after| timeout.as_mut().reset_after(after))
    }),
    Face::new("Timer::timeout_at", |env, after| {
        let timeout = Box::pin(env.timer.timeout_at(env.at(after), pending::<()>()));
        future(timeout, |timeout, env, after| timeout.as_mut().reset(env.at(after)))
    }),
    Face::new("Timer::timeout, by its future", |env, after| {
        let timeout = Box::pin(env.timer.timeout(1000 * HOUR, env.timer.sleep(after)));
        future(timeout, |timeout, _, after| timeout.as_mut().get_pin_mut().reset_after(after))
    }),
    Face::new("Interval::poll_tick", |env, after| {
        let poll: PollOf<tasks::Interval<_>> =
            |interval, context| interval.poll_tick(context).map(drop);
        let interval = env.timer.interval_at(env.at(after), HOUR);
        polled(interval, poll, |interval, _, after| interval.reset_after(after))
    }),
    Face::new("Interval::poll_tick, the second", |env, after| {
        let mut interval = env.timer.interval(after);
        tasks::block_on(&env.clock, interval.tick()).unwrap().unwrap();
        let poll: PollOf<tasks::Interval<_>> =
            |interval, context| interval.poll_tick(context).map(drop);
        polled(interval, poll, |interval, env, after| interval.reset_at(env.at(after)))
    }),
    Face::new("Interval::tick", |env, after| {
        let mut interval = env.timer.interval_at(env.at(after), HOUR);
        unmoved(async move { interval.tick().await })
    })
    .block(),
    Face::new("DelayQueue::poll_expired", |env, after| {
        let poll: PollOf<Queue> = |queue, context| queue.poll_expired(context).map(drop);
        polled(env.queue(after), poll, |queue, _, after| assert!(queue.reset("due", after)))
    }),
    Face::new("DelayQueue::poll_next", |env, after| {
        let poll: PollOf<Queue> = |queue, context| Pin::new(queue).poll_next(context).map(drop);
        polled(env.queue(after), poll, |queue, env, after| {
            assert!(queue.reset_at("due", env.at(after)));
        })
    }),
    Face::new("DelayQueue::next", |env, after| {
        let mut queue = env.queue(after);
        unmoved(async move { queue.next().await })
    })
    .block(),
    Face::new("DelayQueue::next, another one for each poll", |env, after| {
        let poll: PollOf<Queue> = |queue, context| pin!(queue.next()).poll(context).map(drop);
        polled(env.queue(after), poll, |queue, _, after| assert!(queue.reset("due", after)))
    }),
    Face::new("Timer::compute", |env, after| {
        let result = env.timer.compute(after, |_| ()).unwrap();
        future(result, |result, _, after| result.timeout().reschedule(after).unwrap())
    }),
    Face::new("Timer::compute that is cancelled", |env, after| {
        unmoved(env.timer.compute(1000 * after, |_| ()).unwrap())
    })
    .by(|env| {
        // Tasks are not among them.
        let all = env.timer.pending();
        assert!(all.iter().all(|pending| env.timer.cancel(pending.key)));
    }),
    Face::new("Purgatory::wait that expires", |env, after| {
        unmoved(env.purgatory.wait([1, 2], after, || None::<()>))
    }),
    Face::new("Purgatory::wait that is completed", |env, after| {
        let met = env.met.clone();
        unmoved(env.purgatory.wait([1, 2], 1000 * after, move || met.load(SeqCst).then_some(())))
    })
    .by(|env| {
        env.met.store(true, SeqCst);
        assert!(env.purgatory.check(&2) > 0);
    }),
    Face::new("Purgatory::wait that is cancelled", |env, after| {
        unmoved(env.purgatory.wait([1, 2], 1000 * after, || None::<()>))
    })
    .by(|env| assert!(env.purgatory.cancel_key(&1).is_empty())),
];

/// The faces on the default engine, which uses the system's clock.
pub(crate) const DEFAULT_ENGINE: &[Face] = &[
    Face::new("tasks::sleep", |_, after| {
        future(tasks::sleep(after), |sleep, _, after| sleep.reset_after(after))
    }),
    Face::new("tasks::sleep_until", |_, after| {
        let sleep = tasks::sleep_until(Instant::now() + after);
        future(sleep, |sleep, _, after| sleep.reset(Instant::now() + after))
    }),
    Face::new("tasks::timeout", |_, after| {
        let timeout = Box::pin(tasks::timeout(after, pending::<()>()));
        future(timeout, |timeout, _, after| timeout.as_mut().reset_after(after))
    }),
    Face::new("tasks::timeout_at", |_, after| {
        let timeout = Box::pin(tasks::timeout_at(Instant::now() + after, pending::<()>()));
        future(timeout, |timeout, _, after| timeout.as_mut().reset_after(after))
    }),
    Face::new("tasks::interval_at", |_, after| {
        let poll: PollOf<tasks::Interval> =
            |interval, context| interval.poll_tick(context).map(drop);
        let interval = tasks::interval_at(Instant::now() + after, HOUR);
        polled(interval, poll, |interval, _, after| interval.reset_after(after))
    }),
    Face::new("tasks::DelayQueue::new", |_, after| {
        let poll: PollOf<tasks::DelayQueue<u8, ()>> =
            |queue, context| queue.poll_expired(context).map(drop);
        let mut queue = tasks::DelayQueue::new();
        queue.insert(1, (), after).unwrap();
        polled(queue, poll, |queue, _, after| assert!(queue.reset(&1, after)))
    }),
];

type Queue = tasks::DelayQueue<&'static str, (), tasks::Given>;
type PollOf<T> = fn(&mut T, &mut Context<'_>) -> Poll<()>;
type ResetOf<T> = fn(&mut T, &Env, Duration);

struct Of<T> {
    inner: T,
    poll: PollOf<T>,
    reset: Option<ResetOf<T>>,
}

impl<T: Send> Awaited for Of<T> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        (self.poll)(&mut self.inner, context)
    }

    fn reset(&mut self, env: &Env, after: Duration) -> bool {
        self.reset.map(|reset| reset(&mut self.inner, env, after)).is_some()
    }
}

fn polled<T: Send + 'static>(inner: T, poll: PollOf<T>, reset: ResetOf<T>) -> Box<dyn Awaited> {
    Box::new(Of { inner, poll, reset: Some(reset) })
}

fn future<F: Future + Unpin + Send + 'static>(inner: F, reset: ResetOf<F>) -> Box<dyn Awaited> {
    polled(inner, |inner, context| Pin::new(inner).poll(context).map(drop), reset)
}

/// A future that cannot be moved.
fn unmoved<F: Future + Send + 'static>(inner: F) -> Box<dyn Awaited> {
    let poll: PollOf<Pin<Box<F>>> = |inner, context| inner.as_mut().poll(context).map(drop);
    Box::new(Of { inner: Box::pin(inner), poll, reset: None })
}
