//! `Sleep`: when it is ready, which task is woken, and what a reset does in every state.
//!
//! Two are in real time: the default engine has no virtual clock, and the system's clock is read less often than
//! others.

use std::sync::Arc;
use std::sync::Mutex;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use tourbillon::tasks::{self, Sleep};
use tourbillon::{RescheduleError, Timer, VirtualClock};

use crate::by_hand::{Task, acting, poll, timer};
use crate::common::{HOUR, HandClock, MS, SECOND, YEAR, accounted, eventually, within};

const READY: Poll<Result<(), tasks::SleepError>> = Poll::Ready(Ok(()));

/// 2^36 ms, the limit of some other wheels.
const TWO_YEARS: Duration = Duration::from_millis(1 << 36);

#[test]
fn it_is_ready_at_its_deadline_and_not_a_nanosecond_earlier() {
    let (timer, clock) = timer();
    let (task, mut sleep) = (Task::new(), timer.sleep(SECOND));
    assert_eq!(sleep.deadline(), clock.now() + SECOND);
    assert!(task.poll(&mut sleep).is_pending());
    clock.advance(SECOND - Duration::from_nanos(1)).unwrap();
    assert!(task.poll(&mut sleep).is_pending());
    assert_eq!((task.wakes(), sleep.is_elapsed()), (0, false));
    clock.advance(Duration::from_nanos(1)).unwrap();
    assert_eq!(task.wakes(), 1, "once");
    assert_eq!(task.poll(&mut sleep), READY);
    assert!(sleep.is_elapsed());
    assert_eq!(task.held(), 0, "no waker is left behind");
    accounted(&timer);
}

/// As in real time, without an advance of the clock first.
#[test]
fn one_that_is_moved_to_the_past_wakes_its_task_at_once() {
    let (timer, clock) = timer();
    clock.advance(HOUR).unwrap();
    let moves: [fn(&mut Sleep<tasks::Given>, Instant); 3] = [
        |sleep, _| sleep.reset_after(Duration::ZERO),
        |sleep, now| sleep.reset(now),
        |sleep, now| sleep.reset(now - HOUR),
    ];
    for (nth, to) in moves.into_iter().enumerate() {
        let (task, mut sleep) = (Task::new(), timer.sleep(SECOND));
        assert!(task.poll(&mut sleep).is_pending());
        to(&mut sleep, clock.now());
        assert_eq!((task.wakes(), task.held(), timer.len()), (1, 0, 0), "{nth}");
        assert_eq!(task.poll(&mut sleep), READY, "{nth}");
    }
    accounted(&timer);
}

/// With any clock, armed or not: at once, and not at the next tick.
#[test]
fn one_that_is_reset_to_now_is_ready_at_once() {
    let system = Timer::builder().tick(HOUR).build().unwrap();
    let hand = Timer::builder().tick(HOUR).clock(&VirtualClock::new()).build().unwrap();
    for timer in [system, hand] {
        for is_armed in [false, true] {
            let (task, mut sleep) = (Task::new(), timer.sleep(HOUR));
            assert!(!is_armed || task.poll(&mut sleep).is_pending());
            sleep.reset_after(Duration::ZERO);
            assert_eq!(task.poll(&mut sleep), READY, "armed: {is_armed}");
        }
    }
}

#[test]
fn a_snapshot_shows_the_shards_of_tasks() {
    let (timer, _clock) = timer();
    let before = timer.snapshot().shards.len();
    let (task, mut sleep) = (Task::new(), timer.sleep(HOUR));
    assert!(task.poll(&mut sleep).is_pending());
    assert_eq!(timer.snapshot().shards.len(), 2 * before);
}

#[test]
fn nothing_is_armed_before_it_is_polled() {
    let (timer, clock) = timer();
    let mut sleeps: Vec<_> = (0..10).map(|_| timer.sleep(HOUR)).collect();
    assert_eq!(timer.counts().armed, 0);
    let task = Task::new();
    assert!(task.poll(&mut sleeps[0]).is_pending());
    assert_eq!((timer.counts().armed, timer.len()), (1, 1));
    drop(sleeps);
    assert_eq!((timer.counts().cancelled, timer.len()), (1, 0));
    // Polled for the first time after its deadline, it is never armed.
    let mut sleep = timer.sleep(SECOND);
    clock.advance(SECOND).unwrap();
    assert_eq!(task.poll(&mut sleep), READY);
    assert_eq!(timer.counts().armed, 1);
}

