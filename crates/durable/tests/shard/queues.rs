//! Queues: when a queue exists, and the cost of a queue that does not exist.

use super::*;
use tourbillon_durable::shard::Change;
use tourbillon_durable::values::{Retry, RetryChange};

/// Sends the requests in one turn. Returns their answers.
fn at_once(driver: &mut Driver, requests: Vec<Request>) -> Vec<Answer> {
    let requests = (1000..).map(RequestId).zip(requests);
    driver.run(requests.map(|(id, request)| Input::Request(id, request)).collect())
}

#[test]
fn a_queue_is_there_from_the_turn_on_that_makes_it() {
    let set = || Request::Set { queue: queue(), change: Change::default() };
    let mut driver = Driver::new(Limits::default());
    let answers = at_once(&mut driver, vec![set(), Request::Stats(queue()), Request::Queues]);
    assert!(
        matches!(&answers[..], [Answer::Done, Answer::Stats(Some(_)), Answer::Queues(all)] if all.len() == 1),
        "{answers:?}"
    );
    let mut driver = Driver::new(Limits::default());
    let delete = Request::Delete { queue: queue(), force: false };
    let answers = at_once(&mut driver, vec![set(), delete, Request::Queues]);
    assert_eq!(answers, [Answer::Done, Answer::Done, Answer::Queues(Vec::new())]);
    assert!(driver.store.open().unwrap().queues.is_empty());
}

/// Two changes of the retry in one turn do not undo each other.
#[test]
fn a_change_of_a_retry_leaves_its_other_fields() {
    let mut driver = Driver::new(Limits::default());
    let set = |retry| {
        let change = Change { retry: Some(retry), ..Change::default() };
        Request::Set { queue: queue(), change }
    };
    let attempts = RetryChange { attempts: Some(3), ..RetryChange::default() };
    let jitter = RetryChange { jitter: Some(0.5), ..RetryChange::default() };
    at_once(&mut driver, vec![set(attempts), set(jitter)]);
    let Answer::Queue(Some((_, settings))) = driver.ask(Request::Queue(queue())) else { panic!() };
    assert_eq!(settings.retry, Retry { attempts: 3, jitter: 0.5, ..Retry::default() });
}

#[test]
fn queues_that_are_only_polled_or_were_deleted_are_forgotten() {
    let mut driver = Driver::new(Limits::default());
    driver.schedule(vec![timer(None, in_secs(86_400))], Conflict::Refuse);
    for nth in 0..50 {
        let queue = QueueName::new(&format!("polled-{nth}")).unwrap();
        let (wait, lease) = (Span::ZERO, Span::from_secs(30));
        driver.ask(Request::Receive { queue, max: 1, wait, lease });
        let queue = QueueName::new(&format!("deleted-{nth}")).unwrap();
        let timers = vec![timer(key("k"), in_secs(nth * 5000))];
        driver.ask(Request::Schedule { queue: queue.clone(), timers, conflict: Conflict::Refuse });
        driver.ask(Request::Delete { queue, force: false });
    }
    driver.pass_until(MIDNIGHT + 120_000);
    driver.counts();
    assert_eq!(driver.shard.resident().queues, 1, "the one with a timer");
    assert_eq!(driver.counts().scheduled, 1);
}
