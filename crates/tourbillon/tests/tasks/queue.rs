//! `DelayQueue`: which items expire when, which task is woken, and lookups of unknown keys.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use futures_lite::StreamExt as _;
use tourbillon::tasks::{self, DelayQueue, Given, SleepError};

use crate::by_hand::{Task, timer};
use crate::common::{Drops, HOUR, MS, SECOND, YEAR};

/// 2^36 ms, the limit of some other wheels.
const TWO_YEARS: Duration = Duration::from_millis(1 << 36);

type Queue<V> = DelayQueue<u32, V, Given>;

/// The result of polling by hand: the key that has expired.
fn poll<V>(task: &Task, queue: &mut Queue<V>) -> Poll<Option<u32>> {
    let polled = task.poll_fn(|context| queue.poll_expired(context));
    polled.map(|item| item.map(|item| item.unwrap().key))
}

/// With a backlog it yields 128 items, and then lets other tasks run: it is pending once, with its task woken.
#[test]
fn a_backlog_lets_others_run() {
    let (timer, clock) = timer();
    let mut queue = timer.delay_queue();
    (0..400).for_each(|key| _ = queue.insert(key, (), SECOND).unwrap());
    clock.advance(SECOND).unwrap();
    let task = Task::new();
    for _ in 0..3 {
        assert!((0..128).all(|_| poll(&task, &mut queue).is_ready()));
        assert_eq!(task.wakes(), 0);
        assert!(poll(&task, &mut queue).is_pending());
        assert_eq!((task.wakes(), queue.is_empty()), (1, false));
    }
}

#[test]
fn items_expire_in_the_order_of_their_deadlines_and_never_early() {
    let (timer, clock) = timer();
    let mut queue = timer.delay_queue();
    for (key, seconds) in [(3, 30), (1, 10), (2, 20), (4, 40)] {
        assert_eq!(queue.insert(key, key * 100, SECOND * seconds).unwrap(), None);
    }
    assert_eq!((queue.len(), queue.peek()), (4, Some((&1, &100))));
    let mut seen = Vec::new();
    tasks::block_on(&clock, async {
        while let Some(item) = queue.next().await {
            let item = item.unwrap();
            assert!(clock.now() >= item.deadline);
            seen.push((item.key, item.value, clock.elapsed().as_secs()));
        }
    })
    .unwrap();
    assert_eq!(seen, [(1, 100, 10), (2, 200, 20), (3, 300, 30), (4, 400, 40)]);
    assert!(queue.is_empty());
}

#[test]
fn many_items_are_one_timer_of_the_engine() {
    let (timer, clock) = timer();
    let (task, mut queue) = (Task::new(), timer.delay_queue());
    for key in 0..100 {
        queue.insert(key, (), SECOND + MS * key).unwrap();
    }
    assert_eq!(timer.len(), 0, "nobody waits yet");
    assert!(poll(&task, &mut queue).is_pending());
    assert_eq!(timer.len(), 1);
    clock.advance(HOUR).unwrap();
    for key in 0..100 {
        assert_eq!(poll(&task, &mut queue), Poll::Ready(Some(key)));
    }
    assert_eq!((task.wakes(), poll(&task, &mut queue)), (1, Poll::Ready(None)));
}

/// As in real time, without an advance of the clock first.
#[test]
fn an_item_that_is_put_or_moved_to_the_past_wakes_the_task_at_once() {
    let (timer, clock) = timer();
    let moves: [fn(&mut Queue<()>); 2] = [
        |queue| _ = queue.insert(2, (), Duration::ZERO).unwrap(),
        |queue| {
            assert!(queue.reset(&1, Duration::ZERO));
        },
    ];
    for (nth, to) in moves.into_iter().enumerate() {
        let (task, mut queue) = (Task::new(), timer.delay_queue());
        queue.insert(1, (), HOUR).unwrap();
        assert!(poll(&task, &mut queue).is_pending());
        to(&mut queue);
        assert_eq!(task.wakes(), 1, "{nth}");
        assert!(poll(&task, &mut queue).is_ready(), "{nth}");
    }
    assert_eq!(clock.elapsed(), Duration::ZERO);
}

