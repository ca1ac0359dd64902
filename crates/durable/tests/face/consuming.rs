//! Receiving, settling, and the effects of dropping a receive or a delivery.

use std::time::Duration;

use futures_lite::future::{block_on, poll_once};
use futures_lite::{StreamExt, pin};
use tourbillon_durable::values::{Retry, Span};
use tourbillon_durable::{Counts, Error, Nack, Settled, Stale, State};

use crate::{SECOND, memory, seconds, take};

#[test]
fn a_dropped_delivery_is_refused_and_uses_an_attempt() {
    let (clock, _durable, queue) = memory();
    let retry = Retry { attempts: 2, jitter: 0.0, ..Retry::default() };
    queue.schedule(seconds(0).key("a").unwrap().retry(retry).unwrap()).wait().unwrap();
    drop(take(&queue));
    let view = queue.get("a").wait().unwrap().unwrap();
    assert_eq!((view.state, view.attempt), (State::Scheduled, 1));
    assert_eq!(view.last_error.as_deref(), Some("dropped unanswered"));
    clock.advance(SECOND).unwrap();
    drop(take(&queue));
    assert_eq!(queue.get("a").wait().unwrap().unwrap().state, State::Dead);
}

#[test]
fn a_nack_says_when_and_why() {
    let (clock, durable, queue) = memory();
    queue.schedule(seconds(0).key("a").unwrap()).wait().unwrap();
    let [delivery] = take(&queue).try_into().unwrap();
    let nack = Nack::because("no route to host").after(60 * SECOND);
    let next = durable.now() + Span::from_secs(60);
    assert_eq!(delivery.nack(nack).wait(), Ok(Settled::Again(next)));
    let view = queue.get("a").wait().unwrap().unwrap();
    assert_eq!(view.last_error.as_deref(), Some("no route to host"));
    clock.advance(60 * SECOND).unwrap();
    assert_eq!(take(&queue)[0].attempt(), 2);
}

#[test]
fn a_lease_runs_is_extended_and_lapses() {
    let (clock, _durable, queue) = memory();
    let queue = queue.lease(10 * SECOND).unwrap();
    queue.schedule(seconds(0)).wait().unwrap();
    let [first] = take(&queue).try_into().unwrap();
    clock.advance(8 * SECOND).unwrap();
    let until = first.extend(10 * SECOND).wait().unwrap();
    assert_eq!(until, first.handed() + Span::from_secs(18));
    assert!(matches!(first.extend(SECOND / 2).wait(), Err(Error::Value(_))));
    // Clock readings are rounded down, so a lease ends one millisecond later, and never early.
    clock.advance(10 * SECOND).unwrap();
    assert!(take(&queue).is_empty(), "one at a time");
    clock.advance(SECOND / 1000).unwrap();
    let [second] = take(&queue).try_into().unwrap();
    assert_eq!(second.attempt(), 2);
    assert_eq!(first.ack().wait(), Err(Error::Stale(Stale::HandedAgain)));
    assert_eq!(second.ack().wait(), Ok(None));
}

#[test]
fn a_receive_waits_for_its_time_and_no_longer() {
    let (clock, _durable, queue) = memory();
    queue.schedule(seconds(10)).wait().unwrap();
    let (short, long) = (queue.receive(1, 9 * SECOND), queue.receive(1, 60 * SECOND));
    clock.advance(10 * SECOND).unwrap();
    assert!(short.wait().unwrap().is_empty());
    assert_eq!(long.wait().unwrap().len(), 1);
}

/// The receive is dropped once before and once after it has its answer.
#[test]
fn a_dropped_receive_loses_nothing_and_uses_no_attempt() {
    let (clock, _durable, queue) = memory();
    let once = Retry { attempts: 1, ..Retry::default() };
    queue.schedule(seconds(10).retry(once).unwrap()).wait().unwrap();
    drop(queue.receive(1, 60 * SECOND));
    let answered = queue.receive(1, 60 * SECOND);
    clock.advance(10 * SECOND).unwrap();
    assert_eq!(queue.count().wait().unwrap().unwrap().delivering, 1);
    drop(answered);
    let [delivery] = take(&queue).try_into().unwrap();
    assert_eq!(delivery.attempt(), 2, "the number rises");
    delivery.ack().wait().unwrap();
    assert_eq!(queue.count().wait().unwrap(), Some(Counts::default()));
}

#[test]
fn tasks_await_receipts_and_deliveries() {
    let (clock, _durable, queue) = memory();
    block_on(async {
        queue.schedule(seconds(10)).await.unwrap();
        let receive = queue.receive(1, 60 * SECOND);
        pin!(receive);
        assert!(poll_once(&mut receive).await.is_none());
        clock.advance(10 * SECOND).unwrap();
        for delivery in receive.await.unwrap() {
            delivery.ack().await.unwrap();
        }
        assert_eq!(queue.count().await.unwrap(), Some(Counts::default()));
    });
}

#[test]
fn a_stream_gives_what_is_due_and_gives_back_what_it_holds() {
    let (clock, durable, queue) = memory();
    for second in 1..=5 {
        queue.schedule(seconds(second).payload([second as u8])).wait().unwrap();
    }
    clock.advance(3 * SECOND).unwrap();
    block_on(async {
        let mut stream = queue.deliveries(2);
        for second in 1..=2 {
            let delivery = stream.next().await.unwrap();
            assert_eq!(delivery.payload(), [second]);
            delivery.ack().await.unwrap();
        }
        clock.advance(2 * SECOND).unwrap();
        assert_eq!(stream.next().await.unwrap().payload(), [3], "dropped: refused");
        assert_eq!(stream.next().await.unwrap().payload(), [4]);
        drop(stream);
        let counts = queue.count().await.unwrap().unwrap();
        assert_eq!((counts.due, counts.delivering), (1, 0), "{counts:?}");
        let mut stream = queue.deliveries(1);
        assert_eq!(stream.next().await.unwrap().payload(), [5]);
        durable.close();
        assert!(stream.next().await.is_none(), "closed");
    });
}

#[test]
fn a_batch_is_longest_due_first() {
    let (clock, _durable, queue) = memory();
    for second in [3, 1, 2] {
        queue.schedule(seconds(second).payload([second as u8])).wait().unwrap();
    }
    clock.advance(Duration::from_secs(3)).unwrap();
    let payloads: Vec<u8> = take(&queue).iter().map(|delivery| delivery.payload()[0]).collect();
    assert_eq!(payloads, [1, 2, 3]);
}
