//! The JDK's `DelayQueueTest` and `BlockingQueueTest`.
//!
//! Some are in real time: a take with a limit times out in real time, and so does a wait for another thread.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tourbillon::{DelayQueue, PutError, TakeError, Timer, VirtualClock};

use crate::common::{HOUR, MS, SECOND, within};

const SIZE: u32 = 20;

type Take = fn(&DelayQueue<u32>) -> Result<u32, TakeError>;

fn queue() -> (DelayQueue<u32>, VirtualClock) {
    let clock = VirtualClock::new();
    (Timer::builder().clock(&clock).queue().unwrap(), clock)
}

/// The numbers below SIZE in another order, all of them due.
fn populated() -> DelayQueue<u32> {
    let (queue, clock) = queue();
    let odd_last = (0..SIZE).rev().filter(|n| n % 2 == 0).chain((0..SIZE).filter(|n| n % 2 == 1));
    odd_last.for_each(|n| _ = queue.put_at(clock.now() - MS * (SIZE - n), n).unwrap());
    assert_eq!((queue.len(), queue.is_empty()), (SIZE as usize, false));
    queue
}

#[test]
fn a_queue_is_empty_until_something_is_put() {
    let (queue, _clock) = queue();
    assert!(queue.is_empty() && queue.peek().is_none());
    queue.put(Duration::ZERO, 1).unwrap();
    queue.put(HOUR, 2).unwrap();
    assert_eq!(queue.len(), 2, "what is not due counts");
    queue.clear();
    assert!(queue.is_empty() && queue.try_take() == Err(TakeError::NothingDue));
}

#[test]
fn values_are_taken_in_their_order_by_every_verb() {
    let takes: [Take; 6] = [
        |queue| queue.take(),
        |queue| queue.try_take(),
        |queue| queue.take_within(Duration::ZERO),
        |queue| queue.take_within(HOUR),
        |queue| queue.take_entry().map(|fired| fired.value),
        |queue| queue.drain_due(1).pop().map(|fired| fired.value).ok_or(TakeError::NothingDue),
    ];
    for take in takes {
        let queue = populated();
        for n in 0..SIZE {
            let next = queue.peek().unwrap().key;
            assert!(queue.contains(next));
            assert_eq!(take(&queue), Ok(n));
            assert!(!queue.contains(next));
        }
        assert_eq!((queue.try_take(), queue.peek()), (Err(TakeError::NothingDue), None));
    }
}

#[test]
fn a_collection_becomes_a_queue_and_extends_one() {
    let queue: DelayQueue<u32> = (0..SIZE).map(|n| (Duration::ZERO, n)).collect();
    queue.extend([(Duration::ZERO, SIZE)]);
    queue.extend([]);
    (0..=SIZE).for_each(|n| assert_eq!(queue.take(), Ok(n), "equal ones as they were put"));
}

#[test]
fn a_put_never_waits() {
    let (queue, _clock) = queue();
    let other = queue.clone();
    let putting = thread::spawn(move || (0..4).for_each(|n| _ = other.put(HOUR, n).unwrap()));
    putting.join().unwrap();
    assert_eq!(queue.len(), 4);
}

/// A close here corresponds to an interrupt in the JDK.
#[test]
fn a_take_from_an_empty_queue_waits_until_it_is_closed() {
    for limit in [None, Some(HOUR)] {
        within(move || {
            let (queue, _clock) = queue();
            let other = queue.clone();
            let taking = thread::spawn(move || match limit {
                None => other.take(),
                Some(limit) => other.take_within(limit),
            });
            queue.close();
            assert_eq!(taking.join().unwrap(), Err(TakeError::Closed));
            assert_eq!(queue.take(), Err(TakeError::Closed), "and after it, at once");
            assert_eq!(queue.put(MS, 1), Err(PutError::Closed(1)));
        });
    }
}

