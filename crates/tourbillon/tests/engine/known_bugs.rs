//! Bugs of other timers that an engine could have, named after the project.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use crate::common::{
    Drops, HOUR, HandClock, Log, MS, PLACES, SECOND, YEAR, accounted, eventually, virtual_on,
};
use tourbillon::{Builder, Context, Timer, VirtualClock};

const DAY: Duration = Duration::from_secs(86_400);

/// tokio 1.53 after 12 days: a far timer in a wrapped top slot hides nearer ones.
#[test]
fn a_far_timer_hides_no_nearer_one() {
    for slots in [4, 20, 64, 256] {
        let clock = VirtualClock::new();
        let builder = Timer::builder().clock(&clock).shards(1).on_driver().hierarchical(&[slots]);
        let timer = builder.build().unwrap();
        let log = Log::new();
        let mut expected = Vec::new();
        for days in [0, 12, 13, 795, 796, 36_500] {
            clock.advance(DAY * days).unwrap();
            for power in 0..12 {
                let after = MS * slots.saturating_pow(power).min(2_000_000_000);
                for after in [after - MS, after, after + MS] {
                    let (log, read) = (log.clone(), clock.clone());
                    expected.push(clock.elapsed() + after);
                    timer.schedule(after, move |_| log.add(read.elapsed())).unwrap();
                }
            }
        }
        clock.advance(YEAR).unwrap();
        expected.sort_unstable();
        assert_eq!(log.take(), expected, "{slots} slots");
    }
}

/// tikv: a level index past the top after 795 days. And a century of running.
#[test]
fn any_uptime() {
    let (timer, clock) = virtual_on("driver");
    for _ in 0..5 {
        clock.advance(100 * YEAR).unwrap();
        let short = timer.schedule(MS, |_| ()).unwrap();
        let long = timer.schedule(2 * YEAR, |_| ()).unwrap();
        clock.advance(MS).unwrap();
        assert!(!short.is_pending() && long.is_pending());
        clock.advance(2 * YEAR).unwrap();
        assert!(!long.is_pending());
    }
    accounted(&timer);
}

/// Four of seven Rust wheels: rounding down on both sides of a subtraction makes a timer early by a tick.
#[test]
fn odd_start_times_make_nothing_early() {
    for start in [1, 499_999, 500_000, 999_999] {
        let clock = VirtualClock::new();
        clock.advance(Duration::from_nanos(start)).unwrap();
        let timer = Timer::builder().clock(&clock).build().unwrap();
        for delay in [1, 999_999, 1_000_000, 1_000_001, 1_500_000] {
            let deadline = clock.elapsed() + Duration::from_nanos(delay);
            let handle = timer.schedule(Duration::from_nanos(delay), |_| ()).unwrap();
            clock.advance(Duration::from_nanos(delay - 1)).unwrap();
            assert!(handle.is_pending(), "{start} + {delay}: a nanosecond early");
            clock.advance(MS).unwrap();
            assert!(!handle.is_pending(), "{start} + {delay}: a tick late");
            assert!(clock.elapsed() >= deadline);
        }
    }
}

/// DelayQueue, Agrona, timer-queue: a stale key cancels another timer. On an engine, the key is also tried on every
/// shard's wheel.
#[test]
fn a_stale_key_cancels_nobody() {
    let timer = Timer::builder().shards(8).build().unwrap();
    let keys: Vec<_> = (0..8)
        .map(|_| {
            let timer = timer.clone();
            thread::spawn(move || timer.arm(HOUR, |_| ()).unwrap()).join().unwrap()
        })
        .collect();
    assert!(keys.iter().all(|&key| timer.cancel(key)));
    let fresh: Vec<_> = (0..64)
        .map(|_| {
            let timer = timer.clone();
            thread::spawn(move || timer.arm(HOUR, |_| ()).unwrap()).join().unwrap()
        })
        .collect();
    assert!(keys.iter().all(|&key| !timer.cancel(key)));
    assert_eq!(timer.len(), 64);
    assert!(fresh.iter().all(|&key| timer.cancel(key)));
}

/// Kafka and RocketMQ fire it at once; tokio panics.
#[test]
fn the_greatest_duration_neither_fires_nor_panics() {
    for builder in [Timer::builder(), Builder::netty(), Builder::kafka()] {
        // Real time, milliseconds: the driver has to wait for it.
        let timer = builder.build().unwrap();
        let never = timer.schedule(Duration::MAX, |_| ()).unwrap();
        let soon = timer.schedule(Duration::ZERO, |_| ()).unwrap();
        eventually(|| !soon.is_pending());
        assert!(never.is_pending());
        assert_eq!(timer.stop().len(), 1);
    }
}

