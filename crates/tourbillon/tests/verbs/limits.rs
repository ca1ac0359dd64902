//! The verbs whose duration is not the delay of a timer: settings, time limits of waits, clocks, and the default engine
//! of tasks. Each row has its own assertions.
//!
//! Some are in real time: the default engine of tasks has no virtual clock, and the time limit of a wait is always real
//! time.

use std::future::{Future, pending};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tourbillon::tasks::{self, Elapsed, TimeoutExt};
use tourbillon::{
    Backoff, Clock, Cron, DelayQueue, Jitter, NoResult, Retried, Sleeper, TakeError, Timer,
    VirtualClock,
};

use crate::bench::{CENTURY, END, NS, Rung, Span};
use crate::common::asleep::{Tid, await_asleep, spawn_asleep};
use crate::common::{HOUR, MS, SECOND, accounted, case, eventually, within};
use crate::futures::poll;

/// Tests the verb with a duration.
type Tries = fn(&Span);

pub(crate) const ROWS: &[(&str, Tries)] = &[
    ("Builder::tick", tick),
    ("Backoff::next_delay", next_delay),
    ("VirtualClock::advance", advance),
    ("VirtualClock::set_wall", set_wall),
    ("Cron::next_after", next_after),
    ("Timer::stop_within", stop_within),
    ("Engine::stop_within", engine_stop_within),
    ("Driver::turn_within", turn_within),
    ("DelayQueue::take_within", |span| take_within(span, |queue, limit| queue.take_within(limit))),
    ("DelayQueue::take_entry_within", |span| {
        take_within(span, |queue, limit| queue.take_entry_within(limit).map(|fired| fired.value));
    }),
    ("Taker::take_within", |span| {
        take_within(span, |queue, limit| queue.taker().take_within(limit));
    }),
    ("Retry::wait_within", wait_within),
    ("Scheduled::wait_within", result_within),
    ("Timer::shutdown_within", shutdown_within),
    ("Instant::checked_add", |span| {
        let instant = tasks::Instant::from(span.at);
        let later = instant.checked_add(span.after);
        assert!(later.is_none_or(|later| later - instant == span.after));
    }),
    ("Instant::checked_sub", |span| {
        let instant = tasks::Instant::from(span.at);
        let earlier = instant.checked_sub(span.after);
        assert!(earlier.is_none_or(|earlier| instant - earlier == span.after));
    }),
    ("Sleeper::sleep", sleeper),
    ("Clock::wait", wait),
    ("Clock::now", now),
    ("tasks::sleep", |span| by_default(span, tasks::sleep(span.after))),
    ("tasks::sleep_until", |span| by_default(span, tasks::sleep_until(span.at))),
    ("tasks::timeout", |span| by_default(span, elapsed(tasks::timeout(span.after, pending())))),
    ("tasks::timeout_at", |span| by_default(span, elapsed(tasks::timeout_at(span.at, pending())))),
    ("tasks::try_timeout", |span| {
        by_default(span, timed_out(tasks::try_timeout(span.after, never())));
    }),
    ("TimeoutExt::timeout", |span| by_default(span, elapsed(pending().timeout(span.after)))),
    ("TimeoutExt::timeout_at", |span| by_default(span, elapsed(pending().timeout_at(span.at)))),
    ("TimeoutExt::try_timeout", |span| {
        by_default(span, timed_out(never().try_timeout(span.after)));
    }),
    ("tasks::interval", |span| second_tick(span, tasks::interval(span.after))),
    ("tasks::interval_at first", |span| {
        let mut interval = tasks::interval_at(span.at, HOUR);
        by_default(span, async move { _ = interval.tick().await });
    }),
    ("tasks::interval_at period", |span| {
        second_tick(span, tasks::interval_at(Instant::now(), span.after));
    }),
];

#[test]
fn every_setting_and_limit_takes_any_length() {
    for (verb, row) in ROWS {
        for span in Span::real() {
            case(format!("{verb}, {}", span.name), move || row(&span));
        }
    }
}

