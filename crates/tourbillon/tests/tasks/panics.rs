//! Wakers that panic when they are woken, cloned or dropped: nothing else is affected.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Poll, Waker};

use tourbillon::{Timer, VirtualClock};

use crate::by_hand::{Task, acting, panics_when_cloned, panics_when_dropped, poll, timer};
use crate::common::{SECOND, accounted, panic_quietly};

/// Other tasks that are due at the same time are woken, and the engine keeps working.
#[track_caller]
fn survives(waker: Waker, panics: u64) {
    let (timer, clock) = timer();
    let task = Task::new();
    let mut sleeps: Vec<_> = (0..3).map(|_| timer.sleep(SECOND)).collect();
    assert!(task.poll(&mut sleeps[0]).is_pending());
    assert!(poll(&mut sleeps[1], &waker).is_pending());
    assert!(task.poll(&mut sleeps[2]).is_pending());
    std::mem::forget(waker);
    clock.advance(SECOND).unwrap();
    assert_eq!(task.wakes(), 2);
    assert!(sleeps.iter_mut().all(|sleep| task.poll(sleep) == Poll::Ready(Ok(()))));
    goes_on(&timer, &clock, panics);
}

#[track_caller]
fn goes_on(timer: &Timer, clock: &VirtualClock, panics: u64) {
    assert_eq!(timer.counts().panicked, panics);
    let (task, mut sleep) = (Task::new(), timer.sleep(SECOND));
    assert!(task.poll(&mut sleep).is_pending());
    clock.advance(SECOND).unwrap();
    assert_eq!((task.wakes(), task.poll(&mut sleep)), (1, Poll::Ready(Ok(()))));
    accounted(timer);
}

#[test]
fn a_waker_that_panics_when_it_is_woken() {
    survives(acting(|| panic_quietly()), 1);
}

#[test]
fn a_waker_that_panics_when_it_is_dropped() {
    // When the sleep is cancelled.
    let (timer, clock) = timer();
    let waker = panics_when_dropped();
    let mut sleep = timer.sleep(SECOND);
    assert!(poll(&mut sleep, &waker).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(waker))).is_ok(), "not the last");
    drop(sleep);
    goes_on(&timer, &clock, 1);
    // When another task replaces it.
    let waker = panics_when_dropped();
    let mut sleep = timer.sleep(SECOND);
    assert!(poll(&mut sleep, &waker).is_pending());
    drop(waker);
    let task = Task::new();
    assert!(task.poll(&mut sleep).is_pending());
    clock.advance(SECOND).unwrap();
    assert_eq!((task.wakes(), task.poll(&mut sleep)), (1, Poll::Ready(Ok(()))));
    goes_on(&timer, &clock, 2);
    // When it was woken.
    let waker = panics_when_dropped();
    let mut sleep = timer.sleep(SECOND);
    assert!(poll(&mut sleep, &waker).is_pending());
    drop(waker);
    clock.advance(SECOND).unwrap();
    goes_on(&timer, &clock, 3);
    // When the engine stops.
    let waker = panics_when_dropped();
    let mut sleep = timer.sleep(SECOND);
    assert!(poll(&mut sleep, &waker).is_pending());
    drop(waker);
    assert!(timer.stop().is_empty());
    assert_eq!(timer.counts().panicked, 4);
}

#[test]
fn a_waker_that_panics_when_it_is_cloned() {
    let (timer, clock) = timer();
    let waker = panics_when_cloned();
    // The panic reaches the caller of `poll`, and the sleep is unchanged.
    let mut sleep = timer.sleep(SECOND);
    assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut sleep, &waker))).is_err());
    assert_eq!(timer.counts().armed, 0);
    let task = Task::new();
    assert!(task.poll(&mut sleep).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut sleep, &waker))).is_err());
    clock.advance(SECOND).unwrap();
    assert_eq!((task.wakes(), task.poll(&mut sleep)), (1, Poll::Ready(Ok(()))));
    goes_on(&timer, &clock, 0);
}

#[test]
fn a_queue_survives_them_too() {
    let (timer, clock) = timer();
    let mut queue = timer.delay_queue();
    queue.insert(1, (), SECOND).unwrap();
    let waker = acting(|| panic_quietly());
    let mut context = std::task::Context::from_waker(&waker);
    assert!(queue.poll_expired(&mut context).is_pending());
    assert_eq!(queue.remove(&1), Some(()), "it wakes who waits, and that panics");
    queue.insert(2, (), SECOND).unwrap();
    let dropped = panics_when_dropped();
    let mut context = std::task::Context::from_waker(&dropped);
    assert!(queue.poll_expired(&mut context).is_pending());
    drop(dropped);
    let task = Task::new();
    assert!(task.poll_fn(|context| queue.poll_expired(context)).is_pending());
    clock.advance(SECOND).unwrap();
    assert_eq!(task.wakes(), 1);
    assert!(task.poll_fn(|context| queue.poll_expired(context)).is_ready());
    goes_on(&timer, &clock, 2);
}

#[test]
fn a_queue_is_dropped_with_a_waker_whose_drop_panics() {
    let (timer, clock) = timer();
    let mut queue = timer.delay_queue();
    queue.insert(1, (), SECOND).unwrap();
    let waker = panics_when_dropped();
    assert!(queue.poll_expired(&mut std::task::Context::from_waker(&waker)).is_pending());
    drop(waker);
    drop(queue);
    goes_on(&timer, &clock, 1);
}

#[test]
fn a_key_whose_hash_panics_leaves_a_queue_that_is_whole() {
    thread_local!(static PANICS: std::cell::Cell<bool> = const { std::cell::Cell::new(true) });
    #[derive(Clone, PartialEq, Eq, Debug)]
    struct Odd;
    impl std::hash::Hash for Odd {
        fn hash<H: std::hash::Hasher>(&self, _state: &mut H) {
            if PANICS.get() {
                panic_quietly();
            }
        }
    }
    let (timer, clock) = timer();
    let mut queue = timer.delay_queue();
    assert!(catch_unwind(AssertUnwindSafe(|| queue.insert(Odd, (), SECOND))).is_err());
    PANICS.set(false);
    clock.advance(SECOND).unwrap();
    let polled = Task::new().poll_fn(|context| queue.poll_expired(context));
    assert!(queue.is_empty() && matches!(polled, Poll::Ready(None)), "{polled:?}");
}
