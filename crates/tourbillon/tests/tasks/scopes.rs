//! The free functions under a given timer: scopes, the switch of the process, and tokio's tests.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use futures_lite::future::block_on;
use tourbillon::tasks::{self, Instant, Interval};
use tourbillon::{Timer, VirtualClock};

use crate::by_hand::timer;
use crate::common::{HOUR, SECOND, panic_quietly};

/// What knows of no timer.
async fn service() -> Duration {
    let begin = Instant::now();
    let mut interval = tasks::interval(SECOND);
    for _ in 0..=10 {
        interval.tick().await;
    }
    let slow = tasks::timeout(SECOND, tasks::sleep(HOUR)).await;
    assert!(slow.is_err());
    tasks::sleep_until(begin + HOUR).await;
    begin.elapsed()
}

#[test]
fn a_scope_puts_all_free_functions_on_its_timer() {
    let (timer, clock) = timer();
    let took = tasks::block_on(&clock, tasks::scope(&timer, service())).unwrap();
    assert_eq!((took, clock.elapsed()), (HOUR, HOUR));
    let mut queue = tasks::with_timer(&timer, tasks::DelayQueue::new);
    queue.push("in an hour", HOUR).unwrap();
    let expired = tasks::block_on(&clock, queue.next()).unwrap().unwrap();
    assert_eq!((expired.value, clock.elapsed()), ("in an hour", 2 * HOUR));
    assert_eq!(timer.counts().pending, 0);
}

#[test]
fn scopes_nest_and_end() {
    let ((outer, outside), (inner, inside)) = (timer(), timer());
    outside.advance(HOUR).unwrap();
    inside.advance(2 * HOUR).unwrap();
    tasks::with_timer(&outer, || {
        assert_eq!(Instant::now(), outside.now());
        tasks::with_timer(&inner, || assert_eq!(Instant::now(), inside.now()));
        assert_eq!(Instant::now(), outside.now());
    });
    assert!(Instant::now() < inside.now(), "the system's again");
    // A future is where it was made, wherever it is polled.
    let sleep = tasks::with_timer(&outer, || tasks::sleep(SECOND));
    assert_eq!(sleep.deadline(), outside.now() + SECOND);
    let panics = catch_unwind(AssertUnwindSafe(|| tasks::with_timer(&outer, || panic_quietly())));
    assert!(panics.is_err() && Instant::now() < outside.now(), "a panic ends the scope too");
}

#[test]
fn time_is_advanced_by_hand() {
    let (timer, clock) = timer();
    let moved = tasks::scope(&timer, async {
        let mut sleep = tasks::sleep(HOUR);
        tasks::advance(HOUR).await;
        futures_lite::future::poll_once(&mut sleep).await
    });
    assert_eq!(block_on(moved), Some(()));
    assert_eq!(clock.elapsed(), HOUR);
    let outside = catch_unwind(|| block_on(tasks::advance(HOUR)));
    assert!(outside.is_err(), "the default engine has no virtual clock");
}

#[test]
fn a_stopped_timer_in_the_place_of_the_default_engine_is_a_panic() {
    let (timer, _clock) = timer();
    let sleep = tasks::with_timer(&timer, || tasks::sleep(HOUR));
    timer.stop();
    let slept = catch_unwind(AssertUnwindSafe(move || block_on(sleep)));
    assert!(slept.is_err(), "never early, and no hang");
}

#[cfg(feature = "tokio")]
mod on_tokio {
    use super::*;
    use futures_lite::StreamExt;

    /// Two tasks that wait for each other's ticks: both runtimes have to take the same way.
    async fn spawned(period: Duration) -> Vec<u64> {
        let begin = Instant::now();
        let (sender, mut seconds) = tokio::sync::mpsc::channel(1);
        let ticking = tokio::spawn(async move {
            let mut ticks: Interval = tasks::interval(period);
            for _ in 0..4 {
                ticks.next().await;
                sender.send(begin.elapsed().as_secs()).await.unwrap();
            }
        });
        let mut seen = Vec::new();
        while let Some(second) = seconds.recv().await {
            seen.push(second);
        }
        ticking.await.unwrap();
        seen
    }

    #[tokio::test]
    async fn a_test_of_tokio_is_paused_by_one_line() {
        let paused = tasks::pause();
        assert_eq!(spawned(60 * SECOND).await, [0, 60, 120, 180]);
        assert_eq!(paused.clock().elapsed(), 180 * SECOND);
        let timer = paused.timer().clone();
        drop(paused);
        assert!(Instant::now() < timer.now(), "the system's again");
    }

    #[tokio::test(start_paused = true)]
    async fn also_one_that_tokio_has_paused() {
        let _paused = tasks::pause();
        assert_eq!(tasks::timeout(SECOND, tasks::sleep(HOUR)).await, Err(tasks::Elapsed));
        assert_eq!(spawned(HOUR).await, [1, 2, 3, 4].map(|hour| (hour - 1) * 3600));
    }

    /// An advance by hand, in a test that jumps by itself otherwise.
    #[tokio::test]
    async fn time_is_advanced_by_hand_there_too() {
        let _paused = tasks::pause();
        let begin = Instant::now();
        let sleeping = tokio::spawn(tasks::sleep(5 * SECOND));
        tokio::task::yield_now().await;
        tasks::advance(5 * SECOND).await;
        sleeping.await.unwrap();
        assert_eq!(begin.elapsed(), 5 * SECOND);
    }
}

/// An adapter: it polls what cannot fail, and asks where it is.
#[test]
fn what_an_adapter_needs() {
    let ((timer, clock), (other, _)) = (timer(), timer());
    let mut sleep = timer.sleep(SECOND);
    assert!(sleep.is_on(&timer) && !sleep.is_on(&other));
    let task = crate::by_hand::Task::new();
    assert!(task.poll_fn(|context| sleep.poll_elapsed(context)).is_pending());
    clock.advance(SECOND).unwrap();
    assert!(task.poll_fn(|context| sleep.poll_elapsed(context)).is_ready());
    sleep.reset_after(SECOND);
    assert!(task.poll_fn(|context| sleep.poll_elapsed(context)).is_pending());
    timer.stop();
    assert!(task.poll_fn(|context| sleep.poll_elapsed(context)).is_pending(), "a stop is no end");
}

fn _futures_are_send(timer: &Timer, clock: &VirtualClock) -> impl Future + Send {
    let _ = clock;
    tasks::scope(timer, service())
}
