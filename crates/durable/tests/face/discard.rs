//! Clearing and deleting a queue.

use std::time::Duration;

use tourbillon_durable::values::{Moment, Span};
use tourbillon_durable::{
    Conflict, Counts, Durable, Error, Filter, Limits, Many, Outcome, Queue, Stale, State,
};

use crate::{SECOND, memory_with, seconds, take};

const DAY: u64 = 86_400;

/// Timers in every state, with near and far deadlines.
fn fill(queue: &Queue, clock: &tourbillon::VirtualClock) -> Vec<tourbillon_durable::Token> {
    let key = |name: &str| seconds(0).key(name).unwrap();
    queue.schedule_all(vec![key("done"), key("dead")], Conflict::Refuse).wait().unwrap();
    for delivery in take(queue).into_iter().chain(take(queue)) {
        match delivery.key() {
            "done" => drop(delivery.ack().wait()),
            _ => drop(delivery),
        }
    }
    queue.schedule(key("cancelled")).wait().unwrap();
    queue.cancel("cancelled").wait().unwrap();
    let far = [0, 0, 0, 30, 700, 7200, 3 * DAY, 90 * DAY, 4000 * DAY].map(seconds);
    queue.schedule_all(far.to_vec(), Conflict::Refuse).wait().unwrap();
    queue.schedule(seconds(5 * DAY).key("far").unwrap()).wait().unwrap();
    clock.advance(SECOND / 2).unwrap();
    let due = queue.receive(1, Duration::ZERO).wait().unwrap();
    due.into_iter().map(|delivery| delivery.detach()).collect()
}

fn is_empty(durable: &Durable, queue: &Queue) {
    let stats = queue.stats().wait().unwrap().unwrap();
    assert_eq!(stats.counts, Counts::default());
    assert_eq!((stats.next, stats.oldest_due), (None, None));
    for state in [None].into_iter().chain(State::ALL.map(Some)) {
        let page = queue.list(Filter { state, ..Filter::default() }, None, 100).wait().unwrap();
        assert_eq!((page.timers.len(), page.next), (0, None), "{state:?}");
    }
    let page = queue.list(Filter::prefix("f"), None, 100).wait().unwrap();
    assert!(page.timers.is_empty());
    let pieces = queue.forecast(Moment::ZERO, durable.now() + Span::from_secs(5000 * DAY), 9);
    assert_eq!(pieces.wait().unwrap().iter().map(|piece| piece.2).sum::<u64>(), 0);
    for key in ["done", "cancelled", "far"] {
        assert_eq!(queue.get(key).wait(), Ok(None));
    }
}

fn limits(page: usize) -> Limits {
    Limits { page, waiting: page, window: page as u64 * 3, ..Limits::default() }
}

#[test]
fn a_cleared_queue_has_no_timers_and_remembers_none() {
    for page in [1, 3, 1000] {
        let (clock, durable, queue) = memory_with(limits(page));
        let other = durable.queue("other").unwrap();
        fill(&other, &clock);
        let before = other.count().wait().unwrap();
        let tokens = fill(&queue, &clock);
        let many = queue.clear().wait().unwrap();
        assert_eq!(many, Many { done: 10, delivering: 1, more: false });
        is_empty(&durable, &queue);
        assert_eq!(queue.ack(&tokens).wait().unwrap(), [Err(Stale::Unknown)]);
        // The keys are free, including that of a row that may still be in a far bucket.
        let made = queue.schedule(seconds(60).key("far").unwrap()).wait().unwrap();
        assert_eq!(made.outcome, Outcome::Made);
        clock.advance(100 * 366 * DAY as u32 / 9 * SECOND).unwrap();
        let due = take(&queue);
        assert_eq!(due.len(), 1, "{due:?}");
        for delivery in due {
            delivery.ack().wait().unwrap();
        }
        assert!(take(&queue).is_empty());
        let after = other.count().wait().unwrap().unwrap();
        let sum = |counts: Counts| counts.scheduled + counts.due + counts.delivering;
        assert_eq!(sum(after), sum(before.unwrap()), "another queue keeps its timers");
        assert_eq!(durable.queue("none").unwrap().clear().wait(), Ok(Many::default()));
    }
}

#[test]
fn a_queue_is_deleted_with_its_settings_unless_some_are_out() {
    for page in [1, 1000] {
        let (clock, durable, queue) = memory_with(limits(page));
        assert_eq!(queue.delete(false).wait(), Err(Error::UnknownQueue));
        queue.pause().wait().unwrap();
        queue.delete(false).wait().unwrap();
        assert_eq!(queue.count().wait(), Ok(None));
        let tokens = fill(&queue, &clock);
        let refused = queue.delete(false).wait().unwrap_err();
        assert_eq!(refused, Error::Delivering(1));
        assert_eq!(
            refused.to_string(),
            "1 timers of the queue are out: wait for them, or delete it by force"
        );
        // The queue is paused, so this poll receives none of the due timers before the queue is deleted.
        queue.pause().wait().unwrap();
        let waiting = durable.queue("orders").unwrap().receive(1, 3600 * SECOND);
        queue.delete(true).wait().unwrap();
        assert_eq!(queue.nack(&tokens, Default::default()).wait().unwrap(), [Err(Stale::Unknown)]);
        assert_eq!(durable.queues().wait().unwrap().len(), 0);
        assert_eq!((queue.count().wait(), queue.stats().wait()), (Ok(None), Ok(None)));
        queue.schedule(seconds(10).key("far").unwrap()).wait().unwrap();
        clock.advance(10 * SECOND).unwrap();
        let made = waiting.wait().unwrap();
        assert_eq!(made[0].key(), "far", "a poll gets what is made meanwhile");
        drop(made);
        queue.delete(true).wait().unwrap();
        assert_eq!(queue.delete(true).wait(), Err(Error::UnknownQueue));
    }
}
