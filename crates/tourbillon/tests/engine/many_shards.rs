//! More shards than fit into a byte: a stop hands back the timers of each of them.

use std::thread;

use crate::common::{HOUR, accounted};
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