#[test]
fn an_item_that_is_earlier_than_the_sleep_wakes_the_task_in_time() {
    let (timer, clock) = timer();
    let (task, mut queue) = (Task::new(), timer.delay_queue());
    queue.insert(1, (), HOUR).unwrap();
    assert!(poll(&task, &mut queue).is_pending());
    queue.insert(2, (), SECOND).unwrap();
    clock.advance(SECOND).unwrap();
    assert_eq!((task.wakes(), poll(&task, &mut queue)), (1, Poll::Ready(Some(2))));
    assert!(poll(&task, &mut queue).is_pending());
    assert!(queue.reset(&1, MS));
    clock.advance(MS).unwrap();
    assert_eq!((task.wakes(), poll(&task, &mut queue)), (1, Poll::Ready(Some(1))));
}

#[test]
fn removing_the_last_item_wakes_the_task_to_see_the_end() {
    let (timer, _clock) = timer();
    let (task, mut queue) = (Task::new(), timer.delay_queue());
    queue.insert(1, "a", HOUR).unwrap();
    queue.insert(2, "b", HOUR).unwrap();
    assert!(poll(&task, &mut queue).is_pending());
    assert_eq!(queue.remove(&1), Some("a"));
    assert_eq!(task.wakes(), 0, "there is another");
    assert_eq!(queue.remove(&2), Some("b"));
    assert_eq!((task.wakes(), poll(&task, &mut queue)), (1, Poll::Ready(None)));
    // It continues, and clearing it has the same effect.
    queue.insert(3, "c", HOUR).unwrap();
    assert!(poll(&task, &mut queue).is_pending());
    queue.clear();
    assert_eq!((task.wakes(), poll(&task, &mut queue)), (1, Poll::Ready(None)));
}

#[test]
fn the_earliest_may_go_and_the_next_comes_in_time() {
    let (timer, clock) = timer();
    let (task, mut queue) = (Task::new(), timer.delay_queue());
    for key in 1..=3 {
        queue.insert(key, (), SECOND * key).unwrap();
    }
    assert!(poll(&task, &mut queue).is_pending());
    assert_eq!(queue.remove(&1), Some(()));
    assert!(queue.reset(&2, 10 * SECOND));
    clock.advance(3 * SECOND - MS).unwrap();
    assert!(task.wakes() <= 1, "once for nothing, at most");
    assert!(poll(&task, &mut queue).is_pending());
    clock.advance(MS).unwrap();
    assert_eq!((task.wakes(), poll(&task, &mut queue)), (1, Poll::Ready(Some(3))));
    assert!(poll(&task, &mut queue).is_pending());
    clock.advance(7 * SECOND).unwrap();
    assert_eq!((task.wakes(), poll(&task, &mut queue)), (1, Poll::Ready(Some(2))));
}

#[test]
fn a_reset_before_at_and_after_the_deadline() {
    let (timer, clock) = timer();
    let (task, mut queue) = (Task::new(), timer.delay_queue());
    queue.insert(1, (), SECOND).unwrap();
    assert!(poll(&task, &mut queue).is_pending());
    assert!(queue.reset(&1, 2 * SECOND), "before");
    clock.advance(2 * SECOND).unwrap();
    assert!(queue.reset(&1, SECOND), "at, and not taken yet");
    assert!(poll(&task, &mut queue).is_pending());
    clock.advance(HOUR).unwrap();
    assert!(queue.reset(&1, SECOND), "after, and not taken yet");
    assert!(poll(&task, &mut queue).is_pending());
    let past = clock.now() - clock.elapsed();
    assert!(queue.reset_at(&1, past), "into the past");
    assert_eq!(queue.deadline(&1), Some(past));
    assert_eq!(poll(&task, &mut queue), Poll::Ready(Some(1)));
    assert!(!queue.reset(&1, SECOND), "it is gone");
    assert_eq!(poll(&task, &mut queue), Poll::Ready(None));
}

