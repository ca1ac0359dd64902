//! Intervals as streams, limits as methods, one error for two, and keys that the queue generates.

use std::future::{pending, ready};
use std::io;
use std::task::Poll;
use std::time::Duration;

use futures_lite::StreamExt;
use tourbillon::Missed;
use tourbillon::tasks::{self, DelayQueue, Elapsed, Instant, SleepError, TimeoutExt};

use crate::by_hand::{Task, timer};
use crate::common::{HOUR, SECOND};

#[test]
fn an_interval_is_a_stream_that_ends_with_its_timer() {
    let (timer, clock) = timer();
    let mut ticks = timer.interval(SECOND);
    let (task, begin) = (Task::new(), clock.now());
    let mut next = || task.poll(&mut ticks.next());
    assert_eq!(next(), Poll::Ready(Some(Ok(begin))));
    assert!(next().is_pending());
    clock.advance(SECOND).unwrap();
    assert_eq!(next(), Poll::Ready(Some(Ok(begin + SECOND))));
    timer.stop();
    assert_eq!(next(), Poll::Ready(Some(Err(SleepError::Stopped))));
    assert_eq!(next(), Poll::Ready(None));
}

#[test]
fn what_becomes_of_missed_ticks_can_be_changed() {
    let (timer, clock) = timer();
    let mut ticks = timer.interval(SECOND).missed(Missed::Skip);
    assert_eq!(ticks.missed_behavior(), Missed::Skip);
    ticks.set_missed(Missed::Burst);
    let task = Task::new();
    clock.advance(3 * SECOND).unwrap();
    let count = (0..10).take_while(|_| task.poll(&mut ticks.next()).is_ready()).count();
    assert_eq!(count, 4, "none was left out");
}

#[test]
fn an_interval_begins_anew_at_once() {
    let (timer, clock) = timer();
    let mut ticks = timer.interval(10 * SECOND);
    let task = Task::new();
    assert!(task.poll(&mut ticks.next()).is_ready());
    clock.advance(3 * SECOND).unwrap();
    ticks.reset_immediately();
    assert_eq!(task.poll(&mut ticks.next()), Poll::Ready(Some(Ok(clock.now()))));
    assert!(task.poll(&mut ticks.next()).is_pending());
    clock.advance(10 * SECOND).unwrap();
    assert!(task.poll(&mut ticks.next()).is_ready());
}

#[test]
fn limits_are_methods_and_one_error() {
    let (timer, clock) = timer();
    let io = || pending::<io::Result<()>>();
    tasks::block_on(
        &clock,
        tasks::scope(&timer, async {
            assert_eq!(ready(7).timeout(SECOND).await, Ok(7));
            assert_eq!(pending::<()>().timeout_at(Instant::now() + SECOND).await, Err(Elapsed));
            assert_eq!(io().try_timeout(SECOND).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
            let own =
                ready(Err::<(), _>(io::Error::from(io::ErrorKind::NotFound))).try_timeout(SECOND);
            assert_eq!(own.await.unwrap_err().kind(), io::ErrorKind::NotFound);
        }),
    )
    .unwrap();
    assert_eq!(clock.elapsed(), 2 * SECOND);
    let limited = timer.try_timeout(SECOND, io());
    timer.stop();
    let stopped = tasks::block_on(&clock, limited).unwrap().unwrap_err();
    assert_eq!(stopped.kind(), io::ErrorKind::Other, "{stopped}");
    let mut limited = tasks::timeout(SECOND, ready(1));
    *limited.get_mut() = ready(2);
    assert_eq!(limited.into_inner().into_inner(), 2);
}

#[test]
fn an_instant_is_compared_and_subtracted_with_that_of_the_standard_library() {
    let moment = std::time::Instant::now();
    let mut instant = Instant::from(moment);
    instant += SECOND;
    assert!(instant > moment);
    assert!(moment < instant);
    assert_ne!(instant, moment);
    assert_eq!((instant - moment, moment - instant), (SECOND, Duration::ZERO));
    instant -= SECOND;
    assert_eq!(instant, moment);
    assert_eq!(moment, instant);
    assert_eq!(instant.into_std(), moment);
    assert_eq!(instant.checked_duration_since(moment + SECOND), None);
    assert_eq!(instant.checked_add(SECOND).unwrap().saturating_duration_since(moment), SECOND);
    assert_eq!(instant.checked_sub(SECOND).unwrap() + SECOND, instant);
}

#[test]
fn a_queue_makes_keys() {
    let (timer, clock) = timer();
    let mut queue = timer.delay_queue();
    let keys: Vec<_> =
        (0..3_u64).map(|n| queue.push(n, SECOND * (3 - n as u32)).unwrap()).collect();
    let at = queue.push_at(9, clock.now() + HOUR).unwrap();
    assert!(queue.contains_key(&at) && queue.len() == 4);
    assert_eq!(queue.peek(), Some((&keys[2], &2)), "a look needs no exclusive access");
    assert_eq!((queue.remove(&at), queue.contains_key(&at)), (Some(9), false));
    assert!(queue.reset(&keys[0], Duration::ZERO));
    let mut seen = Vec::new();
    tasks::block_on(&clock, async {
        while let Some(item) = queue.next().await {
            seen.push(item.unwrap().key);
        }
    })
    .unwrap();
    assert_eq!(seen, [keys[0], keys[2], keys[1]]);
    let again = queue.push(0, SECOND).unwrap();
    assert!(!keys.contains(&again) && again != at, "no key comes twice");
}

#[test]
fn a_queue_has_room_for_what_was_reserved() {
    let mut queue: DelayQueue<u32, u32> = DelayQueue::with_capacity(500);
    assert!(queue.capacity() >= 500);
    queue.reserve(2000);
    let room = queue.capacity();
    assert!(room >= 2000);
    for n in 0..2000 {
        queue.insert(n, n, HOUR).unwrap();
    }
    assert_eq!(queue.capacity(), room, "nothing was allocated meanwhile");
    queue.clear();
    queue.shrink_to_fit();
    assert!(queue.capacity() < 500);
}
