//! Webhooks: where timers are posted.

use std::sync::Arc;

use tourbillon_durable::values::Span;
use tourbillon_durable::{Change, Queue, Secret, Webhook};

use crate::{memory, seconds};

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
