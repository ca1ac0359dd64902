//! tokio's `time_sleep`, `time_interval`, `time_timeout`, `time_pause`, `time_rt` and `time_panic`.

use std::future::{Future, pending, ready};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tourbillon::tasks::{self, Elapsed, Instant};
use tourbillon::{Missed, Timer, VirtualClock};

use crate::common::{HOUR, MS, SECOND};

/// Runs a future of free functions on a clock that jumps; returns its output and the time it took.
fn paused<F: Future>(future: impl FnOnce() -> F) -> (F::Output, Duration) {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).build().unwrap();
    let future = tasks::with_timer(&timer, future);
    let output = tasks::block_on(&clock, tasks::scope(&timer, future)).unwrap();
    (output, clock.elapsed())
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn sleeps_end_at_their_moment_however_long() {
    for ms in [0, 1, 2, 3, 63, 64, 65, 4095, 4096, 1 << 18, (1 << 36) - 1, 1 << 36, 1 << 40] {
        let after = Duration::from_millis(ms);
        let (slept, took) = paused(|| async move {
            let begin = Instant::now();
            tasks::sleep(after).await;
            begin.elapsed()
        });
        assert_eq!((slept, took), (after, after));
    }
}

#[test]
fn a_part_of_a_tick_is_a_whole_tick() {
    let (_, took) = paused(|| async {
        tasks::sleep(Duration::from_micros(100)).await;
    });
    assert_eq!(took, MS, "never early");
}

#[test]
fn many_sleeps_of_one_moment_end_together() {
    let (_, took) = paused(|| async {
        let mut all: Vec<_> = (0..100).map(|_| tasks::sleep(5 * SECOND)).collect();
        for sleep in &mut all {
            sleep.await;
        }
    });
    assert_eq!(took, 5 * SECOND);
}

#[test]
fn a_sleep_is_moved_before_and_after_it_ends() {
    let (_, took) = paused(|| async {
        let (begin, mut sleep) = (Instant::now(), tasks::sleep(SECOND));
        assert!(poll(&mut sleep).is_pending() && !sleep.is_elapsed());
        sleep.reset(begin + 2 * SECOND);
        (&mut sleep).await;
        assert_eq!((begin.elapsed(), sleep.is_elapsed()), (2 * SECOND, true));
        sleep.reset(begin);
        assert!(poll(&mut sleep).is_ready(), "the past is ready at once");
        sleep.reset(Instant::now() + SECOND);
        assert!(!sleep.is_elapsed() && poll(&mut sleep).is_pending());
        sleep.await;
    });
    assert_eq!(took, 3 * SECOND);
}

/// A sleep without end, moved to now.
#[test]
fn the_longest_sleep_can_be_called_back() {
    let (_, took) = paused(|| async {
        let mut sleep = tasks::sleep(Duration::MAX);
        assert!(poll(&mut sleep).is_pending());
        tasks::sleep(SECOND).await;
        sleep.reset(Instant::now());
        sleep.await;
    });
    assert_eq!(took, SECOND);
}

#[test]
fn a_sleep_is_dropped_by_the_wake_of_another() {
    let (_, took) = paused(|| async {
        let mut others: Vec<_> = (1..4).map(|n| tasks::sleep(SECOND * n)).collect();
        others.iter_mut().for_each(|other| assert!(poll(other).is_pending()));
        tasks::sleep(SECOND).await;
        others.clear();
        tasks::sleep(SECOND).await;
    });
    assert_eq!(took, 2 * SECOND);
}

#[test]
fn an_interval_bursts_skips_or_delays() {
    let ticks = |missed| {
        paused(|| async move {
            let begin = Instant::now();
            let mut interval = tasks::interval(100 * MS).missed(missed);
            let mut taken = Vec::new();
            for pause in [0, 250, 0, 0, 0, 0] {
                tasks::sleep(MS * pause).await;
                interval.tick().await;
                taken.push(begin.elapsed().as_millis());
            }
            taken
        })
        .0
    };
    assert_eq!(ticks(Missed::Burst), [0, 250, 250, 300, 400, 500]);
    assert_eq!(ticks(Missed::Skip), [0, 250, 300, 400, 500, 600]);
    assert_eq!(ticks(Missed::Delay), [0, 250, 350, 450, 550, 650]);
}

