//! tokio-util's `time_delay_queue`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tourbillon::tasks::{DelayQueue, Given, QueueKey};
use tourbillon::{Timer, VirtualClock};

use crate::common::{HOUR, MS, SECOND};

struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// A queue, its clock, and the task that polls it.
struct Polled {
    queue: DelayQueue<QueueKey, &'static str, Given>,
    clock: VirtualClock,
    wakes: Arc<Wakes>,
}

impl Polled {
    fn new() -> Self {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).build().unwrap();
        let queue = timer.delay_queue();
        // The timer lives as long as the process: the queue does not keep it alive.
        std::mem::forget(timer);
        Polled { queue, clock, wakes: Arc::new(Wakes(AtomicUsize::new(0))) }
    }

    /// Polls for the next item; "-" if none is due, "end" if the queue is empty.
    fn poll(&mut self) -> &'static str {
        let waker = Waker::from(self.wakes.clone());
        match self.queue.poll_expired(&mut Context::from_waker(&waker)) {
            Poll::Pending => "-",
            Poll::Ready(None) => "end",
            Poll::Ready(Some(item)) => item.unwrap().value,
        }
    }

    fn pass(&mut self, ms: u32) -> &mut Self {
        self.clock.advance(MS * ms).unwrap();
        self
    }

    fn is_woken(&self) -> bool {
        self.wakes.0.swap(0, SeqCst) > 0
    }
}

#[test]
fn what_is_due_at_once_comes_at_once_and_then_the_end() {
    let mut it = Polled::new();
    assert_eq!(it.poll(), "end");
    it.queue.push("now", Duration::ZERO).unwrap();
    it.queue.push_at("past", it.clock.now() - HOUR).unwrap();
    assert_eq!([it.poll(), it.poll(), it.poll()], ["past", "now", "end"]);
}

#[test]
fn items_come_in_their_order_and_wake_the_task() {
    let mut it = Polled::new();
    for (name, ms) in [("c", 30), ("a", 5), ("b", 17)] {
        it.queue.push(name, MS * ms).unwrap();
    }
    assert_eq!(it.poll(), "-");
    for (name, ms) in [("a", 5), ("b", 12), ("c", 13)] {
        it.pass(ms - 1);
        assert!(!it.is_woken() && it.poll() == "-", "{name} is not early");
        it.pass(1);
        assert!(it.is_woken());
        assert_eq!(it.poll(), name);
    }
    assert_eq!(it.poll(), "end");
}

#[test]
fn an_earlier_item_that_comes_later_comes_first() {
    let mut it = Polled::new();
    it.queue.push("late", 100 * MS).unwrap();
    assert_eq!(it.poll(), "-");
    it.queue.push("early", 50 * MS).unwrap();
    it.pass(50);
    assert!(it.is_woken());
    assert_eq!([it.poll(), it.poll()], ["early", "-"]);
    it.pass(50);
    assert_eq!([it.poll(), it.poll()], ["late", "end"]);
    it.queue.push("after the end", Duration::ZERO).unwrap();
    assert_eq!(it.poll(), "after the end");
}

#[test]
fn an_item_in_the_past_wakes_a_task_that_waits() {
    let mut it = Polled::new();
    let late = it.queue.push("late", HOUR).unwrap();
    assert_eq!(it.poll(), "-");
    it.queue.push_at("past", it.clock.now() - MS).unwrap();
    assert!(it.is_woken());
    assert_eq!([it.poll(), it.poll()], ["past", "-"]);
    it.queue.reset_at(&late, it.clock.now() - MS);
    assert!(it.is_woken());
    assert_eq!(it.poll(), "late");
}

