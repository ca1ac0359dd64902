//! The builder: an invalid setting is an error that names it; presets; the limit; when threads start. In real time
//! where threads are counted, milliseconds of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use crate::common::{Drops, HOUR, Log, MS, SECOND, accounted, case, eventually, within};
use tourbillon::wheel::Slot;
use tourbillon::{Builder, Context, Job, ScheduleError, Timer, VirtualClock};

/// A builder that counts the threads that it starts.
fn counted() -> (Builder, Arc<AtomicUsize>) {
    let started = Arc::new(AtomicUsize::new(0));
    let count = started.clone();
    let builder = Timer::builder().spawn(move |name, body| {
        count.fetch_add(1, SeqCst);
        thread::Builder::new().name(name).spawn(body).map(|_| ())
    });
    (builder, started)
}

#[test]
fn what_cannot_be_is_named_with_its_value_and_starts_no_thread() {
    type Set = fn(Builder) -> Builder;
    let wrong: [(&str, &str, Set); 11] = [
        ("tick", "0ns", |builder| builder.tick(Duration::ZERO)),
        ("budget", "0", |builder| builder.budget(0)),
        ("limit", "0", |builder| builder.limit(0)),
        ("shards", "0", |builder| builder.shards(0)),
        ("shards", "1025", |builder| builder.shards(1025)),
        ("pool", "0", |builder| builder.pool(0)),
        ("hashed", "0", |builder| builder.hashed(0)),
        ("hashed", "1048577", |builder| builder.hashed((1 << 20) + 1)),
        ("hierarchical", "[]", |builder| builder.hierarchical(&[])),
        ("hierarchical", "[60, 1]", |builder| builder.hierarchical(&[60, 1])),
        ("hierarchical", "[1048577]", |builder| builder.hierarchical(&[(1 << 20) + 1])),
    ];
    for (setting, value, set) in wrong {
        let (builder, started) = counted();
        let error = set(builder).build().unwrap_err();
        assert_eq!((error.setting(), error.value()), (setting, value));
        let text = error.to_string();
        assert!(text.contains(setting) && text.contains(value), "{text}");
        if setting != "pool" {
            let (builder, _) = counted();
            assert_eq!(set(builder).deliver::<u8, _>(|_| ()).unwrap_err(), error);
        }
        assert_eq!(started.load(SeqCst), 0);
    }
}

#[test]
fn every_setting_at_its_ends_works() {
    type Set = fn(Builder) -> Builder;
    let ends: [Set; 10] = [
        |builder| builder.tick(Duration::from_nanos(1)),
        |builder| builder.budget(1),
        |builder| builder.budget(usize::MAX),
        |builder| builder.limit(usize::MAX),
        |builder| builder.shards(1024).hierarchical(&[2]),
        |builder| builder.shards(3),
        |builder| builder.hashed(1),
        |builder| builder.hashed(1 << 20).shards(1),
        |builder| builder.hierarchical(&[2, 3, 1000]),
        |builder| builder.hierarchical(&[1 << 20]).shards(1),
    ];
    for (n, set) in ends.into_iter().enumerate() {
        let clock = VirtualClock::new();
        let timer = set(Timer::builder()).clock(&clock).build().unwrap();
        let handles: Vec<_> =
            (0..50).map(|n| timer.schedule(MS * n * n, |_| ()).unwrap()).collect();
        clock.advance(HOUR).unwrap();
        assert!(handles.iter().all(|handle| !handle.is_pending()), "number {n}");
        assert_eq!(timer.counts().fired, 50);
        accounted(&timer);
    }
}

#[test]
fn shards_are_rounded_up_to_a_power_of_two() {
    for (asked, made) in [(1, 1), (2, 2), (3, 4), (5, 8), (1000, 1024)] {
        let timer = Timer::builder().shards(asked).hierarchical(&[2]).build().unwrap();
        assert_eq!(timer.snapshot().shards.len(), made);
    }
}

/// The slot of a timer this many ticks away.
fn slot_of(builder: Builder, tick: Duration, ticks: u32) -> Slot {
    let clock = VirtualClock::new();
    let timer = builder.clock(&clock).build().unwrap();
    timer.schedule(tick * ticks, |_| ()).unwrap();
    let snapshot = timer.snapshot();
    snapshot.slots().next().unwrap().slot
}

