//! Every wait ends: a verb that blocks a thread, or leaves a future pending, returns with its documented outcome when
//! another thread stops the engine, drops it, or drops its driver.
//!
//! In real time: the waiting thread blocks, and the end must wake it.

use std::future::pending;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::block_on;
use tourbillon::tasks::{self, SleepError};
use tourbillon::{
    Attempt, Backoff, BootClock, Builder, Clock, DelayQueue, Driver, KeyedTimer, NoResult,
    Operation, Purgatory, Retried, ScheduleError, TakeError, Timer, VirtualClock, WaitError,
};

use crate::common::asleep::spawn_asleep;
use crate::common::{HOUR, MS, PLACES, case, running_on};

/// The system's clock, as a user-defined clock.
struct Own;

impl Clock for Own {
    fn now(&self) -> Instant {
        Instant::now()
    }
}

const CLOCKS: [&str; 4] = ["system", "boot", "virtual", "own"];

fn on_clock(clock: &str) -> Builder {
    let builder = Timer::builder();
    match clock {
        "system" => builder,
        "boot" => builder.clock(BootClock),
        "virtual" => builder.clock(&VirtualClock::new()),
        "own" => builder.clock(Own),
        _ => unreachable!("{clock}"),
    }
}

/// Runs `blocks` on its own thread, and calls `end` once that thread waits.
fn ended<R: Send + 'static>(blocks: impl FnOnce() -> R + Send + 'static, end: impl FnOnce()) -> R {
    let thread = spawn_asleep(blocks);
    assert!(!thread.is_finished(), "it waits");
    end();
    thread.join().unwrap()
}

/// Waits on a timer; returns whether it observed the stop.
type Waits = Box<dyn FnOnce() -> bool + Send>;

/// A verb that waits, and whether the waiting value keeps the timer alive.
struct Row {
    verb: &'static str,
    owns: bool,
    wait: fn(&Timer) -> Waits,
}

const fn row(verb: &'static str, wait: fn(&Timer) -> Waits) -> Row {
    Row { verb, owns: false, wait }
}

const fn owning(verb: &'static str, wait: fn(&Timer) -> Waits) -> Row {
    Row { verb, owns: true, wait }
}

const WAITING: &[Row] = &[
    row("Retry::wait", |timer| {
        let retry = timer.retry(hourly(), fails).unwrap();
        Box::new(|| retry.wait() == Retried::Stopped)
    }),
    row("Retry::wait_within", |timer| {
        let retry = timer.retry(hourly(), fails).unwrap();
        Box::new(|| retry.wait_within(HOUR).unwrap() == Retried::Stopped)
    }),
    row("Timer::retry_then", |timer| {
        let (told, outcome) = mpsc::channel();
        timer.retry_then(hourly(), fails, move |outcome| told.send(outcome).unwrap()).unwrap();
        Box::new(move || outcome.recv() == Ok(Retried::Stopped))
    }),
    owning("KeyedTimer::retry", |timer| {
        let (told, outcome) = mpsc::channel();
        let timers = KeyedTimer::new(timer);
        timers.retry(1, hourly(), fails, move |outcome| told.send(outcome).unwrap()).unwrap();
        Box::new(move || outcome.recv() == Ok(Retried::Stopped) && timers.is_empty())
    }),
    row("Scheduled::wait", |timer| {
        let result = timer.compute(HOUR, |_| ()).unwrap();
        Box::new(|| result.wait() == Err(NoResult::Stopped))
    }),
    row("Scheduled::wait_within", |timer| {
        let result = timer.compute(HOUR, |_| ()).unwrap();
        Box::new(|| result.wait_within(Duration::MAX).unwrap() == Err(NoResult::Stopped))
    }),
    row("Scheduled::poll", |timer| {
        let result = timer.compute(HOUR, |_| ()).unwrap();
        Box::new(|| block_on(result) == Err(NoResult::Stopped))
    }),
    owning("Purgatory::wait", |timer| {
        let purgatory: Purgatory<u32> = Purgatory::new(timer);
        let wait = purgatory.wait([1], HOUR, || None::<()>);
        Box::new(move || block_on(wait) == Err(WaitError::Stopped) && purgatory.delayed() == 0)
    }),
    owning("Purgatory::when", |timer| {
        let (told, outcome) = mpsc::channel();
        let purgatory: Purgatory<u32> = Purgatory::new(timer);
        let then = move |outcome: Result<(), WaitError>| told.send(outcome).unwrap();
        purgatory.when([1], HOUR, || None, then).unwrap();
        Box::new(move || outcome.recv() == Ok(Err(WaitError::Stopped)) && purgatory.delayed() == 0)
    }),
    row("Timer::sleep", |timer| {
        let sleep = timer.sleep(HOUR);
        Box::new(|| block_on(sleep) == Err(SleepError::Stopped))
    }),
    row("Timer::sleep_until", |timer| {
        let sleep = timer.sleep_until(timer.now() + HOUR);
        Box::new(|| block_on(sleep) == Err(SleepError::Stopped))
    }),
    row("Timer::timeout", |timer| {
        let limited = timer.timeout(HOUR, pending::<()>());
        Box::new(|| block_on(limited) == Err(SleepError::Stopped))
    }),
    row("Interval::tick", |timer| {
        let mut interval = timer.interval(HOUR);
        Box::new(move || {
            block_on(interval.tick()).unwrap();
            block_on(interval.tick()) == Err(SleepError::Stopped)
        })
    }),
    row("DelayQueue::next", |timer| {
        let mut queue = timer.delay_queue();
        queue.insert("key", 7, HOUR).unwrap();
        Box::new(move || {
            let stopped = block_on(queue.next()) == Some(Err(SleepError::Stopped));
            stopped && block_on(queue.next()).is_none() && queue.remove("key") == Some(7)
        })
    }),
    row("tasks::block_on", |timer| {
        // On a clock on which nothing is pending, it blocks until it is woken.
        let sleep = timer.sleep(HOUR);
        Box::new(|| {
            tasks::block_on(&VirtualClock::new(), sleep).unwrap() == Err(SleepError::Stopped)
        })
    }),
];

