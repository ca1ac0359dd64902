//! More shards than fit into a byte: every report of a timer shows the key with which it was armed.

use std::thread;

use crate::common::{HOUR, Log, accounted, case};
use tourbillon::{Batch, Builder, Engine, Key, State, Timeout, Timer, Unfired, VirtualClock};

const SHARDS: usize = 512;

/// Enough to distinguish the shards.
const SOME: usize = 16;

/// A timer with this many shards, with a key and a handle on most of them: each is created by its own thread, and a
/// thread keeps to one shard.
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
    let mut keys: Vec<Key> = timer.stop().iter().map(Unfired::key).collect();
    assert_eq!(keys.len(), 2 * SHARDS);
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 2 * SHARDS, "each has its own");
    assert!(all.iter().all(|(key, _)| keys.binary_search(key).is_ok()));
    assert!(all.iter().all(|(_, handle)| handle.state() == State::HandedBack));
    accounted(&timer);
}

/// Arms a timer on most of several shards.
fn on_all_shards<T: Clone + Send + 'static>(
    armed: &T,
    arm: impl Fn(&T) -> Key + Clone + Send + 'static,
) -> Vec<Key> {
    let one = || {
        let (armed, arm) = (armed.clone(), arm.clone());
        thread::spawn(move || arm(&armed)).join().unwrap()
    };
    std::iter::repeat_with(one).take(SOME).collect()
}

fn values(engine: &Engine<u32>) -> Vec<Key> {
    on_all_shards(engine, |engine| engine.schedule(HOUR, 7).unwrap())
}

fn timers(timer: &Timer) -> Vec<Key> {
    on_all_shards(timer, |timer| timer.arm(HOUR, |_| ()).unwrap())
}

fn collecting(told: &Log<Key>) -> impl FnMut(Batch<'_, u32>) + Send + 'static {
    let told = told.clone();
    move |batch| batch.for_each(|fired| told.add(fired.key))
}

/// Arms timers and makes the engine report them; returns the keys from arming. The reported keys are logged.
type Names = (&'static str, fn(Builder, &VirtualClock, &Log<Key>) -> Vec<Key>);

const NAMES: [Names; 10] = [
    ("Batch", |builder, clock, told| {
        let engine = builder.deliver(collecting(told)).unwrap();
        let keys = values(&engine);
        clock.advance(HOUR).unwrap();
        keys
    }),
    ("Batch of a driver", |builder, _, told| {
        let (engine, mut driver) = builder.deliver_driven(collecting(told)).unwrap();
        let keys = values(&engine);
        while driver.turn_within(HOUR).ran > 0 {}
        keys
    }),
    ("Engine::stop", |builder, _, told| {
        let engine = builder.deliver(|_| ()).unwrap();
        let keys = values(&engine);
        engine.stop().iter().for_each(|unfired| told.add(unfired.key));
        keys
    }),
    ("Engine::pending", |builder, _, told| {
        let engine = builder.deliver(|_| ()).unwrap();
        let keys = values(&engine);
        engine.pending().iter().for_each(|pending| told.add(pending.key));
        keys
    }),
    ("Timer::pending", |builder, _, told| {
        let timer = builder.build().unwrap();
        let keys = timers(&timer);
        timer.pending().iter().for_each(|pending| told.add(pending.key));
        keys
    }),
    ("Unfired::key", |builder, _, told| {
        let timer = builder.build().unwrap();
        let keys = timers(&timer);
        timer.stop().iter().for_each(|unfired| told.add(unfired.key()));
        keys
    }),
    ("Context::key", |builder, clock, told| {
        let (timer, told) = (builder.build().unwrap(), told.clone());
        let keys = on_all_shards(&timer, move |timer| {
            let told = told.clone();
            timer.arm(HOUR, move |context| told.add(context.key())).unwrap()
        });
        clock.advance(HOUR).unwrap();
        keys
    }),
    ("Context::key of one that repeats", |builder, clock, told| {
        let (timer, told) = (builder.build().unwrap(), told.clone());
        let keys = on_all_shards(&timer, move |timer| {
            let told = told.clone();
            timer.schedule_repeating(HOUR, move |context| told.add(context.key())).unwrap().key()
        });
        clock.advance(HOUR).unwrap();
        keys
    }),
    ("Context::key of what was handed back", |builder, _, told| {
        let (timer, told) = (builder.build().unwrap(), told.clone());
        let keys = on_all_shards(&timer, move |timer| {
            let told = told.clone();
            timer.arm(HOUR, move |context| told.add(context.key())).unwrap()
        });
        timer.stop().into_iter().for_each(Unfired::run);
        keys
    }),
    ("Timeout::key of the run", |builder, clock, told| {
        let (timer, told) = (builder.build().unwrap(), told.clone());
        let keys = on_all_shards(&timer, move |timer| {
            let told = told.clone();
            let tell = move |context: &tourbillon::Context<'_>| {
                told.add(context.timeout().unwrap().key());
            };
            timer.schedule(HOUR, tell).unwrap().key()
        });
        clock.advance(HOUR).unwrap();
        keys
    }),
];

#[test]
fn a_timer_is_named_by_the_key_that_it_was_armed_with() {
    for (name, names) in NAMES {
        case(name, move || {
            let (clock, told) = (VirtualClock::new(), Log::new());
            let builder = Timer::builder().clock(&clock).shards(SOME);
            let mut keys = names(builder, &clock, &told);
            let mut named = told.take();
            keys.sort_unstable();
            named.sort_unstable();
            assert_eq!(keys, named);
        });
    }
}