#[test]
fn a_key_that_is_not_there_is_no_trouble() {
    let (timer, clock) = timer();
    let (task, mut queue) = (Task::new(), timer.delay_queue());
    assert_eq!((queue.remove(&1), queue.reset(&1, SECOND), queue.get(&1)), (None, false, None));
    assert_eq!((queue.deadline(&1), queue.peek()), (None, None));
    queue.insert(1, "old", SECOND).unwrap();
    assert_eq!(queue.insert(1, "new", 10 * SECOND).unwrap(), Some("old"), "it replaces");
    clock.advance(SECOND).unwrap();
    assert!(poll(&task, &mut queue).is_pending(), "the old deadline means nothing");
    clock.advance(9 * SECOND).unwrap();
    assert_eq!(poll(&task, &mut queue), Poll::Ready(Some(1)));
    // The key of an expired item does not reach that item, nor the one that reuses its place.
    assert_eq!(queue.remove(&1), None);
    queue.insert(2, "two", SECOND).unwrap();
    assert_eq!((queue.remove(&1), queue.get(&2)), (None, Some(&"two")));
}

#[test]
fn any_delay() {
    let (timer, clock) = timer();
    let (task, mut queue) = (Task::new(), timer.delay_queue());
    let delays = [Duration::MAX, TWO_YEARS, TWO_YEARS + MS, 2 * TWO_YEARS + MS, 100 * YEAR, SECOND];
    for (key, after) in (0..).zip(delays) {
        queue.insert(key, after, after).unwrap();
    }
    assert!(poll(&task, &mut queue).is_pending());
    for key in [5, 1, 2, 3, 4] {
        let after = *queue.get(&key).unwrap();
        clock.advance(after - clock.elapsed() - MS).unwrap();
        assert!(poll(&task, &mut queue).is_pending(), "{after:?}");
        clock.advance(MS).unwrap();
        assert_eq!(poll(&task, &mut queue), Poll::Ready(Some(key)));
        assert!(poll(&task, &mut queue).is_pending());
    }
    assert_eq!(queue.peek().map(|(key, _)| *key), Some(0));
    assert!(queue.reset(&0, Duration::ZERO));
    assert_eq!(poll(&task, &mut queue), Poll::Ready(Some(0)));
}

#[test]
fn a_stopped_engine_is_an_error_once_and_the_end() {
    let (timer, _clock) = timer();
    let (task, mut queue) = (Task::new(), timer.delay_queue::<u32, &str>());
    queue.insert(1, "kept", HOUR).unwrap();
    assert!(poll(&task, &mut queue).is_pending());
    timer.stop();
    assert_eq!(task.wakes(), 1);
    let polled = task.poll_fn(|context| queue.poll_expired(context));
    assert!(matches!(polled, Poll::Ready(Some(Err(SleepError::Stopped)))));
    assert_eq!(poll(&task, &mut queue), Poll::Ready(None));
    assert_eq!(queue.remove(&1), Some("kept"));
}

#[test]
fn it_is_a_stream_and_dropping_the_wait_loses_nothing() {
    let (timer, clock) = timer();
    let mut queue = timer.delay_queue();
    for key in 0..5 {
        queue.insert(key, (), SECOND * key).unwrap();
    }
    let task = Task::new();
    clock.advance(MS).unwrap();
    for _ in 0..3 {
        let mut next = Box::pin(queue.next());
        let _ = task.poll(&mut next).map(|item| assert_eq!(item.unwrap().unwrap().key, 0));
    }
    let rest = tasks::block_on(&clock, queue.map(|item| item.unwrap().key).collect::<Vec<_>>());
    assert_eq!(rest, Ok(vec![1, 2, 3, 4]));
    // On the default engine, in real time.
    let mut queue = DelayQueue::new();
    queue.insert("a", 1, MS).unwrap();
    let next = futures_lite::future::block_on(poll_fn(|context| queue.poll_expired(context)));
    assert_eq!(next.map(|item| item.value), Some(1));
}