fn tick(span: &Span) {
    let clock = VirtualClock::new();
    let builder = || Timer::builder().on_driver().shards(1).clock(&clock).tick(span.after);
    if span.is_over() {
        assert_eq!(builder().build().unwrap_err().setting(), "tick");
        assert!(builder().build_driven().is_err() && builder().queue::<()>().is_err());
        return;
    }
    let timer = builder().build().unwrap();
    let rung = Rung::new();
    let timeout = timer.schedule(NS, rung.ring()).unwrap();
    clock.advance(Duration::ZERO).unwrap();
    assert_eq!(rung.count(), 0, "never early");
    clock.advance(CENTURY).unwrap();
    assert_eq!((rung.count() == 0, timeout.cancel()), (span.far, span.far), "at its first tick");
    timer.schedule(Duration::MAX, rung.ring()).unwrap();
    assert_eq!(timer.stop().len(), 1);
}

fn next_delay(span: &Span) {
    for jitter in [Jitter::None, Jitter::Equal, Jitter::Full] {
        let mut patient = Backoff::new(Duration::MAX).most(Duration::MAX).jitter(jitter);
        assert!((0..100).all(|_| patient.next_delay(span.after).is_some()), "{jitter:?}");
        let mut hasty = Backoff::new(NS).within(SECOND).jitter(jitter);
        assert_eq!(hasty.next_delay(span.after).is_none(), span.far, "{jitter:?}");
    }
}

fn advance(span: &Span) {
    let clock = VirtualClock::new();
    let timer = Timer::builder().on_driver().clock(&clock).build().unwrap();
    let rung = Rung::new();
    timer.schedule(CENTURY, rung.ring()).unwrap();
    clock.advance(span.after).unwrap();
    assert_eq!(clock.elapsed(), span.after.min(END), "by so much, or to the end of time");
    assert_eq!(rung.count(), usize::from(span.far));
    // The clock does not pass the end of time, and nothing hangs.
    clock.advance(span.after).unwrap();
    assert!(clock.elapsed() <= END && clock.now() >= timer.now());
    let last = timer.schedule(span.after, rung.ring()).unwrap();
    clock.advance(span.after).unwrap();
    assert!(last.cancel() || rung.count() > usize::from(span.far));
    timer.stop();
}

fn set_wall(span: &Span) {
    let clock = VirtualClock::new();
    let timer = Timer::builder().on_driver().clock(&clock).build().unwrap();
    let rung = Rung::new();
    // The wall-clock time of the span is from this year; a virtual wall clock begins in the year 2000.
    let timeout = timer.schedule_wall(clock.wall_now() + HOUR, rung.ring()).unwrap();
    clock.set_wall(span.wall).unwrap();
    let set_back = span.name == "the far past";
    assert_eq!((timeout.cancel(), rung.count()), (set_back, usize::from(!set_back)));
    clock.advance(CENTURY).unwrap();
    timer.schedule_wall(span.wall, rung.ring()).unwrap().cancel();
    timer.stop();
}

fn next_after(span: &Span) {
    let cron = Cron::parse("0 12 * * *", "Europe/Berlin").unwrap();
    if let Some(next) = cron.next_after(span.wall) {
        assert!(std::time::SystemTime::from(next) > span.wall, "{span:?}");
    }
    let clock = VirtualClock::new();
    let timer = Timer::builder().on_driver().clock(&clock).build().unwrap();
    clock.set_wall(span.wall).unwrap();
    if let Ok(timeout) = timer.schedule_cron(&cron, |_| ()) {
        clock.advance(Duration::ZERO).unwrap();
        assert!(timeout.cancel());
    }
}

/// A callback that runs until it is released.
struct Busy {
    release: mpsc::Sender<()>,
    runs: Arc<AtomicBool>,
}

impl Busy {
    fn new() -> (Self, impl FnMut() + Send + 'static) {
        let (release, released) = mpsc::channel();
        let runs = Arc::new(AtomicBool::new(false));
        let own = runs.clone();
        let run = move || {
            own.store(true, SeqCst);
            let _gone = released.recv();
        };
        (Busy { release, runs }, run)
    }

    /// Stops with this time limit. With a far limit, the stop waits until the running callback has ended.
    fn stop(self, span: &Span, stop: impl FnOnce(Duration) -> bool + Send + 'static) {
        eventually(|| self.runs.load(SeqCst));
        let after = span.after;
        if span.far {
            let stopping = spawn_asleep(move || stop(after));
            assert!(!stopping.is_finished(), "it waits");
            self.release.send(()).unwrap();
            assert!(stopping.join().unwrap(), "finished");
        } else {
            assert!(!within(move || stop(after)), "it runs still");
            self.release.send(()).unwrap();
        }
    }
}

