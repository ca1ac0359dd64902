//! Webhooks: deliveries to agents, which post them.

use std::sync::Arc;
use std::time::Duration;

use tourbillon_durable::values::{Retry, Span};
use tourbillon_durable::{Change, Durable, Queue, Secret, State, Webhook};

use crate::{SECOND, memory, seconds, take};

fn hook(url: &str) -> Webhook {
    let mut hook = Webhook::new(url).unwrap();
    hook.headers.push(("authorization".into(), Secret::new("hush")));
    hook
}

fn set(queue: &Queue, webhook: Option<Webhook>) {
    let change = Change { webhook: Some(webhook.map(Arc::new)), ..Change::default() };
    queue.set(change).wait().unwrap();
}

#[test]
fn a_timer_has_its_own_webhook_or_none_or_that_of_its_queue_when_it_was_made() {
    let (_clock, _durable, queue) = memory();
    let make = |key: &str| queue.schedule(seconds(60).key(key).unwrap()).wait().unwrap();
    make("before");
    set(&queue, Some(hook("http://queue/1")));
    make("first");
    set(&queue, Some(hook("http://queue/2")));
    make("second");
    let none = seconds(60).key("none").unwrap().no_webhook();
    queue.schedule(none).wait().unwrap();
    let own = seconds(60).key("own").unwrap().webhook(hook("http://own")).unwrap();
    queue.schedule(own).wait().unwrap();
    set(&queue, None);
    make("after");
    let shown = |key: &str| queue.get(key).wait().unwrap().unwrap().webhook;
    assert_eq!(["before", "none", "after"].map(shown), [None, None, None]);
    let hooks = ["http://queue/1", "http://queue/2", "http://own"].map(hook).map(Arc::new);
    assert_eq!(["first", "second", "own"].map(shown), hooks.map(Some));
    let settings = queue.settings().wait().unwrap().unwrap();
    assert_eq!(settings.webhook, None);
    let view = queue.get("own").wait().unwrap();
    assert!(!format!("{view:?}").contains("hush"), "{view:?}");
}

#[test]
fn a_webhook_out_of_its_limits_is_refused() {
    let (_clock, _durable, queue) = memory();
    let slow = Webhook { timeout: Span::from_secs(61), ..hook("http://own") };
    let wrong = seconds(1).webhook(slow.clone()).unwrap_err();
    assert_eq!(wrong.to_string(), "webhook.timeout is \"1m1s\": it must be 1s to 60s");
    let change = Change { webhook: Some(Some(Arc::new(slow))), ..Change::default() };
    assert!(queue.set(change).wait().is_err());
    assert_eq!(queue.settings().wait().unwrap(), None, "nothing happened");
}

#[test]
fn agents_are_handed_what_has_a_webhook_and_others_the_rest() {
    let (clock, durable, queue) = memory();
    let waiting = durable.push(10, 60 * SECOND, 5 * SECOND);
    let timer = seconds(10).key("push").unwrap().webhook(hook("http://own")).unwrap();
    queue.schedule(timer).wait().unwrap();
    queue.schedule(seconds(10).key("pull").unwrap()).wait().unwrap();
    clock.advance(10 * SECOND).unwrap();
    assert_eq!(take(&queue).len(), 1);
    let [push] = waiting.wait().unwrap().try_into().unwrap();
    assert_eq!((push.queue(), push.key(), push.attempt()), ("orders", "push", 1));
    assert_eq!(push.webhook(), Some(&hook("http://own")));
    assert_eq!(push.lease_until().since(push.handed()), Span::from_secs(15));
    push.give_up("410").wait().unwrap();
    let view = queue.get("push").wait().unwrap().unwrap();
    assert_eq!((view.state, view.last_error.as_deref()), (State::Dead, Some("410")));
}

#[test]
fn a_push_that_is_dropped_leaves_its_timers_to_others() {
    let (_clock, durable, queue) = memory();
    drop(durable.push(10, 60 * SECOND, SECOND));
    let timer = seconds(0).key("a").unwrap().webhook(hook("http://own")).unwrap();
    queue.schedule(timer).wait().unwrap();
    let push = durable.push(10, Duration::ZERO, SECOND);
    let [delivery] = push.wait().unwrap().try_into().unwrap();
    assert_eq!(delivery.attempt(), 1);
    drop(delivery);
    let view = queue.get("a").wait().unwrap().unwrap();
    assert_eq!(view.last_error.as_deref(), Some("dropped unanswered"), "a failed attempt");
}

/// Deliveries held by agents when the process ended are retried at once. Other takers keep their deliveries.
#[test]
fn a_closed_store_forgets_what_agents_had() {
    let directory = std::env::temp_dir().join(format!("tourbillon-agents-{}", std::process::id()));
    let open = || Durable::open(&directory).unwrap();
    let durable = open();
    let queue = durable.queue("orders").unwrap();
    let retry = Retry { attempts: 1, ..Retry::default() };
    let push = seconds(0).key("push").unwrap().retry(retry).unwrap();
    queue.schedule(push.webhook(hook("http://own")).unwrap()).wait().unwrap();
    queue.schedule(seconds(0).key("pull").unwrap()).wait().unwrap();
    let held = (durable.push(1, SECOND, SECOND).wait().unwrap(), queue.receive(1, SECOND).wait());
    durable.close();
    drop(held);
    let durable = open();
    let [again] = durable.push(9, SECOND, SECOND).wait().unwrap().try_into().unwrap();
    assert_eq!((again.key(), again.attempt()), ("push", 2));
    let queue = durable.queue("orders").unwrap();
    assert!(take(&queue).is_empty());
    assert_eq!(queue.get("pull").wait().unwrap().unwrap().state, State::Delivering);
    again.ack().wait().unwrap();
    durable.close();
    std::fs::remove_dir_all(&directory).unwrap();
}
