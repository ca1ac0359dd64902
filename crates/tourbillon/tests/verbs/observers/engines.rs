//! What a driver tells of its next turn, and what everyone says of an engine that has ended.

use std::time::Duration;

use tourbillon::{Driver, Engine, Repeat, StartError, Timer, VirtualClock};

use super::clock_at_an_hour;
use crate::common::{HOUR, MS, SECOND, case};

/// Everything that a driver tells between two turns.
#[track_caller]
fn tells(driver: &Driver, when: &str, timeout: Option<Duration>, is_stopped: bool) {
    let debug = format!("Driver {{ timeout: {timeout:?}, .. }}");
    let told = (driver.timeout(), driver.is_stopped(), format!("{driver:?}"));
    assert_eq!(told, (timeout, is_stopped, debug), "{when}");
}

/// A turn that runs so many; when the next is to be tells the timeout as well.
#[track_caller]
fn turns(driver: &mut Driver, clock: &VirtualClock, ran: usize, next: Option<Duration>) {
    let turn = driver.turn();
    assert_eq!((turn.ran, turn.next), (ran, next.map(|left| clock.now() + left)));
    tells(driver, "after a turn", next, driver.is_stopped());
}

/// After a cancel or a move to later, a turn may come too early, never too late; then it knows.
#[track_caller]
fn comes_early(driver: &mut Driver, clock: &VirtualClock, next: Option<Duration>) {
    let due = next.map(|left| clock.now() + left);
    let early = driver.turn();
    let is_early = match (early.next, due) {
        (Some(early), Some(due)) => early <= due,
        (early, due) => early.is_some() || due.is_none(),
    };
    assert!(early.ran == 0 && is_early, "{early:?}");
    let left = early.next.map(|early| early - clock.now());
    tells(driver, "after a turn", left, false);
    if left != next {
        clock.advance(left.unwrap()).unwrap();
        turns(driver, clock, 0, due.map(|due| due - clock.now()));
    }
}

/// Arms, moves and cancels by number; stops.
struct Driven {
    arm: Box<dyn FnMut(Duration)>,
    shift: Box<dyn Fn(usize, Duration)>,
    cancel: Box<dyn Fn(usize)>,
    stop: Box<dyn Fn()>,
}