fn stop_within(span: &Span) {
    let (busy, mut run) = Busy::new();
    let timer = Timer::new();
    timer.schedule(Duration::ZERO, move |_| run()).unwrap();
    busy.stop(span, move |limit| timer.stop_within(limit).finished);
}

fn engine_stop_within(span: &Span) {
    let (busy, mut run) = Busy::new();
    let engine = Timer::builder().deliver(move |_| run()).unwrap();
    engine.schedule(Duration::ZERO, ()).unwrap();
    busy.stop(span, move |limit| engine.stop_within(limit).finished);
}

fn turn_within(span: &Span) {
    let clock = VirtualClock::new();
    let (timer, mut driver) = Timer::builder().clock(&clock).build_driven().unwrap();
    timer.schedule(HOUR, |_| ()).unwrap();
    assert_eq!(driver.turn_within(span.after).ran, usize::from(span.far));
    assert_eq!(clock.elapsed(), span.after.min(HOUR));
    timer.schedule(Duration::MAX, |_| ()).unwrap();
    assert!(driver.turn().next.is_some() || driver.timeout().is_none());
    // With the system's clock it waits, and a stop ends the wait.
    let (timer, mut driver) = Timer::builder().build_driven().unwrap();
    timer.schedule(span.after, |_| ()).unwrap();
    let after = span.after;
    if span.far {
        let turning = spawn_asleep(move || driver.turn_within(after).ran);
        assert!(!turning.is_finished(), "it waits");
        timer.stop();
        assert_eq!(turning.join().unwrap(), 0);
    } else {
        // It may not be due until the next tick.
        if driver.turn_within(after).ran == 0 {
            assert_eq!(driver.turn_within(HOUR).ran, 1);
        }
        assert_eq!((driver.turn().ran, timer.counts().fired), (0, 1));
    }
}

fn take_within(span: &Span, take: fn(&DelayQueue<u32>, Duration) -> Result<u32, TakeError>) {
    let after = span.after;
    let clock = VirtualClock::new();
    let queue: DelayQueue<u32> = Timer::builder().clock(&clock).queue().unwrap();
    let system: DelayQueue<u32> = DelayQueue::new();
    for (queue, clock) in [(queue, Some(clock)), (system, None)] {
        let own = queue.clone();
        let taker = spawn_asleep(move || take(&own, after));
        if span.far {
            clock.iter().for_each(|clock| clock.advance(CENTURY).unwrap());
            assert!(!taker.is_finished());
            queue.close();
        } else if !span.is_over() {
            let pass = || clock.iter().for_each(|clock| clock.advance(NS).unwrap());
            eventually(|| {
                pass();
                taker.is_finished()
            });
        }
        let expected = if span.far { TakeError::Closed } else { TakeError::NothingDue };
        assert_eq!(taker.join().unwrap(), Err(expected));
    }
}

fn wait_within(span: &Span) {
    let clock = VirtualClock::new();
    let timer = Timer::builder().on_driver().clock(&clock).build().unwrap();
    let retry = timer.retry(Backoff::new(HOUR), |_| Err::<(), _>(())).unwrap();
    let after = span.after;
    let waiting = spawn_asleep(move || retry.wait_within(after));
    if span.far {
        assert!(!waiting.is_finished(), "it waits");
        timer.stop();
    }
    match waiting.join().unwrap() {
        Ok(outcome) => assert_eq!((outcome, span.far), (Retried::Stopped, true)),
        Err(retry) => assert!(!retry.is_over() && !span.far),
    }
}

fn result_within(span: &Span) {
    let clock = VirtualClock::new();
    let timer = Timer::builder().on_driver().clock(&clock).build().unwrap();
    let result = timer.compute(HOUR, |_| ()).unwrap();
    let after = span.after;
    let waiting = spawn_asleep(move || result.wait_within(after));
    if span.far {
        assert!(!waiting.is_finished(), "it waits");
        timer.stop();
    }
    match waiting.join().unwrap() {
        Ok(outcome) => assert_eq!((outcome, span.far), (Err(NoResult::Stopped), true)),
        Err(result) => assert!(!result.is_over() && !span.far),
    }
}

