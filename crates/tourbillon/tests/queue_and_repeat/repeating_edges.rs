//! Repeating timers that are cancelled, moved, stopped, limited, or refused by an executor.
//!
//! A stop during a run in real time: an advance of virtual time would wait for that run.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use tourbillon::{Job, Repeat, ScheduleError, State, Timer, VirtualClock};

use crate::common::asleep::{await_asleep, spawn_known};
use crate::common::{
    Drops, HOUR, Log, MS, PLACES, SECOND, accounted, eventually, panic_quietly, running_on,
    virtual_on, within,
};

#[test]
fn cancel_from_inside_lets_no_further_run_start() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let (mut left, drops) = (3, Drops::new());
        let held = drops.one();
        let repeating = timer.repeat(Repeat::every(SECOND), move |run| {
            let _held = &held;
            left -= 1;
            if left == 0 {
                let own = run.timeout().unwrap();
                assert!(own.cancel(), "no further run");
                assert!(!own.cancel(), "it was cancelled before");
            }
        });
        clock.advance(HOUR).unwrap();
        assert_eq!((timer.counts().fired, timer.counts().panicked), (3, 0), "{place}");
        assert_eq!(repeating.unwrap().state(), State::Cancelled, "{place}");
        assert_eq!(drops.count(), 1, "{place}");
        accounted(&timer);
    }
}

#[test]
fn cancel_during_a_run_lets_that_one_finish() {
    for place in ["pool", "own executor"] {
        let (timer, clock) = virtual_on(place);
        let (meet, ended) = (Arc::new(Barrier::new(2)), Arc::new(AtomicBool::new(false)));
        let (inside, end) = (meet.clone(), ended.clone());
        let repeating = timer.repeat(Repeat::every(SECOND), move |_| {
            inside.wait();
            inside.wait();
            end.store(true, SeqCst);
        });
        let repeating = repeating.unwrap();
        let time = {
            let clock = clock.clone();
            thread::spawn(move || clock.advance(HOUR).unwrap())
        };
        meet.wait();
        assert_eq!(repeating.state(), State::Running);
        assert!(repeating.cancel(), "no further run starts");
        assert!(!ended.load(SeqCst));
        meet.wait();
        within(move || time.join().unwrap());
        assert!(ended.load(SeqCst));
        assert_eq!((timer.counts().fired, timer.len()), (1, 0), "{place}");
        assert!(!repeating.cancel());
    }
}

#[test]
fn stop_during_a_run_waits_for_it_and_hands_the_next_one_back() {
    for place in PLACES {
        let timer = running_on(place).build().unwrap();
        let (meet, drops) = (Arc::new(Barrier::new(2)), Drops::new());
        let (inside, held) = (meet.clone(), drops.one());
        let repeating = timer.repeat(Repeat::every(MS), move |_| {
            let _held = &held;
            inside.wait();
            inside.wait();
        });
        // On the same shard: once it is handed back, the stop has visited that shard.
        let witness = timer.schedule(HOUR, |_| ()).unwrap();
        meet.wait();
        let stopping = timer.clone();
        let (tid, stopping) = spawn_known(move || stopping.stop());
        eventually(|| witness.state() == State::HandedBack);
        await_asleep(&[tid]);
        assert!(!stopping.is_finished(), "{place}: it waits");
        meet.wait();
        let handed_back = within(move || stopping.join().unwrap());
        assert_eq!((handed_back.len(), drops.count()), (2, 0), "{place}: its next run is there");
        assert_eq!(repeating.unwrap().state(), State::HandedBack, "{place}");
        drop(handed_back);
        assert_eq!((drops.count(), timer.stop().len()), (1, 0), "{place}");
        accounted(&timer);
    }
}

/// A stop inside the run does not wait for that run: the next stop returns the next run.
#[test]
fn stop_inside_a_run_leaves_the_next_one_to_the_next_stop() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let (log, drops) = (Log::new(), Drops::new());
        let (runs, held) = (log.clone(), drops.one());
        let repeating = timer.schedule_repeating(SECOND, move |run| {
            let _held = &held;
            runs.add((run.again(SECOND), run.timer().stop().len()));
        });
        clock.advance(SECOND).unwrap();
        assert_eq!((log.take(), drops.count()), (vec![(true, 0)], 0), "{place}");
        assert_eq!(repeating.unwrap().state(), State::HandedBack, "{place}");
        let unfired = timer.stop();
        assert_eq!(unfired.len(), 1, "{place}");
        assert_eq!(unfired[0].deadline(), clock.now() + SECOND, "{place}");
        unfired.into_iter().for_each(|timer| timer.run());
        assert_eq!((log.take(), drops.count()), (vec![(false, 0)], 1), "{place}");
        accounted(&timer);
    }
}

/// Nothing can return the next run any more: it is dropped, whenever the last clone of the timer is dropped.
#[test]
fn a_timer_that_is_dropped_during_a_run_drops_the_next_one() {
    for (place, first) in PLACES.into_iter().flat_map(|place| [(place, false), (place, true)]) {
        let (timer, clock) = virtual_on(place);
        let (drops, own) = (Drops::new(), Arc::new(Mutex::new(None)));
        let (inside, held) = (own.clone(), drops.one());
        let repeating = timer.schedule_repeating(SECOND, move |run| {
            let _held = &held;
            assert!(run.again(SECOND));
            if first {
                drop(inside.lock().unwrap().take());
            } else {
                run.timer().stop();
            }
        });
        *own.lock().unwrap() = Some(timer);
        clock.advance(SECOND).unwrap();
        drop(own.lock().unwrap().take());
        assert_eq!(drops.count(), 1, "{place}, before the end of the run: {first}");
        assert!(!repeating.unwrap().is_pending());
    }
}

