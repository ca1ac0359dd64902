//! What the tests share: a log that threads write, clocks that misbehave, the places where callbacks can run, and a
//! watchdog that turns a hang into a failure.
//!
//! `eventually`, `within` and `case` poll or wait in real time, so that a thread that never finishes is a failure, not
//! a hang.

#![allow(dead_code, reason = "every test file uses its own part of it")]

pub(crate) mod asleep;
pub(crate) mod faces;
pub(crate) mod jumping;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tourbillon::{Builder, Clock, Job, Sleeper, Timer, VirtualClock};

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// A log of events, in order.
#[derive(Clone)]
pub(crate) struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T> Default for Log<T> {
    fn default() -> Self {
        Log::new()
    }
}

impl<T> Log<T> {
    pub(crate) fn new() -> Self {
        Log(Arc::new(Mutex::new(Vec::new())))
    }

    pub(crate) fn add(&self, what: T) {
        self.0.lock().unwrap().push(what);
    }

    pub(crate) fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// Panics without printing a message.
pub(crate) fn panic_quietly() -> ! {
    std::panic::resume_unwind(Box::new("a quiet panic"))
}

/// Panics when it is dropped.
pub(crate) struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic_quietly();
    }
}

/// Counts its drops.
#[derive(Clone)]
pub(crate) struct Drops(Arc<AtomicU64>);

pub(crate) struct Dropped(Arc<AtomicU64>);

impl Drops {
    pub(crate) fn new() -> Self {
        Drops(Arc::new(AtomicU64::new(0)))
    }

    pub(crate) fn one(&self) -> Dropped {
        Dropped(self.0.clone())
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.load(SeqCst)
    }
}

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Runs `body` on its own thread, and fails if it has not returned within ten seconds.
#[track_caller]
pub(crate) fn within<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, wait) = mpsc::channel();
    let thread = thread::spawn(move || done.send(body()));
    match wait.recv_timeout(Duration::from_secs(10)) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(thread.join().expect_err("it panicked"))
        }
    }
}

/// Runs one case of a table on a thread with that name. A failure, or a case that takes ten seconds, shows the name.
#[track_caller]
pub(crate) fn case<R: Send + 'static>(
    name: impl AsRef<str>,
    body: impl FnOnce() -> R + Send + 'static,
) -> R {
    let (name, (done, ended)) = (name.as_ref(), mpsc::channel());
    let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
        // The panic message is on the standard error, after the name; the payload may panic when dropped.
        let outcome = catch_unwind(AssertUnwindSafe(body)).map_err(std::mem::forget);
        let _ = done.send(outcome.ok());
    });
    match ended.recv_timeout(Duration::from_secs(10)) {
        Ok(Some(result)) => {
            thread.unwrap().join().unwrap();
            result
        }
        Ok(None) | Err(mpsc::RecvTimeoutError::Disconnected) => panic!("{name}: it fails"),
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{name}: it hangs"),
    }
}

/// Waits until the condition holds; fails after twenty seconds.
#[track_caller]
pub(crate) fn eventually(so: impl FnMut() -> bool) {
    assert!(becomes(so), "it never came to be");
}

/// Whether the condition holds within twenty seconds: for failures with a better message.
pub(crate) fn becomes(mut so: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while !so() {
        if begin.elapsed() > Duration::from_secs(20) {
            return false;
        }
        thread::sleep(Duration::from_micros(200));
    }
    true
}

/// Asserts that every timer is accounted for, and that the wheels are consistent.
#[track_caller]
pub(crate) fn accounted(timer: &Timer) {
    let counts = timer.counts();
    let sum = counts.fired + counts.cancelled + counts.handed_back + counts.pending;
    assert_eq!(counts.armed, sum, "{counts:?}");
    assert_eq!(timer.check(), Ok(()));
}