fn hourly() -> Backoff {
    Backoff::new(HOUR).most(HOUR)
}

fn fails(_: &Attempt) -> Result<(), ()> {
    Err(())
}

/// The ways in which a timer can end.
const ENDS: [&str; 5] = ["stop", "stop_within", "two stops", "drop", "drop the driver"];

fn end(way: &str, timer: Timer, driver: Option<Driver>) {
    match way {
        "stop" => drop(timer.stop()),
        "stop_within" => assert!(timer.stop_within(HOUR).finished),
        "two stops" => {
            let other = timer.clone();
            let thread = thread::spawn(move || other.stop().len());
            let own = timer.stop().len();
            assert!(own + thread.join().unwrap() <= 1, "handed back twice");
        }
        "drop" => drop(timer),
        "drop the driver" => drop(driver),
        _ => unreachable!("{way}"),
    }
}

#[test]
fn whoever_waits_for_a_timer_hears_of_its_end() {
    let engines = PLACES.map(|place| (place, "system")).into_iter();
    let engines = engines.chain(CLOCKS.map(|clock| ("driver", clock))).chain([("loop", "system")]);
    for (place, clock) in engines {
        for row in WAITING {
            for way in ENDS {
                if (row.owns && way == "drop") || (way == "drop the driver" && place != "loop") {
                    continue;
                }
                case(format!("{}, {way}, on the {place}, {clock}", row.verb), move || {
                    let (timer, driver) = if place == "loop" {
                        let (timer, driver) = on_clock(clock).build_driven().unwrap();
                        (timer, Some(driver))
                    } else if clock == "system" {
                        (running_on(place).build().unwrap(), None)
                    } else {
                        (on_clock(clock).on_driver().build().unwrap(), None)
                    };
                    let waits = (row.wait)(&timer);
                    assert!(ended(waits, || end(way, timer, driver)), "it heard of the stop");
                });
            }
        }
    }
}

/// A callback may wait for something of its own timer: a stop ends that wait first, and then waits for the callback.
#[test]
fn a_callback_that_waits_for_its_own_timer_holds_up_no_stop() {
    for row in WAITING {
        for way in ["stop", "stop_within", "two stops"] {
            case(format!("{}, inside a callback, {way}", row.verb), move || {
                let timer = Timer::builder().pool(2).build().unwrap();
                let ((began, begun), (told, heard)) = (mpsc::channel(), mpsc::channel());
                let waits = (row.wait)(&timer);
                let callback = move |_: &tourbillon::Context<'_>| {
                    began.send(()).unwrap();
                    told.send(waits()).unwrap();
                };
                timer.schedule(Duration::ZERO, callback).unwrap();
                begun.recv().unwrap();
                assert!(ended(move || heard.recv() == Ok(true), || end(way, timer, None)));
            });
        }
    }
}

