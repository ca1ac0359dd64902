//! The verbs that make and move futures: the rows of `durations.rs` that are polled.

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tourbillon::tasks::{DelayQueue, Elapsed, Given, QueueKey, SleepError};
use tourbillon::{Purgatory, WaitError};

use crate::bench::{Armed, Bench, Row, Span, row};
use crate::callbacks::armed;
use crate::common::{HOUR, SECOND};

pub(crate) const ROWS: &[Row] = &[
    row("Timer::sleep", |bench, span| future(bench, bench.timer.sleep(span.after))).at_once(),
    row("Timer::sleep_until", |bench, span| future(bench, bench.timer.sleep_until(span.at)))
        .at_once(),
    row("Sleep::reset_after", |bench, span| {
        let mut sleep = bench.timer.sleep(elsewhere(span));
        assert!(poll(&mut sleep).is_pending());
        sleep.reset_after(span.after);
        future(bench, sleep)
    })
    .at_once(),
    row("Sleep::reset", |bench, span| {
        let mut sleep = bench.timer.sleep(elsewhere(span));
        sleep.reset(span.at);
        future(bench, sleep)
    })
    .at_once(),
    row("Timer::timeout", |bench, span| limited(bench, bench.timer.timeout(span.after, pending())))
        .at_once(),
    row("Timer::timeout_at", |bench, span| {
        limited(bench, bench.timer.timeout_at(span.at, pending()))
    })
    .at_once(),
    row("Timer::try_timeout", |bench, span| {
        let never = pending::<Result<(), Ended>>();
        let limit = bench.timer.try_timeout(span.after, never);
        future(bench, async {
            match limit.await {
                Err(Ended::Elapsed) => Ok(()),
                Err(Ended::Sleep(wrong)) => Err(wrong),
                Ok(()) => unreachable!("it never ends"),
            }
        })
    })
    .at_once(),
    row("Timeout::reset_after", |bench, span| {
        let mut limit = Box::pin(bench.timer.timeout(elsewhere(span), pending()));
        assert!(poll(&mut limit).is_pending());
        limit.as_mut().reset_after(span.after);
        limited(bench, limit)
    })
    .at_once(),
    row("Timeout::reset", |bench, span| {
        let mut limit = Box::pin(bench.timer.timeout(elsewhere(span), pending()));
        assert!(poll(&mut limit).is_pending());
        limit.as_mut().reset(span.at);
        limited(bench, limit)
    })
    .at_once(),
    row("Timer::interval", |bench, span| {
        let mut interval = bench.timer.interval(span.after);
        assert!(poll_once(|context| interval.poll_tick(context)).is_ready(), "at once");
        future(bench, async move { interval.tick().await })
    })
    .in_two_ticks(),
    row("Timer::interval_at first", |bench, span| {
        let mut interval = bench.timer.interval_at(span.at, HOUR);
        future(bench, async move { interval.tick().await })
    })
    .at_once(),
    row("Timer::interval_at period", |bench, span| {
        let mut interval = bench.timer.interval_at(bench.timer.now(), span.after);
        assert!(poll_once(|context| interval.poll_tick(context)).is_ready(), "at once");
        future(bench, async move { interval.tick().await })
    })
    .in_two_ticks(),
    row("Interval::reset_after", |bench, span| {
        let mut interval = bench.timer.interval(HOUR);
        assert!(poll_once(|context| interval.poll_tick(context)).is_ready(), "at once");
        assert!(poll_once(|context| interval.poll_tick(context)).is_pending());
        interval.reset_after(span.after);
        future(bench, async move { interval.tick().await })
    })
    .at_once(),
    row("Interval::reset_at", |bench, span| {
        let mut interval = bench.timer.interval(HOUR);
        interval.reset_at(span.at);
        future(bench, async move { interval.tick().await })
    })
    .at_once(),
    row("DelayQueue::insert", |bench, span| {
        expiring(bench, |queue| _ = queue.insert("key", 7, span.after).unwrap())
    })
    .on_a_tick(),
    row("DelayQueue::push", |bench, span| {
        pushed(bench, |queue| _ = queue.push(7, span.after).unwrap())
    })
    .on_a_tick(),
    row("DelayQueue::push_at", |bench, span| {
        pushed(bench, |queue| _ = queue.push_at(7, span.at).unwrap())
    })
    .on_a_tick(),
    row("DelayQueue::insert_at", |bench, span| {
        expiring(bench, |queue| _ = queue.insert_at("key", 7, span.at).unwrap())
    })
    .on_a_tick(),
    row("DelayQueue::reset", |bench, span| {
        expiring(bench, |queue| {
            queue.insert("key", 7, elsewhere(span)).unwrap();
            assert!(poll_once(|context| queue.poll_expired(context)).is_pending());
            assert!(queue.reset("key", span.after));
        })
    })
    .on_a_tick(),
    row("DelayQueue::reset_at", |bench, span| {
        expiring(bench, |queue| {
            queue.insert("key", 7, elsewhere(span)).unwrap();
            assert!(poll_once(|context| queue.poll_expired(context)).is_pending());
            assert!(queue.reset_at("key", span.at));
        })
    })
    .on_a_tick(),
    row("Purgatory::wait", |bench, span| {
        let purgatory: Purgatory<u32> = Purgatory::new(&bench.timer);
        let wait = purgatory.wait([1, 2], span.after, || None::<()>);
        let expires = async move {
            let outcome = wait.await;
            assert_eq!(purgatory.delayed(), 0);
            match outcome {
                Err(WaitError::Expired) => Ok(()),
                Err(WaitError::Stopped) => Err(SleepError::Stopped),
                other => panic!("{other:?}"),
            }
        };
        future(bench, expires)
    }),
];

