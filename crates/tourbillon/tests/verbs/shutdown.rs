//! What a shutdown waits for, what it refuses meanwhile, and when it need not wait.
//!
//! Time is virtual, so pending timers wait for the test. The time limit of a shutdown is real time, and far off where
//! it must not matter; what outlasts the limit runs in real time too, and waits for the test.

use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tourbillon::{
    Attempt, Backoff, Cron, KeyedTimer, Purgatory, Repeat, State, Timer, VirtualClock, WaitError,
    tasks::SleepError,
};

use crate::common::asleep::spawn_asleep;
use crate::common::{
    HOUR, Log, MS, PLACES, SECOND, accounted, case, eventually, running_on, virtual_on,
};

/// Whether the operation has ended well, and once.
type Ended = Box<dyn FnMut() -> bool>;

/// Starts an operation that ends in a second. Keeps no timer alive.
type Row = (&'static str, fn(&Timer) -> Ended);

const UNDER_WAY: &[Row] = &[
    ("schedule", |timer| logged(|log| drop(timer.schedule(SECOND, move |_| log.add(())).unwrap()))),
    ("arm", |timer| logged(|log| _ = timer.arm(SECOND, move |_| log.add(())).unwrap())),
    ("repeat", |timer| {
        logged(|log| drop(timer.repeat(Repeat::every(SECOND), move |_| log.add(())).unwrap()))
    }),
    ("schedule_wall", |timer| {
        let at = timer.wall_now() + SECOND;
        logged(|log| drop(timer.schedule_wall(at, move |_| log.add(())).unwrap()))
    }),
    ("schedule_wall_every", |timer| {
        let at = timer.wall_now() + SECOND;
        logged(|log| drop(timer.schedule_wall_every(at, SECOND, move |_| log.add(())).unwrap()))
    }),
    ("compute", |timer| {
        let mut result = timer.compute(SECOND, |_| 7).unwrap();
        Box::new(move || poll(&mut result) == Poll::Ready(Ok(7)))
    }),
    ("retry", |timer| {
        let succeeds = |_: &Attempt| Ok::<_, ()>(());
        let retry = timer.retry(Backoff::new(HOUR), succeeds).unwrap();
        retry.timeout().reschedule(SECOND).unwrap();
        Box::new(move || retry.is_over())
    }),
    ("KeyedTimer", |timer| {
        logged(|log| {
            let timers = KeyedTimer::new(timer);
            timers.schedule(1, SECOND, move |_| log.add(())).unwrap();
            // Its drop would cancel the timer.
            std::mem::forget(timers);
        })
    }),
    ("Purgatory", |timer| {
        logged(|log| {
            let purgatory: Purgatory<u32> = Purgatory::new(timer);
            let then = move |outcome| {
                assert_eq!(outcome, Err::<(), _>(WaitError::Expired));
                log.add(());
            };
            purgatory.when([1], SECOND, || None, then).unwrap();
            std::mem::forget(purgatory);
        })
    }),
    ("sleep", |timer| slept(timer.sleep(SECOND))),
    ("sleep_until", |timer| slept(timer.sleep_until(timer.now() + SECOND))),
    ("timeout", |timer| {
        let limited = timer.timeout(SECOND, pending::<()>());
        let mut limited = asleep(async { limited.await.is_ok_and(|limited| limited.is_err()) });
        Box::new(move || poll(&mut limited) == Poll::Ready(true))
    }),
    ("interval", |timer| {
        let mut interval = timer.interval_at(timer.now() + SECOND, SECOND);
        slept(async move { interval.tick().await.map(drop) })
    }),
    ("delay_queue", |timer| {
        let mut queue = timer.delay_queue();
        queue.insert(1, 7, SECOND).unwrap();
        slept(async move { queue.next().await.unwrap().map(drop) })
    }),
];

fn logged(arm: impl FnOnce(Log<()>)) -> Ended {
    let log = Log::new();
    arm(log.clone());
    Box::new(move || log.len() == 1)
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls a future once, so that it sleeps.
fn asleep<F: Future>(future: F) -> Pin<Box<F>> {
    let mut future = Box::pin(future);
    assert!(poll(&mut future).is_pending());
    future
}

fn slept(future: impl Future<Output = Result<(), SleepError>> + 'static) -> Ended {
    let mut future = asleep(future);
    Box::new(move || poll(&mut future) == Poll::Ready(Ok(())))
}

#[test]
fn it_waits_for_all_that_is_under_way_and_for_no_more() {
    for place in PLACES {
        for &(verb, arm) in UNDER_WAY {
            case(format!("{verb}, on the {place}"), move || {
                let (timer, clock) = virtual_on(place);
                let mut ended = arm(&timer);
                let own = timer.clone();
                let shutdown = spawn_asleep(move || own.shutdown_within(HOUR));
                clock.advance(SECOND - MS).unwrap();
                assert!(!shutdown.is_finished() && !timer.is_stopped(), "it waits");
                clock.advance(MS).unwrap();
                let all = shutdown.join().unwrap();
                assert!(all.finished && all.unfired.is_empty(), "{all:?}");
                assert!(ended(), "it has ended, and well");
                assert!(timer.is_stopped());
                accounted(&timer);
            });
        }
    }
}

/// A verb that a closed timer refuses; returns whether it did.
type Refuses = (&'static str, fn(&Timer) -> bool);

const REFUSED: &[Refuses] = &[
    ("start", |timer| timer.start().is_err()),
    ("schedule", |timer| timer.schedule(SECOND, |_| ()).is_err()),
    ("schedule_at", |timer| timer.schedule_at(timer.now(), |_| ()).is_err()),
    ("arm", |timer| timer.arm(SECOND, |_| ()).is_err()),
    ("schedule_repeating", |timer| timer.schedule_repeating(SECOND, |_| ()).is_err()),
    ("repeat", |timer| timer.repeat(Repeat::every(SECOND), |_| ()).is_err()),
    ("compute", |timer| timer.compute(SECOND, |_| ()).is_err()),
    ("retry", |timer| timer.retry(Backoff::new(SECOND), |_| Ok::<_, ()>(())).is_err()),
    ("schedule_wall", |timer| timer.schedule_wall(timer.wall_now(), |_| ()).is_err()),
    ("schedule_wall_every", |timer| {
        timer.schedule_wall_every(timer.wall_now(), HOUR, |_| ()).is_err()
    }),
    ("schedule_cron", |timer| {
        timer.schedule_cron(&Cron::parse("@daily", "UTC").unwrap(), |_| ()).is_err()
    }),
    ("KeyedTimer", |timer| KeyedTimer::new(timer).schedule(1, SECOND, |_| ()).is_err()),
    ("Purgatory::when", |timer| {
        Purgatory::<u32>::new(timer).when([1], SECOND, || None::<()>, |_| ()).is_err()
    }),
    ("sleep", |timer| is_refused(timer.sleep(SECOND))),
    ("timeout", |timer| is_refused(timer.timeout(SECOND, pending::<()>()))),
    ("interval", |timer| is_refused(timer.interval_at(timer.now() + SECOND, SECOND).tick())),
    ("delay_queue", |timer| {
        let mut queue = timer.delay_queue();
        queue.insert(1, 7, SECOND).unwrap();
        let refused = matches!(poll(&mut pin!(queue.next())), Poll::Ready(Some(Err(_))));
        refused
    }),
];

fn is_refused<T>(future: impl Future<Output = Result<T, SleepError>>) -> bool {
    matches!(poll(&mut pin!(future)), Poll::Ready(Err(SleepError::Stopped)))
}

/// Whether or not anything of that kind came before: the first task creates an engine of its own.
#[test]
fn it_takes_nothing_new_not_even_the_first_of_its_kind() {
    for &(verb, refuses) in REFUSED {
        for (before, sleeps) in [(false, false), (true, false), (false, true), (true, true)] {
            case(format!("{verb}, not the first: {before}, a task sleeps: {sleeps}"), move || {
                let (timer, clock) = virtual_on("driver");
                let _last = match sleeps {
                    true => Some(asleep(timer.sleep(HOUR))),
                    false => timer.arm(HOUR, |_| ()).map(|_| None).unwrap(),
                };
                if before {
                    drop(asleep(timer.sleep(SECOND)));
                    assert!(!refuses(&timer), "before the shutdown");
                }
                let own = timer.clone();
                let shutdown = spawn_asleep(move || own.shutdown_within(HOUR).unfired.len());
                assert!(refuses(&timer), "during the shutdown");
                assert!(!timer.is_stopped() && !timer.is_empty(), "which goes on");
                clock.advance(24 * HOUR).unwrap();
                assert_eq!(shutdown.join().unwrap(), 0);
                assert!(refuses(&timer), "after it");
            });
        }
    }
}

/// Code of a timer in which a shutdown is called, with nothing else under way.
type Inside = (&'static str, fn(&Timer, Box<dyn FnMut() + Send + Sync>));

const INSIDE: &[Inside] = &[
    ("a callback", |timer, mut run| _ = timer.arm(SECOND, move |_| run()).unwrap()),
    ("a run of one that repeats", |timer, mut run| {
        drop(timer.repeat(Repeat::every(SECOND), move |_| run()).unwrap());
    }),
    ("a try of a retry", |timer, mut run| {
        let job = move |_: &Attempt| {
            run();
            Err::<(), ()>(())
        };
        drop(timer.retry(Backoff::new(HOUR), job).unwrap());
    }),
    ("a condition", |timer, mut run| {
        let (purgatory, mut tried): (Purgatory<u32>, _) = (Purgatory::new(timer), 0);
        let condition = move || {
            tried += 1;
            if tried == 3 {
                run();
            }
            None::<()>
        };
        purgatory.when([1], SECOND, condition, |_| ()).unwrap();
        std::mem::forget(purgatory);
    }),
];

#[test]
fn inside_a_callback_it_does_not_wait_for_that() {
    for place in PLACES {
        for &(inside, arm) in INSIDE {
            case(format!("in {inside}, on the {place}"), move || {
                let ((timer, clock), log) = (virtual_on(place), Log::new());
                let (own, told) = (timer.clone(), log.clone());
                let run = move || {
                    // Another call would be on a timer that is stopped already.
                    if !own.is_stopped() {
                        let ended = own.shutdown_within(HOUR);
                        told.add((ended.unfired.len(), own.is_stopped()));
                    }
                };
                arm(&timer, Box::new(run));
                clock.advance(SECOND).unwrap();
                eventually(|| log.len() > 0);
                assert_eq!(log.take(), [(0, true)]);
            });
        }
    }
}

/// When the limit has passed, what is left is handed back, and tasks receive an error.
#[test]
fn its_limit_is_one_for_callbacks_and_tasks() {
    for limit in [Duration::ZERO, Duration::from_nanos(1), 5 * MS] {
        case(format!("{limit:?}"), move || {
            let timer = Timer::builder().clock(&VirtualClock::new()).build().unwrap();
            let callback = timer.schedule(SECOND, |_| unreachable!()).unwrap();
            let mut sleep = asleep(timer.sleep(SECOND));
            let ended = timer.shutdown_within(limit);
            assert!(ended.finished && ended.unfired.len() == 1);
            assert_eq!(callback.state(), State::HandedBack);
            assert_eq!(poll(&mut sleep), Poll::Ready(Err(SleepError::Stopped)));
            accounted(&timer);
        });
    }
}

/// Runs code of the user that does not return before it is told to.
type Endless = (&'static str, fn(&Timer, Box<dyn FnMut() + Send + Sync>));

const ENDLESS: &[Endless] = &[
    ("a callback", |timer, mut run| _ = timer.arm(Duration::ZERO, move |_| run()).unwrap()),
    ("a run of one that repeats", |timer, mut run| {
        let rhythm = Repeat::every(HOUR).first(Duration::ZERO);
        drop(timer.repeat(rhythm, move |_| run()).unwrap());
    }),
    ("a try of a retry", |timer, mut run| {
        let job = move |_: &Attempt| {
            run();
            Err::<(), ()>(())
        };
        drop(timer.retry(Backoff::new(HOUR), job).unwrap());
    }),
    ("what is done when a wait expires", |timer, mut run| {
        let purgatory: Purgatory<u32> = Purgatory::new(timer);
        purgatory.when([1], MS, || None::<()>, move |_| run()).unwrap();
        std::mem::forget(purgatory);
    }),
    ("a result", |timer, mut run| drop(timer.compute(Duration::ZERO, move |_| run()).unwrap())),
    ("a callback under a key", |timer, mut run| {
        let timers = KeyedTimer::new(timer);
        timers.schedule(1, Duration::ZERO, move |_| run()).unwrap();
        std::mem::forget(timers);
    }),
    ("a listener", |timer, mut run| {
        let then = move |_| run();
        drop(timer.retry_then(Backoff::new(SECOND), |_| Ok::<_, ()>(()), then).unwrap());
    }),
    ("what a callback holds", |timer, run| {
        struct Runs(Box<dyn FnMut() + Send + Sync>);
        impl Drop for Runs {
            fn drop(&mut self) {
                (self.0)();
            }
        }
        let held = Runs(run);
        timer.arm(Duration::ZERO, move |_| drop(held)).unwrap();
    }),
    ("a waker of a sleep", |timer, run| wakes(timer.sleep(MS), run)),
    ("a waker of a result", |timer, run| wakes(timer.compute(MS, |_| ()).unwrap(), run)),
];

/// Polls the future once, with a waker that runs the closure, and keeps it.
fn wakes<F: Future>(future: F, run: Box<dyn FnMut() + Send + Sync>) {
    struct Runs(Mutex<Box<dyn FnMut() + Send + Sync>>);
    impl Wake for Runs {
        fn wake(self: Arc<Self>) {
            (self.0.lock().unwrap())();
        }
    }
    let (waker, mut future) = (Waker::from(Arc::new(Runs(Mutex::new(run)))), Box::pin(future));
    assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    std::mem::forget(future);
}

/// On the system's clock: an advance of virtual time would wait for what goes on.
#[test]
fn its_limit_holds_for_what_does_not_end() {
    for place in PLACES {
        for &(inside, start) in ENDLESS {
            for limit in [Duration::ZERO, Duration::from_nanos(1), 5 * MS] {
                case(format!("{inside}, on the {place}, {limit:?}"), move || {
                    let timer = running_on(place).build().unwrap();
                    let (callback, mut sleep) = (
                        timer.schedule(HOUR, |_| unreachable!()).unwrap(),
                        asleep(timer.sleep(HOUR)),
                    );
                    let ((begin, begun), (end, ends)) = (mpsc::channel(), mpsc::channel::<()>());
                    let ends = Mutex::new(ends);
                    let goes_on = move || {
                        // Errors once the test has ended it.
                        let _ = begin.send(());
                        let _ = ends.lock().unwrap().recv();
                    };
                    start(&timer, Box::new(goes_on));
                    begun.recv().unwrap();
                    let stopped = timer.shutdown_within(limit);
                    assert!(!stopped.finished, "it goes on");
                    assert!(stopped.unfired.iter().any(|unfired| unfired.is_of(&callback)));
                    assert_eq!(callback.state(), State::HandedBack);
                    assert_eq!(poll(&mut sleep), Poll::Ready(Err(SleepError::Stopped)));
                    drop(end);
                    assert!(timer.stop_within(Duration::MAX).finished, "it has ended");
                    accounted(&timer);
                });
            }
        }
    }
}