#[test]
fn zero_and_the_past_are_ready_at_once() {
    let (timer, clock) = timer();
    let begin = clock.now();
    clock.advance(SECOND).unwrap();
    let task = Task::new();
    assert_eq!(task.poll(&mut timer.sleep(Duration::ZERO)), READY);
    assert_eq!(task.poll(&mut timer.sleep_until(begin)), READY);
    assert_eq!(task.poll(&mut timer.sleep_until(clock.now())), READY);
    let long_ago = begin.checked_sub(HOUR).unwrap_or(begin);
    assert_eq!(task.poll(&mut timer.sleep_until(long_ago)), READY);
    assert_eq!(task.poll(&mut tasks::sleep_until(Instant::now())), Poll::Ready(()));
    assert_eq!(task.poll(&mut tasks::sleep(Duration::ZERO)), Poll::Ready(()));
    assert_eq!(timer.counts().armed, 0);
}

#[test]
fn polled_again_when_it_is_over_it_is_ready_again() {
    let (timer, clock) = timer();
    let (task, mut sleep) = (Task::new(), timer.sleep(SECOND));
    assert!(task.poll(&mut sleep).is_pending());
    clock.advance(SECOND).unwrap();
    for _ in 0..3 {
        assert_eq!(task.poll(&mut sleep), READY);
    }
    assert_eq!(task.wakes(), 1);
}

#[test]
fn the_task_that_polled_last_is_woken() {
    let (timer, clock) = timer();
    let (first, second, mut sleep) = (Task::new(), Task::new(), timer.sleep(SECOND));
    for task in [&first, &first, &second, &first, &second] {
        assert!(task.poll(&mut sleep).is_pending());
    }
    assert_eq!((first.held(), second.held()), (0, 1), "the old wakers are dropped");
    assert_eq!(timer.counts().armed, 1, "it stays where it is");
    clock.advance(SECOND).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
    assert_eq!(first.poll(&mut sleep), READY, "whoever asks");
}

#[test]
fn it_may_be_polled_by_one_thread_and_then_by_another() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().shards(4).clock(&clock).build().unwrap();
    let (first, second, mut sleep) = (Task::new(), Task::new(), timer.sleep(SECOND));
    assert!(first.poll(&mut sleep).is_pending());
    let (mut sleep, second) = thread::spawn(move || {
        assert!(second.poll(&mut sleep).is_pending());
        (sleep, second)
    })
    .join()
    .unwrap();
    let advance = clock.clone();
    thread::spawn(move || advance.advance(SECOND).unwrap()).join().unwrap();
    assert_eq!((first.wakes(), second.wakes()), (0, 1), "the wakers were called when it returned");
    assert_eq!(first.poll(&mut sleep), READY);
}

#[test]
fn a_reset_before_the_deadline_moves_it_with_its_waker() {
    let (timer, clock) = timer();
    let (task, mut sleep) = (Task::new(), timer.sleep(10 * SECOND));
    assert!(task.poll(&mut sleep).is_pending());
    // Later, as a keep-alive does.
    clock.advance(5 * SECOND).unwrap();
    sleep.reset_after(10 * SECOND);
    clock.advance(9 * SECOND).unwrap();
    assert_eq!(task.wakes(), 0, "the old deadline has passed");
    assert!(task.poll(&mut sleep).is_pending());
    clock.advance(SECOND).unwrap();
    assert_eq!(task.wakes(), 1);
    assert_eq!(task.poll(&mut sleep), READY);
    // Earlier, without another poll.
    let mut sleep = timer.sleep(HOUR);
    assert!(task.poll(&mut sleep).is_pending());
    sleep.reset_after(SECOND);
    clock.advance(SECOND).unwrap();
    assert_eq!((task.wakes(), task.poll(&mut sleep)), (1, READY));
    assert_eq!(timer.counts().armed, 2);
    accounted(&timer);
}

