//! A stop with a time limit returns within the limit: at once, or when running callbacks have ended.
//!
//! The limit is real time, and so is a blocked callback: these tests take some milliseconds.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use crate::common::asleep::spawn_asleep;
use crate::common::faces::{Arm, Happening};
use crate::common::{HOUR, Log, MS, PLACES, YEAR, eventually, running_on, within};
use tourbillon::{Batch, Timer};

/// Limits that end before a blocked callback does, and limits that do not.
const SHORT: [Duration; 3] = [Duration::ZERO, Duration::from_nanos(1), MS];
const LONG: [Duration; 4] =
    [Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_nanos(u64::MAX), YEAR];

/// Stops a face with this limit; returns how many were handed back, and whether all callbacks have ended.
type Stop = Box<dyn Fn(Duration) -> (usize, bool) + Send>;

fn timer(place: &str) -> (Arm, Stop) {
    let timer = running_on(place).build().unwrap();
    let own = timer.clone();
    let arm: Arm = Box::new(move |after, run| _ = own.arm(after, move |_| run()).unwrap());
    let stop = move |limit| {
        let stopped = timer.stop_within(limit);
        (stopped.unfired.len(), stopped.finished)
    };
    (arm, Box::new(stop))
}

fn engine() -> (Arm, Stop) {
    let run_all = |batch: Batch<'_, Happening>| batch.for_each(|fired| (fired.value)());
    let engine = Timer::builder().deliver(run_all).unwrap();
    let own = engine.clone();
    let arm: Arm = Box::new(move |after, run| assert!(own.schedule(after, run).is_ok()));
    let stop = move |limit| {
        let stopped = engine.stop_within(limit);
        (stopped.unfired.len(), stopped.finished)
    };
    (arm, Box::new(stop))
}

fn driven() -> (Arm, Stop) {
    let (timer, mut driver) = Timer::builder().build_driven().unwrap();
    thread::spawn(move || {
        while !driver.is_stopped() {
            driver.turn_within(HOUR);
        }
    });
    let own = timer.clone();
    let arm: Arm = Box::new(move |after, run| _ = own.arm(after, move |_| run()).unwrap());
    let stop = move |limit| {
        let stopped = timer.stop_within(limit);
        (stopped.unfired.len(), stopped.finished)
    };
    (arm, Box::new(stop))
}

/// A face that has a stop with a limit.
type Face = (&'static str, fn() -> (Arm, Stop));

const FACES: [Face; 5] = [
    ("timer, driver", || timer(PLACES[0])),
    ("timer, pool", || timer(PLACES[1])),
    ("timer, own executor", || timer(PLACES[2])),
    ("engine", engine),
    ("driven", driven),
];

fn each(limits: &[Duration], body: fn(String, Arm, Stop, Duration)) {
    for (name, open) in FACES {
        for limit in limits.iter().copied() {
            within(move || {
                let (arm, stop) = open();
                body(format!("{name}, {limit:?}"), arm, stop, limit);
            });
        }
    }
}

#[test]
fn nothing_runs() {
    let all = [&SHORT[..], &LONG[..]].concat();
    each(&all, |case, _, stop, limit| {
        assert_eq!(stop(limit), (0, true), "{case}: never started");
        assert_eq!(stop(limit), (0, true), "{case}: again");
    });
    each(&all, |case, arm, stop, limit| {
        (0..3).for_each(|_| arm(HOUR, Box::new(|| ())));
        assert_eq!(stop(limit), (3, true), "{case}: three are pending");
        assert_eq!(stop(limit), (0, true), "{case}: again");
    });
}

#[test]
fn a_short_limit_ends_before_the_callback() {
    each(&SHORT, |case, arm, stop, limit| {
        let (began, go_on) = (Log::new(), Arc::new(Barrier::new(2)));
        let (told, wait) = (began.clone(), go_on.clone());
        let run = move || {
            told.add(());
            wait.wait();
        };
        arm(Duration::ZERO, Box::new(run));
        eventually(|| began.len() == 1);
        arm(HOUR, Box::new(|| ()));
        assert_eq!(stop(limit), (1, false), "{case}");
        assert_eq!(stop(limit), (0, false), "{case}: again");
        go_on.wait();
        assert_eq!(stop(Duration::MAX), (0, true), "{case}: and it waits for the rest");
    });
}

#[test]
fn a_long_limit_ends_with_the_callback() {
    each(&LONG, |case, arm, stop, limit| {
        let (log, go_on) = (Log::new(), Arc::new(Barrier::new(2)));
        let (told, wait) = (log.clone(), go_on.clone());
        let run = move || {
            told.add("begins");
            wait.wait();
            told.add("ends");
        };
        arm(Duration::ZERO, Box::new(run));
        eventually(|| log.len() > 0);
        let stopping = spawn_asleep(move || stop(limit));
        assert!(!stopping.is_finished(), "{case}: it waits");
        go_on.wait();
        assert_eq!(stopping.join().unwrap(), (0, true), "{case}");
        assert_eq!(log.take(), ["begins", "ends"], "{case}: it waited");
    });
}

/// It does not wait for the callback that it is called from.
#[test]
fn inside_a_callback() {
    each(&[&SHORT[..], &LONG[..]].concat(), |case, arm, stop, limit| {
        let log = Log::new();
        let told = log.clone();
        arm(HOUR, Box::new(|| ()));
        arm(Duration::ZERO, Box::new(move || told.add(stop(limit))));
        eventually(|| log.len() == 1);
        assert_eq!(log.take(), [(1, true)], "{case}");
    });
}

/// Runs the closure in a callback of a driven timer of its own.
fn turn(run: impl FnOnce() + Send + 'static) {
    let (timer, mut driver) = Timer::builder().build_driven().unwrap();
    timer.arm(Duration::ZERO, move |_| run()).unwrap();
    while !timer.is_empty() {
        driver.turn_within(HOUR);
    }
}

/// Nor for a callback that it is called from indirectly: one whose code turns the loop that runs this one.
#[test]
fn inside_a_loop_that_a_callback_turns() {
    type When = (&'static str, fn(Box<dyn FnOnce() + Send>));
    const WHEN: [When; 3] = [
        ("in the loop", |stops| turn(stops)),
        ("in a loop of that loop", |stops| turn(move || turn(stops))),
        ("after the loop", |stops| {
            turn(|| ());
            stops();
        }),
    ];
    for (when, stop_then) in WHEN {
        for (name, open) in FACES {
            for limit in [Duration::ZERO, MS, Duration::MAX] {
                within(move || {
                    let (arm, stop) = open();
                    let log = Log::new();
                    let told = log.clone();
                    arm(HOUR, Box::new(|| ()));
                    let run = move || stop_then(Box::new(move || told.add(stop(limit))));
                    arm(Duration::ZERO, Box::new(run));
                    eventually(|| log.len() == 1);
                    assert_eq!(log.take(), [(1, true)], "{name}, {limit:?}, {when}");
                });
            }
        }
    }
}
