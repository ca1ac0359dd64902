//! The virtual clock: what fires, at which time, and what `now` reads are the same in every run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use crate::common::{HOUR, Log, MS, PLACES, SECOND, accounted, running_on, virtual_on, within};
use tourbillon::{AdvanceError, Context, VirtualClock};

/// A deterministic program: a thousand timers that arm others, cancel some and move some.
fn simulate(place: &str, seed: u64) -> Vec<(Duration, u64)> {
    let clock = VirtualClock::new();
    let timer = running_on(place).clock(&clock).shards(4).build().unwrap();
    let log = Log::new();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut handles = Vec::new();
    for n in 0..1000_u64 {
        let after = Duration::from_micros(random.u64(0..3_600_000_000));
        let (log, read, child) = (log.clone(), clock.clone(), random.u64(0..10_000_000));
        let run = move |context: &Context<'_>| {
            log.add((read.elapsed(), n));
            let (log, read) = (log.clone(), read.clone());
            let again = move |_: &Context<'_>| log.add((read.elapsed(), n + 1_000_000));
            context.timer().schedule(Duration::from_micros(child), again).unwrap();
        };
        handles.push(timer.schedule(after, run).unwrap());
    }
    for _ in 0..300 {
        clock.advance(Duration::from_micros(random.u64(0..20_000_000))).unwrap();
        let (one, other) = (random.usize(0..1000), random.usize(0..1000));
        handles[one].cancel();
        let _ = handles[other].reschedule(Duration::from_micros(random.u64(0..100_000_000)));
    }
    clock.advance(HOUR).unwrap();
    accounted(&timer);
    let mut ran = log.take();
    assert!(ran.is_sorted_by_key(|(moment, _)| *moment), "time went on");
    // Threads of a pool may run timers of the same moment in any order.
    ran.sort_unstable();
    ran
}

#[test]
fn two_runs_are_the_same_wherever_callbacks_run() {
    for seed in 0..3 {
        let first = simulate("driver", seed);
        assert!(first.len() > 1000);
        for place in PLACES {
            assert_eq!(simulate(place, seed), first, "{place}, seed {seed}");
        }
    }
}

#[test]
fn on_the_driver_even_the_order_within_a_moment_is_the_same() {
    let run = || {
        let (timer, clock) = virtual_on("driver");
        let log = Log::new();
        for n in 0..5000 {
            let log = log.clone();
            timer.arm(MS * (n % 7), move |_| log.add(n)).unwrap();
        }
        clock.advance(SECOND).unwrap();
        log.take()
    };
    assert_eq!(run(), run());
}

#[test]
fn an_hour_passes_in_an_instant() {
    let (timer, clock) = virtual_on("driver");
    let ticks = Arc::new(AtomicU64::new(0));
    let count = ticks.clone();
    let repeat = move |context: &Context<'_>| {
        count.fetch_add(1, SeqCst);
        context.again(SECOND);
    };
    timer.schedule_repeating(SECOND, repeat).unwrap();
    // 3600 runs take about a millisecond. Waiting for them in real time would be reported as a hang.
    within(move || clock.advance(HOUR)).unwrap();
    assert_eq!(ticks.load(SeqCst), 3600);
}

#[test]
fn advancing_inside_a_callback_is_an_error_and_changes_nothing() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let log = Log::new();
        let (told, inner) = (log.clone(), clock.clone());
        let run = move |_: &Context<'_>| {
            told.add((inner.advance(HOUR), inner.advance_to_next(), inner.elapsed()));
        };
        timer.schedule(SECOND, run).unwrap();
        crate::common::within(move || clock.advance(2 * SECOND)).unwrap();
        let wrong = AdvanceError::InsideCallback;
        assert_eq!(log.take(), [(Err(wrong), Err(wrong), SECOND)], "{place}");
    }
}

