//! The free functions under a given timer: scopes, the replacement for the process, and tokio's tests.

use std::future::{Future, IntoFuture, pending};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use futures_lite::future::block_on;
use tourbillon::tasks::{self, Instant, Interval, TimeoutExt};
use tourbillon::{Timer, VirtualClock};

use crate::by_hand::timer;
use crate::common::{HOUR, SECOND, panic_quietly};

/// Code that takes no timer argument.
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
    // A future stays on the engine on which it was created, wherever it is polled.
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

    /// Two tasks that wait for each other's ticks: both runtimes must behave the same.
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

    /// Each guard ends its own pause, in any order of drops.
    #[tokio::test]
    async fn the_order_of_the_guards_does_not_matter() {
        for first in [0, 1, 2] {
            let mut guards: Vec<_> = (0..3).map(|_| tasks::pause()).collect();
            drop(guards.remove(first));
            let innermost = guards.last().unwrap().clock().clone();
            tasks::sleep(HOUR).await;
            assert_eq!(innermost.elapsed(), HOUR, "without {first}");
            drop(guards.remove(0));
            tasks::sleep(HOUR).await;
            assert_eq!(innermost.elapsed(), 2 * HOUR, "without {first} and the outermost");
        }
        // A pause outlives the scope in which it began, and is independent of that scope.
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).build().unwrap();
        let paused = tasks::with_timer(&timer, tasks::pause);
        tasks::sleep(HOUR).await;
        assert_eq!((paused.clock().elapsed(), clock.elapsed()), (HOUR, Duration::ZERO));
        drop(paused);
        clock.advance(HOUR * 24 * 365).unwrap();
        assert!(Instant::now() < timer.now(), "the system's again");
    }

    /// Once its guard is dropped, a clock stands still, whatever waits on it; a new pause has a clock of its own.
    #[tokio::test]
    async fn time_stands_still_without_its_guard() {
        let mut before = Vec::new();
        for round in 0..3 {
            let paused = tasks::pause();
            let (clock, timer) = (paused.clock().clone(), paused.timer().clone());
            tasks::sleep(HOUR).await;
            assert_eq!(clock.elapsed(), HOUR);
            timer.arm(HOUR, |_| ()).unwrap();
            if round == 1 {
                // A task that is woken by the end of the pause does not move the clock either.
                drop(tokio::spawn(tasks::sleep(HOUR / 2)));
            }
            drop(paused);
            before.push((clock, timer));
            // tokio's clock jumps, as it does when all tasks wait.
            tokio::time::sleep(SECOND / 10).await;
            assert!(before.iter().all(|(clock, _)| clock.elapsed() == HOUR), "round {round}");
        }
    }

    /// Several tasks, because the one that is woken first may not be polled first.
    #[tokio::test]
    async fn an_advance_returns_when_the_woken_tasks_have_run() {
        let _paused = tasks::pause();
        let sleeping: Vec<_> = (1..4).map(|n| tokio::spawn(tasks::sleep(SECOND * n))).collect();
        tokio::task::yield_now().await;
        for passed in 0..=4 {
            let over = sleeping.iter().filter(|task| task.is_finished()).count();
            assert_eq!(over, passed.min(3));
            tasks::advance(SECOND).await;
        }
    }

    /// An advance by hand in a test that otherwise auto-advances.
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

/// A future, measured by how long it takes.
type Waits = std::pin::Pin<Box<dyn Future<Output = ()>>>;