#[test]
fn hashed_slots_are_rounded_up_to_a_power_of_two() {
    for (asked, made) in [(1, 1), (2, 2), (3, 4), (500, 512), (513, 1024)] {
        let hashed = || Timer::builder().hashed(asked).shards(1);
        assert_eq!(slot_of(hashed(), MS, made - 1), Slot::Ring { slot: made - 1 });
        assert_eq!(slot_of(hashed(), MS, made), Slot::Ring { slot: 0 });
    }
}

#[test]
fn presets_are_what_they_say() {
    // Netty: a tick of 100 ms, 512 slots, callbacks on the driver's thread.
    let tick = Duration::from_millis(100);
    assert_eq!(slot_of(Builder::netty(), tick, 511), Slot::Ring { slot: 511 });
    assert_eq!(slot_of(Builder::netty(), tick, 513), Slot::Ring { slot: 1 });
    // Kafka: a tick of 1 ms, levels of 20 slots.
    assert_eq!(slot_of(Builder::kafka(), MS, 19), Slot::Level { level: 1, slot: 19 });
    assert!(matches!(slot_of(Builder::kafka(), MS, 25), Slot::Level { level: 2, slot: 1 }));
    for (preset, tick, on_caller) in [(Builder::netty(), tick, true), (Builder::kafka(), MS, false)]
    {
        let clock = VirtualClock::new();
        let timer = preset.clock(&clock).build().unwrap();
        let log = Log::new();
        let (told, read) = (log.clone(), clock.clone());
        let run = move |_: &Context<'_>| told.add((read.elapsed(), thread::current().id()));
        timer.schedule(Duration::from_nanos(1), run).unwrap();
        clock.advance(SECOND).unwrap();
        let (at, thread) = log.take()[0];
        assert_eq!(at, tick);
        // With a virtual clock, the thread that advances it is the driver.
        assert_eq!(thread == thread::current().id(), on_caller);
    }
}

/// Real time, milliseconds.
#[test]
fn the_driver_starts_with_the_first_timer_and_not_before() {
    let (builder, started) = counted();
    let timer = builder.on_driver().build().unwrap();
    let clone = timer.clone();
    let _ = (timer.len(), timer.counts(), timer.snapshot(), timer.pending(), timer.now());
    assert_eq!(started.load(SeqCst), 0);
    timer.schedule(HOUR, |_| ()).unwrap();
    assert_eq!(started.load(SeqCst), 1);
    clone.schedule(MS, |_| ()).unwrap();
    eventually(|| timer.counts().fired == 1);
    assert_eq!(started.load(SeqCst), 1, "one is enough");
    timer.stop();
    assert!(timer.schedule(MS, |_| ()).is_err());
    assert_eq!(started.load(SeqCst), 1);

    // Never used, so never started.
    let (builder, started) = counted();
    drop(builder.build().unwrap());
    let (builder, unused) = counted();
    assert!(builder.build().unwrap().stop().is_empty());
    assert_eq!((started.load(SeqCst), unused.load(SeqCst)), (0, 0));
}

#[test]
fn start_is_optional_and_idempotent() {
    let (builder, started) = counted();
    let timer = builder.build().unwrap();
    (0..5).for_each(|_| timer.start().unwrap());
    assert_eq!(started.load(SeqCst), 1);
    timer.schedule(HOUR, |_| ()).unwrap();
    assert_eq!(started.load(SeqCst), 1);
    let threads = thread::scope(|scope| {
        let (builder, started) = counted();
        let timer = builder.build().unwrap();
        for _ in 0..8 {
            let timer = timer.clone();
            scope.spawn(move || _ = timer.arm(HOUR, |_| ()).unwrap());
        }
        started
    });
    assert_eq!(threads.load(SeqCst), 1, "eight first timers at once start one driver");
    within(move || timer.stop().len());
}