#[test]
fn stop_between_runs_hands_the_next_one_back() {
    let (timer, clock) = virtual_on("pool");
    let log = Log::new();
    let runs = log.clone();
    let repeating = timer.repeat(Repeat::every(SECOND), move |run| runs.add(run.again(MS)));
    clock.advance(SECOND).unwrap();
    assert_eq!(log.take(), [true]);
    let unfired = timer.stop();
    assert_eq!((unfired.len(), repeating.unwrap().state()), (1, State::HandedBack));
    unfired.into_iter().for_each(|timer| timer.run());
    assert_eq!(log.take(), [false], "what was handed back runs once, and not again");
}

#[test]
fn a_panic_of_what_was_handed_back_goes_to_the_caller_unless_it_survives() {
    for (survives, panics) in [(false, 0), (true, 1)] {
        let (timer, _clock) = virtual_on("pool");
        let every = Repeat::every(SECOND);
        let repeat = if survives { every.survive_panics() } else { every };
        timer.repeat(repeat, |_| panic_quietly()).unwrap();
        let unfired = timer.stop().pop().unwrap();
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| unfired.run()));
        assert_eq!((ran.is_ok(), timer.counts().panicked), (survives, panics));
    }
}

#[test]
fn to_move_the_next_run_moves_the_rhythm() {
    let (timer, clock) = virtual_on("pool");
    let log = Log::new();
    let (runs, begin) = (log.clone(), timer.now());
    let repeating = timer
        .repeat(Repeat::every(MS * 100), move |run| runs.add((run.deadline() - begin).as_millis()))
        .unwrap();
    clock.advance(MS * 230).unwrap();
    assert_eq!(repeating.deadline(), Some(begin + MS * 300));
    repeating.reschedule(MS * 15).unwrap();
    clock.advance(MS * 200).unwrap();
    assert_eq!(log.take(), [100, 200, 245, 345]);
    repeating.reschedule(Duration::ZERO).unwrap();
    clock.advance(MS * 120).unwrap();
    assert_eq!(log.take(), [430, 530]);
    repeating.reschedule(Duration::MAX).unwrap();
    clock.advance(HOUR).unwrap();
    assert!(log.take().is_empty() && repeating.cancel());
    assert!(repeating.reschedule(MS).is_err(), "it is over");
}

#[test]
fn a_callback_may_put_off_its_own_next_run() {
    let (timer, clock) = virtual_on("driver");
    let log = Log::new();
    let (runs, begin) = (log.clone(), timer.now());
    timer
        .repeat(Repeat::every(MS * 10), move |run| {
            runs.add((run.deadline() - begin).as_millis());
            if runs.len() == 2 {
                assert!(run.again(MS * 500));
            }
        })
        .unwrap();
    clock.advance(MS * 540).unwrap();
    assert_eq!(log.take(), [10, 20, 520, 530, 540]);
}

#[test]
fn an_executor_that_refuses_makes_runs_late_and_loses_none() {
    let clock = VirtualClock::new();
    let offers = AtomicUsize::new(0);
    let builder = Timer::builder().clock(&clock).executor(move |job: Job| {
        // Every third offer is accepted.
        if offers.fetch_add(1, SeqCst) % 3 != 2 {
            return Err(job);
        }
        thread::spawn(move || job.run());
        Ok(())
    });
    let timer = builder.build().unwrap();
    let log = Log::new();
    let runs = log.clone();
    let repeating = timer.repeat(Repeat::every(SECOND), move |run| runs.add(run.lateness()));
    clock.advance(SECOND * 10).unwrap();
    assert_eq!(log.take(), [Duration::ZERO; 10]);
    assert!(repeating.unwrap().cancel());
    accounted(&timer);
}

#[test]
fn a_rhythm_keeps_its_place_under_a_limit_while_it_runs() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).limit(1).build().unwrap();
    let refused = Arc::new(Mutex::new(None));
    let seen = refused.clone();
    let repeating = timer.repeat(Repeat::every(SECOND), move |run| {
        let other = run.timer().schedule(SECOND, |_| ());
        *seen.lock().unwrap() = Some(matches!(other, Err(ScheduleError::Full(_))));
    });
    clock.advance(SECOND * 5).unwrap();
    assert_eq!((timer.counts().fired, *refused.lock().unwrap()), (5, Some(true)));
    assert!(repeating.unwrap().cancel());
    assert!(timer.schedule(SECOND, |_| ()).is_ok(), "the place is free again");
}

#[test]
fn what_is_refused_comes_back() {
    let timer = Timer::new();
    timer.stop();
    let refused = timer.repeat(Repeat::every(SECOND), |_| ()).unwrap_err();
    assert!(matches!(refused, ScheduleError::Stopped(_)));
    let callback = refused.into_inner();
    assert!(Timer::new().repeat(Repeat::every(SECOND), callback).is_ok());
}

#[test]
fn dropping_the_timer_inside_a_run_ends_it() {
    let (timer, clock) = virtual_on("pool");
    let (drops, own) = (Drops::new(), Arc::new(Mutex::new(None)));
    let (held, last) = (drops.one(), own.clone());
    timer
        .repeat(Repeat::every(SECOND), move |_| {
            let _held = &held;
            drop(last.lock().unwrap().take());
        })
        .unwrap();
    *own.lock().unwrap() = Some(timer);
    clock.advance(HOUR).unwrap();
    assert!(own.lock().unwrap().is_none());
    assert_eq!(drops.count(), 1);
}
