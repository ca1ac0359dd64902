//! Requests with a condition on a key, and how a replace reports the replaced timer.

use tourbillon_durable::values::{Generation, Key, Span};
use tourbillon_durable::{Cancelled, Conflict, Error, NewTimer, Outcome, Refused, State};

use crate::{SECOND, memory, seconds, take};

#[test]
fn what_was_replaced_is_told_and_a_remembered_key_counts_as_there() {
    let (clock, _durable, queue) = memory();
    let timer = || seconds(60).key("a").unwrap();
    let first = queue.schedule(timer()).wait().unwrap();
    let shown = first.timer.clone().expect("one timer is shown");
    assert_eq!((shown.state, shown.generation), (State::Scheduled, first.generation));
    clock.advance(60 * SECOND).unwrap();
    let [delivery] = take(&queue).try_into().unwrap();
    let second = queue.replace(timer()).wait().unwrap();
    assert_eq!(second.outcome, Outcome::Replaced(first.generation, State::Delivering));
    assert!(delivery.ack().wait().is_err(), "its token is stale");
    queue.cancel("a").wait().unwrap();
    let refused = queue.schedule(timer()).wait().unwrap_err();
    assert_eq!(refused.reason, Refused::KeyTaken(0, State::Cancelled));
    let kept = queue.schedule_with(timer(), Conflict::Keep).wait().unwrap();
    assert_eq!(kept.outcome, Outcome::Kept);
    assert_eq!(kept.timer.unwrap().state, State::Cancelled);
    let third = queue.replace(timer()).wait().unwrap();
    assert_eq!(third.outcome, Outcome::Replaced(second.generation, State::Cancelled));
    let batch = queue.schedule_all(vec![timer(), seconds(1)], Conflict::Replace).wait().unwrap();
    assert_eq!(batch[0].outcome, Outcome::Replaced(third.generation, State::Scheduled));
    assert_eq!(batch[1].outcome, Outcome::Made);
    assert!(batch.iter().all(|scheduled| scheduled.timer.is_none()), "a batch shows none");
}

#[test]
fn a_change_may_be_meant_for_one_generation_only() {
    let (_clock, _durable, queue) = memory();
    let timer = || seconds(60).key("a").unwrap();
    let gone = Generation(4711);
    let none = queue.schedule_with(timer(), Conflict::ReplaceOnly(gone)).wait().unwrap_err();
    assert_eq!(none.reason, Refused::Mismatch(0, None));
    let there = queue.schedule(timer()).wait().unwrap().generation;
    let other = Some(there);
    let refused = queue.schedule_with(timer(), Conflict::ReplaceOnly(gone)).wait().unwrap_err();
    assert_eq!(refused.reason, Refused::Mismatch(0, other));
    assert_eq!(queue.cancel_only("a", gone).wait(), Err(Error::Mismatch(other)));
    assert_eq!(queue.reschedule_only("a", SECOND, gone).wait(), Err(Error::Mismatch(other)));
    assert_eq!(queue.get("a").wait().unwrap().unwrap().generation, there, "nothing happened");
    let moved = queue.reschedule_only("a", SECOND, there).wait().unwrap();
    assert_eq!(moved.generation, there);
    assert_eq!(queue.cancel_only("a", there).wait(), Ok(Cancelled::Cancelled));
    assert_eq!(queue.cancel_only("a", there).wait(), Ok(Cancelled::Cancelled), "the first answer");
    assert_eq!(queue.cancel_only("b", there).wait(), Ok(Cancelled::Unknown));
    assert_eq!(queue.reschedule_only("b", SECOND, there).wait(), Err(Error::UnknownTimer));
}

#[test]
fn an_assigned_key_is_replaced_only_if_it_is_there() {
    let (_clock, _durable, queue) = memory();
    let of = |key: Key| NewTimer { key: Some(key), ..seconds(90).payload("new") };
    let free = Key::new("~1-2").unwrap();
    for conflict in [Conflict::Refuse, Conflict::Keep, Conflict::Replace] {
        let refused = queue.schedule_with(of(free.clone()), conflict).wait().unwrap_err();
        assert_eq!(refused.reason, Refused::NotAssigned(0));
    }
    let first = queue.schedule(seconds(60)).wait().unwrap();
    let second = queue.replace(of(first.key.clone())).wait().unwrap();
    assert_eq!(second.outcome, Outcome::Replaced(first.generation, State::Scheduled));
    let shown = queue.get(first.key.as_str()).wait().unwrap().unwrap();
    assert_eq!((shown.generation, &*shown.payload), (second.generation, &b"new"[..]));
    assert!(shown.remember == Span::ZERO, "as for any ~ key");
    queue.cancel(first.key.as_str()).wait().unwrap();
    assert_eq!(queue.get(first.key.as_str()).wait(), Ok(None));
    let late = queue.replace(of(first.key)).wait().unwrap_err();
    assert_eq!(late.reason, Refused::NotAssigned(0));
}
