//! Closures that an engine keeps, and values that it receives and does not need: their drops may panic too.

use std::panic::resume_unwind;

use tourbillon::{Attempt, Backoff, Builder, Driver, Engine, Job, Outcome, Timer, VirtualClock};

use crate::common::case;
use crate::common::{HOUR, Log, SECOND, accounted, panic_quietly, running_on};
use crate::fragile::{Bench, Broken, Fragile, Name, Op, REPORTS};

type Set = fn(Builder, Fragile) -> Builder;
type Wake = fn(&Timer, Driver, &Broken) -> Option<Driver>;
type Give = fn(&Bench, Fragile);

/// What a timer holds until it is dropped.
const HOOKS: &[(&str, Set)] = &[
    ("on_panic", |builder, value| builder.on_panic(move |_| _ = &value)),
    ("executor", |builder, value| {
        builder.executor(move |job: Job| {
            let _held = &value;
            job.run();
            Ok(())
        })
    }),
    ("spawn", |builder, value| {
        builder.spawn(move |name, body| {
            let _held = &value;
            std::thread::Builder::new().name(name).spawn(body).map(drop)
        })
    }),
];

/// Which reference to the engine is dropped last.
const LAST: [&str; 3] = ["the timer", "a handle", "a sleep"];

#[test]
fn what_a_hook_holds_may_panic_when_the_engine_goes() {
    for &(hook, set) in HOOKS {
        for last in LAST {
            case(format!("{hook}, {last} is dropped"), move || {
                let (broken, clock) = (Broken::default(), VirtualClock::new());
                let builder = Timer::builder().shards(1).clock(&clock).on_driver();
                let timer = set(set(builder, broken.one()), broken.one()).build().unwrap();
                assert_eq!(broken.count(), 1, "the second replaces the first");
                let ran = Log::new();
                let (told, own) = (ran.clone(), Broken::default());
                timer.schedule(SECOND, move |_| told.add(())).unwrap();
                let held = own.one();
                let handle = timer.schedule(HOUR, move |_| _ = &held).unwrap();
                let sleep = timer.sleep(HOUR);
                clock.advance(SECOND).unwrap();
                assert_eq!((ran.len(), broken.count()), (1, 1));
                match last {
                    "the timer" => drop((handle, sleep, timer)),
                    "a handle" => drop((sleep, timer, handle)),
                    _ => drop((timer, handle, sleep)),
                }
                assert_eq!((broken.count(), own.count()), (2, 1), "each is dropped once");
            });
        }
    }
}

#[test]
fn what_a_handler_holds_may_panic_when_the_engine_goes() {
    case("handler", || {
        let (broken, clock, ran) = (Broken::default(), VirtualClock::new(), Log::new());
        let (held, told) = (broken.one(), ran.clone());
        let builder = Timer::builder().shards(1).clock(&clock);
        let engine: Engine<Fragile> = builder
            .deliver(move |batch| {
                let _held = &held;
                told.add(batch.len());
            })
            .unwrap();
        assert!(engine.schedule(SECOND, broken.one()).is_ok());
        clock.advance(SECOND).unwrap();
        assert_eq!((ran.take(), broken.count()), (vec![1], 1));
        assert!(engine.schedule(SECOND, broken.one()).is_ok());
        drop(engine);
        assert_eq!(broken.count(), 3);
    });
}

fn driven() -> (Timer, Driver, VirtualClock) {
    let clock = VirtualClock::new();
    let (timer, driver) = Timer::builder().shards(1).clock(&clock).build_driven().unwrap();
    (timer, driver, clock)
}

/// A hook that wakes an event loop, and how it ends.
const WAKES: &[(&str, Wake)] = &[
    ("replaced by another", |_, mut driver, broken| {
        let held = broken.one();
        driver.on_wake(move || _ = &held);
        driver.on_wake(|| ());
        Some(driver)
    }),
    ("replaced by a descriptor", |_, mut driver, broken| {
        let held = broken.one();
        driver.on_wake(move || _ = &held);
        driver.wake_fd().unwrap();
        Some(driver)
    }),
    ("dropped with its driver", |_, mut driver, broken| {
        let held = broken.one();
        driver.on_wake(move || _ = &held);
        None
    }),
    ("the payload of a panic", |timer, mut driver, broken| {
        let broken = broken.clone();
        driver.on_wake(move || resume_unwind(Box::new(broken.one())));
        assert!(timer.arm(HOUR, |_| ()).is_ok(), "who arms is not told of it");
        Some(driver)
    }),
];

#[test]
fn what_a_wake_hook_holds_may_panic() {
    for &(name, wake) in WAKES {
        case(format!("on_wake, {name}"), move || {
            let (broken, ran) = (Broken::default(), Log::new());
            let (timer, driver, _clock) = driven();
            let driver = wake(&timer, driver, &broken);
            assert_eq!((broken.count(), timer.counts().panicked), (1, 1), "it is counted");
            let told = ran.clone();
            let armed = timer.arm(SECOND, move |_| told.add(()));
            assert_eq!(armed.is_ok(), driver.is_some());
            if let Some(mut driver) = driver {
                assert_eq!((driver.turn_within(SECOND).ran, ran.len()), (1, 1), "it goes on");
            }
            accounted(&timer);
        });
    }
}