#[test]
fn whoever_takes_hears_of_the_close() {
    type Take = fn(&DelayQueue<u32>) -> Result<u32, TakeError>;
    let verbs: [(&str, Take); 2] = [
        ("DelayQueue::take", |queue| queue.take()),
        ("DelayQueue::take_within", |queue| queue.take_within(HOUR)),
    ];
    for clock in CLOCKS {
        for (verb, take) in verbs {
            for takers in [1, 3] {
                for holds in [false, true] {
                    let name =
                        format!("{verb}, {takers} of them, something in it: {holds}, {clock}");
                    case(name, move || {
                        let queue = on_clock(clock).queue().unwrap();
                        if holds {
                            queue.put(HOUR * 2, 7).unwrap();
                        }
                        let all = queue.clone();
                        let blocks = move || {
                            let take = |queue: DelayQueue<u32>| thread::spawn(move || take(&queue));
                            let threads: Vec<_> = (0..takers).map(|_| take(all.clone())).collect();
                            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
                        };
                        let mut left = Vec::new();
                        let taken: Vec<_> = ended(blocks, || left = queue.close());
                        assert_eq!(taken, vec![Err(TakeError::Closed); takers]);
                        assert_eq!(left.len(), usize::from(holds));
                    });
                }
            }
        }
    }
}

#[test]
fn a_loop_that_waits_hears_of_the_stop() {
    for clock in ["system", "boot", "own"] {
        for limit in [HOUR, Duration::MAX] {
            for way in ["stop", "two stops", "drop"] {
                case(format!("Driver::turn_within({limit:?}), {way}, {clock}"), move || {
                    let (timer, mut driver) = on_clock(clock).build_driven().unwrap();
                    timer.schedule(HOUR, |_| ()).unwrap();
                    let turn = move || (driver.turn_within(limit), driver.is_stopped());
                    let (turn, stopped) = ended(turn, || end(way, timer, None));
                    assert_eq!((turn.ran, turn.next, stopped), (0, None, true));
                });
            }
            case(format!("Driver::turn_within({limit:?}) of an engine, {clock}"), move || {
                let (engine, mut driver) = on_clock(clock).deliver_driven(|_| ()).unwrap();
                engine.schedule(HOUR, 7).unwrap();
                let turn = move || driver.turn_within(limit);
                let mut left = Vec::new();
                assert_eq!(ended(turn, || left = engine.stop()).ran, 0);
                assert_eq!(left.len(), 1);
            });
        }
    }
}

/// An operation whose condition blocks at its first trial after it is watched.
struct Blocks {
    tries: usize,
    run: Option<Box<dyn FnOnce() + Send>>,
}

impl Operation for Blocks {
    fn try_complete(&mut self) -> bool {
        self.tries += 1;
        if self.tries > 2 {
            self.run.take().into_iter().for_each(|run| run());
        }
        false
    }

    fn on_complete(self) {}

    fn on_expire(self) {}
}

/// A task sleeps on the timer with a waker that runs `run` once.
fn wakes_with(timer: &Timer, run: Box<dyn FnOnce() + Send>) {
    type Runs = std::sync::Mutex<Option<Box<dyn FnOnce() + Send>>>;
    struct Waking(Runs);
    impl std::task::Wake for Waking {
        fn wake(self: std::sync::Arc<Self>) {
            let run = self.0.lock().unwrap().take();
            run.into_iter().for_each(|run| run());
        }
    }
    let waker = std::sync::Arc::new(Waking(std::sync::Mutex::new(Some(run)))).into();
    let mut sleep = Box::pin(timer.sleep(MS));
    assert!(sleep.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending());
    // It stays pending: dropping it would drop the waker.
    std::mem::forget(sleep);
}

