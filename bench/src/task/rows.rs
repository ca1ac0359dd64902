//! The workloads, each as one run in a separate process.

use std::collections::BTreeSet;
use std::future::{pending, ready};
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use async_executor::Executor;
use tokio::runtime::{Builder, Runtime};

use super::contestant::Contestant;
use crate::league::Readings;
use crate::machine;
use crate::rng::Rng;
use crate::system::{self, Threads};
use crate::timer::rows::churn::{per, together};
use crate::timer::rows::{Delays, MILLION};
use crate::timer::sink::{self, Tally};

/// The deadlines of the million sleeps: the length of their range, and the delay of the first.
const SPREAD: Duration = Duration::from_secs(4);
const LEAD: Duration = Duration::from_millis(2500);
/// A contestant that is later than this has failed.
const PATIENCE: Duration = Duration::from_secs(10);
/// A delay longer than all others.
const LATER: Duration = Duration::from_secs(126);
/// The time after which a contestant is at rest.
const CALM: Duration = Duration::from_millis(200);
const UNTOLD: &str = "this system does not tell";

/// Starts the runtime's threads before any thread is pinned: a thread inherits the core of its creator.
fn runtime() -> Runtime {
    Builder::new_multi_thread().enable_time().build().expect("a runtime")
}

/// A waker as executors have them: `clone` and `drop` change a reference count.
fn waker() -> Waker {
    struct Nobody;
    impl Wake for Nobody {
        fn wake(self: Arc<Self>) {}
    }
    Waker::from(Arc::new(Nobody))
}

/// Pinned sleeps: a new one replaces the oldest in place, without an allocation.
struct Ring<S> {
    places: Vec<Pin<Box<Option<S>>>>,
    oldest: usize,
    waker: Waker,
    delays: Delays,
}

impl<S: Future> Ring<S> {
    fn filled(sleeps: usize, seed: usize, make: impl Fn(Duration) -> S) -> Self {
        let places = (0..sleeps).map(|_| Box::pin(None)).collect();
        let (waker, delays) = (waker(), Delays::new(seed));
        let mut ring = Ring { places, oldest: 0, waker, delays };
        // Twice: in the second round, each sleep replaces another one.
        ring.turn(2 * sleeps, make);
        ring
    }

    #[inline]
    fn turn(&mut self, times: usize, make: impl Fn(Duration) -> S) {
        let mut context = Context::from_waker(&self.waker);
        for _ in 0..times {
            let place = &mut self.places[self.oldest];
            place.set(Some(make(self.delays.next())));
            poll(place.as_mut(), &mut context);
            self.oldest = if self.oldest + 1 == self.places.len() { 0 } else { self.oldest + 1 };
        }
    }
}

#[inline]
fn poll<S: Future>(place: Pin<&mut Option<S>>, context: &mut Context<'_>) {
    let waits = place.as_pin_mut().is_some_and(|sleep| sleep.poll(context).is_pending());
    assert!(black_box(waits), "a sleep that is over too early");
}

/// Runs `work` on a new pinned thread, inside the runtime.
fn pinned<R: Send>(runtime: &Runtime, number: usize, work: impl FnOnce() -> R + Send) -> R {
    let body = || {
        machine::pin_thread(number);
        let _inside = runtime.enter();
        let result = work();
        system::note_waits();
        result
    };
    thread::scope(|scope| scope.spawn(body).join().expect("no panic"))
}

/// Makes a first sleep while no thread is pinned, because some contestants start their thread with it.
fn started<C: Contestant>() -> Runtime {
    let runtime = runtime();
    let inside = runtime.enter();
    let mut sleep = Box::pin(Some(C::sleep(Duration::from_secs(60))));
    poll(sleep.as_mut(), &mut Context::from_waker(Waker::noop()));
    drop((sleep, inside));
    runtime
}

pub fn churn<C: Contestant>(threads: usize, times: usize) -> Readings {
    let runtime = started::<C>();
    let barrier = Barrier::new(threads);
    let worker = |number: usize| {
        pinned(&runtime, number, || {
            let mut ring = Ring::filled(MILLION / threads, number, C::sleep);
            barrier.wait();
            let begin = Instant::now();
            ring.turn(times, C::sleep);
            let end = Instant::now();
            // Other threads may still be timed: tearing down now would change their load.
            barrier.wait();
            (begin, end)
        })
    };
    vec![("churn", per(together(threads, worker), threads * times))]
}

/// Checks correctness: sleeps that must end at their deadlines, and sleeps that are dropped before.
pub fn trace<C: Contestant>() -> Readings {
    const SLEEPS: usize = 2000;
    const SPREAD: Duration = Duration::from_millis(400);
    const GRACE: Duration = Duration::from_millis(60);
    let runtime = started::<C>();
    let ended: Arc<Mutex<Vec<(usize, Instant)>>> = Arc::default();
    let mut rng = Rng::new(5);
    let first = Instant::now() + Duration::from_millis(100);
    let mut dues = Vec::new();
    for number in 0..SLEEPS {
        let at = first + Duration::from_nanos(rng.below(SPREAD.as_nanos() as u64));
        let dropped = rng.below(4) == 0;
        let ended = ended.clone();
        let task = runtime.spawn(async move {
            C::sleep_until(at).await;
            let now = Instant::now();
            ended.lock().unwrap_or_else(PoisonError::into_inner).push((number, now));
        });
        if dropped {
            task.abort();
        }
        dues.push((at, dropped));
    }
    thread::sleep((first + SPREAD + 2 * GRACE).saturating_duration_since(Instant::now()));
    let ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut early, mut late, mut ghosts) = (0, 0, 0);
    let mut seen = BTreeSet::new();
    for &(number, now) in &*ended {
        let (at, dropped) = dues[number];
        ghosts += usize::from(dropped || !seen.insert(number));
        early += usize::from(now < at);
        late += usize::from(now > at + GRACE);
    }
    let lost = dues.iter().filter(|(_, dropped)| !dropped).count() - seen.len();
    let counts = [("early", early), ("late", late), ("lost", lost), ("ghosts", ghosts)];
    counts.map(|(name, count)| (name, count as f64)).to_vec()
}