/// A pending timer delays the shutdown until the limit; a timer that is due before the limit runs first.
fn shutdown_within(span: &Span) {
    let (timer, rung) = (Timer::new(), Rung::new());
    timer.schedule(MS, rung.ring()).unwrap();
    if !span.far {
        timer.schedule(HOUR, |_| ()).unwrap();
    }
    let (own, after) = (timer.clone(), span.after);
    let ended = within(move || own.shutdown_within(after).finished);
    assert!(timer.is_stopped() && timer.is_empty());
    if span.far {
        assert_eq!((ended, rung.count()), (true, 1), "all of it has run");
    }
}

/// The system's clock plus an offset. With `nap`, the driver sleeps that long at a time.
struct Own {
    ahead: Duration,
    begin: Instant,
    began: AtomicBool,
    nap: Option<Duration>,
}

impl Own {
    fn new(ahead: Duration, nap: Option<Duration>) -> Self {
        Own { ahead, begin: Instant::now(), began: AtomicBool::new(false), nap }
    }
}

impl Clock for Own {
    fn now(&self) -> Instant {
        // The first reading is the beginning of the engine's time.
        let ahead = if self.began.swap(true, SeqCst) { self.ahead } else { Duration::ZERO };
        Instant::now().checked_add(ahead).unwrap_or(self.begin + CENTURY)
    }

    fn wait(&self, until: Option<Instant>, sleeper: &Sleeper) {
        match (self.nap, until) {
            (Some(nap), Some(_)) => sleeper.sleep(Some(nap)),
            (Some(_), None) => sleeper.sleep(None),
            (None, until) => {
                sleeper.sleep(until.map(|until| until.saturating_duration_since(self.now())));
            }
        }
    }
}

/// With a short nap, the driver sleeps repeatedly until the timer is due; with a long one, until it is woken.
fn sleeper(span: &Span) {
    let timer = Timer::builder()
        .on_driver()
        .clock(Own::new(Duration::ZERO, Some(span.after)))
        .build()
        .unwrap();
    let rung = Rung::new();
    timer.schedule(MS * 2, rung.ring()).unwrap();
    if !span.far {
        eventually(|| rung.count() == 1);
    }
    assert_eq!(timer.stop().len(), usize::from(span.far));
}

/// The driver waits until the deadline with the trait's default `wait`.
fn wait(span: &Span) {
    struct Plain;
    impl Clock for Plain {
        fn now(&self) -> Instant {
            Instant::now()
        }
    }
    let timer = Timer::builder().on_driver().clock(Plain).name("plain").build().unwrap();
    let rung = Rung::new();
    timer.schedule_at(span.at, rung.ring()).unwrap();
    if span.far {
        await_asleep(&Tid::called("plain-driver"));
    } else {
        eventually(|| rung.count() == 1);
    }
    assert_eq!(timer.stop().len(), usize::from(span.far));
}

/// The clock jumps by this much after the engine's time has begun. At the end of time nothing fires any more.
fn now(span: &Span) {
    let clock = Own::new(span.after, None);
    let timer = Timer::builder().on_driver().clock(clock).build().unwrap();
    let rung = Rung::new();
    timer.schedule(Duration::ZERO, rung.ring()).unwrap();
    timer.schedule(Duration::MAX, |_| ()).unwrap();
    if !span.far {
        eventually(|| rung.count() == 1);
    }
    timer.stop();
    accounted(&timer);
}

/// On the default engine, which uses the system's clock.
fn by_default<F: Future<Output = ()> + Send + 'static>(span: &Span, future: F) {
    let mut future = Box::pin(future);
    if span.far {
        assert!(poll(&mut future).is_pending());
        thread::sleep(MS * 2);
        assert!(poll(&mut future).is_pending());
    } else {
        within(move || futures_lite::future::block_on(future));
    }
}

async fn elapsed(limit: impl Future<Output = Result<(), Elapsed>>) {
    assert_eq!(limit.await, Err(Elapsed));
}

fn never() -> impl Future<Output = io::Result<()>> + Send {
    pending()
}

async fn timed_out(limit: impl Future<Output = io::Result<()>>) {
    assert_eq!(limit.await.unwrap_err().kind(), io::ErrorKind::TimedOut);
}

fn second_tick(span: &Span, mut interval: tasks::Interval) {
    within({
        let first = interval.tick();
        let first = futures_lite::future::block_on(first);
        move || assert!(first <= Instant::now())
    });
    by_default(span, async move { _ = interval.tick().await });
}
