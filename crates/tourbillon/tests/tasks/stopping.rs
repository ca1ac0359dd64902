//! Engines that stop, are full, or cannot start: an error, never an early success, and never a hang.
//!
//! Some are in real time: two threads of an engine stop it at once, and neither may wait for the other.

use std::sync::{Arc, Barrier, mpsc};
use std::task::Poll;
use std::time::Duration;

use tourbillon::tasks::{self, SleepError};
use tourbillon::{Timer, VirtualClock};

use crate::by_hand::{Task, timer};
use crate::common::{HOUR, MS, SECOND, accounted, within};

const STOPPED: Poll<Result<(), SleepError>> = Poll::Ready(Err(SleepError::Stopped));

#[test]
fn a_stop_wakes_tasks_to_find_an_error() {
    let (timer, clock) = timer();
    let task = Task::new();
    let mut armed = timer.sleep(SECOND);
    let mut idle = timer.sleep(SECOND);
    assert!(task.poll(&mut armed).is_pending());
    timer.arm(SECOND, |_| ()).unwrap();
    assert_eq!(timer.stop().len(), 1, "tasks are not among the callbacks");
    assert_eq!(task.wakes(), 1);
    assert_eq!(timer.counts().handed_back, 2, "and are counted with them");
    for _ in 0..2 {
        assert_eq!(task.poll(&mut armed), STOPPED);
        assert_eq!(task.poll(&mut idle), STOPPED);
    }
    assert_eq!(task.poll(&mut timer.sleep(SECOND)), STOPPED, "made after the stop");
    // A reset does not revive it.
    armed.reset_after(SECOND);
    assert_eq!(task.poll(&mut armed), STOPPED);
    // The clock continues: a sleep that is over stays over.
    clock.advance(SECOND).unwrap();
    assert_eq!(task.poll(&mut idle), STOPPED, "it has said so");
    assert_eq!(task.poll(&mut timer.sleep(Duration::ZERO)), Poll::Ready(Ok(())));
    assert!(timer.stop().is_empty());
    accounted(&timer);
}

#[test]
fn what_has_fired_before_the_stop_is_a_success() {
    let (timer, clock) = timer();
    let task = Task::new();
    let (mut over, mut before) = (timer.sleep(SECOND), timer.sleep(2 * SECOND));
    assert!(task.poll(&mut over).is_pending() && task.poll(&mut before).is_pending());
    clock.advance(SECOND).unwrap();
    timer.stop();
    assert_eq!(task.poll(&mut over), Poll::Ready(Ok(())));
    assert_eq!(task.poll(&mut before), STOPPED);
    let counts = timer.counts();
    assert_eq!((counts.fired, counts.handed_back), (1, 1));
}

/// An engine for tasks is visible only by its wheel, as one more shard in the snapshot.
#[test]
fn a_stop_makes_no_engine_for_tasks_that_never_came() {
    let (timer, _clock) = timer();
    let shards = timer.snapshot().shards.len();
    timer.stop();
    assert_eq!(timer.snapshot().shards.len(), shards);
}

#[test]
fn a_timer_that_never_had_tasks_refuses_them_after_a_stop() {
    let (timer, clock) = timer();
    timer.stop();
    let task = Task::new();
    assert_eq!(task.poll(&mut timer.sleep(SECOND)), STOPPED);
    let never = std::future::pending::<()>();
    let limited = tasks::block_on(&clock, timer.timeout(SECOND, never)).unwrap();
    assert_eq!(limited, Err(SleepError::Stopped));
    let tick = tasks::block_on(&clock, async {
        let mut interval = timer.interval(SECOND);
        (interval.tick().await.is_ok(), interval.tick().await)
    });
    assert_eq!(tick, Ok((true, Err(SleepError::Stopped))), "the first is due at once");
}

#[test]
fn the_last_clone_of_a_timer_stops_it() {
    let (timer, _clock) = timer();
    let (task, mut sleep) = (Task::new(), timer.sleep(SECOND));
    assert!(task.poll(&mut sleep).is_pending());
    drop(timer);
    assert_eq!((task.wakes(), task.poll(&mut sleep)), (1, STOPPED));
}