type Face = (&'static str, fn(&VirtualClock) -> (Driven, Driver));

const FACES: [Face; 2] = [
    ("a timer", |clock| {
        let (timer, driver) = Timer::builder().shards(2).clock(clock).build_driven().unwrap();
        let keys = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let [one, two, three, four] = [(); 4].map(|()| timer.clone());
        let [add, shift, cancel] = [(); 3].map(|()| keys.clone());
        let driven = Driven {
            arm: Box::new(move |after| add.borrow_mut().push(one.arm(after, |_| ()).unwrap())),
            shift: Box::new(move |n, after| two.reschedule(shift.borrow()[n], after).unwrap()),
            cancel: Box::new(move |n| assert!(three.cancel(cancel.borrow()[n]))),
            stop: Box::new(move || drop(four.stop())),
        };
        (driven, driver)
    }),
    ("an engine", |clock| {
        let builder = Timer::builder().shards(2).clock(clock);
        let (engine, driver) = builder.deliver_driven(|_| ()).unwrap();
        let engine: Engine<u32> = engine;
        let keys = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let [one, two, three, four] = [(); 4].map(|()| engine.clone());
        let [add, shift, cancel] = [(); 3].map(|()| keys.clone());
        let driven = Driven {
            arm: Box::new(move |after| add.borrow_mut().push(one.schedule(after, 7).unwrap())),
            shift: Box::new(move |n, after| two.reschedule(shift.borrow()[n], after).unwrap()),
            cancel: Box::new(move |n| assert_eq!(three.cancel(cancel.borrow()[n]), Some(7))),
            stop: Box::new(move || drop(four.stop())),
        };
        (driven, driver)
    }),
];

#[test]
fn a_driver_tells_of_the_next_turn_in_every_state() {
    for (face, open) in FACES {
        case(face, move || {
            let clock = clock_at_an_hour();
            let began = clock.elapsed();
            let (mut driven, mut driver) = open(&clock);
            tells(&driver, "as it is made", None, false);
            turns(&mut driver, &clock, 0, None);
            (driven.arm)(100 * MS);
            tells(&driver, "one is pending", Some(100 * MS), false);
            (driven.arm)(200 * MS);
            tells(&driver, "a later one", Some(100 * MS), false);
            (driven.arm)(50 * MS - MS / 3);
            tells(&driver, "an earlier one, due with the next tick", Some(50 * MS), false);
            turns(&mut driver, &clock, 0, Some(50 * MS));
            clock.advance(20 * MS).unwrap();
            tells(&driver, "time passes", Some(30 * MS), false);
            (driven.shift)(2, 60 * MS);
            comes_early(&mut driver, &clock, Some(60 * MS));
            (driven.shift)(0, 10 * MS);
            tells(&driver, "moved to earlier", Some(10 * MS), false);
            clock.advance(10 * MS).unwrap();
            tells(&driver, "due", Some(Duration::ZERO), false);
            clock.advance(5 * MS).unwrap();
            tells(&driver, "overdue", Some(Duration::ZERO), false);
            assert_eq!(driver.turn().ran, 1);
            (driven.cancel)(2);
            let last = began + 200 * MS - clock.elapsed();
            comes_early(&mut driver, &clock, Some(last));
            clock.advance(HOUR).unwrap();
            turns(&mut driver, &clock, 1, None);
            turns(&mut driver, &clock, 0, None);
            (driven.arm)(SECOND);
            tells(&driver, "the next one", Some(SECOND), false);
            (driven.stop)();
            tells(&driver, "stopped", None, true);
            turns(&mut driver, &clock, 0, None);
            assert_eq!((driver.turn_within(HOUR).ran, driver.turn_within(HOUR).next), (0, None));
            (driven.stop)();
            tells(&driver, "stopped again", None, true);
        });
    }
}

/// One that repeats is due again when it has run, and so tells the driver.
#[test]
fn a_driver_tells_of_what_repeats() {
    let clock = clock_at_an_hour();
    let (timer, mut driver) = Timer::builder().clock(&clock).build_driven().unwrap();
    let beat = timer.repeat(Repeat::every(50 * MS), |_| ()).unwrap();
    for _ in 0..3 {
        turns(&mut driver, &clock, 0, Some(50 * MS));
        clock.advance(50 * MS).unwrap();
        tells(&driver, "due", Some(Duration::ZERO), false);
        turns(&mut driver, &clock, 1, Some(50 * MS));
    }
    assert!(beat.cancel());
    comes_early(&mut driver, &clock, None);
}

/// An engine says that it was stopped, and not before: whoever stops it, and whoever is asked.
#[test]
fn an_engine_says_that_it_was_stopped() {
    for (way, stop) in STOPS {
        case(way, move || {
            let clock = clock_at_an_hour();
            let timer = Timer::builder().clock(&clock).build().unwrap();
            let clone = timer.clone();
            let told = || [timer.is_stopped(), clone.is_stopped()];
            assert_eq!(told(), [false; 2], "as it is made");
            timer.start().unwrap();
            assert_eq!(told(), [false; 2], "started");
            let handle = timer.schedule(HOUR, |_| ()).unwrap();
            clock.advance(HOUR).unwrap();
            assert_eq!((told(), handle.has_started()), ([false; 2], true), "it has run something");
            stop(&timer, &clock);
            assert_eq!(told(), [true; 2], "stopped");
            assert!(matches!(timer.start(), Err(StartError::Stopped)));
            assert!(matches!(clone.arm(HOUR, |_| ()), Err(tourbillon::ScheduleError::Stopped(_))));
            assert_eq!((told(), timer.now()), ([true; 2], clock.now()));
            assert!(handle.has_started() && !handle.cancel());
        });
    }
}

/// How a timer is stopped.
type Stop = (&'static str, fn(&Timer, &VirtualClock));

const STOPS: [Stop; 5] = [
    ("stop", |timer, _| drop(timer.stop())),
    ("stop_within", |timer, _| drop(timer.stop_within(Duration::ZERO))),
    ("shutdown_within", |timer, _| drop(timer.shutdown_within(HOUR))),
    ("stop by a callback", |timer, clock| {
        timer.arm(SECOND, |context| drop(context.timer().stop())).unwrap();
        clock.advance(SECOND).unwrap();
    }),
    ("stop by another thread", |timer, _| {
        std::thread::scope(|scope| _ = scope.spawn(|| timer.stop()).join().unwrap());
    }),
];
