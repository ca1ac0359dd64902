//! Many timers at once: on one tick, armed and cancelled by the million, from eight threads against the driver, and a
//! stop that races with schedule. Every timer is accounted for, all the time.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use common::{HOUR, Log, MS, PLACES, SECOND, accounted, running_on, within};
use tourbillon::{Context, Key, ScheduleError, State, Timer, VirtualClock};

#[test]
fn a_million_on_one_tick() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).shards(2).on_driver().build().unwrap();
    let fired = Arc::new(AtomicU64::new(0));
    for _ in 0..1_000_000 {
        let fired = fired.clone();
        timer.arm(SECOND, move |_| _ = fired.fetch_add(1, SeqCst)).unwrap();
    }
    // A timer of another shard on the same tick waits for one pass, not for all the million.
    let log = Log::new();
    let (told, seen) = (log.clone(), fired.clone());
    let home = timer.snapshot().shards.iter().position(|shard| !shard.slots.is_empty()).unwrap();
    common::arm_in_shard(&timer, 1 - home, move |timer| {
        let (told, seen) = (told.clone(), seen.clone());
        timer.arm(SECOND, move |_| told.add(seen.load(SeqCst))).unwrap();
    });
    clock.advance(SECOND - MS).unwrap();
    assert_eq!(fired.load(SeqCst), 0);
    clock.advance(MS).unwrap();
    assert_eq!((fired.load(SeqCst), timer.len()), (1_000_000, 0));
    assert!(log.take()[0] <= 2048, "a crowded slot delays others by a pass");
    assert!(timer.lateness().max().is_zero());
    accounted(&timer);
}

#[test]
fn a_million_values_on_one_tick() {
    let (clock, total) = (VirtualClock::new(), Arc::new(AtomicU64::new(0)));
    let sum = total.clone();
    let engine = Timer::builder().clock(&clock).deliver(move |batch| {
        assert!(batch.len() <= 1024, "a batch is bounded by the budget");
        sum.fetch_add(batch.map(|timer| timer.value).sum::<u64>(), SeqCst);
    });
    let engine = engine.unwrap();
    (0..1_000_000).for_each(|n| _ = engine.schedule(SECOND, n).unwrap());
    clock.advance(SECOND).unwrap();
    assert_eq!((total.load(SeqCst), engine.counts().fired), (499_999_500_000, 1_000_000));
}

#[test]
fn the_memory_of_ten_million_that_were_cancelled_returns() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).shards(1).on_driver().build().unwrap();
    let keep = timer.arm(2 * HOUR, |_| ()).unwrap();
    let empty = timer.snapshot().memory();
    let mut keys: Vec<Key> = Vec::with_capacity(1_000_000);
    let mut first_peak = 0;
    for round in 0..10_u32 {
        for n in 0..1_000_000_u32 {
            keys.push(timer.arm(MS * (n % 60_000) + SECOND, |_| unreachable!()).unwrap());
        }
        assert!(keys.drain(..).all(|key| timer.cancel(key)));
        let memory = timer.snapshot().memory();
        if round == 0 {
            first_peak = memory;
        }
        assert!(
            memory <= first_peak + first_peak / 2,
            "round {round}: {memory}, first {first_peak}"
        );
    }
    assert_eq!(timer.counts().cancelled, 10_000_000);
    timer.shrink();
    let after = timer.snapshot().memory();
    assert!(after <= empty + (64 << 10), "{after} bytes are left, there were {empty}");
    assert!(timer.is_pending(keep));
    accounted(&timer);
}

#[test]
fn the_memory_of_a_stopped_timer_returns() {
    let (clock, count) = (VirtualClock::new(), 200_000);
    let timer = Timer::builder().clock(&clock).shards(1).build().unwrap();
    (0..count).for_each(|n| _ = timer.arm(MS * n, |_| ()).unwrap());
    let peak = timer.snapshot().memory();
    assert_eq!(timer.stop().len(), count as usize);
    let after = timer.snapshot().memory();
    assert!(after < peak / 10, "{after} of {peak} bytes are left");
}

/// Real time, a second or so: eight threads schedule, cancel and move against the driver, while a ninth counts.
#[test]
fn eight_threads_against_the_driver() {
    for place in PLACES {
        let timer = running_on(place).shards(4).tick(Duration::from_micros(50)).build().unwrap();
        let (fired, cancelled) = (Arc::new(AtomicU64::new(0)), AtomicU64::new(0));
        let (done, armed) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            let counter = scope.spawn(|| {
                let (mut looks, mut last) = (0_u64, timer.counts());
                while !done.load(SeqCst) {
                    accounted(&timer);
                    let now = timer.counts();
                    assert!(now.armed >= last.armed && now.fired >= last.fired);
                    (looks, last) = (looks + 1, now);
                    thread::yield_now();
                }
                looks
            });
            let threads: Vec<_> = (0..8_u64)
                .map(|thread| {
                    let (timer, fired, cancelled, armed) = (&timer, &fired, &cancelled, &armed);
                    scope.spawn(move || {
                        let mut random = fastrand::Rng::with_seed(thread);
                        let mut handles = Vec::new();
                        for n in 0..6000 {
                            if n % 64 == 0 {
                                balanced(timer);
                            }
                            let fired = fired.clone();
                            let after = Duration::from_micros(random.u64(0..3000));
                            let run = move |_: &Context<'_>| _ = fired.fetch_add(1, SeqCst);
                            handles.push(timer.schedule(after, run).unwrap());
                            armed.fetch_add(1, SeqCst);
                            let one = random.usize(0..handles.len());
                            if random.bool() {
                                let after = Duration::from_micros(random.u64(0..3000));
                                let _ = handles[one].reschedule(after);
                            } else if handles.swap_remove(one).cancel() {
                                cancelled.fetch_add(1, SeqCst);
                            }
                        }
                        handles
                    })
                })
                .collect();
            let handles: Vec<_> = threads.into_iter().flat_map(|one| one.join().unwrap()).collect();
            common::eventually(|| timer.is_empty());
            done.store(true, SeqCst);
            assert!(counter.join().unwrap() > 0);
            common::eventually(|| handles.iter().all(|handle| handle.state() == State::Fired));
        });
        timer.stop();
        let counts = timer.counts();
        assert_eq!(counts.armed, armed.load(SeqCst), "{place}");
        assert_eq!(counts.cancelled, cancelled.load(SeqCst), "{place}");
        assert_eq!((counts.fired, counts.pending), (fired.load(SeqCst), 0), "{place}");
        accounted(&timer);
    }
}

