//! Scheduling, cancelling, moving, reading.

use std::time::Duration;

use tourbillon_durable::values::{Missed, Retry, Span};
use tourbillon_durable::{
    Cancelled, Conflict, Content, Counts, Durable, Error, NewTimer, Payload, Refused, State, When,
};

use crate::{SECOND, memory, seconds, take};

#[test]
fn a_timer_is_handed_out_at_its_moment_and_never_before() {
    let (clock, durable, queue) = memory();
    // The clock is between two milliseconds, so a delay from here is rounded up.
    clock.advance(Duration::from_micros(1500)).unwrap();
    let due = queue.schedule(seconds(90).payload("17")).wait().unwrap().due;
    assert_eq!(due.millis() % 1000, 2);
    clock.advance(90 * SECOND).unwrap();
    assert!(take(&queue).is_empty(), "half a millisecond to go");
    clock.advance(Duration::from_micros(500)).unwrap();
    let [delivery] = take(&queue).try_into().unwrap();
    assert_eq!((delivery.payload(), delivery.due(), delivery.attempt()), (&b"17"[..], due, 1));
    assert_eq!(durable.now(), due);
    assert_eq!(delivery.ack().wait(), Ok(None));
    assert_eq!(queue.count().wait(), Ok(Some(Counts::default())));
}

#[test]
fn a_key_is_taken_kept_or_replaced_and_what_is_refused_comes_back() {
    let (_clock, _durable, queue) = memory();
    let timer = || seconds(60).key("order-17").unwrap().payload("mine");
    queue.schedule(timer()).wait().unwrap();
    let refused = queue.schedule(timer()).wait().unwrap_err();
    assert_eq!(refused.reason, Refused::KeyTaken(0, State::Scheduled));
    assert_eq!(&*refused.timers[0].payload, b"mine");
    assert_eq!(
        refused.to_string(),
        "the key \"order-17\" is taken by a timer that is scheduled: choose another, replace it or keep it"
    );
    let kept = queue.schedule_all(vec![timer(), seconds(1)], Conflict::Keep).wait().unwrap();
    let replaced = queue.replace(timer()).wait().unwrap();
    assert!(replaced.generation > kept[0].generation);
    assert_eq!(queue.count().wait().unwrap().unwrap().scheduled, 2);
    let twice = queue.schedule_all(vec![timer(), timer()], Conflict::Replace).wait().unwrap_err();
    assert_eq!(twice.reason, Refused::KeyTwice(1));
    let large = queue.schedule(seconds(1).payload(vec![0; (256 << 10) + 1])).wait().unwrap_err();
    assert_eq!((large.reason, large.timers.len()), (Refused::PayloadTooLarge(0), 1));
    let none = queue.schedule_all(Vec::new(), Conflict::Refuse).wait().unwrap_err();
    assert_eq!(none.reason, Refused::Count);
    let ended = NewTimer::every(SECOND).unwrap().until(tourbillon_durable::values::Moment::ZERO);
    assert_eq!(queue.schedule(ended).wait().unwrap_err().reason, Refused::Never(0));
}

#[test]
fn a_cancel_is_definite() {
    let (clock, _durable, queue) = memory();
    for key in ["a", "b"] {
        queue.schedule(seconds(60).key(key).unwrap()).wait().unwrap();
    }
    assert_eq!(queue.cancel("a").wait(), Ok(Cancelled::Cancelled));
    assert_eq!(queue.cancel("nobody").wait(), Ok(Cancelled::Unknown));
    clock.advance(60 * SECOND).unwrap();
    let [delivery] = take(&queue).try_into().unwrap();
    assert_eq!(delivery.key(), "b");
    assert_eq!(
        queue.cancel_all(["a", "b"]).wait(),
        Ok(vec![Cancelled::Cancelled, Cancelled::Delivering])
    );
    let stale = delivery.ack().wait().unwrap_err();
    assert_eq!(stale.to_string(), "the delivery counts no more: the timer was cancelled");
    let wrong = queue.cancel("").wait().unwrap_err();
    assert!(matches!(wrong, Error::Value(_)), "{wrong}");
}

#[test]
fn timers_are_moved_and_run() {
    let (clock, durable, queue) = memory();
    queue.schedule(seconds(60).key("a").unwrap()).wait().unwrap();
    let moved = queue.reschedule("a", 10 * SECOND).wait().unwrap();
    assert_eq!(moved.due, durable.now() + Span::from_secs(10));
    clock.advance(10 * SECOND).unwrap();
    let [delivery] = take(&queue).try_into().unwrap();
    assert_eq!(queue.run_now("a").wait().unwrap_err(), Error::State(State::Delivering));
    delivery.ack().wait().unwrap();
    assert_eq!(
        queue.reschedule("a", When::from(SECOND)).wait().unwrap_err(),
        Error::State(State::Done)
    );
    assert_eq!(queue.run_now("b").wait().unwrap_err(), Error::UnknownTimer);
    queue.schedule(seconds(60).key("c").unwrap()).wait().unwrap();
    assert_eq!(queue.run_now("c").wait().unwrap().state, State::Due);
    assert_eq!(queue.get("c").wait().unwrap().unwrap().state, State::Due);
    assert_eq!(take(&queue)[0].key(), "c");
}

