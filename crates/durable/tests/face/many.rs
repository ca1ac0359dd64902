//! Lists, many timers at once, and the settings of a queue.

use std::time::Duration;

use tourbillon_durable::values::{Retry, Span};
use tourbillon_durable::{
    Change, Conflict, Error, Filter, Many, NewTimer, Queue, Settings, State, View,
};

use crate::{SECOND, memory, seconds, take};

fn keyed(second: u64, key: &str) -> NewTimer {
    seconds(second).key(key).unwrap()
}

/// The keys of a whole list, read two per page.
fn keys(queue: &Queue, filter: &Filter) -> Vec<String> {
    let (mut keys, mut after) = (Vec::new(), None);
    loop {
        let page = queue.list(filter.clone(), after, 2).wait().unwrap();
        assert!(page.timers.len() <= 2);
        keys.extend(page.timers.iter().map(|view: &View| view.key.to_string()));
        after = page.next;
        if after.is_none() {
            return keys;
        }
    }
}

#[test]
fn a_list_goes_by_time_or_by_key() {
    let (clock, durable, queue) = memory();
    for (second, key) in [(90_000, "b2"), (50, "b1"), (10, "a2"), (400_000_000, "a1"), (10, "a0")] {
        queue.schedule(keyed(second, key)).wait().unwrap();
    }
    durable.queue("other").unwrap().schedule(keyed(1, "b3")).wait().unwrap();
    clock.advance(20 * SECOND).unwrap();
    assert_eq!(keys(&queue, &Filter::default()), ["a0", "a2", "b1", "b2", "a1"]);
    assert_eq!(keys(&queue, &Filter::prefix("a")), ["a0", "a1", "a2"]);
    let due = Filter { state: Some(State::Due), ..Filter::default() };
    assert_eq!(keys(&queue, &due), ["a0", "a2"]);
    let [second, first] = take(&queue).try_into().unwrap();
    let out = Filter { state: Some(State::Delivering), ..Filter::default() };
    assert_eq!(keys(&queue, &out), ["a0", "a2"]);
    first.ack().wait().unwrap();
    let done = Filter { state: Some(State::Done), ..Filter::default() };
    assert_eq!((keys(&queue, &done), keys(&queue, &out)), (vec!["a0".into()], vec!["a2".into()]));
    let now = durable.now();
    let span = Filter { from: now, to: now + Span::from_secs(90_000), ..Filter::default() };
    assert_eq!(keys(&queue, &span), ["b1", "b2"]);
    let wrong = queue.list(Filter::prefix(""), None, 2).wait().unwrap_err();
    assert!(matches!(wrong, Error::Value(_)), "{wrong}");
    drop(second);
}

#[test]
fn a_prefix_is_cancelled() {
    let (clock, _durable, queue) = memory();
    for (second, key) in [(0, "a1"), (0, "b1"), (60, "a2"), (900_000, "a3")] {
        queue.schedule(keyed(second, key)).wait().unwrap();
    }
    let held = take(&queue);
    let cancelled = Many { done: 2, delivering: 1, more: false };
    assert_eq!(queue.cancel_prefix("a").wait(), Ok(cancelled));
    assert_eq!(queue.cancel_prefix("a").wait(), Ok(Many::default()));
    drop(held);
    clock.advance(1_000_000 * SECOND).unwrap();
    let left: Vec<String> = take(&queue).iter().map(|one| one.key().to_owned()).collect();
    assert_eq!(left, ["b1"]);
}

#[test]
fn the_dead_live_again() {
    let (_clock, _durable, queue) = memory();
    let once = Retry { attempts: 1, ..Retry::default() };
    for key in ["a1", "a2", "b1"] {
        queue.schedule(keyed(0, key).retry(once).unwrap()).wait().unwrap();
    }
    drop(take(&queue));
    let dead = Filter { state: Some(State::Dead), ..Filter::default() };
    assert_eq!(keys(&queue, &dead).len(), 3);
    queue.schedule(keyed(60, "a0")).wait().unwrap();
    assert_eq!(keys(&queue, &Filter::default()), ["a1", "a2", "b1", "a0"], "by their attempts");
    queue.cancel("a0").wait().unwrap();
    assert_eq!(queue.redrive(Some("a")).wait().unwrap().done, 2);
    assert_eq!(take(&queue).len(), 2);
    assert_eq!(queue.redrive(None).wait().unwrap().done, 3, "dropped again");
    assert_eq!(take(&queue)[0].attempt(), 3, "the numbers go on rising");
}

#[test]
fn a_paused_queue_hands_out_nothing() {
    let (clock, durable, queue) = memory();
    queue.pause().wait().unwrap();
    queue.schedule(seconds(10)).wait().unwrap();
    let waiting = queue.receive(1, 60 * SECOND);
    clock.advance(20 * SECOND).unwrap();
    assert_eq!(queue.count().wait().unwrap().unwrap().due, 1);
    queue.resume().wait().unwrap();
    assert_eq!(waiting.wait().unwrap().len(), 1);
    assert_eq!(queue.settings().wait().unwrap(), Some(Settings::default()));
    assert_eq!(durable.queues().wait().unwrap().len(), 1);
    assert_eq!(durable.queue("none").unwrap().settings().wait().unwrap(), None);
}

#[test]
fn a_rate_holds_in_any_second() {
    let (clock, durable, queue) = memory();
    queue.set(Change { rate: Some(Some(10)), ..Change::default() }).wait().unwrap();
    queue.schedule_all((0..35).map(|_| seconds(1)).collect(), Conflict::Refuse).wait().unwrap();
    let begin = durable.now();
    let handed = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = handed.clone();
    let _worker = queue
        .worker(3, move |one| {
            seen.lock().unwrap().push(one.handed());
            Ok(())
        })
        .unwrap();
    clock.advance(Duration::from_millis(3999)).unwrap();
    assert_eq!(handed.lock().unwrap().len(), 30, "at 1, 2 and 3 s");
    clock.advance(SECOND).unwrap();
    let handed = handed.lock().unwrap();
    assert_eq!(handed.len(), 35);
    assert!(handed.windows(11).all(|ten| ten[10].since(ten[0]) >= Span::from_secs(1)));
    assert_eq!(handed[34], begin + Span::from_secs(4));
}

#[test]
fn a_concurrency_holds() {
    let (_clock, _durable, queue) = memory();
    queue.set(Change { concurrency: Some(Some(2)), ..Change::default() }).wait().unwrap();
    queue.schedule_all((0..3).map(|_| seconds(0)).collect(), Conflict::Refuse).wait().unwrap();
    let mut held = take(&queue);
    assert_eq!(held.len(), 2);
    let waiting = queue.receive(5, 60 * SECOND);
    held.pop().unwrap().ack().wait().unwrap();
    assert_eq!(waiting.wait().unwrap().len(), 1);
    let wrong = queue.set(Change { rate: Some(Some(0)), ..Change::default() }).wait().unwrap_err();
    assert_eq!(wrong.to_string(), "rate is \"0\": it must be at least 1; pause the queue instead");
}