#[test]
fn a_reset_after_the_deadline_begins_anew() {
    let (timer, clock) = timer();
    let (task, mut sleep) = (Task::new(), timer.sleep(SECOND));
    assert!(task.poll(&mut sleep).is_pending());
    clock.advance(SECOND).unwrap();
    assert_eq!(task.wakes(), 1);
    // It has fired, and was not polled: the past deadline does not count.
    sleep.reset_after(SECOND);
    assert!(!sleep.is_elapsed());
    assert!(task.poll(&mut sleep).is_pending());
    clock.advance(SECOND).unwrap();
    assert_eq!((task.wakes(), task.poll(&mut sleep)), (1, READY));
    // It has fired, and was polled.
    sleep.reset_after(SECOND);
    assert!(task.poll(&mut sleep).is_pending());
    clock.advance(SECOND).unwrap();
    assert_eq!((task.wakes(), task.poll(&mut sleep)), (1, READY));
    accounted(&timer);
}

#[test]
fn a_reset_at_the_deadline_and_to_it() {
    let (timer, clock) = timer();
    let (task, mut sleep) = (Task::new(), timer.sleep(SECOND));
    assert!(task.poll(&mut sleep).is_pending());
    let deadline = sleep.deadline();
    // To the same deadline.
    sleep.reset(deadline);
    clock.advance(SECOND).unwrap();
    assert_eq!((task.wakes(), task.poll(&mut sleep)), (1, READY));
    // At its deadline, to its deadline.
    sleep.reset(deadline);
    assert_eq!(task.poll(&mut sleep), READY, "it is now");
}

#[test]
fn a_reset_into_the_past_is_ready() {
    let (timer, clock) = timer();
    let begin = clock.now();
    let task = Task::new();
    // The other timer makes the hand pass the deadline that is set next.
    let mut other = timer.sleep(5 * SECOND);
    assert!(task.poll(&mut other).is_pending());
    let mut sleep = timer.sleep(HOUR);
    assert!(task.poll(&mut sleep).is_pending());
    clock.advance(10 * SECOND).unwrap();
    assert_eq!(task.wakes(), 1);
    sleep.reset(begin + SECOND);
    assert_eq!((task.poll(&mut sleep), task.wakes()), (READY, 1));
    assert_eq!(timer.len(), 0, "nothing is left in the wheel");
    assert_eq!(task.held(), 0);
    // Never polled, and over.
    for mut sleep in [timer.sleep(HOUR), other] {
        sleep.reset(begin + SECOND);
        assert_eq!(task.poll(&mut sleep), READY);
    }
    accounted(&timer);
}

#[test]
fn far_ones_do_not_hide_a_near_one() {
    let (timer, clock) = timer();
    let task = Task::new();
    let far = [Duration::MAX, TWO_YEARS, TWO_YEARS * 3 + MS, 500 * YEAR, TWO_YEARS - MS];
    let mut far: Vec<_> = far.into_iter().map(|after| timer.sleep(after)).collect();
    assert!(far.iter_mut().all(|sleep| task.poll(sleep).is_pending()));
    let mut near = timer.sleep(3 * SECOND);
    assert!(task.poll(&mut near).is_pending());
    clock.advance(2 * SECOND).unwrap();
    assert_eq!(task.wakes(), 0);
    clock.advance(SECOND).unwrap();
    assert_eq!((task.wakes(), task.poll(&mut near)), (1, READY));
    assert!(far.iter_mut().all(|sleep| task.poll(sleep).is_pending()));
    accounted(&timer);
}

#[test]
fn two_to_the_36_ms_and_beyond_are_as_exact_as_any() {
    let (timer, clock) = timer();
    let task = Task::new();
    for after in [TWO_YEARS - MS, TWO_YEARS, TWO_YEARS + MS, 2 * TWO_YEARS + MS, 60 * TWO_YEARS] {
        let mut sleep = timer.sleep(after);
        assert!(task.poll(&mut sleep).is_pending());
        clock.advance(after - MS).unwrap();
        assert!(task.poll(&mut sleep).is_pending(), "{after:?}");
        assert_eq!(task.wakes(), 0);
        clock.advance(MS).unwrap();
        assert_eq!((task.wakes(), task.poll(&mut sleep)), (1, READY), "{after:?}");
    }
    accounted(&timer);
}

#[test]
fn the_longest_duration_is_a_sleep_like_any() {
    let (timer, clock) = timer();
    let task = Task::new();
    let mut sleep = timer.sleep(Duration::MAX);
    assert!(task.poll(&mut sleep).is_pending());
    assert!(sleep.deadline() > clock.now() + 400 * YEAR);
    clock.advance(400 * YEAR).unwrap();
    assert!(task.poll(&mut sleep).is_pending());
    sleep.reset_after(Duration::MAX);
    assert!(task.poll(&mut sleep).is_pending());
    sleep.reset_after(SECOND);
    clock.advance(SECOND).unwrap();
    assert_eq!((task.wakes(), task.poll(&mut sleep)), (1, READY));
    // On the default engine, too.
    assert!(task.poll(&mut tasks::sleep(Duration::MAX)).is_pending());
}

