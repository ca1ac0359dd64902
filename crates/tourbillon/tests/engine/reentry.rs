//! What a callback does to its own timer: schedule, cancel and arm again, forever; and cancel its neighbours.
//!
//! Two are in real time: the driver's own thread must not starve while slow callbacks are always due.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{
    HOUR, Log, MS, PLACES, SECOND, SINGLE, accounted, arm_in_shard, becomes, eventually,
    running_on, virtual_on, within,
};
use tourbillon::{Context, State, Timeout, Timer};

/// A callback cancels its neighbour of the same batch: true means that the neighbour never starts.
#[test]
fn a_neighbour_that_is_cancelled_in_time_never_starts() {
    for (place, builder) in SINGLE {
        let clock = tourbillon::VirtualClock::new();
        let timer = builder().clock(&clock).shards(1).build().unwrap();
        let handles: Arc<Mutex<Vec<Timeout>>> = Arc::default();
        let log = Log::new();
        for n in 0..100_usize {
            let (log, all) = (log.clone(), handles.clone());
            let run = move |_: &Context<'_>| {
                // Of its two neighbours, the one before has started, the one after has not.
                let handles = all.lock().unwrap().clone();
                let before = n.checked_sub(1).map(|n| handles[n].cancel());
                let after = handles.get(n + 1).map(Timeout::cancel);
                log.add((n, before, after));
            };
            let handle = timer.schedule(SECOND, run).unwrap();
            handles.lock().unwrap().push(handle);
        }
        clock.advance(SECOND).unwrap();
        // Timers of one tick run in no particular order; in any order, a timer that was cancelled in time has not run.
        let ran = log.take();
        let has_run = |n: usize| ran.iter().any(|&(run, ..)| run == n);
        let mut cancelled = 0;
        for &(n, before, after) in &ran {
            let neighbours = [(n.checked_sub(1), before), (Some(n + 1), after)];
            for (neighbour, answer) in neighbours {
                if let (Some(neighbour), Some(true)) = (neighbour, answer) {
                    assert!(!has_run(neighbour), "{place}: {neighbour} ran after a true cancel");
                    cancelled += 1;
                }
            }
        }
        assert!(
            cancelled >= 33,
            "{place}: nobody runs beside another, and {cancelled} were cancelled"
        );
        assert_eq!(ran.len() + cancelled, 100, "{place}");
        for (n, handle) in handles.lock().unwrap().iter().enumerate() {
            assert_eq!(handle.state(), if has_run(n) { State::Fired } else { State::Cancelled });
        }
        accounted(&timer);
    }
}

/// Two workers, and callbacks that cancel all others: in any interleaving, true means that the other never starts.
#[test]
fn neighbours_on_a_pool_are_cancelled_or_run_never_both() {
    for _ in 0..50 {
        let (timer, clock) = virtual_on("pool");
        let handles: Arc<Mutex<Vec<Timeout>>> = Arc::default();
        let (started, cancelled) = (Log::new(), Log::new());
        for n in 0..40_usize {
            let (all, started, cancelled) = (handles.clone(), started.clone(), cancelled.clone());
            let run = move |_: &Context<'_>| {
                started.add(n);
                let handles = all.lock().unwrap().clone();
                for other in (n + 1..40).step_by(3).filter(|&other| handles[other].cancel()) {
                    cancelled.add(other);
                }
            };
            let handle = timer.schedule(SECOND, run).unwrap();
            handles.lock().unwrap().push(handle);
        }
        clock.advance(SECOND).unwrap();
        let mut all = started.take();
        all.extend(cancelled.take());
        all.sort_unstable();
        assert_eq!(all, (0..40).collect::<Vec<_>>(), "each once");
        accounted(&timer);
    }
}

/// A ready neighbour that is moved does not run now, but at its new deadline.
#[test]
fn a_neighbour_that_is_moved_runs_at_its_new_moment() {
    let (timer, clock) = virtual_on("driver");
    let log = Log::new();
    let neighbour: Arc<Mutex<Option<Timeout>>> = Arc::default();
    let (told, other) = (log.clone(), neighbour.clone());
    let first = move |_: &Context<'_>| {
        told.add("first");
        other.lock().unwrap().as_ref().unwrap().reschedule(SECOND).unwrap();
    };
    timer.schedule(SECOND, first).unwrap();
    let told = log.clone();
    let handle = timer.schedule(SECOND, move |_| told.add("second")).unwrap();
    *neighbour.lock().unwrap() = Some(handle.clone());
    clock.advance(SECOND).unwrap();
    assert_eq!(log.take(), ["first"]);
    assert_eq!((handle.state(), handle.remaining()), (State::Pending, Some(SECOND)));
    clock.advance(SECOND).unwrap();
    assert_eq!(log.take(), ["second"]);
}

