//! Takers, for which a virtual clock waits, and queries of a queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use tourbillon::{DelayQueue, TakeError, Timer, VirtualClock};

use crate::common::{HOUR, Log, SECOND, within};

fn queue<T: Send + 'static>() -> (DelayQueue<T>, VirtualClock) {
    let clock = VirtualClock::new();
    (Timer::builder().clock(&clock).queue().unwrap(), clock)
}

/// The clock waits for a taker that has not begun its first take, and for the processing of its value.
#[test]
fn an_advance_waits_for_takers_and_their_work() {
    for _ in 0..50 {
        within(|| {
            let (queue, clock) = queue();
            let log = Log::new();
            for worker in 0..2 {
                let (taker, own, log, back) =
                    (queue.taker(), clock.clone(), log.clone(), queue.clone());
                thread::spawn(move || {
                    while let Ok(fired) = taker.take_entry() {
                        thread::yield_now();
                        assert_eq!(fired.deadline(), own.now(), "worker {worker} is at its moment");
                        log.add(fired.value);
                        if fired.value == 1 {
                            // Due within the same advance.
                            back.put(SECOND, 10).unwrap();
                        }
                    }
                });
            }
            (1..=3).for_each(|n| _ = queue.put(SECOND * n, n).unwrap());
            clock.advance(5 * SECOND).unwrap();
            let mut seen = log.take();
            seen.sort_unstable();
            assert_eq!(seen, [1, 2, 3, 10]);
            queue.close();
        });
    }
}

#[test]
fn a_taker_that_is_dropped_holds_nobody_up() {
    within(|| {
        let (queue, clock) = queue();
        queue.put(SECOND, "nobody wants it").unwrap();
        let taker = queue.taker();
        assert_eq!(taker.take_within(Duration::ZERO), Err(TakeError::NothingDue));
        drop(taker);
        clock.advance(SECOND).unwrap();
        assert_eq!(queue.len(), 1);
    });
}

#[test]
fn a_taker_with_a_limit_comes_back_without_a_value() {
    within(|| {
        let (queue, clock) = queue::<u32>();
        let (taker, empty) = (queue.taker(), Arc::new(AtomicU32::new(0)));
        let count = empty.clone();
        let worker = thread::spawn(move || {
            while taker.take_within(SECOND) == Err(TakeError::NothingDue)
                && count.fetch_add(1, SeqCst) < 2
            {}
        });
        while !worker.is_finished() {
            clock.advance(SECOND).unwrap();
        }
        assert_eq!(empty.load(SeqCst), 3);
    });
}

#[test]
fn a_queue_can_be_looked_at_and_emptied() {
    let (queue, clock) = queue();
    assert_eq!((queue.peek(), queue.next_deadline()), (None, None));
    let keys: Vec<_> = [3, 1, 2].iter().map(|&n| queue.put(SECOND * n, n).unwrap()).collect();
    let never = queue.put(Duration::MAX, 9).unwrap();
    assert_eq!(queue.peek().unwrap().key, keys[1]);
    assert_eq!(queue.next_deadline(), Some(clock.now() + SECOND));
    let order: Vec<_> = queue.pending().iter().map(|value| value.key).collect();
    assert_eq!(order, [keys[1], keys[2], keys[0], never]);
    // The query has moved the hand ahead of the clock: still no value is early, and the order is kept.
    let first = queue.put(SECOND / 2, 0).unwrap();
    assert_eq!(queue.peek().unwrap().key, first);
    assert_eq!(queue.try_take(), Err(TakeError::NothingDue));
    clock.advance(2 * SECOND).unwrap();
    let due: Vec<_> = queue.drain_due(2).into_iter().map(|fired| fired.value).collect();
    assert_eq!(due, [0, 1]);
    assert_eq!(queue.peek().unwrap().key, keys[2], "due, and not taken");
    assert!(queue.contains(keys[2]) && !queue.contains(first));
    let rest: Vec<_> = queue.drain().into_iter().map(|fired| (fired.key, fired.value)).collect();
    assert_eq!(rest, [(keys[2], 2), (keys[0], 3), (never, 9)]);
    assert!(queue.is_empty() && queue.check().is_ok());
    queue.extend([(SECOND, 1), (HOUR, 2)]);
    queue.clear();
    assert_eq!((queue.len(), queue.check()), (0, Ok(())));
    let counts = queue.counts();
    assert_eq!(counts.armed, counts.fired + counts.cancelled);
    queue.put(Duration::ZERO, 7).unwrap();
    assert_eq!(queue.take(), Ok(7), "it is open still");
}

#[test]
fn a_look_at_what_no_clock_reaches() {
    let (queue, _clock) = queue();
    let key = queue.put(Duration::MAX, ()).unwrap();
    assert_eq!(queue.peek().map(|next| next.key), Some(key));
    assert_eq!(queue.pending().len(), 1);
}

/// A worker that drains the queue while the clock waits for a taker lets the advance continue.
#[test]
fn a_drain_lets_an_advance_go_on() {
    within(|| {
        let (queue, clock) = queue();
        queue.put(SECOND, 1).unwrap();
        queue.put(SECOND, 2).unwrap();
        let (own, drained) = (queue.clone(), clock.clone());
        let worker = thread::spawn(move || {
            let first = own.take().unwrap();
            let rest = own.drain().len() + own.drain_due(9).len();
            (first, rest, drained.elapsed())
        });
        while !worker.is_finished() {
            clock.advance(SECOND).unwrap();
        }
        worker.join().unwrap();
        assert!(queue.is_empty());
    });
}
