//! The whole engine under shuttle: random schedules of threads that arm, cancel, reschedule and stop while time passes.
//!
//! loom tries every order of a few steps; shuttle tries many orders of many steps. Time is virtual, so events are
//! ordered and nothing depends on real waiting. After each run, every timer has ended in exactly one way, and its
//! handle reports which.
//!
//! `cargo xtask shuttle` runs the tests, and runs them again with planted faults (`planted/shuttle.txt`), which must
//! make them fail. `TOURBILLON_SCHEDULES` sets how many schedules each test tries.

mod handles;
mod purgatory;
mod wall;

use std::sync::Arc;
use std::time::Duration;

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use shuttle::thread;

use crate::{
    Backoff, Builder, DelayQueue, Job, Retried, State, TakeError, Timeout, Timer, VirtualClock,
};

const MS: Duration = Duration::from_millis(1);

fn explore(test: impl Fn() + Send + Sync + 'static) {
    let schedules = std::env::var("TOURBILLON_SCHEDULES").ok();
    let schedules = schedules.and_then(|count| count.parse().ok()).unwrap_or(2_000);
    let test = Arc::new(test);
    let again = test.clone();
    shuttle::check_random(move || test(), schedules);
    shuttle::check_pct(move || again(), schedules / 4, 3);
    println!("{} schedules explored", schedules + schedules / 4);
}

/// A timer and the number of times that it ran.
struct Watched {
    handle: Timeout,
    ran: Arc<AtomicUsize>,
}

impl Watched {
    fn new(timer: &Timer, after: Duration) -> Option<Self> {
        let ran = Arc::new(AtomicUsize::new(0));
        let count = ran.clone();
        let callback = move |_: &crate::Context<'_>| {
            count.fetch_add(1, SeqCst);
        };
        let handle = timer.schedule(after, callback).ok()?;
        Some(Watched { handle, ran })
    }

    /// Asserts that it ran once, or was cancelled or handed back and never ran.
    fn has_ended_once(&self) {
        let (state, ran) = (self.handle.state(), self.ran.load(SeqCst));
        match state {
            State::Fired => assert_eq!(ran, 1),
            State::Cancelled | State::HandedBack => assert_eq!(ran, 0, "{state:?}"),
            State::Pending | State::Running => panic!("{state:?} after a stop"),
        }
    }
}

/// Threads arm, cancel and reschedule at random, a clock advances, and another thread stops the engine at some point.
fn everything_at_once(run: impl Fn(Builder) -> Builder) {
    let clock = VirtualClock::new();
    let timer = run(Timer::builder().clock(&clock).shards(2)).build().unwrap();
    let all = Arc::new(Mutex::new(Vec::new()));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let (timer, all) = (timer.clone(), all.clone());
            thread::spawn(move || {
                for _ in 0..3 {
                    let after = MS * thread_rng().gen_range(0..3);
                    let Some(watched) = Watched::new(&timer, after) else { continue };
                    match thread_rng().gen_range(0..4) {
                        0 => {
                            if watched.handle.cancel() {
                                assert_eq!(watched.ran.load(SeqCst), 0);
                            }
                        }
                        1 => drop(watched.handle.reschedule(MS * thread_rng().gen_range(0..3))),
                        _ => {}
                    }
                    all.lock().unwrap().push(watched);
                }
            })
        })
        .collect();
    let time = {
        let clock = clock.clone();
        thread::spawn(move || (0..3).for_each(|_| clock.advance(MS).unwrap()))
    };
    // The stop comes in the middle, or after all threads have finished: every due timer has run by then.
    let mut time = Some(time);
    if thread_rng().gen_bool(0.5) {
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        if thread_rng().gen_bool(0.5) {
            time.take().into_iter().for_each(|time| time.join().unwrap());
        }
    }
    let handed_back = timer.stop().len() as u64;
    assert!(timer.stop().is_empty(), "a second stop");
    time.into_iter().for_each(|time| time.join().unwrap());
    assert!(timer.schedule(MS, |_| ()).is_err(), "after a stop");
    let counts = timer.counts();
    assert_eq!(counts.handed_back, handed_back);
    assert_eq!(counts.pending, 0);
    assert_eq!(counts.armed, counts.fired + counts.cancelled + counts.handed_back);
    all.lock().unwrap().iter().for_each(Watched::has_ended_once);
}