#[test]
fn a_take_with_a_limit_gives_up_and_later_finds_what_was_put() {
    within(|| {
        let (queue, clock) = queue();
        let (taker, other) = (queue.taker(), clock.clone());
        let (gives_up, has_given_up) = mpsc::channel();
        let taking = thread::spawn(move || {
            let first = (taker.take_within(SECOND), other.elapsed());
            gives_up.send(()).unwrap();
            (first.0, first.1, taker.take_within(HOUR))
        });
        // Works however late the thread starts: its second begins when it takes.
        while has_given_up.try_recv().is_err() {
            clock.advance(SECOND / 2).unwrap();
            thread::sleep(MS);
        }
        queue.put(SECOND, 7).unwrap();
        while !taking.is_finished() {
            clock.advance(SECOND).unwrap();
        }
        let (first, gave_up, second) = taking.join().unwrap();
        assert_eq!((first, second), (Err(TakeError::NothingDue), Ok(7)));
        assert!(gave_up >= SECOND);
    });
}

#[test]
fn what_is_not_due_is_seen_and_not_taken() {
    let (queue, clock) = queue();
    let key = queue.put(Duration::MAX, 1).unwrap();
    assert_eq!(queue.peek().unwrap().key, key);
    assert_eq!(queue.try_take(), Err(TakeError::NothingDue));
    assert_eq!(queue.take_within(Duration::ZERO), Err(TakeError::NothingDue));
    clock.advance(HOUR).unwrap();
    assert!(queue.drain_due(9).is_empty());
}

/// In real time, milliseconds.
#[test]
fn nothing_is_taken_before_its_delay() {
    let queue = DelayQueue::new();
    (0..SIZE).for_each(|n| _ = queue.put(MS * (SIZE - n), n).unwrap());
    let mut last = None;
    for _ in 0..SIZE {
        let taken = queue.take_entry().unwrap();
        assert!(queue.now() >= taken.deadline() && last <= Some(taken.deadline()));
        last = Some(taken.deadline());
    }
}

#[test]
fn values_are_removed_by_their_keys_once() {
    let (queue, _clock) = queue();
    let keys: Vec<_> = (0..SIZE).map(|n| queue.put(MS * n, n).unwrap()).collect();
    for n in (1..SIZE as usize).step_by(2) {
        assert!(queue.contains(keys[n]));
        assert_eq!((queue.remove(keys[n]), queue.remove(keys[n])), (Some(n as u32), None));
        assert!(!queue.contains(keys[n]) && queue.contains(keys[n - 1]));
    }
    assert_eq!(queue.pending().len(), SIZE as usize / 2);
}

#[test]
fn all_are_listed_in_their_order() {
    let queue = populated();
    let listed = queue.pending();
    assert!(listed.windows(2).all(|pair| pair[0].deadline <= pair[1].deadline));
    for next in listed {
        assert_eq!(queue.peek(), Some(next));
        queue.try_take().unwrap();
    }
    assert!(queue.pending().is_empty());
}

#[test]
fn a_drain_takes_what_is_due_up_to_a_number_or_everything() {
    for most in 0..SIZE as usize + 2 {
        let queue = populated();
        let taken: Vec<u32> = queue.drain_due(most).into_iter().map(|fired| fired.value).collect();
        assert_eq!(taken, (0..SIZE).take(most).collect::<Vec<_>>());
        assert_eq!(queue.len(), SIZE as usize - taken.len());
    }
    let queue = populated();
    queue.put(HOUR, 99).unwrap();
    let other = queue.clone();
    let putting = thread::spawn(move || _ = other.put(HOUR, 100).unwrap());
    let drained = queue.drain().len();
    putting.join().unwrap();
    assert_eq!(drained + queue.len(), SIZE as usize + 2, "none is lost");
}

/// Two threads, in real time.
#[test]
fn a_value_goes_from_one_thread_to_another_that_waits() {
    within(|| {
        let queue = DelayQueue::new();
        let other = queue.clone();
        let taking = thread::spawn(move || other.take_within(Duration::from_secs(9)));
        queue.put(MS, 1).unwrap();
        assert_eq!((taking.join().unwrap(), queue.len()), (Ok(1), 0));
    });
}