#[test]
fn a_drop_in_its_own_wake() {
    let (timer, clock) = timer();
    let slot: Arc<Mutex<Option<Sleep<tasks::Given>>>> = Arc::default();
    let own = slot.clone();
    let waker = acting(move || drop(own.lock().unwrap().take()));
    let mut sleep = timer.sleep(SECOND);
    assert!(poll(&mut sleep, &waker).is_pending());
    *slot.lock().unwrap() = Some(sleep);
    clock.advance(SECOND).unwrap();
    assert!(slot.lock().unwrap().is_none(), "it was woken, and is gone");
    accounted(&timer);
}

#[test]
fn a_wake_may_drop_others_that_are_due_with_it() {
    let (timer, clock) = timer();
    let sleeps: Arc<Mutex<Vec<Sleep<tasks::Given>>>> = Arc::default();
    let own = sleeps.clone();
    let waker = acting(move || {
        let all = std::mem::take(&mut *own.lock().unwrap());
        drop(all);
    });
    for _ in 0..100 {
        let mut sleep = timer.sleep(SECOND);
        assert!(poll(&mut sleep, &waker).is_pending());
        sleeps.lock().unwrap().push(sleep);
    }
    clock.advance(SECOND).unwrap();
    let counts = timer.counts();
    assert_eq!((counts.fired + counts.cancelled, counts.panicked), (100, 0));
    accounted(&timer);
}

#[test]
fn a_wake_may_poll_and_reset_its_own_sleep() {
    let (timer, clock) = timer();
    let slot: Arc<Mutex<Option<Sleep<tasks::Given>>>> = Arc::default();
    let (own, task) = (slot.clone(), Arc::new(Task::new()));
    let again = task.clone();
    let waker = acting(move || {
        let mut slot = own.lock().unwrap();
        let sleep = slot.as_mut().unwrap();
        assert_eq!(again.poll(sleep), READY);
        sleep.reset_after(SECOND);
        assert!(again.poll(sleep).is_pending());
    });
    let mut sleep = timer.sleep(SECOND);
    assert!(poll(&mut sleep, &waker).is_pending());
    *slot.lock().unwrap() = Some(sleep);
    clock.advance(SECOND).unwrap();
    assert_eq!(task.wakes(), 0);
    clock.advance(SECOND).unwrap();
    assert_eq!((task.wakes(), timer.counts().panicked), (1, 0));
}

#[test]
fn a_clock_that_goes_back_makes_nobody_early() {
    let clock = HandClock::new();
    let timer = Timer::builder().clock(clock.clone()).build().unwrap();
    let (task, mut sleep) = (Task::new(), timer.sleep(HOUR));
    assert!(task.poll(&mut sleep).is_pending());
    clock.forward(HOUR);
    eventually(|| task.wakes() == 1);
    clock.back(2 * HOUR);
    assert_eq!(task.poll(&mut sleep), READY, "its time had come");
}

#[test]
fn a_thousand_threads_worth_of_sleeps_in_real_time() {
    within(|| {
        let began = Instant::now();
        let sleeps = (0..200).map(|n| tasks::sleep(MS * (n % 20)));
        for sleep in sleeps.collect::<Vec<_>>() {
            let deadline = sleep.deadline();
            futures_lite::future::block_on(sleep);
            assert!(Instant::now() >= deadline, "never early");
        }
        assert!(began.elapsed() >= 19 * MS);
    });
}

#[test]
fn the_keys_of_tasks_are_out_of_reach() {
    let (timer, _clock) = timer();
    let (task, mut sleep) = (Task::new(), timer.sleep(HOUR));
    assert!(task.poll(&mut sleep).is_pending());
    assert_eq!((timer.len(), timer.pending().len()), (1, 0), "counted, not listed");
    // The only other timer in this thread's shard: its key is the closest to the task's.
    let key = timer.arm(HOUR, |_| ()).unwrap();
    assert!(timer.cancel(key));
    assert_eq!(timer.reschedule(key, SECOND), Err(RescheduleError::NotPending));
    assert_eq!(timer.len(), 1);
}