#[test]
fn everything_at_once_on_a_pool() {
    explore(|| everything_at_once(|builder| builder.pool(2)));
}

#[test]
fn everything_at_once_on_one_worker() {
    explore(|| everything_at_once(|builder| builder.pool(1)));
}

#[test]
fn everything_at_once_on_the_driver() {
    explore(|| everything_at_once(Builder::on_driver));
}

#[test]
fn everything_at_once_on_an_executor_that_starts_threads() {
    explore(|| {
        everything_at_once(|builder| {
            builder.executor(|job: Job| {
                thread::spawn(move || job.run());
                Ok(())
            })
        });
    });
}

/// An advance returns when all due timers have run, on whatever thread.
#[test]
fn an_advance_returns_when_all_has_run() {
    explore(|| {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).shards(2).pool(2).build().unwrap();
        let all: Vec<_> = (1..=4).map(|n| Watched::new(&timer, MS * n).unwrap()).collect();
        clock.advance(MS * 2).unwrap();
        let ran: Vec<_> = all.iter().map(|watched| watched.ran.load(SeqCst)).collect();
        assert_eq!(ran, [1, 1, 0, 0]);
        clock.advance(MS * 2).unwrap();
        assert!(all.iter().all(|watched| watched.handle.state() == State::Fired));
        assert!(timer.stop().is_empty());
    });
}

/// A worker goes to sleep after each timer, while the next becomes ready.
#[test]
fn a_worker_that_goes_to_sleep_misses_nothing() {
    explore(|| {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).shards(1).pool(1).build().unwrap();
        let all: Vec<_> = (1..=8).map(|n| Watched::new(&timer, MS * n).unwrap()).collect();
        clock.advance(MS * 8).unwrap();
        all.iter().for_each(|watched| assert_eq!(watched.ran.load(SeqCst), 1));
        assert!(timer.stop().is_empty());
    });
}

/// A second worker runs the timer that is queued behind a blocked one.
#[test]
fn a_blocked_worker_delays_nobody() {
    explore(|| {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).shards(1).pool(2).build().unwrap();
        let gate = Arc::new((Mutex::new(false), shuttle::sync::Condvar::new()));
        let (wait, open) = (gate.clone(), gate);
        let first = timer.schedule(MS, move |_| {
            let mut open = wait.0.lock().unwrap();
            while !*open {
                open = wait.1.wait(open).unwrap();
            }
        });
        // Only this timer opens the gate, and it is queued behind the blocked worker: same tick, same shard.
        let second = timer.schedule(MS, move |_| {
            *open.0.lock().unwrap() = true;
            open.1.notify_all();
        });
        clock.advance(MS).unwrap();
        assert_eq!(first.unwrap().state(), State::Fired);
        assert_eq!(second.unwrap().state(), State::Fired);
        assert!(timer.stop().is_empty());
    });
}

/// A repeating timer that is cancelled before, during or after a run never starts again.
#[test]
fn a_repeating_timer_that_was_cancelled_never_starts_again() {
    explore(|| {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).shards(1).pool(2).build().unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        let count = ran.clone();
        let repeating = timer.schedule_repeating(MS, move |context| {
            count.fetch_add(1, SeqCst);
            context.again(MS);
        });
        let repeating = repeating.unwrap();
        let time = {
            let clock = clock.clone();
            thread::spawn(move || clock.advance(MS * 3).unwrap())
        };
        assert!(repeating.cancel(), "it repeats for ever, so a cancel always comes in time");
        assert_eq!(repeating.state(), State::Cancelled);
        time.join().unwrap();
        let before = ran.load(SeqCst);
        clock.advance(MS * 3).unwrap();
        assert_eq!(ran.load(SeqCst), before);
        assert!(timer.stop().is_empty());
    });
}

