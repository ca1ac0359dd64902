//! hyper's traits, on both engines.
//!
//! One test takes milliseconds of real time: the default engine has no virtual clock.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer as _};
use tourbillon::{Timer, VirtualClock, tasks};
use tourbillon_hyper::HyperTimer;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// A timer of one shard on a virtual clock.
fn timer() -> (Timer, VirtualClock) {
    let clock = VirtualClock::new();
    (Timer::builder().shards(1).clock(&clock).build().unwrap(), clock)
}

/// A task that counts its wakes.
struct Task(Arc<Wakes>);

struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Task {
    fn new() -> Self {
        Task(Arc::new(Wakes(AtomicUsize::new(0))))
    }

    fn poll<F: Future + Unpin>(&self, future: &mut F) -> Poll<F::Output> {
        let waker = Waker::from(self.0.clone());
        Pin::new(future).poll(&mut Context::from_waker(&waker))
    }

    /// The number of wakes since the last call.
    fn wakes(&self) -> usize {
        self.0.0.swap(0, SeqCst)
    }
}

#[test]
fn hyper_sleeps_and_resets_in_place() {
    let (timer, clock) = timer();
    let hyper = HyperTimer::from(timer.clone());
    assert_eq!(hyper.now(), clock.now());
    let task = Task::new();
    let mut sleep = hyper.sleep(SECOND);
    assert!(task.poll(&mut sleep).is_pending());
    let place = std::ptr::from_ref::<dyn Sleep>(&*sleep).cast::<()>();
    hyper.reset(&mut sleep, clock.now() + 2 * SECOND);
    assert_eq!(std::ptr::from_ref::<dyn Sleep>(&*sleep).cast::<()>(), place, "no allocation");
    clock.advance(SECOND).unwrap();
    assert_eq!(task.wakes(), 0);
    clock.advance(SECOND).unwrap();
    assert_eq!((task.wakes(), task.poll(&mut sleep)), (1, Poll::Ready(())));
    // A sleep of another timer is replaced.
    let mut foreign = HyperTimer::new().sleep(HOUR);
    hyper.reset(&mut foreign, clock.now());
    assert_eq!(task.poll(&mut foreign), Poll::Ready(()));
    // It never ends early, and a stop of the timer does not end it.
    let mut sleep = hyper.sleep_until(clock.now() + SECOND);
    assert!(task.poll(&mut sleep).is_pending());
    timer.stop();
    assert_eq!(task.wakes(), 1);
    assert!(task.poll(&mut sleep).is_pending());
}

#[test]
fn hyper_on_the_default_engine() {
    let hyper = HyperTimer::default();
    let deadline = hyper.now() + 5 * MS;
    let mut sleep = hyper.sleep(HOUR);
    assert!(Task::new().poll(&mut sleep).is_pending());
    hyper.reset(&mut sleep, deadline);
    futures_lite::future::block_on(sleep);
    assert!(Instant::now() >= deadline);
}

#[test]
fn hyper_resets_a_sleep_to_the_timer_that_is_asked() {
    let ((one, _), (two, clock)) = (timer(), timer());
    let mut sleep = HyperTimer::from(one.clone()).sleep(HOUR);
    one.stop();
    let two = HyperTimer::from(two);
    two.reset(&mut sleep, two.now() + SECOND);
    let task = Task::new();
    assert!(task.poll(&mut sleep).is_pending());
    clock.advance(SECOND).unwrap();
    assert!(task.poll(&mut sleep).is_ready());
}

#[test]
fn a_limit_of_hyper_that_found_no_room_tries_again() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).limit(1).build().unwrap();
    let key = timer.arm(HOUR, |_| ()).unwrap();
    let mut sleep = HyperTimer::from(timer.clone()).sleep(SECOND);
    let task = Task::new();
    assert!(task.poll(&mut sleep).is_pending());
    assert!(timer.cancel(key), "there is room again");
    assert!(task.poll(&mut sleep).is_pending());
    clock.advance(SECOND).unwrap();
    assert!(task.poll(&mut sleep).is_ready());
}

/// Code that calls `HyperTimer::new` can be tested under virtual time.
#[test]
fn the_default_timer_follows_a_scope() {
    let (timer, clock) = timer();
    clock.advance(HOUR).unwrap();
    tasks::with_timer(&timer, || {
        let hyper = HyperTimer::new();
        assert_eq!(hyper.now(), clock.now());
        let (task, mut sleep) = (Task::new(), hyper.sleep(SECOND));
        assert!(task.poll(&mut sleep).is_pending());
        clock.advance(SECOND).unwrap();
        assert!(task.poll(&mut sleep).is_ready());
    });
}
