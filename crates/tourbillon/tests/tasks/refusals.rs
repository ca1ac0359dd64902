//! No room, no thread, or a deadline that has passed meanwhile: a temporary refusal is retried, and a passed deadline
//! is a success.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use futures_lite::future::block_on;
use tourbillon::tasks::SleepError;
use tourbillon::{Key, Timer, VirtualClock};

use crate::by_hand::Task;
use crate::common::{HOUR, MS, SECOND, eventually};

/// A timer with room for one, which is taken.
pub(crate) fn full() -> (Timer, VirtualClock, Key) {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).limit(1).build().unwrap();
    let key = timer.arm(HOUR, |_| ()).unwrap();
    (timer, clock, key)
}

#[test]
fn a_sleep_that_found_no_room_tries_again() {
    let (timer, clock, key) = full();
    let (task, mut sleep) = (Task::new(), timer.sleep(SECOND));
    assert_eq!(task.poll(&mut sleep), Poll::Ready(Err(SleepError::Full)));
    assert!(timer.cancel(key), "there is room again");
    assert!(task.poll(&mut sleep).is_pending());
    clock.advance(SECOND).unwrap();
    assert_eq!((task.wakes(), task.poll(&mut sleep)), (1, Poll::Ready(Ok(()))));
}

#[test]
fn a_queue_that_found_no_room_tries_again() {
    let (timer, clock, key) = full();
    let mut queue = timer.delay_queue();
    queue.insert(1, "one", SECOND).unwrap();
    let task = Task::new();
    let first = task.poll_fn(|context| queue.poll_expired(context));
    assert!(matches!(first, Poll::Ready(Some(Err(SleepError::Full)))));
    assert!(timer.cancel(key), "there is room again");
    assert!(task.poll_fn(|context| queue.poll_expired(context)).is_pending());
    clock.advance(SECOND).unwrap();
    assert_eq!(task.wakes(), 1);
    assert!(task.poll_fn(|context| queue.poll_expired(context)).is_ready());
}

#[test]
fn an_interval_that_found_no_room_tries_again() {
    let (timer, clock, key) = full();
    let mut interval = timer.interval_at(timer.now() + SECOND, SECOND);
    let task = Task::new();
    let first = task.poll_fn(|context| interval.poll_tick(context));
    assert_eq!(first, Poll::Ready(Err(SleepError::Full)));
    assert!(timer.cancel(key), "there is room again");
    assert!(task.poll_fn(|context| interval.poll_tick(context)).is_pending());
    clock.advance(SECOND).unwrap();
    let tick = task.poll_fn(|context| interval.poll_tick(context));
    assert!(matches!(tick, Poll::Ready(Ok(_))));
}

/// A timer that gets no thread until the flag is changed.
fn without_threads() -> (Timer, Arc<AtomicBool>) {
    let fails = Arc::new(AtomicBool::new(true));
    let fail = fails.clone();
    let builder = Timer::builder().spawn(move |name, body| {
        if fail.load(SeqCst) {
            return Err(std::io::Error::other("no thread today"));
        }
        thread::Builder::new().name(name).spawn(body).map(drop)
    });
    (builder.build().unwrap(), fails)
}

#[test]
fn a_sleep_that_finds_no_thread_is_an_error_and_another_may_find_one() {
    let (timer, fails) = without_threads();
    assert_eq!(Task::new().poll(&mut timer.sleep(HOUR)), Poll::Ready(Err(SleepError::Thread)));
    fails.store(false, SeqCst);
    assert_eq!(block_on(timer.sleep(MS)), Ok(()));
}

#[test]
fn an_interval_that_found_no_thread_tries_again() {
    let (timer, fails) = without_threads();
    let mut interval = timer.interval_at(timer.now() + HOUR, MS);
    assert_eq!(block_on(interval.tick()), Err(SleepError::Thread));
    fails.store(false, SeqCst);
    interval.reset_after(MS);
    assert!(block_on(interval.tick()).is_ok());
}

#[test]
fn a_time_that_has_come_before_the_first_poll_is_a_success() {
    // In real time: a virtual clock is always read.
    let timer = Timer::builder().limit(1).build().unwrap();
    let _full = timer.schedule(HOUR, |_| ()).unwrap();
    let (mut refused, mut stopped) = (timer.sleep(MS), timer.sleep(MS));
    eventually(|| timer.now() >= stopped.deadline());
    assert_eq!(Task::new().poll(&mut refused), Poll::Ready(Ok(())), "it needs no room");
    timer.stop();
    assert_eq!(Task::new().poll(&mut stopped), Poll::Ready(Ok(())), "it was due before the stop");
}

/// A deadline that has passed is not the same as a sleep that is over.
#[test]
fn only_a_sleep_whose_time_has_come_has_elapsed() {
    let task = Task::new();
    let (timer, clock, key) = full();
    let mut sleep = timer.sleep(SECOND);
    assert!(!sleep.is_elapsed(), "never polled");
    assert_eq!(task.poll(&mut sleep), Poll::Ready(Err(SleepError::Full)));
    assert!(!sleep.is_elapsed(), "refused");
    assert!(timer.cancel(key) && task.poll(&mut sleep).is_pending() && !sleep.is_elapsed());
    clock.advance(SECOND).unwrap();
    assert!(task.poll(&mut sleep).is_ready() && sleep.is_elapsed());
    sleep.reset_after(SECOND);
    assert!(!sleep.is_elapsed() && task.poll(&mut sleep).is_pending() && !sleep.is_elapsed());
    timer.stop();
    assert_eq!(task.poll(&mut sleep), Poll::Ready(Err(SleepError::Stopped)));
    assert!(!sleep.is_elapsed(), "stopped");
    clock.advance(SECOND).unwrap();
    assert!(!sleep.is_elapsed(), "it has said that it was stopped");
    let mut late = timer.sleep(SECOND);
    assert_eq!(task.poll(&mut late), Poll::Ready(Err(SleepError::Stopped)));
    assert!(!late.is_elapsed() && timer.sleep(Duration::ZERO).is_elapsed());
}