#[test]
fn an_interval_is_reset_in_each_way() {
    let (moments, _) = paused(|| async {
        let begin = Instant::now();
        let mut interval = tasks::interval(SECOND);
        let mut moments = Vec::new();
        for way in 0..5 {
            interval.tick().await;
            moments.push(begin.elapsed().as_millis());
            tasks::sleep(400 * MS).await;
            match way {
                0 => interval.reset(),
                1 => interval.reset_immediately(),
                2 => interval.reset_after(300 * MS),
                _ => interval.reset_at(Instant::now() + 3 * SECOND),
            }
        }
        moments
    });
    assert_eq!(moments, [0, 1400, 1800, 2500, 5900]);
}

#[test]
fn the_longest_period_ticks_once() {
    paused(|| async {
        let mut interval = tasks::interval(Duration::MAX);
        interval.tick().await;
        let second = std::pin::pin!(interval.tick());
        assert_eq!(tasks::timeout(HOUR, second).await, Err(Elapsed));
    });
}

#[test]
fn a_limit_and_a_future_in_every_order() {
    let (_, took) = paused(|| async {
        assert_eq!(
            tasks::timeout(Duration::ZERO, ready(1)).await,
            Ok(1),
            "the future is asked first"
        );
        assert_eq!(tasks::timeout(Duration::ZERO, pending::<()>()).await, Err(Elapsed));
        assert_eq!(tasks::timeout_at(Instant::now(), pending::<()>()).await, Err(Elapsed));
        assert_eq!(tasks::timeout(Duration::MAX, tasks::sleep(SECOND)).await, Ok(()));
        assert_eq!(
            tasks::timeout(SECOND, tasks::sleep(SECOND)).await,
            Ok(()),
            "both at once: the future"
        );
        assert_eq!(tasks::timeout(SECOND, tasks::sleep(2 * SECOND)).await, Err(Elapsed));
        let past = tasks::timeout_at(Instant::now() - SECOND, ready(2));
        assert_eq!(past.await, Ok(2));
    });
    assert_eq!(took, 3 * SECOND);
}

/// Even with a future that is always ready, an expired limit is seen at the next poll.
#[test]
fn a_limit_is_seen_by_a_future_that_is_always_awake() {
    let (seen, _) = paused(|| async {
        let busy = std::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        let limit = tasks::timeout(SECOND, busy);
        let advancing = async {
            tasks::advance(2 * SECOND).await;
            pending::<Result<(), Elapsed>>().await
        };
        futures_lite::future::or(limit, advancing).await
    });
    assert_eq!(seen, Err(Elapsed));
}

#[test]
fn time_stands_still_between_two_readings_and_moves_by_hand() {
    paused(|| async {
        let begin = Instant::now();
        assert_eq!(begin, Instant::now());
        let mut sleep = tasks::sleep(3 * MS);
        tasks::advance(MS).await;
        tasks::advance(Duration::from_micros(1_999)).await;
        assert!(poll(&mut sleep).is_pending());
        tasks::advance(Duration::from_micros(1)).await;
        assert_eq!((poll(&mut sleep), begin.elapsed()), (Poll::Ready(()), 3 * MS));
    });
}

/// In real time, milliseconds: without a runtime or a scope, the default engine is used.
#[test]
fn outside_of_any_runtime_there_is_the_default_engine() {
    let begin = std::time::Instant::now();
    let sleeping = std::thread::spawn(|| futures_lite::future::block_on(tasks::sleep(2 * MS)));
    futures_lite::future::block_on(tasks::sleep(2 * MS));
    sleeping.join().unwrap();
    assert!(begin.elapsed() >= 2 * MS);
}
