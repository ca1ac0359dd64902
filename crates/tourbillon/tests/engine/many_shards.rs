//! More shards than fit into a byte: keys and handles find their timer on each of them.

use std::thread;

use crate::common::{HOUR, SECOND, accounted};
use tourbillon::{Key, State, Timeout, Timer, VirtualClock};

const SHARDS: usize = 512;

/// A timer of so many shards with a key and a handle on most: each is made by a thread of its own, and threads keep to
/// a shard.
fn spread() -> (Timer, VirtualClock, Vec<(Key, Timeout)>) {
    let clock = VirtualClock::new();
    let builder = Timer::builder().clock(&clock).on_driver().shards(SHARDS);
    let timer = builder.build().unwrap();
    let own = timer.clone();
    let arm = move || {
        let timer = own.clone();
        let arm = move || (timer.arm(HOUR, |_| ()), timer.schedule(HOUR, |_| ()));
        let (key, handle) = thread::spawn(arm).join().unwrap();
        (key.unwrap(), handle.unwrap())
    };
    let all = std::iter::repeat_with(arm).take(SHARDS).collect();
    let used = |shard: &tourbillon::ShardView| shard.slots.iter().any(|slot| slot.timers > 0);
    let used = timer.snapshot().shards.iter().filter(|shard| used(shard)).count();
    assert!(used > 256 + 128, "{used} shards are used");
    (timer, clock, all)
}

#[test]
fn keys_and_handles_find_their_timers_on_every_shard() {
    let (timer, clock, all) = spread();
    let moved = timer.now() + SECOND * 10;
    for (key, handle) in &all {
        assert!(timer.is_pending(*key) && handle.state() == State::Pending);
        timer.reschedule_at(*key, moved).unwrap();
        handle.reschedule_at(moved).unwrap();
        assert_eq!((timer.deadline(*key), handle.deadline()), (Some(moved), Some(moved)));
    }
    let (cancelled, fire) = all.split_at(SHARDS * 2 / 3);
    assert!(cancelled.iter().all(|(key, handle)| timer.cancel(*key) && handle.cancel()));
    clock.advance(SECOND * 10).unwrap();
    assert!(fire.iter().all(|(key, handle)| !timer.cancel(*key) && handle.state() == State::Fired));
    assert_eq!(timer.counts().fired as usize, 2 * fire.len());
    accounted(&timer);
}

#[test]
fn a_stop_names_those_that_it_hands_back_on_every_shard() {
    let (timer, _clock, all) = spread();
    let mut keys: Vec<Key> = timer.stop().iter().map(tourbillon::Unfired::key).collect();
    assert_eq!(keys.len(), 2 * SHARDS);
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 2 * SHARDS, "each has its own");
    assert!(all.iter().all(|(key, _)| keys.binary_search(key).is_ok()));
    assert!(all.iter().all(|(_, handle)| handle.state() == State::HandedBack));
    accounted(&timer);
}
