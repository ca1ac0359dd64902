//! The verbs that move a virtual clock, called inside code that runs on that clock: time cannot pass there, so they
//! return instead of waiting.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tourbillon::{
    Batch, Driver, Job, KeyedTimer, Purgatory, Timer, VirtualClock, WaitError, tasks,
};

use crate::common::{HOUR, Log, PLACES, SECOND, YEAR, case, running_on};

/// Runs on an engine of the clock, within a second.
type Run = Box<dyn FnMut() + Send>;

/// Where it runs, and a function that makes it run there.
type Inside = (&'static str, fn(&VirtualClock, Run) -> Box<dyn Send>);

const INSIDE: &[Inside] = &[
    ("a callback on the driver", |clock, run| callback(PLACES[0], clock, run)),
    ("a callback on a pool", |clock, run| callback(PLACES[1], clock, run)),
    ("a callback on an executor", |clock, run| callback(PLACES[2], clock, run)),
    ("an executor", |clock, run| {
        let run = Mutex::new(run);
        let executor = move |job: Job| {
            run.lock().unwrap()();
            job.run();
            Ok(())
        };
        let timer = Timer::builder().clock(clock).executor(executor).build().unwrap();
        timer.arm(SECOND, |_| ()).unwrap();
        Box::new(timer)
    }),
    ("a handler", |clock, mut run| {
        let handler = move |batch: Batch<'_, u32>| batch.for_each(|_| run());
        let engine = Timer::builder().clock(clock).deliver(handler).unwrap();
        engine.schedule(SECOND, 7).unwrap();
        Box::new(engine)
    }),
    ("a timer with a name", |clock, mut run| {
        let timers = KeyedTimer::new(&Timer::builder().clock(clock).build().unwrap());
        timers.schedule(1, SECOND, move |_| run()).unwrap();
        Box::new(timers)
    }),
    ("an action", |clock, mut run| {
        let timer = Timer::builder().clock(clock).build().unwrap();
        let purgatory: Purgatory<u32> = Purgatory::new(&timer);
        let then = move |_: Result<(), WaitError>| run();
        purgatory.when([1], SECOND, || None, then).unwrap();
        Box::new(purgatory)
    }),
    ("a waker", |clock, run| {
        struct Runs(Mutex<Run>);
        impl std::task::Wake for Runs {
            fn wake(self: Arc<Self>) {
                self.0.lock().unwrap()();
            }
        }
        let timer = Timer::builder().clock(clock).build().unwrap();
        let (waker, mut sleep) = (Arc::new(Runs(Mutex::new(run))).into(), timer.sleep(SECOND));
        let context = &mut std::task::Context::from_waker(&waker);
        assert!(Future::poll(std::pin::Pin::new(&mut sleep), context).is_pending());
        Box::new((sleep, timer))
    }),
];

fn callback(place: &str, clock: &VirtualClock, mut run: Run) -> Box<dyn Send> {
    let timer = running_on(place).clock(clock).build().unwrap();
    timer.arm(SECOND, move |_| run()).unwrap();
    Box::new(timer)
}

/// Tries to make time pass, and returns whether that was refused. The driver has a timer that is not due yet.
type Asks = fn(&VirtualClock, &mut Driver) -> bool;

const VERBS: &[(&str, Asks)] = &[
    ("advance by nothing", |clock, _| clock.advance(Duration::ZERO).is_err()),
    ("advance", |clock, _| clock.advance(HOUR).is_err()),
    ("advance_to_next", |clock, _| clock.advance_to_next().is_err()),
    ("set_wall", |clock, _| clock.set_wall(clock.wall_now() + HOUR).is_err()),
    ("block_on", |clock, _| tasks::block_on(clock, std::future::pending::<()>()).is_err()),
    ("turn", |_, driver| driver.turn().ran == 0),
    ("turn_within nothing", |_, driver| driver.turn_within(Duration::ZERO).ran == 0),
    ("turn_within a nanosecond", |_, driver| driver.turn_within(Duration::from_nanos(1)).ran == 0),
    ("turn_within an hour", |_, driver| driver.turn_within(HOUR).ran == 0),
    ("turn_within for ever", |_, driver| driver.turn_within(Duration::MAX).ran == 0),
];

#[test]
fn no_time_passes_inside_what_runs() {
    for &(inside, open) in INSIDE {
        for &(verb, asks) in VERBS {
            case(format!("{verb} in {inside}"), move || {
                let (clock, log) = (VirtualClock::new(), Log::new());
                let (timer, driver) = Timer::builder().clock(&clock).build_driven().unwrap();
                timer.arm(2 * SECOND, |_| ()).unwrap();
                // Outlives the run.
                let driver = Arc::new(Mutex::new(driver));
                let (own, told, turns) = (clock.clone(), log.clone(), driver.clone());
                let run = move || {
                    let before = (own.elapsed(), own.wall_now());
                    let refused = asks(&own, &mut turns.lock().unwrap());
                    told.add((refused, before == (own.elapsed(), own.wall_now())));
                };
                let kept = open(&clock, Box::new(run));
                clock.advance(SECOND).unwrap();
                assert_eq!(log.take(), [(true, true)]);
                // The loop has lost nothing.
                assert_eq!(driver.lock().unwrap().turn_within(YEAR).ran, 1);
                assert_eq!(clock.elapsed(), 2 * SECOND);
                drop(kept);
            });
        }
    }
}