/// Threads put, remove and take, with and without limits, a clock advances, and another thread closes the queue at some
/// point. Each value is taken, removed or handed back once, and an advance returns when the waiting threads have taken
/// the due values.
#[test]
fn a_queue_loses_nothing() {
    explore(|| {
        let clock = VirtualClock::new();
        let queue: DelayQueue<u32> = Timer::builder().clock(&clock).queue().unwrap();
        let ended = Arc::new(Mutex::new(Vec::new()));
        let takers: Vec<_> = (0..3)
            .map(|number| {
                let (queue, ended) = (queue.clone(), ended.clone());
                thread::spawn(move || {
                    for _ in 0..3 {
                        let taken = match number {
                            0 => queue.take(),
                            _ => queue.take_within(MS * thread_rng().gen_range(0..4)),
                        };
                        match taken {
                            Ok(value) => ended.lock().unwrap().push(value),
                            Err(TakeError::Closed) => return,
                            Err(_) => {}
                        }
                    }
                })
            })
            .collect();
        let puts = {
            let (queue, ended) = (queue.clone(), ended.clone());
            thread::spawn(move || {
                for value in 0..4 {
                    let key = queue.put(MS * thread_rng().gen_range(0..4), value).unwrap();
                    if thread_rng().gen_bool(0.2) {
                        ended.lock().unwrap().extend(queue.remove(key));
                    }
                }
            })
        };
        let time = {
            let clock = clock.clone();
            thread::spawn(move || (0..4).for_each(|_| clock.advance(MS).unwrap()))
        };
        puts.join().unwrap();
        if thread_rng().gen_bool(0.5) {
            time.join().unwrap();
        }
        ended.lock().unwrap().extend(queue.close().into_iter().map(|left| left.value));
        // The close wakes a thread whose limit no advance has reached.
        takers.into_iter().for_each(|taker| taker.join().unwrap());
        let mut ended = ended.lock().unwrap();
        ended.sort_unstable();
        assert_eq!(*ended, [0, 1, 2, 3]);
        let counts = queue.counts();
        assert_eq!(counts.armed, counts.fired + counts.cancelled + counts.handed_back);
    });
}

/// A retry during a cancel, a stop and an advance: it has one outcome, which a waiting thread receives.
#[test]
fn a_retry_has_one_outcome() {
    explore(|| {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).shards(1).pool(2).build().unwrap();
        let told = Arc::new(AtomicUsize::new(0));
        let count = told.clone();
        let job = |attempt: &crate::Attempt| if attempt.number() < 3 { Err(()) } else { Ok(()) };
        let handle = timer.retry_then(Backoff::new(MS), job, move |_| {
            count.fetch_add(1, SeqCst);
        });
        let (handle, waits) = (handle.unwrap(), timer.retry(Backoff::new(MS), job).unwrap());
        let time = {
            let clock = clock.clone();
            thread::spawn(move || (0..4).for_each(|_| clock.advance(MS).unwrap()))
        };
        handle.cancel();
        let stops = thread_rng().gen_bool(0.5);
        if stops {
            timer.stop();
        }
        let outcome = waits.wait();
        time.join().unwrap();
        assert!(matches!(outcome, Retried::Success(())) || (stops && outcome == Retried::Stopped));
        assert_eq!(told.load(SeqCst), 1);
    });
}

/// An event loop polls its descriptor between turns while another thread arms: the last turn leaves it unreadable. This
/// is not a loom model, because loom lets the swap of `notified` miss a store that happened before it.
#[test]
fn a_turn_leaves_the_descriptor_silent() {
    explore(|| {
        let builder = Timer::builder().clock(&VirtualClock::new()).shards(1);
        let (engine, mut driver) = builder.deliver_driven(|_: crate::Batch<'_, ()>| ()).unwrap();
        let fd = driver.wake_fd().unwrap();
        let other = {
            let engine = engine.clone();
            thread::spawn(move || (0..2).for_each(|_| drop(engine.schedule(MS * 0, ()).unwrap())))
        };
        let mut ran = 0;
        loop {
            let turn = driver.turn();
            ran += turn.ran;
            if ran == 2 {
                break;
            }
            // If there is a next time, do not wait: its timer is due, and was armed after the pass.
            if turn.next.is_none() {
                fd.wait_until_readable();
            }
            // The other thread is between its write and its flag, which keeps the descriptor readable: let it run.
            thread::yield_now();
        }
        other.join().unwrap();
        assert_eq!((driver.turn().ran, fd.is_readable()), (0, false));
    });
}