#[test]
fn a_forecast_counts_what_is_to_come() {
    let (_clock, durable, queue) = memory();
    let timers = (0..60).map(|minute| seconds(minute * 60 + 1)).collect();
    queue.schedule_all(timers, Conflict::Refuse).wait().unwrap();
    let now = durable.now();
    let pieces = queue.forecast(now, now + Span::from_secs(3600), 4).wait().unwrap();
    assert_eq!(pieces.iter().map(|piece| piece.2).collect::<Vec<_>>(), [15; 4]);
}

#[test]
fn a_recurring_timer_keeps_its_rhythm() {
    let (clock, durable, queue) = memory();
    let begin = durable.now();
    let hourly = NewTimer::every(3600 * SECOND).unwrap().missed(Missed::Skip).times(2);
    queue.schedule(hourly.key("hourly").unwrap()).wait().unwrap();
    clock.advance(3600 * SECOND + 90 * SECOND).unwrap();
    let [first] = take(&queue).try_into().unwrap();
    assert_eq!(first.due(), begin + Span::from_secs(3600));
    assert_eq!(first.ack().wait(), Ok(Some(begin + Span::from_secs(7200))));
    clock.advance(3600 * SECOND).unwrap();
    let [second] = take(&queue).try_into().unwrap();
    assert_eq!((second.occurrence(), second.ack().wait()), (2, Ok(None)));
}

#[test]
fn the_clock_is_set_back_and_forward() {
    let (clock, _durable, queue) = memory();
    queue.schedule(seconds(60)).wait().unwrap();
    let waiting = queue.receive(1, 3600 * SECOND);
    clock.set_wall(clock.wall_now() - 600 * SECOND).unwrap();
    clock.advance(659 * SECOND).unwrap();
    assert_eq!(queue.count().wait().unwrap().unwrap().delivering, 0, "it waits");
    clock.set_wall(clock.wall_now() + 2 * SECOND).unwrap();
    assert_eq!(waiting.wait().unwrap().len(), 1, "set past its moment, it is due");
}

#[test]
fn values_are_checked_where_they_are_made() {
    let (_clock, durable, queue) = memory();
    assert!(durable.queue("a b").is_err());
    assert!(seconds(1).key("~1").is_err());
    assert!(NewTimer::cron("0 25 * * *", "UTC").is_err());
    assert!(NewTimer::every(SECOND / 2).is_err());
    assert!(seconds(1).retry(Retry { attempts: 0, ..Retry::default() }).is_err());
    let wrong = queue.lease(SECOND / 2).unwrap_err();
    assert_eq!(wrong.to_string(), "lease is \"500ms\": it must be 1s to 12h");
}

#[test]
fn a_closed_store_refuses_and_what_was_asked_for_before_is_done() {
    let (_clock, durable, queue) = memory();
    let receipt = queue.schedule(seconds(60));
    let waiting = queue.receive(1, 3600 * SECOND);
    durable.clone().close();
    assert!(receipt.wait().is_ok());
    assert_eq!(waiting.wait().unwrap_err(), Error::Stopped);
    assert!(durable.is_closed());
    let refused = queue.schedule(seconds(60)).wait().unwrap_err();
    assert_eq!(refused.reason, Refused::Request(Error::Stopped));
    assert!(Durable::memory().is_ok());
}

#[test]
fn a_payload_is_json_or_bytes_and_comes_back_as_it_came() {
    let (_clock, _durable, queue) = memory();
    // JSON that is not in its shortest form is returned unchanged, not reformatted.
    let json = Payload::json("{ \"id\":\t17.0 }");
    let timer = NewTimer { payload: json.clone(), ..seconds(0).key("json").unwrap() };
    queue.schedule(timer).wait().unwrap();
    queue.schedule(seconds(1).key("bytes").unwrap().payload(&*json)).wait().unwrap();
    assert_eq!(queue.get("json").wait().unwrap().unwrap().payload, json);
    let bytes = queue.get("bytes").wait().unwrap().unwrap().payload;
    assert_eq!((bytes.content(), &*bytes, bytes.text()), (Content::Bytes, &*json, None));
    let [delivery] = take(&queue).try_into().unwrap();
    assert_eq!((delivery.content(), delivery.payload()), (Content::Json, &*json));
}