/// Several stops wait for a running callback, and all of them return when it ends.
#[test]
fn all_who_stop_return_when_what_runs_has_ended() {
    type Stop = Box<dyn Fn() + Send + Sync>;
    /// Makes an engine that runs `run` in a callback, and returns how to stop it.
    type Make = fn(&'static str, Box<dyn FnOnce() + Send>) -> Stop;
    let rows: [(&str, Make); 7] = [
        ("Timer::stop while the driver does the work of a pool that has no thread", |_, run| {
            let spawn =
                |name: String, body: Box<dyn FnOnce() + Send>| match name.ends_with("driver") {
                    true => thread::Builder::new().name(name).spawn(body).map(drop),
                    false => Err(std::io::Error::other("no thread today")),
                };
            let timer = Timer::builder().pool(2).spawn(spawn).build().unwrap();
            timer.schedule(Duration::ZERO, move |_| run()).unwrap();
            Box::new(move || drop(timer.stop()))
        }),
        ("Timer::stop while a waker is called", |place, run| {
            let timer = running_on(place).build().unwrap();
            wakes_with(&timer, run);
            Box::new(move || drop(timer.stop()))
        }),
        ("Timer::stop_within while a waker is called", |place, run| {
            let timer = running_on(place).build().unwrap();
            wakes_with(&timer, run);
            Box::new(move || assert!(timer.stop_within(HOUR).finished))
        }),
        ("Timer::stop", |place, run| {
            let timer = running_on(place).build().unwrap();
            timer.schedule(Duration::ZERO, move |_| run()).unwrap();
            Box::new(move || drop(timer.stop()))
        }),
        ("Timer::stop_within", |place, run| {
            let timer = running_on(place).build().unwrap();
            timer.arm(Duration::ZERO, move |_| run()).unwrap();
            Box::new(move || assert!(timer.stop_within(HOUR).finished))
        }),
        ("Engine::stop", |_, run| {
            let mut run = Some(run);
            let engine = Timer::builder().deliver(move |_| run.take().unwrap()()).unwrap();
            engine.schedule(Duration::ZERO, 7).unwrap();
            Box::new(move || drop(engine.stop()))
        }),
        ("Purgatory::stop", |_, run| {
            let purgatory = Purgatory::new(&Timer::new());
            let blocks = Blocks { tries: 0, run: Some(run) };
            purgatory.try_complete_else_watch(blocks, [1], HOUR).unwrap();
            let checks = purgatory.clone();
            thread::spawn(move || checks.check(&1));
            Box::new(move || drop(purgatory.stop()))
        }),
    ];
    for place in PLACES {
        for (verb, make) in rows {
            case(format!("{verb} by two threads, on the {place}"), move || {
                let ((began, begun), (release, released)) = (mpsc::channel(), mpsc::channel());
                let run = move || {
                    began.send(()).unwrap();
                    released.recv().unwrap();
                };
                let stop = std::sync::Arc::new(make(place, Box::new(run)));
                begun.recv().unwrap();
                let stops = [stop.clone(), stop].map(|stop| spawn_asleep(move || stop()));
                // A second stop of a purgatory has nothing to wait for.
                let expected = if verb == "Purgatory::stop" { 1 } else { 2 };
                let waiting = stops.iter().filter(|thread| !thread.is_finished()).count();
                assert_eq!(waiting, expected);
                release.send(()).unwrap();
                stops.into_iter().for_each(|thread| thread.join().unwrap());
            });
        }
    }
}

/// One time limit covers everything that a stop waits for: if a callback takes most of it, a waker gets the rest.
#[test]
fn a_callback_and_a_waker_share_the_limit_of_a_stop() {
    const LIMIT: Duration = Duration::from_millis(500);
    for place in PLACES {
        case(format!("a callback and a waker, on the {place}"), move || {
            let ((began, begun), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
            let timer = running_on(place).build().unwrap();
            let told = began.clone();
            timer
                .schedule(Duration::ZERO, move |_| {
                    told.send(()).unwrap();
                    thread::sleep(LIMIT * 9 / 10);
                })
                .unwrap();
            begun.recv().unwrap();
            let start = Instant::now();
            wakes_with(
                &timer,
                Box::new(move || {
                    began.send(()).unwrap();
                    let _ = released.recv();
                }),
            );
            begun.recv().unwrap();
            assert!(!timer.stop_within(LIMIT).finished, "the waker stands still");
            assert!(start.elapsed() < LIMIT * 17 / 10, "{:?}", start.elapsed());
            drop(release);
            assert!(timer.stop_within(HOUR).finished);
        });
    }
}

/// A thread that schedules while another thread starts the driver waits for that start, but no longer than until a
/// stop.
#[test]
fn whoever_waits_for_a_start_hears_of_the_stop() {
    case("Timer::schedule while the driver starts", || {
        let ((began, begun), (release, released)) = (mpsc::channel(), mpsc::channel());
        let released = std::sync::Mutex::new(released);
        let spawn = move |_, _: Box<dyn FnOnce() + Send>| {
            began.send(()).unwrap();
            released.lock().unwrap().recv().unwrap();
            Ok(())
        };
        let timer = Timer::builder().spawn(spawn).build().unwrap();
        let (first, second, stops) = (timer.clone(), timer.clone(), timer);
        let starts = thread::spawn(move || first.start().is_err());
        begun.recv().unwrap();
        let schedules = move || second.schedule(HOUR, |_| ()).map(drop);
        let refused = ended(schedules, || drop(stops.stop()));
        assert!(matches!(refused, Err(ScheduleError::Stopped(_))));
        release.send(()).unwrap();
        starts.join().unwrap();
    });
}