#[test]
fn values_are_dropped_once() {
    let (timer, clock) = timer();
    let drops = Drops::new();
    let (task, mut queue) = (Task::new(), timer.delay_queue());
    for key in 0..10 {
        queue.insert(key, drops.one(), SECOND).unwrap();
    }
    drop(queue.remove(&0));
    drop(queue.insert(1, drops.one(), SECOND).unwrap());
    assert_eq!(drops.count(), 2);
    clock.advance(SECOND).unwrap();
    let _ = poll(&task, &mut queue);
    assert_eq!(drops.count(), 3);
    queue.clear();
    assert_eq!(drops.count(), 11);
}

/// Random calls, compared with a sorted map.
#[test]
fn it_agrees_with_a_map() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (timer, clock) = timer();
        let (task, mut queue) = (Task::new(), timer.delay_queue());
        let mut map: BTreeMap<u32, Duration> = BTreeMap::new();
        for _ in 0..200 {
            let (key, after) = (random.u32(0..20), MS * (1 << random.u32(0..24)));
            let due = clock.elapsed() + after;
            match random.u32(0..6) {
                0 | 1 => {
                    let there = queue.insert(key, (), after).unwrap().is_some();
                    assert_eq!(there, map.insert(key, due).is_some());
                }
                2 => assert_eq!(queue.remove(&key).is_some(), map.remove(&key).is_some()),
                3 => {
                    assert_eq!(queue.reset(&key, after), map.contains_key(&key));
                    map.entry(key).and_modify(|old| *old = due);
                }
                4 => clock.advance(after).unwrap(),
                _ => {
                    let polled = poll(&task, &mut queue);
                    let first = map.iter().map(|(&key, &due)| (due, key)).min();
                    match polled {
                        Poll::Ready(Some(key)) => {
                            let due = map.remove(&key).unwrap();
                            assert!(due <= clock.elapsed(), "early");
                        }
                        Poll::Ready(None) => assert!(map.is_empty()),
                        Poll::Pending => assert!(first.unwrap().0 > clock.elapsed(), "late"),
                    }
                }
            }
            assert_eq!(queue.len(), map.len());
            let first = map.values().min();
            let peeked = queue.peek().map(|(key, ())| map[key]);
            // Overdue items come in the order in which the wheel reached them.
            if first.is_some_and(|first| *first > clock.elapsed()) {
                assert_eq!(peeked.as_ref(), first, "seed {seed}");
            }
        }
    }
}

#[test]
fn a_queue_that_is_empty_has_nothing_pending() {
    for way in 0..3 {
        let (timer, clock) = timer();
        let mut queue = timer.delay_queue();
        let task = Task::new();
        queue.insert(1, (), HOUR).unwrap();
        assert!(poll(&task, &mut queue).is_pending());
        match way {
            0 => queue.clear(),
            1 => _ = queue.remove(&1),
            _ => {
                queue.reset(&1, Duration::ZERO);
                assert_eq!(poll(&task, &mut queue), Poll::Ready(Some(1)));
            }
        }
        assert_eq!((timer.len(), task.held()), (0, 0), "{way}: timers of the engine, wakers");
        assert_eq!(poll(&task, &mut queue), Poll::Ready(None));
        assert!(!clock.advance_to_next().unwrap(), "{way}: nothing is there to jump to");
    }
}

#[test]
fn one_poll_is_bounded_and_has_its_task_go_on() {
    let (timer, clock) = timer();
    let mut queue = timer.delay_queue();
    // All in one slot of an upper level.
    for key in 0..10_000 {
        queue.insert(key, (), 600 * SECOND + MS * (key % 100)).unwrap();
    }
    let task = Task::new();
    assert!(poll(&task, &mut queue).is_pending());
    clock.advance(600 * SECOND - MS).unwrap();
    task.wakes();
    let mut rounds = 0;
    while poll(&task, &mut queue).is_pending() && task.wakes() == 1 {
        rounds += 1;
    }
    assert!((9..200).contains(&rounds), "{rounds} polls to hand them down");
    clock.advance(SECOND).unwrap();
    let mut out = 0;
    while let Some(_item) = tasks::block_on(&clock, queue.next()).unwrap() {
        out += 1;
    }
    assert_eq!(out, 10_000);
}