#[test]
fn the_limit_is_exact_and_freed_by_fire_cancel_and_stop() {
    let (clock, drops) = (VirtualClock::new(), Drops::new());
    let timer = Timer::builder().clock(&clock).limit(10).shards(4).build().unwrap();
    let full = |timer: &Timer| {
        let drop = drops.one();
        let before = drops.count();
        let refused = timer.schedule(SECOND, move |_| _ = &drop);
        assert!(matches!(refused, Err(ScheduleError::Full(_))));
        assert_eq!(drops.count(), before, "the closure is in the error");
        assert!(matches!(timer.arm(SECOND, |_| ()), Err(ScheduleError::Full(_))));
    };
    let mut handles: Vec<_> = (0..10).map(|_| timer.schedule(SECOND, |_| ()).unwrap()).collect();
    full(&timer);
    assert_eq!(timer.len(), 10);
    // A cancel frees one place, once.
    let cancelled = handles.pop().unwrap();
    assert!(cancelled.cancel() && !cancelled.cancel());
    timer.arm(SECOND, |_| ()).unwrap();
    full(&timer);
    // Firing frees all places, and a refused timer has taken none.
    clock.advance(SECOND).unwrap();
    let keys: Vec<_> = (0..10).map(|_| timer.arm(HOUR, |_| ()).unwrap()).collect();
    full(&timer);
    timer.reschedule(keys[0], 2 * HOUR).unwrap();
    full(&timer);
    assert!(keys.iter().all(|&key| timer.cancel(key)));
    // A repeating timer keeps its place while it runs and is armed again.
    timer.schedule_repeating(SECOND, |context| _ = context.again(SECOND)).unwrap();
    (0..9).for_each(|_| _ = timer.arm(HOUR, |_| ()).unwrap());
    clock.advance(10 * SECOND).unwrap();
    full(&timer);
    assert_eq!(timer.len(), 10);
    assert_eq!(timer.stop().len(), 10);
    assert!(matches!(timer.arm(SECOND, |_| ()), Err(ScheduleError::Stopped(_))));
    accounted(&timer);
}

#[test]
fn a_callback_has_the_place_that_it_left() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).limit(1).on_driver().build().unwrap();
    let log = Log::new();
    let told = log.clone();
    let run = move |context: &Context<'_>| {
        told.add(context.timer().arm(SECOND, |_| ()).is_ok());
        told.add(context.timer().arm(SECOND, |_| ()).is_ok());
    };
    timer.schedule(SECOND, run).unwrap();
    clock.advance(SECOND).unwrap();
    assert_eq!(log.take(), [true, false]);
}

/// A timer that runs and will be armed again has not given up its place.
#[test]
fn a_repeating_timer_does_not_exceed_the_limit() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).limit(1).on_driver().build().unwrap();
    let log = Log::new();
    let told = log.clone();
    let run = move |context: &Context<'_>| {
        context.again(SECOND);
        told.add(context.timer().arm(HOUR, |_| ()).is_ok());
    };
    let handle = timer.schedule_repeating(SECOND, run).unwrap();
    clock.advance(2 * SECOND).unwrap();
    assert!(timer.len() <= 1, "{} are pending", timer.len());
    // The limit may accept or refuse this; but the place is free once the timer has ended.
    handle.cancel();
    timer.pending().iter().for_each(|left| assert!(timer.cancel(left.key)));
    timer.arm(SECOND, |_| ()).expect("the place is free");
    assert!(timer.arm(SECOND, |_| ()).is_err());
}

#[test]
fn eight_threads_never_exceed_the_limit() {
    let timer = Timer::builder().limit(100).shards(4).build().unwrap();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..5000 {
                    if let Ok(key) = timer.arm(HOUR, |_| ()) {
                        assert!(timer.counts().pending <= 100);
                        assert!(timer.cancel(key));
                    }
                }
            });
        }
    });
    (0..100).for_each(|_| _ = timer.arm(HOUR, |_| ()).unwrap());
    assert!(timer.arm(HOUR, |_| ()).is_err());
    accounted(&timer);
}

#[test]
fn names_are_given_to_threads() {
    let names = Log::new();
    let told = names.clone();
    let builder = Timer::builder().name("mine").spawn(move |name, body| {
        told.add(name.clone());
        thread::Builder::new().name(name).spawn(body).map(|_| ())
    });
    let timer = builder.pool(1).build().unwrap();
    timer.schedule(Duration::ZERO, |_| ()).unwrap();
    eventually(|| timer.counts().fired == 1);
    assert_eq!(names.take(), ["mine-driver", "mine-worker"]);
}