/// A free function, and the method of a timer that does the same.
type Pair = (&'static str, fn(Duration) -> Waits, fn(&Timer, Duration) -> Waits);

const PAIRS: &[Pair] = &[
    ("sleep", |after| waits(tasks::sleep(after)), |timer, after| waits(timer.sleep(after))),
    (
        "sleep_until",
        |after| waits(tasks::sleep_until(Instant::now() + after)),
        |timer, after| waits(timer.sleep_until(timer.now() + after)),
    ),
    (
        "timeout",
        |after| waits(tasks::timeout(after, pending::<()>())),
        |timer, after| waits(timer.timeout(after, pending::<()>())),
    ),
    (
        "timeout_at",
        |after| waits(tasks::timeout_at(Instant::now() + after, pending::<()>())),
        |timer, after| waits(timer.timeout_at(timer.now() + after, pending::<()>())),
    ),
    (
        "TimeoutExt::timeout",
        |after| waits(pending::<()>().timeout(after)),
        |timer, after| waits(timer.timeout(after, pending::<()>())),
    ),
    (
        "TimeoutExt::timeout_at",
        |after| waits(pending::<()>().timeout_at(Instant::now() + after)),
        |timer, after| waits(timer.timeout_at(timer.now() + after, pending::<()>())),
    ),
    (
        "TimeoutExt::try_timeout",
        |after| waits(pending::<io::Result<()>>().try_timeout(after)),
        |timer, after| waits(timer.try_timeout(after, pending::<io::Result<()>>())),
    ),
    (
        "interval",
        |after| ticks(tasks::interval(after)),
        |timer, after| ticks(timer.interval(after)),
    ),
    (
        "interval_at",
        |after| ticks(tasks::interval_at(Instant::now() + after, after)),
        |timer, after| ticks(timer.interval_at(timer.now() + after, after)),
    ),
    (
        "DelayQueue",
        |after| expires(tasks::DelayQueue::new(), after),
        |timer, after| expires(timer.delay_queue(), after),
    ),
];

fn waits(future: impl IntoFuture<IntoFuture: 'static>) -> Waits {
    let future = future.into_future();
    Box::pin(async move { _ = future.await })
}

fn ticks<H: tasks::Home>(mut interval: Interval<H>) -> Waits {
    Box::pin(async move {
        for _ in 0..5 {
            interval.tick().await;
        }
    })
}

fn expires<H: tasks::Home>(mut queue: tasks::DelayQueue<u32, u32, H>, after: Duration) -> Waits {
    queue.insert(1, 1, after).unwrap();
    Box::pin(async move { _ = queue.next().await })
}

/// With any tick of the timer, including that of the default engine, and also far from the time of the system's clock.
#[test]
fn a_free_function_in_a_scope_does_what_the_method_does() {
    let nanosecond = Duration::from_nanos(1);
    for tick in [nanosecond, Duration::from_millis(7), SECOND * 3] {
        for passed in [Duration::ZERO, HOUR * 24] {
            for after in [Duration::ZERO, nanosecond, SECOND, HOUR + nanosecond] {
                for (name, free, method) in PAIRS {
                    let took = |make: &dyn Fn(&Timer) -> Waits| {
                        let clock = VirtualClock::new();
                        let timer = Timer::builder().tick(tick).clock(&clock).build().unwrap();
                        clock.advance(passed).unwrap();
                        tasks::block_on(&clock, make(&timer)).unwrap();
                        clock.elapsed() - passed
                    };
                    let free = took(&|timer| tasks::with_timer(timer, || free(after)));
                    let method = took(&|timer| method(timer, after));
                    assert_eq!(free, method, "{name}, {after:?}, a tick of {tick:?}, {passed:?}");
                }
            }
        }
    }
}

/// The clock has moved when the future is first polled; its second poll comes after all tasks that the move woke.
#[test]
fn an_advance_lets_the_others_run_before_it_returns() {
    for by in [Duration::ZERO, Duration::from_nanos(1), HOUR] {
        let ((timer, clock), task) = (timer(), crate::by_hand::Task::new());
        let mut advance = Box::pin(tasks::scope(&timer, tasks::advance(by)));
        assert!(task.poll(&mut advance).is_pending());
        assert_eq!((clock.elapsed(), task.wakes()), (by, 1));
        assert!(task.poll(&mut advance).is_ready());
        assert_eq!((clock.elapsed(), task.wakes()), (by, 0), "once");
    }
}

/// What an adapter uses: polls that cannot fail, and whether the sleep is on a given timer.
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