/// Asserts the accounting equation alone, which is cheaper than walking the wheels.
#[track_caller]
fn balanced(timer: &Timer) {
    let counts = timer.counts();
    let sum = counts.fired + counts.cancelled + counts.handed_back + counts.pending;
    assert_eq!(counts.armed, sum, "{counts:?}");
}

/// What happened to the timers, counted where it happened.
#[derive(Default)]
struct Fate {
    ran: AtomicU64,
}

/// Real time: ten thousand engines, stopped while two threads arm timers that are due at once or never. Each timer ran,
/// was handed back, or was refused: exactly one of them.
#[test]
fn stop_racing_schedule_ten_thousand_times() {
    const TIMERS: usize = 6;
    // Threads are expensive: most rounds use the virtual clock, where only stop and schedule race.
    for (place, rounds, real) in
        [("driver", 600, true), ("pool", 400, true), ("driver", 4500, false), ("pool", 4500, false)]
    {
        let meet = Arc::new(Barrier::new(3));
        let (give, rest): (Vec<_>, Vec<_>) =
            (0..2).map(|_| std::sync::mpsc::channel::<Timer>()).unzip();
        let workers: Vec<_> = rest
            .into_iter()
            .map(|timers| {
                let meet = meet.clone();
                thread::spawn(move || {
                    let mut all = Vec::new();
                    for timer in timers {
                        meet.wait();
                        for n in 0..TIMERS {
                            let fate = Arc::new(Fate::default());
                            let told = fate.clone();
                            let after = if n % 2 == 0 { Duration::ZERO } else { HOUR };
                            let run = move |_: &Context<'_>| _ = told.ran.fetch_add(1, SeqCst);
                            let refused = match timer.schedule(after, run) {
                                Ok(_) => false,
                                Err(ScheduleError::Stopped(_)) => true,
                                Err(wrong) => panic!("{wrong}"),
                            };
                            all.push((fate, refused));
                        }
                    }
                    all
                })
            })
            .collect();
        let (mut handed_back, mut fired) = (0, 0);
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..rounds {
            let clock = VirtualClock::new();
            let builder = running_on(place).shards(2);
            let builder = if real { builder } else { builder.clock(&clock) };
            let timer = builder.build().unwrap();
            give.iter().for_each(|give| give.send(timer.clone()).unwrap());
            meet.wait();
            for _ in 0..random.u32(0..400) {
                std::hint::spin_loop();
            }
            if !real && random.bool() {
                clock.advance(MS).unwrap();
            }
            let stopped = within_stop(&timer);
            handed_back += stopped;
            let counts = timer.counts();
            assert_eq!(counts.handed_back, stopped);
            fired += counts.fired;
            accounted(&timer);
        }
        drop(give);
        let (mut ran, mut refused, mut neither) = (0, 0, 0);
        for (fate, was_refused) in workers.into_iter().flat_map(|one| one.join().unwrap()) {
            let runs = fate.ran.load(SeqCst);
            assert!(runs <= 1 && !(runs == 1 && was_refused), "{place}: twice");
            ran += runs;
            refused += u64::from(was_refused);
            neither += u64::from(runs == 0 && !was_refused);
        }
        assert_eq!((ran, neither), (fired, handed_back), "{place}: none lost");
        assert_eq!(ran + refused + handed_back, rounds * 2 * TIMERS as u64);
        assert!(refused > 0 && handed_back > 0, "{place}: they did race");
    }
}

/// Stops the timer within a limit; returns how many timers it hands back.
fn within_stop(timer: &Timer) -> u64 {
    let stopped = timer.stop_within(Duration::from_secs(10));
    assert!(stopped.finished, "stop hangs");
    stopped.unfired.len() as u64
}

/// Real time: the last clone is dropped while callbacks run and others arm. Everything captured is dropped once.
#[test]
fn the_last_drop_racing_callbacks() {
    within(|| {
        for place in PLACES {
            let drops = common::Drops::new();
            for _ in 0..100 {
                let timer = running_on(place).tick(Duration::from_micros(1)).build().unwrap();
                for n in 0..20_u32 {
                    let one = drops.one();
                    let run = move |context: &Context<'_>| {
                        let _ = context.timer().arm(Duration::ZERO, move |_| _ = &one);
                    };
                    timer.arm(Duration::from_micros(n.into()), run).unwrap();
                }
                drop(timer);
            }
            common::eventually(|| drops.count() == 2000);
        }
    });
}