/// Netty: stopping at the first entry that is not yet due loses the rest of the slot.
#[test]
fn a_slot_with_timers_of_many_turns_loses_none() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).hashed(8).shards(1).build().unwrap();
    let fired = Arc::new(AtomicU64::new(0));
    for n in (0..100).rev() {
        for turn in [n, 0, 50] {
            let fired = fired.clone();
            timer.arm(MS * (3 + 8 * turn), move |_| _ = fired.fetch_add(1, SeqCst)).unwrap();
        }
    }
    clock.advance(3 * MS).unwrap();
    assert_eq!(fired.load(SeqCst), 101);
    clock.advance(SECOND).unwrap();
    assert_eq!(fired.load(SeqCst), 300);
}

/// Caffeine: a callback that cancels its neighbour breaks the list. Here it cancels both neighbours of every third
/// timer.
#[test]
fn cancelling_neighbours_loses_nobody_else() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let keys: Arc<std::sync::Mutex<Vec<_>>> = Arc::default();
        let log = Log::new();
        for n in 0..300_usize {
            let (all, log) = (keys.clone(), log.clone());
            let run = move |context: &Context<'_>| {
                log.add(n);
                if n == 0 {
                    let keys = all.lock().unwrap().clone();
                    let victims = (0..300).filter(|n| n % 3 != 0);
                    victims.for_each(|n| _ = context.timer().cancel(keys[n]));
                }
            };
            // It fires a moment before the others, so all are pending when it cancels.
            let after = if n == 0 { SECOND - MS } else { SECOND };
            let key = timer.arm(after, run).unwrap();
            keys.lock().unwrap().push(key);
        }
        clock.advance(SECOND).unwrap();
        let mut ran = log.take();
        ran.sort_unstable();
        assert_eq!(ran, (0..300).step_by(3).collect::<Vec<_>>(), "{place}");
    }
}

/// Netty: a counter is decremented twice when a cancel races with a fire. Real time: cancels that race with the driver.
#[test]
fn cancel_that_meets_fire_is_counted_once() {
    for place in PLACES {
        let builder = crate::common::running_on(place).tick(Duration::from_micros(1)).limit(64);
        let timer = builder.build().unwrap();
        let fired = Arc::new(AtomicU64::new(0));
        let mut cancelled = 0;
        for _ in 0..300 {
            let handles: Vec<_> = (0..64)
                .map(|_| {
                    let fired = fired.clone();
                    let run = move |_: &Context<'_>| _ = fired.fetch_add(1, SeqCst);
                    timer.schedule(Duration::from_micros(20), run).expect("a place was lost")
                })
                .collect();
            cancelled += handles.iter().filter(|handle| handle.cancel()).count() as u64;
            eventually(|| timer.is_empty());
        }
        timer.stop();
        let counts = timer.counts();
        assert_eq!((counts.armed, counts.cancelled), (300 * 64, cancelled), "{place}");
        assert_eq!((counts.fired, counts.pending), (fired.load(SeqCst), 0), "{place}");
        accounted(&timer);
    }
}

/// Netty's stop does not report the remaining timers, Kafka's drops them silently.
#[test]
fn stop_tells_the_survivors() {
    let (timer, _clock) = virtual_on("pool");
    let drops = Drops::new();
    let one = drops.one();
    let survivor = timer.schedule(HOUR, move |_| _ = &one).unwrap();
    let handed = timer.stop();
    assert_eq!((handed.len(), drops.count()), (1, 0));
    assert_eq!(survivor.state(), tourbillon::State::HandedBack);
}

/// Netty and pingora: cancelled timers stay in memory until their deadline.
#[test]
fn what_a_cancelled_timer_captured_is_dropped_at_once() {
    for place in PLACES {
        let (timer, _clock) = virtual_on(place);
        let drops = Drops::new();
        for n in 1..=100 {
            let (one, two) = (drops.one(), drops.one());
            let handle = timer.schedule(HOUR, move |_| _ = &one).unwrap();
            let key = timer.arm(HOUR, move |_| _ = &two).unwrap();
            assert!(handle.cancel() && timer.cancel(key));
            assert_eq!(drops.count(), 2 * n, "{place}: while the handle lives");
        }
    }
}

/// And what a fired callback captured is dropped before its handle.
#[test]
fn what_a_fired_timer_captured_is_dropped_when_it_has_run() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let drops = Drops::new();
        let (one, two) = (drops.one(), drops.one());
        let _handle = timer.schedule(SECOND, move |_| _ = &one).unwrap();
        let _repeating = timer.schedule_repeating(SECOND, move |_| _ = &two).unwrap();
        clock.advance(SECOND).unwrap();
        assert_eq!(drops.count(), 2, "{place}");
    }
}

/// tokio and tikv: a clock that steps back panics.
#[test]
fn a_clock_that_steps_back_does_not_panic() {
    let clock = HandClock::new();
    let timer = Timer::builder().clock(clock.clone()).on_driver().build().unwrap();
    for n in 0..20_u32 {
        let handle = timer.schedule(SECOND, |_| ()).unwrap();
        clock.back(SECOND * n);
        assert!(handle.remaining().is_some());
        let _ = handle.reschedule(MS);
        clock.forward(SECOND * (2 * n + 2));
        eventually(|| !handle.is_pending());
    }
    assert_eq!(timer.counts().fired, 20);
    accounted(&timer);
}