#[test]
fn a_callback_may_advance_the_clock_of_others() {
    let (timer, clock) = virtual_on("driver");
    let (inner, inner_clock) = virtual_on("driver");
    let log = Log::new();
    let told = log.clone();
    inner.schedule(HOUR, move |_| told.add("inner")).unwrap();
    timer.schedule(SECOND, move |_| inner_clock.advance(HOUR).unwrap()).unwrap();
    clock.advance(SECOND).unwrap();
    assert_eq!(log.take(), ["inner"]);
}

#[test]
fn engines_on_one_clock_take_turns_by_the_moment() {
    let clock = VirtualClock::new();
    let timers: Vec<_> =
        PLACES.map(|place| running_on(place).clock(&clock).build().unwrap()).into();
    let log = Log::new();
    for n in 0..30_u32 {
        let (log, read, next) = (log.clone(), clock.clone(), timers[(n as usize + 1) % 3].clone());
        let run = move |_: &Context<'_>| {
            log.add((read.elapsed(), n));
            // On another engine of the clock, at the same moment.
            let (log, read) = (log.clone(), read.clone());
            next.schedule(Duration::ZERO, move |_| log.add((read.elapsed(), n + 100))).unwrap();
        };
        timers[n as usize % 3].schedule(SECOND * n, run).unwrap();
    }
    clock.advance(HOUR).unwrap();
    let expected: Vec<_> = (0..30).flat_map(|n| [(SECOND * n, n), (SECOND * n, n + 100)]).collect();
    assert_eq!(log.take(), expected);
    // Dropped timers are no longer consulted.
    drop(timers);
    clock.advance(HOUR).unwrap();
    assert!(!clock.advance_to_next().unwrap());
}

#[test]
fn timers_that_other_threads_arm_fire_at_their_moment() {
    for place in PLACES {
        let clock = VirtualClock::new();
        let timer = running_on(place).clock(&clock).shards(4).build().unwrap();
        let log = Log::new();
        thread::scope(|scope| {
            for thread in 0..8_u64 {
                let (timer, log, clock) = (&timer, log.clone(), clock.clone());
                scope.spawn(move || {
                    for n in 0..500_u64 {
                        let (log, clock) = (log.clone(), clock.clone());
                        let after = Duration::from_millis(n * 8 + thread);
                        timer.schedule(after, move |_| log.add((after, clock.elapsed()))).unwrap();
                    }
                });
            }
        });
        clock.advance(HOUR).unwrap();
        let ran = log.take();
        assert_eq!(ran.len(), 4000, "{place}");
        assert!(ran.iter().all(|(due, ran)| due == ran), "{place}: each at its own moment");
    }
}

#[test]
fn two_threads_that_advance_add_up() {
    let (timer, clock) = virtual_on("pool");
    let fired = Arc::new(AtomicU64::new(0));
    for n in 0..200 {
        let fired = fired.clone();
        timer.arm(SECOND * n, move |_| _ = fired.fetch_add(1, SeqCst)).unwrap();
    }
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50).for_each(|_| clock.advance(SECOND).unwrap()));
        }
    });
    assert_eq!((clock.elapsed(), fired.load(SeqCst)), (200 * SECOND, 200));
}

#[test]
fn to_the_next_goes_to_the_moment_of_the_next() {
    let (timer, clock) = virtual_on("driver");
    assert!(!clock.advance_to_next().unwrap());
    timer.schedule(SECOND, |_| ()).unwrap();
    timer.schedule(HOUR, |_| ()).unwrap().cancel();
    timer.schedule(2 * HOUR, |_| ()).unwrap();
    assert!(clock.advance_to_next().unwrap());
    assert_eq!(clock.elapsed(), SECOND);
    assert!(clock.advance_to_next().unwrap());
    assert_eq!(clock.elapsed(), 2 * HOUR, "what was cancelled is no moment");
    assert!(!clock.advance_to_next().unwrap());
    assert_eq!(timer.counts().fired, 2);
}