#[test]
fn a_callback_that_schedules_the_next_ten_thousand_times() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let runs = Arc::new(AtomicU64::new(0));
        fn next(context: &Context<'_>, runs: Arc<AtomicU64>) {
            if runs.fetch_add(1, SeqCst) < 10_000 {
                let timer = context.timer();
                let key = timer.arm(HOUR, |_| unreachable!()).unwrap();
                timer.schedule(MS, move |context| next(context, runs)).unwrap();
                assert!(timer.cancel(key));
            }
        }
        let count = runs.clone();
        timer.schedule(MS, move |context| next(context, count)).unwrap();
        clock.advance(HOUR).unwrap();
        assert_eq!(runs.load(SeqCst), 10_001, "{place}");
        accounted(&timer);
    }
}

/// Many timers on one shard that always arm themselves again with no delay. Each is slow enough that the driver has
/// made the next ready before it ends.
fn storm(timer: &Timer, shard: usize, ran: &Arc<AtomicU64>) {
    let ran = ran.clone();
    arm_in_shard(timer, shard, move |timer| {
        for _ in 0..STORM {
            let ran = ran.clone();
            let run = move |context: &Context<'_>| {
                ran.fetch_add(1, SeqCst);
                context.again(Duration::ZERO);
                std::thread::sleep(Duration::from_micros(20));
            };
            timer.schedule_repeating(Duration::ZERO, run).unwrap();
        }
    });
}

const STORM: u64 = 300;

/// Real time: a shard that is always busy starves neither the other shard nor a stop. A single worker or driver has to
/// serve both.
#[test]
fn timers_without_delay_for_ever_starve_nobody() {
    for (place, builder) in SINGLE {
        for busy in [0, 1] {
            within(move || {
                // With a tick of a nanosecond, no delay is really no delay.
                let tick = Duration::from_nanos(1);
                let timer = builder().shards(2).tick(tick).build().unwrap();
                let ran = Arc::new(AtomicU64::new(0));
                storm(&timer, busy, &ran);
                eventually(|| ran.load(SeqCst) > STORM);
                let log = Log::new();
                let (told, seen) = (log.clone(), ran.clone());
                arm_in_shard(&timer, 1 - busy, move |timer| {
                    let (told, seen, before) = (told.clone(), seen.clone(), seen.load(SeqCst));
                    timer.arm(MS, move |_| told.add(seen.load(SeqCst) - before)).unwrap();
                });
                becomes(|| log.len() > 0);
                let turns = log.take().first().map(|runs| runs / STORM);
                // Timers that were ready before run first, plus some rounds on a slow machine.
                let fair = turns.is_some_and(|turns| turns < 10);
                assert!(
                    fair,
                    "{place}, shard {busy} is busy: {turns:?} turns of all others before it"
                );
                timer.stop();
                accounted(&timer);
            });
        }
    }
}

/// Every callback schedules and cancels, until one of them stops the timer. Real time, milliseconds.
#[test]
fn schedule_and_cancel_inside_callbacks_until_one_stops() {
    for place in PLACES {
        within(move || {
            let timer = running_on(place).tick(Duration::from_micros(10)).build().unwrap();
            let runs = Arc::new(AtomicU64::new(0));
            fn go(context: &Context<'_>, runs: &Arc<AtomicU64>) {
                let timer = context.timer();
                if runs.fetch_add(1, SeqCst) == 20_000 {
                    timer.stop();
                }
                let next = runs.clone();
                let _ = timer.arm(Duration::ZERO, move |context| go(context, &next));
                let cancelled = timer.arm(HOUR, |_| unreachable!()).map(|key| timer.cancel(key));
                assert!(cancelled.unwrap_or(true));
            }
            for _ in 0..8 {
                let runs = runs.clone();
                timer.arm(Duration::ZERO, move |context| go(context, &runs)).unwrap();
            }
            eventually(|| timer.is_stopped());
            timer.stop();
            let counts = timer.counts();
            assert_eq!(counts.panicked, 0, "{place}");
            assert!(runs.load(SeqCst) > 20_000);
            accounted(&timer);
        });
    }
}
