//! `Timeout`: lazy, and its future is polled before the limit is checked.

use std::cell::Cell;
use std::future::{pending, poll_fn, ready};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use tourbillon::tasks::{self, Elapsed};
use tourbillon::{Clock, Timer};

use crate::by_hand::{Task, timer};
use crate::common::{Drops, HOUR, SECOND};

#[test]
fn a_future_that_is_ready_at_once_never_touches_the_wheel() {
    let (timer, clock) = timer();
    let task = Task::new();
    for _ in 0..1000 {
        let mut limited = timer.timeout(HOUR, ready(7));
        assert_eq!(task.poll(&mut limited), Poll::Ready(Ok(Ok(7))));
    }
    assert_eq!(timer.counts().armed, 0);
    assert!(timer.snapshot().slots().next().is_none());
    drop(clock);
}

/// A clock that counts how often this thread reads it.
struct Counting;

thread_local! {
    static READ: Cell<usize> = const { Cell::new(0) };
}

impl Clock for Counting {
    fn now(&self) -> Instant {
        READ.set(READ.get() + 1);
        Instant::now()
    }
}

#[test]
fn a_future_that_is_ready_at_once_costs_one_reading_of_the_clock() {
    let timer = Timer::builder().clock(Counting).build().unwrap();
    let task = Task::new();
    for _ in 0..3 {
        READ.set(0);
        assert_eq!(task.poll(&mut timer.timeout(HOUR, ready(7))), Poll::Ready(Ok(Ok(7))));
        assert_eq!(READ.get(), 1);
    }
}

#[test]
fn the_future_is_polled_first_and_wins() {
    let (timer, clock) = timer();
    let task = Task::new();
    let mut inner = timer.sleep(SECOND);
    let mut limited = timer.timeout(SECOND, &mut inner);
    assert!(task.poll(&mut limited).is_pending());
    clock.advance(SECOND).unwrap();
    assert_eq!(task.poll(&mut limited), Poll::Ready(Ok(Ok(Ok(())))), "both are over");
    // A limit that has passed before the first poll.
    let mut limited = timer.timeout(SECOND, ready(1));
    clock.advance(HOUR).unwrap();
    assert_eq!(task.poll(&mut limited), Poll::Ready(Ok(Ok(1))));
    let mut limited = timer.timeout(SECOND, pending::<()>());
    clock.advance(HOUR).unwrap();
    assert_eq!(task.poll(&mut limited), Poll::Ready(Ok(Err(Elapsed))));
}

#[test]
fn the_future_goes_on_if_it_is_lent() {
    let (timer, clock) = timer();
    let mut work = timer.sleep(10 * SECOND);
    let outcome = tasks::block_on(&clock, async {
        let first = timer.timeout(SECOND, &mut work).await.unwrap();
        let second = timer.timeout_at(clock.now() + HOUR, &mut work).await.unwrap();
        (first.is_err(), second.is_ok())
    });
    assert_eq!(outcome, Ok((true, true)));
    assert_eq!(clock.elapsed(), 10 * SECOND);
}

#[test]
fn dropping_it_drops_the_future_and_cancels_the_limit() {
    let (timer, _clock) = timer();
    let drops = Drops::new();
    let guard = drops.one();
    let task = Task::new();
    let future = Box::pin(async move {
        let _guard = guard;
        pending::<()>().await;
    });
    let mut limited = timer.timeout(HOUR, future);
    assert!(task.poll(&mut limited).is_pending());
    assert_eq!((timer.len(), drops.count()), (1, 0));
    drop(limited);
    assert_eq!((timer.len(), drops.count(), task.held()), (0, 1, 0));
}

#[test]
fn a_reset_gives_more_time_or_less() {
    let (timer, clock) = timer();
    let task = Task::new();
    let mut limited = pin!(timer.timeout(10 * SECOND, pending::<()>()));
    assert!(task.poll(&mut limited).is_pending());
    limited.as_mut().reset_after(HOUR);
    clock.advance(10 * SECOND).unwrap();
    assert_eq!(task.wakes(), 0);
    limited.as_mut().reset(clock.now() + SECOND);
    assert_eq!(limited.deadline(), clock.now() + SECOND);
    clock.advance(SECOND).unwrap();
    assert_eq!((task.wakes(), task.poll(&mut limited)), (1, Poll::Ready(Ok(Err(Elapsed)))));
}

#[test]
fn the_parts_are_within_reach() {
    let (timer, _clock) = timer();
    let mut limited = pin!(timer.timeout(SECOND, ready(3)));
    assert_eq!(format!("{:?}", limited.get_ref()), "Ready(Some(3))");
    let task = Task::new();
    assert_eq!(task.poll(&mut limited.as_mut().get_pin_mut()), Poll::Ready(3));
    assert_eq!(futures_lite::future::block_on(timer.timeout(SECOND, ready(4)).into_inner()), 4);
}

#[test]
fn the_longest_limit_is_none() {
    let mut polls = 0;
    let third_time = poll_fn(|context| {
        polls += 1;
        context.waker().wake_by_ref();
        if polls == 3 { Poll::Ready(()) } else { Poll::Pending }
    });
    let limited = tasks::timeout(Duration::MAX, third_time);
    assert_eq!(futures_lite::future::block_on(limited), Ok(()));
}