/// An executor with one thread of its own and an unbounded queue.
pub(crate) fn one_thread() -> impl Fn(Job) -> Result<(), Job> + Send + Sync + 'static {
    let (jobs, queue) = mpsc::channel::<Job>();
    thread::spawn(move || queue.into_iter().for_each(Job::run));
    let jobs = Mutex::new(jobs);
    move |job| jobs.lock().unwrap().send(job).map_err(|back| back.0)
}

/// The three places where callbacks can run.
pub(crate) const PLACES: [&str; 3] = ["driver", "pool", "own executor"];

/// A builder whose callbacks run in this place.
pub(crate) fn running_on(place: &str) -> Builder {
    let builder = Timer::builder();
    match place {
        "driver" => builder.on_driver(),
        "pool" => builder.pool(2),
        "own executor" => builder.executor(one_thread()),
        _ => unreachable!("{place}"),
    }
}

/// A place with a single thread for all callbacks, and a builder for it.
pub(crate) type Single = (&'static str, fn() -> Builder);

pub(crate) const SINGLE: [Single; 3] = [
    ("driver", || Timer::builder().on_driver()),
    ("pool of one", || Timer::builder().pool(1)),
    ("own executor", || Timer::builder().executor(one_thread())),
];

/// A timer of one shard on a virtual clock, whose callbacks run in this place.
pub(crate) fn virtual_on(place: &str) -> (Timer, VirtualClock) {
    let clock = VirtualClock::new();
    (running_on(place).shards(1).clock(&clock).build().unwrap(), clock)
}

/// A clock that is set by hand: it may freeze, jump and go back.
#[derive(Clone)]
pub(crate) struct HandClock {
    begin: Instant,
    /// Nanoseconds since `begin`, which is a year after the clock's zero, so that it can go back.
    now: Arc<AtomicU64>,
    /// How often a driver has begun to wait.
    waits: Arc<AtomicU64>,
}

impl HandClock {
    pub(crate) fn new() -> Self {
        let year = YEAR.as_nanos() as u64;
        HandClock {
            begin: Instant::now(),
            now: Arc::new(AtomicU64::new(year)),
            waits: Arc::default(),
        }
    }

    pub(crate) fn forward(&self, by: Duration) {
        self.now.fetch_add(by.as_nanos() as u64, SeqCst);
    }

    pub(crate) fn back(&self, by: Duration) {
        self.now.fetch_sub(by.as_nanos() as u64, SeqCst);
    }

    /// Waits until the driver (there must be exactly one) has finished its work and waits again.
    #[track_caller]
    pub(crate) fn await_driver(&self) {
        let before = self.waits.load(SeqCst);
        eventually(|| self.waits.load(SeqCst) > before);
    }

    pub(crate) fn read(&self) -> Instant {
        self.begin + Duration::from_nanos(self.now.load(SeqCst))
    }
}

impl Clock for HandClock {
    fn now(&self) -> Instant {
        self.read()
    }

    /// The clock cannot know when it will be set, so the driver reads it every half millisecond.
    fn wait(&self, until: Option<Instant>, sleeper: &Sleeper) {
        self.waits.fetch_add(1, SeqCst);
        if until.is_none_or(|until| until > self.read()) {
            sleeper.sleep(Some(Duration::from_micros(500)));
        }
    }
}

/// Arms a timer on the given shard of two. Which thread arms it does not matter: a thread keeps to one shard, so new
/// threads are started until one has that shard.
pub(crate) fn arm_in_shard<F>(timer: &Timer, shard: usize, arm: F)
where
    F: Fn(&Timer) + Clone + Send + 'static,
{
    loop {
        let (timer, arm) = (timer.clone(), arm.clone());
        let right = thread::spawn(move || {
            let before = held(&timer, shard);
            let probe = timer.arm(HOUR * 1000, |_| ()).unwrap();
            let right = held(&timer, shard) > before;
            timer.cancel(probe);
            if right {
                arm(&timer);
            }
            right
        });
        if right.join().unwrap() {
            return;
        }
    }
}

fn held(timer: &Timer, shard: usize) -> usize {
    timer.snapshot().shards[shard].slots.iter().map(|slot| slot.timers).sum()
}