#[test]
fn a_stop_from_a_waker() {
    let (timer, clock) = timer();
    let own = timer.clone();
    let waker = crate::by_hand::acting(move || assert!(own.stop().is_empty()));
    let (task, mut late) = (Task::new(), timer.sleep(HOUR));
    assert!(task.poll(&mut late).is_pending());
    let mut sleep = timer.sleep(SECOND);
    assert!(crate::by_hand::poll(&mut sleep, &waker).is_pending());
    within(move || clock.advance(SECOND).unwrap());
    assert_eq!((task.wakes(), task.poll(&mut late)), (1, STOPPED));
    assert_eq!(timer.counts().panicked, 0);
}

#[test]
fn a_callback_and_a_waker_that_both_stop_do_not_wait_for_each_other() {
    // One of them may finish before the other begins: they overlap in about one round of three.
    for _ in 0..20 {
        let timer = Timer::builder().build().unwrap();
        let (done, is_done) = mpsc::channel();
        let both = Arc::new(Barrier::new(2));
        let act = || {
            let (both, stop, done) = (both.clone(), timer.clone(), done.clone());
            move || {
                both.wait();
                stop.stop();
                done.send(()).unwrap();
            }
        };
        let (in_callback, in_waker) = (act(), act());
        timer.schedule(MS, move |_| in_callback()).unwrap();
        let mut sleep = timer.sleep(MS);
        assert!(crate::by_hand::poll(&mut sleep, &crate::by_hand::acting(in_waker)).is_pending());
        within(move || (0..2).for_each(|_| is_done.recv().unwrap()));
    }
}

#[test]
fn a_stop_inside_of_a_waker_says_that_all_has_ended() {
    let (timer, clock) = timer();
    let (told, finished) = mpsc::channel();
    let stop = timer.clone();
    let act = move || told.send(stop.stop_within(SECOND).finished).unwrap();
    let mut sleep = timer.sleep(MS);
    assert!(crate::by_hand::poll(&mut sleep, &crate::by_hand::acting(act)).is_pending());
    clock.advance(MS).unwrap();
    assert!(finished.recv().unwrap());
}

#[test]
fn a_stop_ends_a_callback_that_waits_for_a_sleep() {
    let timer = Timer::builder().build().unwrap();
    let (begun, has_begun) = mpsc::channel();
    let inner = timer.clone();
    let wait = move || {
        begun.send(()).unwrap();
        let _stopped = futures_lite::future::block_on(inner.sleep(HOUR));
    };
    timer.schedule(MS, move |_| wait()).unwrap();
    has_begun.recv().unwrap();
    assert!(timer.stop_within(10 * SECOND).finished);
}

#[test]
fn the_limit_is_for_tasks_and_callbacks_together() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().limit(2).clock(&clock).build().unwrap();
    let key = timer.arm(HOUR, |_| ()).unwrap();
    let task = Task::new();
    let (mut first, mut second) = (timer.sleep(SECOND), timer.sleep(SECOND));
    assert!(task.poll(&mut first).is_pending());
    assert_eq!(task.poll(&mut second), Poll::Ready(Err(SleepError::Full)));
    assert!(timer.arm(HOUR, |_| ()).is_err());
    assert!(timer.cancel(key));
    second.reset_after(SECOND);
    assert!(task.poll(&mut second).is_pending(), "there is room again");
    drop(second);
    clock.advance(SECOND).unwrap();
    assert_eq!(task.poll(&mut first), Poll::Ready(Ok(())));
    timer.arm(HOUR, |_| ()).unwrap();
    timer.arm(HOUR, |_| ()).unwrap();
    assert!(timer.arm(HOUR, |_| ()).is_err(), "all places were given back, once");
}

#[test]
fn errors_say_what_to_do() {
    let wrong = [SleepError::Stopped, SleepError::Full, SleepError::Thread];
    for wrong in wrong {
        assert!(wrong.to_string().contains(": "), "{wrong}");
    }
    assert!(tasks::Elapsed.to_string().contains(": "));
}