/// An executor that panics with a fragile payload, a few times.
#[test]
fn an_executor_may_panic_with_a_payload_that_panics() {
    case("executor", || {
        let (broken, clock, ran) = (Broken::default(), VirtualClock::new(), Log::new());
        let payloads = broken.clone();
        let execute = move |job: Job| {
            if payloads.made() < 3 {
                resume_unwind(Box::new(payloads.one()));
            }
            job.run();
            Ok(())
        };
        let builder = Timer::builder().shards(1).clock(&clock).executor(execute);
        let timer = builder.build().unwrap();
        for _ in 0..5 {
            let ran = ran.clone();
            assert!(timer.arm(SECOND, move |_| ran.add(())).is_ok());
        }
        clock.advance(SECOND).unwrap();
        assert_eq!((ran.len(), broken.count(), timer.counts().panicked), (5, 3, 3));
        accounted(&timer);
    });
}

/// A report callback that panics with a payload that itself panics when dropped.
#[test]
fn a_report_may_panic_with_a_payload_that_panics() {
    case("on_panic", || {
        let (broken, clock) = (Broken::default(), VirtualClock::new());
        let payloads = broken.clone();
        let report = move |_: &(dyn std::any::Any + Send)| resume_unwind(Box::new(payloads.one()));
        let builder = running_on("pool").shards(1).clock(&clock).on_panic(report);
        let timer = builder.build().unwrap();
        let held = broken.one();
        timer.schedule(SECOND, move |_| _ = &held).unwrap();
        timer.schedule(SECOND, |_| panic_quietly()).unwrap();
        timer.schedule(2 * SECOND, |_| ()).unwrap();
        clock.advance(2 * SECOND).unwrap();
        assert_eq!((broken.made(), broken.count(), timer.counts().fired), (3, 3, 3));
        accounted(&timer);
    });
}

/// Values that are not needed and are dropped at once.
const SPARE: &[(&str, Give)] = &[
    ("KeyedTimer::schedule, a key that is there", |bench, value| {
        assert!(!bench.keyed.schedule(Name("own", None), HOUR, |_| ()).unwrap());
        assert!(bench.keyed.schedule(Name("own", Some(value)), SECOND, |_| ()).unwrap());
    }),
    ("KeyedTimer::schedule_if_absent, a key that is there", |bench, value| {
        assert!(!bench.keyed.schedule(Name("own", None), SECOND, |_| ()).unwrap());
        let key = Name("own", Some(value));
        assert!(bench.keyed.schedule_if_absent(key, SECOND, |_| ()).unwrap().is_some());
    }),
    ("KeyedTimer::retry, a key that is there", |bench, value| {
        assert!(!bench.keyed.schedule(Name("own", None), HOUR, |_| ()).unwrap());
        let job = |_: &Attempt| Ok::<_, ()>(());
        let key = Name("own", Some(value));
        assert!(bench.keyed.retry(key, Backoff::new(SECOND), job, |_| ()).unwrap());
    }),
    ("Purgatory, a key that is there", |bench, value| {
        bench.purgatory.when([Name("own", None)], SECOND, || None::<()>, |_| ()).unwrap();
        let keys = [Name("own", Some(value))];
        bench.purgatory.when(keys, SECOND, || None::<()>, |_| ()).unwrap();
    }),
    ("Purgatory, a key that is given twice", |bench, value| {
        let keys = [Name("own", None), Name("own", Some(value)), Name("other", None)];
        bench.purgatory.when(keys, SECOND, || None::<()>, |_| ()).unwrap();
        assert_eq!(bench.purgatory.watched(), 2);
    }),
    ("Purgatory, the key of what is completed at once", |bench, value| {
        let op = Op { met: bench.met.clone(), held: None };
        bench.met.store(true, std::sync::atomic::Ordering::SeqCst);
        let keys = [Name("own", Some(value))];
        let outcome = bench.purgatory.try_complete_else_watch(op, keys, SECOND).unwrap();
        assert_eq!(outcome, Outcome::Completed);
    }),
];

#[test]
fn what_is_not_needed_may_panic() {
    for &(name, give) in SPARE {
        for report in REPORTS {
            case(format!("{name}, {report}"), move || {
                let (broken, bench) = (Broken::default(), Bench::new("driver", report, 4));
                give(&bench, broken.one());
                assert_eq!((broken.count(), bench.reported.count()), (1, 1), "it is gone");
                bench.advance(SECOND);
                assert!(bench.timer.is_empty() && bench.keyed.is_empty());
                assert_eq!((bench.purgatory.delayed(), bench.purgatory.watched()), (0, 0));
                assert_eq!(bench.timer.counts().panicked, 1);
                accounted(&bench.timer);
            });
        }
    }
}
