//! The order in which the queue of a task returns its items: the earliest deadline first, to the nanosecond, and equal
//! deadlines in insertion order.

use std::task::Poll;
use std::time::Duration;

use tourbillon::tasks::{DelayQueue, Given};

use crate::by_hand::{Task, timer};
use crate::common::{HOUR, MS, SECOND};

const MICRO: Duration = Duration::from_micros(1);

fn due(queue: &mut DelayQueue<u32, (), Given>) -> Vec<u32> {
    let task = Task::new();
    let next = || match task.poll_fn(|context| queue.poll_expired(context)) {
        Poll::Ready(Some(item)) => Some(item.unwrap().key),
        Poll::Ready(None) | Poll::Pending => None,
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn items_of_one_tick_come_by_their_deadlines() {
    let (timer, clock) = timer();
    let mut queue = timer.delay_queue();
    for micros in [900, 300, 600, 100] {
        queue.insert(micros, (), MICRO * micros).unwrap();
    }
    queue.insert(101, (), MICRO * 100).unwrap();
    clock.advance(MS).unwrap();
    assert_eq!(due(&mut queue), [100, 101, 300, 600, 900]);
}

#[test]
fn items_that_are_due_when_they_are_inserted_come_by_their_deadlines() {
    let (timer, clock) = timer();
    clock.advance(SECOND + MICRO * 300).unwrap();
    let mut queue = timer.delay_queue();
    for before in [500, 1, 1000, 10] {
        queue.insert_at(before, (), clock.now() - MS * before).unwrap();
    }
    queue.insert(0, (), Duration::ZERO).unwrap();
    assert_eq!(due(&mut queue), [1000, 500, 10, 1, 0]);
}

#[test]
fn peek_shows_what_comes_next_due_or_not() {
    let (timer, clock) = timer();
    let mut queue = timer.delay_queue();
    for micros in [900, 300, 600, 100] {
        queue.insert(micros, (), HOUR + MICRO * micros).unwrap();
    }
    queue.insert(2500, (), HOUR * 3).unwrap();
    assert_eq!(queue.peek(), Some((&100, &())), "not due for an hour");
    // Inserted before the item that `peek` returned, and after it in the same tick.
    queue.insert(1, (), SECOND).unwrap();
    queue.insert(200, (), HOUR + MICRO * 200).unwrap();
    assert_eq!(queue.peek(), Some((&1, &())));
    clock.advance(SECOND - Duration::from_nanos(1)).unwrap();
    assert_eq!(due(&mut queue), [], "never early, whoever has looked");
    clock.advance(HOUR).unwrap();
    assert_eq!(queue.peek(), Some((&1, &())));
    assert_eq!(due(&mut queue), [1, 100, 200, 300, 600, 900]);
    assert_eq!(queue.peek(), Some((&2500, &())));
    assert!(queue.reset(&2500, Duration::MAX));
    assert_eq!(queue.peek(), Some((&2500, &())), "one that no clock will reach");
}