fn elsewhere(span: &Span) -> Duration {
    if span.far { SECOND } else { Duration::MAX }
}

pub(crate) fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn poll_once<R>(poll: impl FnOnce(&mut Context<'_>) -> R) -> R {
    poll(&mut Context::from_waker(Waker::noop()))
}

/// Fires when the future is ready. A cancel drops it; after a stop it is ready with an error.
fn future<T, F>(bench: &Bench, future: F) -> Armed
where
    F: Future<Output = Result<T, SleepError>> + Send + 'static,
{
    let future = std::sync::Arc::new(std::sync::Mutex::new(Some(Box::pin(future))));
    let (other, third, timer) = (future.clone(), future.clone(), bench.timer.clone());
    let fired = move || {
        let mut place = future.lock().unwrap();
        let ready = place.as_mut().is_some_and(|future| match poll(future) {
            Poll::Ready(outcome) => outcome.map(drop) == Ok(()),
            Poll::Pending => false,
        });
        if ready {
            *place = None;
        }
        ready
    };
    let cancel = move || {
        let before = timer.len();
        drop(other.lock().unwrap().take());
        before - timer.len() == 1
    };
    let mut armed = armed(bench, fired, cancel);
    let mut stop = armed.stop;
    armed.stop = Box::new(move || {
        let empty = stop();
        let ready = third.lock().unwrap().take().map(|mut future| poll(&mut future));
        empty && matches!(ready, None | Some(Poll::Ready(Err(SleepError::Stopped))))
    });
    armed
}

/// A limit on a future that is never ready.
fn limited<F, E>(bench: &Bench, limit: F) -> Armed
where
    F: Future<Output = Result<Result<(), E>, SleepError>> + Send + 'static,
    E: Send + 'static,
{
    future(bench, async { limit.await.map(|output| assert!(output.is_err())) })
}

/// The end of a limit, or of its timer.
#[derive(Debug)]
enum Ended {
    Elapsed,
    Sleep(SleepError),
}

impl From<Elapsed> for Ended {
    fn from(_: Elapsed) -> Self {
        Ended::Elapsed
    }
}

impl From<SleepError> for Ended {
    fn from(wrong: SleepError) -> Self {
        Ended::Sleep(wrong)
    }
}

/// A queue that generates its keys.
fn pushed(bench: &Bench, fill: impl FnOnce(&mut DelayQueue<QueueKey, u32, Given>)) -> Armed {
    let mut queue = bench.timer.delay_queue();
    fill(&mut queue);
    assert_eq!(queue.len(), 1);
    let next = poll_fn(move |context| queue.poll_expired(context));
    future(bench, async {
        next.await.expect("it is not empty").map(|item| assert_eq!(item.value, 7))
    })
}

fn expiring(bench: &Bench, fill: impl FnOnce(&mut DelayQueue<&'static str, u32, Given>)) -> Armed {
    let mut queue = bench.timer.delay_queue();
    fill(&mut queue);
    assert!(queue.deadline("key").is_some());
    let next = poll_fn(move |context| queue.poll_expired(context));
    future(bench, async {
        next.await.expect("it is not empty").map(|item| assert_eq!(item.value, 7))
    })
}