/// The presets differ in where callbacks run, also from the default.
#[test]
fn a_preset_runs_its_callbacks_where_it_says() {
    type Preset = (&'static str, fn() -> Builder, usize);
    let presets: [Preset; 2] = [("netty", Builder::netty, 0), ("kafka", Builder::kafka, 1)];
    for (name, preset, pool) in presets {
        let timer = preset().build().unwrap();
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..4 {
            let (running, most) = (running.clone(), most.clone());
            let run = move |_: &Context<'_>| {
                most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
                thread::sleep(2 * MS);
                running.fetch_sub(1, SeqCst);
            };
            timer.arm(Duration::ZERO, run).unwrap();
        }
        eventually(|| timer.activity().completed == 4);
        assert_eq!((most.load(SeqCst), timer.activity().threads), (1, pool), "{name}");
    }
}

/// An executor that runs each job on a thread with this name.
fn threads_called(name: &'static str) -> impl Fn(Job) -> Result<(), Job> + Send + Sync + 'static {
    move |job| {
        thread::Builder::new().name(name.into()).spawn(move || job.run()).unwrap();
        Ok(())
    }
}

/// The name of the thread on which callbacks run, and the setting that runs them there.
type Place = (&'static str, fn(Builder) -> Builder);

/// With a virtual clock, the thread that advances it is the driver.
const CALLBACKS_ON: [Place; 4] = [
    ("own-worker", |builder| builder.pool(1)),
    ("driver", Builder::on_driver),
    ("one executor", |builder| builder.executor(threads_called("one executor"))),
    ("another executor", |builder| builder.executor(threads_called("another executor"))),
];

/// Also on a preset, which has a place of its own. A function that starts threads starts those of the pool, whenever it
/// was given, and decides nothing else.
#[test]
fn the_last_setting_decides_where_callbacks_run() {
    type Preset = (&'static str, fn() -> Builder);
    let presets: [Preset; 3] =
        [("default", Timer::builder), ("netty", Builder::netty), ("kafka", Builder::kafka)];
    let pairs = CALLBACKS_ON.into_iter().flat_map(|one| CALLBACKS_ON.map(|other| (one, other)));
    for ((first, one), (last, other)) in pairs {
        for (preset, builder) in presets {
            for spawns_before in 0..=2 {
                let body = move || {
                    let started = Log::new();
                    let build = || {
                        let told = started.clone();
                        let mut spawn =
                            Some(move |name: String, body: Box<dyn FnOnce() + Send>| {
                                told.add(name.clone());
                                thread::Builder::new().name(name).spawn(body).map(|_| ())
                            });
                        let mut builder = builder().shards(1).name("own");
                        for (n, set) in [one, other, |builder| builder].into_iter().enumerate() {
                            if n == spawns_before {
                                builder = builder.spawn(spawn.take().unwrap());
                            }
                            builder = set(builder);
                        }
                        builder
                    };
                    let (clock, ran) = (VirtualClock::new(), Log::new());
                    let timer = build().clock(&clock).build().unwrap();
                    let told = ran.clone();
                    let run = move |_: &Context<'_>| {
                        told.add(thread::current().name().map(str::to_owned));
                    };
                    timer.schedule(SECOND, run).unwrap();
                    let driver = thread::Builder::new().name("driver".into());
                    let advance = {
                        let clock = clock.clone();
                        move || clock.advance(SECOND).unwrap()
                    };
                    driver.spawn(advance).unwrap().join().unwrap();
                    assert_eq!(ran.take(), [Some(last.to_owned())]);
                    let of_the_pool = if last == "own-worker" { vec![last] } else { vec![] };
                    assert_eq!(started.take(), of_the_pool, "the threads that were started");
                    // An event loop has no other place than its own.
                    let driven = build().clock(&clock).build_driven();
                    assert_eq!(driven.is_ok(), last == "driver", "{:?}", driven.err());
                };
                case(format!("{preset}, {first}, {last}, spawn after {spawns_before}"), body);
            }
        }
    }
}