#[test]
fn items_are_moved_again_and_again() {
    let mut it = Polled::new();
    let moved = it.queue.push_at("moved", it.clock.now() - MS).unwrap();
    let other = it.queue.push("other", 70 * MS).unwrap();
    it.queue.reset(&moved, 100 * MS);
    it.queue.reset(&moved, 50 * MS);
    assert_eq!(it.poll(), "-");
    it.queue.reset(&other, 60 * MS);
    it.queue.reset(&other, 40 * MS);
    it.pass(40);
    assert_eq!([it.poll(), it.poll()], ["other", "-"]);
    it.queue.reset(&moved, SECOND);
    it.pass(999);
    assert_eq!(it.poll(), "-");
    it.pass(1);
    assert_eq!([it.poll(), it.poll()], ["moved", "end"]);
}

/// Near slot boundaries, before and after the clock has passed them.
#[test]
fn items_are_moved_across_the_borders_of_slots() {
    for from in [64, 200, 256, 300, 5000] {
        for to in [81, 120, 255, 256, 257, 4095, 70_000] {
            let mut it = Polled::new();
            let key = it.queue.push("it", MS * from).unwrap();
            assert_eq!(it.poll(), "-");
            if from > 80 {
                it.pass(80);
                it.queue.reset(&key, MS * (to - 80));
                assert_eq!(it.poll(), "-", "{from} to {to}");
                it.pass(to - 81);
                assert_eq!(it.poll(), "-", "{from} to {to}: not early");
                it.pass(1);
            } else {
                it.pass(from);
            }
            assert_eq!([it.poll(), it.poll()], ["it", "end"], "{from} to {to}");
        }
    }
}

#[test]
fn items_are_removed_due_or_not() {
    let mut it = Polled::new();
    let keys = ["one", "two", "three"].map(|name| it.queue.push(name, 64 * MS).unwrap());
    assert_eq!(it.queue.remove(&keys[0]), Some("one"));
    it.pass(80);
    assert_eq!(it.poll(), "two");
    assert_eq!(it.queue.remove(&keys[2]), Some("three"), "due, and not given");
    assert_eq!(it.queue.remove(&keys[1]), None, "given");
    assert_eq!(it.poll(), "end");
}

#[test]
fn the_end_is_seen_when_the_last_is_removed_or_all_are_cleared() {
    for clear in [false, true] {
        let mut it = Polled::new();
        let key = it.queue.push("last", HOUR).unwrap();
        assert_eq!(it.poll(), "-");
        if clear {
            it.queue.clear();
        } else {
            it.queue.remove(&key);
        }
        assert!(it.is_woken());
        assert_eq!(it.poll(), "end");
    }
}

/// There is no compaction: keys stay valid when memory is released.
#[test]
fn keys_outlive_the_memory_that_is_given_back() {
    let mut it = Polled::new();
    let keys: Vec<_> = (0..100).map(|n| it.queue.push("it", MS * (n + 1)).unwrap()).collect();
    for key in keys.iter().step_by(2) {
        it.queue.remove(key);
    }
    it.queue.shrink_to_fit();
    assert!(it.queue.reset(&keys[99], MS));
    assert_eq!(it.queue.remove(&keys[97]), Some("it"));
    it.pass(1);
    assert_eq!([it.poll(), it.poll()], ["it", "-"]);
    assert_eq!(it.queue.len(), 48);
    it.pass(100);
    (0..48).for_each(|_| assert_eq!(it.poll(), "it"));
    it.queue.shrink_to_fit();
    assert_eq!(it.poll(), "end");
}

#[test]
fn a_look_shows_the_next_without_taking_it() {
    let mut it = Polled::new();
    assert_eq!(it.queue.peek(), None);
    let late = it.queue.push("late", 10 * MS).unwrap();
    let early = it.queue.push("early", MS).unwrap();
    assert_eq!(it.queue.peek(), Some((&early, &"early")));
    it.pass(1);
    assert_eq!(it.queue.peek(), Some((&early, &"early")));
    assert_eq!(it.poll(), "early");
    assert_eq!(it.queue.peek(), Some((&late, &"late")));
}
