//! Events, and a wall clock that is far off.

use std::time::Duration;

use futures_lite::StreamExt;
use futures_lite::future::block_on;
use tourbillon::VirtualClock;
use tourbillon_durable::memory::MemoryStore;
use tourbillon_durable::store::{Op, ShardRow, Store};
use tourbillon_durable::values::{Moment, Retry, Span};
use tourbillon_durable::{Conflict, Durable, Event, FarOff, Happened, Heard, Nack, Notice, Watch};

use crate::{SECOND, memory, seconds, take};

/// The events since the last call.
fn told(events: &mut Watch<Event>) -> Vec<(Happened, String, u64, u32)> {
    let next = || match events.next_within(Duration::ZERO)? {
        Heard::Item(event) => {
            let key = event.key.map_or_else(String::new, |key| key.to_string());
            Some((event.happened, key, event.occurrence, event.attempt))
        }
        Heard::Lost(lost) => panic!("{lost} were lost"),
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn events_tell_what_happens_to_a_timer() {
    use Happened::{Acked, Cancelled, Dead, Due, Failed, Handed, Scheduled};
    let (clock, durable, queue) = memory();
    let (mut all, mut of_queue) = (durable.events(), queue.events());
    let other = durable.queue("other").unwrap();
    other.schedule(seconds(1000).key("b").unwrap()).wait().unwrap();
    let retry = Retry { attempts: 2, jitter: 0.0, ..Retry::default() };
    let timer = |key: &str| seconds(10).key(key).unwrap().retry(retry).unwrap();
    queue.schedule(timer("a")).wait().unwrap();
    assert_eq!(told(&mut all).len(), 2);
    let a = |happened, attempt| (happened, "a".to_owned(), 1, attempt);
    assert_eq!(told(&mut of_queue), [a(Scheduled, 0)]);
    clock.advance(10 * SECOND).unwrap();
    take(&queue).remove(0).nack(Nack::default()).wait().unwrap();
    clock.advance(SECOND).unwrap();
    let ways = [a(Due, 0), a(Handed, 1), a(Failed, 1), a(Due, 1)];
    assert_eq!(told(&mut of_queue), ways);
    drop(take(&queue));
    queue.count().wait().unwrap();
    assert_eq!(told(&mut of_queue), [a(Handed, 2), a(Failed, 2), a(Dead, 2)]);
    queue.run_now("a").wait().unwrap();
    take(&queue).remove(0).ack().wait().unwrap();
    let ways = [a(Scheduled, 2), a(Due, 2), a(Handed, 3), a(Acked, 3)];
    assert_eq!(told(&mut of_queue), ways);
    queue.schedule(timer("c")).wait().unwrap();
    queue.run_now("c").wait().unwrap();
    clock.advance(3600 * SECOND).unwrap();
    queue.cancel("c").wait().unwrap();
    queue.clear().wait().unwrap();
    let c = |happened| (happened, "c".to_owned(), 1, 0);
    let all_of_it = (Cancelled, String::new(), 0, 0);
    let ways = [c(Scheduled), c(Scheduled), c(Due), c(Cancelled), all_of_it];
    assert_eq!(told(&mut of_queue), ways);
    durable.close();
    assert_eq!(block_on(of_queue.next()), None, "the stream ends");
}

#[test]
fn a_slow_reader_loses_lines_and_harms_nobody() {
    let (_clock, durable, queue) = memory();
    let mut events = durable.events();
    for _ in 0..2 {
        let timers = (0..1000).map(|_| seconds(60)).collect();
        queue.schedule_all(timers, Conflict::Refuse).wait().unwrap();
    }
    assert_eq!(events.next_within(Duration::ZERO), Some(Heard::Lost(976)));
    assert_eq!(told(&mut events).len(), 1024);
    assert_eq!(queue.count().wait().unwrap().unwrap().scheduled, 2000);
}

#[test]
fn a_clock_that_is_far_off_is_told() {
    let clock = VirtualClock::new();
    let begin = Moment::from(clock.wall_now());
    let day = Span::from_secs(86_400);
    for (seen, told) in [
        (begin + day, false),
        (begin + day + Span::from_millis(1), true),
        (Moment::from_millis(1), true),
        (Moment::ZERO, false),
    ] {
        let mut store = MemoryStore::new();
        let epoch = store.open().unwrap().epoch;
        let row = ShardRow { wall: seen, ..ShardRow::default() };
        store.commit(epoch, &[Op::Shard(row)]).unwrap();
        let durable = Durable::builder().clock(&clock).with_store(store).unwrap();
        durable.queues().wait().unwrap();
        let far_off = Notice::Clock(FarOff { expected: seen, reads: begin });
        let notice = durable.notices().next_within(Duration::ZERO);
        assert_eq!(notice, told.then_some(Heard::Item(far_off)), "{seen}");
    }
    let (clock, durable, _queue) = memory();
    let mut notices = durable.notices();
    clock.set_wall(clock.wall_now() + 300 * 86_400 * SECOND).unwrap();
    durable.queues().wait().unwrap();
    assert_eq!(notices.next_within(Duration::ZERO), None);
    let expected = durable.now();
    clock.set_wall(clock.wall_now() + 400 * 86_400 * SECOND).unwrap();
    durable.queues().wait().unwrap();
    let far_off = FarOff { expected, reads: durable.now() };
    assert_eq!(notices.next_within(Duration::ZERO), Some(Heard::Item(Notice::Clock(far_off))));
}