pub fn at_once<C: Contestant>(times: usize) -> Readings {
    let runtime = started::<C>();
    pinned(&runtime, 0, || {
        let limit = Duration::from_secs(30);
        let timeout = timed(times, |n| C::timeout(limit, ready(n)));
        let bare = timed(times, ready);
        let clock = timed(times, |_| ready(Instant::now()));
        vec![("ready", timeout), ("ready-clocks", (timeout - bare) / (clock - bare))]
    })
}

/// Nanoseconds to create and poll a future.
fn timed<F: Future>(times: usize, make: impl Fn(usize) -> F) -> f64 {
    let waker = waker();
    let mut context = Context::from_waker(&waker);
    let mut run = |times: usize| {
        for n in 0..times {
            let future = pin!(make(black_box(n)));
            assert!(black_box(future.poll(&mut context)).is_ready());
        }
    };
    run(times / 10);
    let begin = Instant::now();
    run(times);
    per(begin.elapsed(), times)
}

pub fn reset<C: Contestant>(times: usize) -> Readings {
    let runtime = started::<C>();
    pinned(&runtime, 0, || {
        let mut ring = Ring::filled(MILLION, 0, C::sleep);
        let mut rng = Rng::new(1);
        let waker = ring.waker.clone();
        let mut context = Context::from_waker(&waker);
        let mut run = |polled: bool| {
            let begin = Instant::now();
            for _ in 0..times {
                let place = &mut ring.places[rng.below(MILLION as u64) as usize];
                if let Some(sleep) = place.as_mut().as_pin_mut() {
                    C::reset(sleep, LATER);
                }
                if polled {
                    poll(place.as_mut(), &mut context);
                }
            }
            per(begin.elapsed(), times)
        };
        vec![("reset", run(false)), ("reset-polled", run(true))]
    })
}

/// The number of tasks that have been polled once.
static POLLED: AtomicU64 = AtomicU64::new(0);

/// A task that sleeps once.
async fn task<C: Contestant>(at: Instant, payload: u64) {
    POLLED.fetch_add(1, Relaxed);
    C::sleep_until(at).await;
    sink::fired(payload);
}

pub fn fire_on_tokio<C: Contestant>() -> Result<Readings, String> {
    let runtime = started::<C>();
    let cpu = fire(|at, payload| drop(runtime.spawn(task::<C>(at, payload))))?;
    Ok(vec![("fire-on-tokio", cpu)])
}

pub fn fire_on_smol<C: Contestant>() -> Result<Readings, String> {
    let runtime = started::<C>();
    // Leaked, because the threads run it until the process ends.
    let executor: &'static Executor<'static> = Box::leak(Box::default());
    for _ in 0..2 {
        let handle = runtime.handle().clone();
        thread::spawn(move || {
            let _inside = handle.enter();
            futures_lite::future::block_on(executor.run(pending::<()>()));
        });
    }
    let cpu = fire(|at, payload| executor.spawn(task::<C>(at, payload)).detach())?;
    Ok(vec![("fire-on-smol", cpu)])
}

/// The CPU time of the process per task, while a million tasks wake and end. The harness sleeps meanwhile.
fn fire(spawn: impl Fn(Instant, u64)) -> Result<f64, String> {
    let before = Tally::now();
    let first = Instant::now() + LEAD;
    let mut rng = Rng::new(1);
    for payload in 0..MILLION as u64 {
        spawn(first + Duration::from_nanos(rng.below(SPREAD.as_nanos() as u64)), payload);
    }
    while POLLED.load(Relaxed) < MILLION as u64 {
        thread::sleep(Duration::from_millis(1));
    }
    let begin = system::process_cpu().ok_or(UNTOLD)?;
    let early = Tally::now().count - before.count;
    if early > MILLION as u64 / 10 {
        return Err("it took too long to arm".to_owned());
    }
    thread::sleep((first + SPREAD).saturating_duration_since(Instant::now()));
    before.wait(MILLION as u64, PATIENCE)?;
    let end = system::process_cpu().ok_or(UNTOLD)?;
    Ok((end - begin).as_nanos() as f64 / (MILLION as u64 - early) as f64)
}

/// The first sleep is the earliest, so later sleeps need not wake the timer's thread.
pub fn later<C: Contestant>() -> Result<Readings, String> {
    let others = Threads::all();
    let runtime = runtime();
    let inside = runtime.enter();
    let mut context = Context::from_waker(Waker::noop());
    let mut arm = |after: Duration| {
        let mut sleep = Box::pin(Some(C::sleep(after)));
        poll(sleep.as_mut(), &mut context);
        sleep
    };
    let first = arm(Duration::from_secs(59));
    thread::sleep(CALM);
    let threads = others.started_since();
    let before = threads.used().ok_or(UNTOLD)?;
    let mut delays = Delays::new(0);
    let sleeps: Vec<_> = (0..MILLION).map(|_| arm(delays.next())).collect();
    let after = threads.used().ok_or(UNTOLD)?;
    drop((sleeps, first, inside));
    Ok(vec![("later-switches", (after.switches - before.switches) as f64)])
}
