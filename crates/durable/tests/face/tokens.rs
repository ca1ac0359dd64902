//! Settling deliveries by token, as a remote client does.

use tourbillon_durable::values::{Key, Retry, Span};
use tourbillon_durable::{Cancelled, Conflict, Nack, Queue, Settled, Stale, State, Token};

use crate::{SECOND, memory, seconds, take};

/// Receives all due timers. Returns the tokens, formatted as text and parsed again.
fn tokens(queue: &Queue) -> Vec<Token> {
    let due = take(queue).into_iter().map(|delivery| delivery.detach().to_string());
    due.map(|token| token.parse().unwrap()).collect()
}

#[test]
fn tokens_settle_many_at_once_and_a_stale_one_says_why() {
    let (clock, durable, queue) = memory();
    let keys = ["acked", "cancelled", "dead", "moved", "nacked", "replaced"];
    let once = Retry { attempts: 1, ..Retry::default() };
    let timer = |key: &&str| seconds(0).key(key).unwrap();
    let timers = keys.iter().map(|key| match *key {
        "dead" => timer(key).retry(once).unwrap(),
        _ => timer(key),
    });
    queue.schedule_all(timers.collect(), Conflict::Refuse).wait().unwrap();
    let held = tokens(&queue);
    assert_eq!(held.len(), 6);
    let of = |key: &str| held.iter().find(|token| token.key.as_str() == key).unwrap();
    let until = durable.now() + Span::from_secs(60);
    let extended = queue.extend(&held, 60 * SECOND).wait().unwrap();
    assert_eq!(extended, vec![Ok(Settled::Extended(until)); 6]);
    assert!(queue.extend(&held, SECOND / 2).wait().is_err());
    assert_eq!(queue.ack([of("acked")]).wait().unwrap(), [Ok(Settled::Acked(None))]);
    assert_eq!(queue.cancel("cancelled").wait(), Ok(Cancelled::Delivering));
    let nack = || Nack::because("no").after(3600 * SECOND);
    let nacked = queue.nack([of("dead"), of("moved"), of("nacked")], nack()).wait().unwrap();
    assert_eq!(nacked[0], Ok(Settled::GivenUp(None)));
    assert!(matches!(nacked[1..], [Ok(Settled::Again(_)), Ok(Settled::Again(_))]));
    queue.reschedule("moved", 60 * SECOND).wait().unwrap();
    queue.replace(timer(&"replaced")).wait().unwrap();
    let unknown = Token { key: Key::new("nobody").unwrap(), ..of("acked").clone() };
    use Stale::{Acked, Cancelled as CancelledBefore, GivenUp, Moved, Nacked, Replaced, Unknown};
    let reasons = [Acked, CancelledBefore, GivenUp, Moved, Nacked, Replaced, Unknown].map(Err);
    let all: Vec<Token> = held.iter().cloned().chain([unknown]).collect();
    assert_eq!(queue.ack(&all).wait().unwrap(), reasons);
    assert_eq!(queue.nack(&all, nack()).wait().unwrap(), reasons);
    assert_eq!(queue.extend(&all, SECOND).wait().unwrap(), reasons);
    assert_eq!(Stale::HandedAgain.name(), "handed_again");
    clock.advance(3600 * SECOND).unwrap();
    let again = tokens(&queue);
    assert_eq!(queue.ack([of("nacked")]).wait().unwrap(), [Err(Stale::HandedAgain)]);
    clock.advance(31 * SECOND).unwrap();
    assert_eq!(queue.nack(&again[..1], nack()).wait().unwrap(), [Err(Stale::Lapsed)]);
    let late = queue.ack(&again).wait().unwrap();
    assert!(late.iter().all(Result::is_ok), "an ack counts after the lease: {late:?}");
}

#[test]
fn what_is_released_is_due_again_and_uses_no_attempt() {
    let (_clock, _durable, queue) = memory();
    let once = Retry { attempts: 1, ..Retry::default() };
    queue.schedule(seconds(0).key("a").unwrap().retry(once).unwrap()).wait().unwrap();
    for attempt in 1..4 {
        let [delivery] = take(&queue).try_into().unwrap();
        assert_eq!(delivery.attempt(), attempt, "the number rises all the same");
        delivery.release().wait().unwrap();
    }
    // The client of this receive is gone, but may have been handed the timer: the runtime detects that and releases it.
    drop(queue.receive(1, SECOND));
    while queue.get("a").wait().unwrap().unwrap().state != State::Due {
        std::thread::yield_now();
    }
    drop(take(&queue));
    assert_eq!(queue.get("a").wait().unwrap().unwrap().state, State::Dead);
}

#[test]
fn a_repeated_cancel_gets_the_first_answer() {
    let (clock, _durable, queue) = memory();
    for key in ["a", "b"] {
        queue.schedule(seconds(0).key(key).unwrap()).wait().unwrap();
    }
    let _b = queue.receive(2, SECOND).wait().unwrap().pop();
    queue.cancel("a").wait().unwrap();
    for _ in 0..3 {
        assert_eq!(queue.cancel("b").wait(), Ok(Cancelled::Delivering));
        clock.advance(100 * SECOND).unwrap();
    }
    clock.advance(600 * SECOND).unwrap();
    assert_eq!(queue.cancel("b").wait(), Ok(Cancelled::Unknown), "it is forgotten");
}

#[test]
fn an_answer_has_at_most_16_mib_of_payloads() {
    let (_clock, _durable, queue) = memory();
    let large = vec![7; 256 << 10];
    let timers = (0..70).map(|_| seconds(0).payload(&large)).collect();
    queue.schedule_all(timers, Conflict::Refuse).wait().unwrap();
    let (mut pages, mut cursor) = (Vec::new(), None);
    loop {
        let page = queue.list(Default::default(), cursor, 1000).wait().unwrap();
        pages.push(page.timers.len());
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(pages, [64, 6]);
    let first = queue.receive(1000, SECOND).wait().unwrap();
    let second = queue.receive(1000, SECOND).wait().unwrap();
    assert_eq!((first.len(), second.len()), (64, 6));
}
