//! The typed engine: values in batches to one handler, with the same promises as `Timer`.

use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;

use crate::common::asleep::spawn_asleep;
use crate::common::{
    Drops, HOUR, Log, MS, PanicsWhenDropped, SECOND, eventually, panic_quietly, within,
};
use tourbillon::{Engine, Fired, RescheduleError, ScheduleError, StartError, Timer, VirtualClock};

/// An engine on a virtual clock that logs what it delivers, and when.
fn logging(clock: &VirtualClock) -> (Engine<u32>, Log<(Duration, u32)>) {
    let (log, read) = (Log::new(), clock.clone());
    let told = log.clone();
    let engine = Timer::builder().clock(clock).shards(1).deliver(move |batch| {
        assert!(batch.len() > 0, "never an empty batch");
        batch.for_each(|Fired { value, .. }| told.add((read.elapsed(), value)));
    });
    (engine.unwrap(), log)
}

#[test]
fn values_are_delivered_at_their_moment_in_batches() {
    let clock = VirtualClock::new();
    let (engine, log) = logging(&clock);
    for n in 0..5000 {
        engine.schedule(SECOND * (n % 5), n).unwrap();
    }
    engine.schedule_at(clock.now() + HOUR, 9999).unwrap();
    assert_eq!((engine.len(), log.len()), (5001, 0));
    clock.advance(HOUR).unwrap();
    let ran = log.take();
    assert_eq!(ran.len(), 5001);
    assert!(ran[..5000].iter().all(|&(at, n)| at == SECOND * (n % 5)));
    assert_eq!(ran[5000], (HOUR, 9999));
    assert_eq!(engine.lateness().count(), 5001);
}

#[test]
fn cancel_gives_the_value_back_and_a_stale_key_answers_no() {
    let clock = VirtualClock::new();
    let (engine, log) = logging(&clock);
    let (one, two) = (engine.schedule(SECOND, 1).unwrap(), engine.schedule(SECOND, 2).unwrap());
    engine.reschedule(two, 2 * SECOND).unwrap();
    assert_eq!(engine.deadline(two), Some(clock.now() + 2 * SECOND));
    assert_eq!((engine.cancel(one), engine.cancel(one)), (Some(1), None));
    clock.advance(HOUR).unwrap();
    assert_eq!(log.take(), [(2 * SECOND, 2)]);
    assert_eq!((engine.cancel(two), engine.deadline(two)), (None, None));
    assert_eq!(engine.reschedule(two, SECOND), Err(RescheduleError::NotPending));
    let counts = engine.counts();
    assert_eq!((counts.armed, counts.fired, counts.cancelled), (2, 1, 1));
}

#[test]
fn stop_hands_back_the_values() {
    let clock = VirtualClock::new();
    let (engine, log) = logging(&clock);
    let keys: Vec<_> = (0..10).map(|n| engine.schedule(SECOND * n, n).unwrap()).collect();
    clock.advance(4 * SECOND).unwrap();
    let mut back = engine.stop();
    back.sort_by_key(|timer| timer.value);
    let back: Vec<_> = back.iter().map(|timer| (timer.key, timer.value)).collect();
    assert_eq!(back, (5..10).map(|n| (keys[n as usize], n)).collect::<Vec<_>>());
    assert_eq!((log.len(), engine.stop().len()), (5, 0));
    assert!(matches!(engine.schedule(MS, 77), Err(ScheduleError::Stopped(77))));
    assert!(matches!(engine.start(), Err(StartError::Stopped)));
    clock.advance(HOUR).unwrap();
    assert_eq!(log.len(), 5);
}

#[test]
fn the_last_drop_drops_the_values() {
    let clock = VirtualClock::new();
    let drops = Drops::new();
    let engine = Timer::builder().clock(&clock).deliver(|_batch| ()).unwrap();
    (0..10).for_each(|n| _ = engine.schedule(SECOND * n, drops.one()).unwrap());
    clock.advance(SECOND).unwrap();
    assert_eq!(drops.count(), 2, "what the handler leaves in the batch is dropped");
    drop(engine);
    assert_eq!(drops.count(), 10);
}

#[test]
fn stop_inside_the_handler_does_not_wait_for_it_whatever_the_batch() {
    for size in [1, 2, 100] {
        within(move || {
            let clock = VirtualClock::new();
            let own: Arc<OnceLock<Engine<u32>>> = Arc::default();
            let (inner, log) = (own.clone(), Log::new());
            let told = log.clone();
            let engine = Timer::builder().clock(&clock).shards(1).deliver(move |batch| {
                told.add((batch.len(), inner.get().unwrap().stop().len()));
            });
            let engine = engine.unwrap();
            let _ = own.set(engine.clone());
            (0..size).for_each(|n| _ = engine.schedule(SECOND, n).unwrap());
            engine.schedule(HOUR, 0).unwrap();
            clock.advance(2 * HOUR).unwrap();
            assert_eq!(log.take(), [(size as usize, 1)]);
        });
    }
}

/// Real time, milliseconds.
#[test]
fn stop_outside_waits_for_the_handler() {
    let (started, wait) = mpsc::channel();
    let (end, ended) = mpsc::channel();
    let log = Log::new();
    let told = log.clone();
    let engine = Timer::builder().deliver(move |_| {
        started.send(()).unwrap();
        ended.recv().unwrap();
        told.add("ended");
    });
    let engine = engine.unwrap();
    engine.schedule(Duration::ZERO, 1).unwrap();
    engine.schedule(HOUR, 2).unwrap();
    wait.recv().unwrap();
    let stopping = spawn_asleep(move || (engine.stop().len(), log.take()));
    assert!(!stopping.is_finished(), "it waits");
    end.send(()).unwrap();
    assert_eq!(stopping.join().unwrap(), (1, vec!["ended"]));
}

#[test]
fn the_handler_may_use_the_engine() {
    within(|| {
        let clock = VirtualClock::new();
        let own: Arc<OnceLock<Engine<u32>>> = Arc::default();
        let (inner, log) = (own.clone(), Log::new());
        let (told, read) = (log.clone(), clock.clone());
        let engine = Timer::builder().clock(&clock).deliver(move |batch| {
            let engine = inner.get().unwrap();
            for timer in batch {
                told.add((read.elapsed(), timer.value));
                assert_eq!(engine.cancel(timer.key), None, "it was delivered");
                assert!(read.advance(SECOND).is_err());
                if timer.value < 5 {
                    let spare = engine.schedule(SECOND, 99).unwrap();
                    engine.schedule(SECOND, timer.value + 1).unwrap();
                    assert_eq!(engine.cancel(spare), Some(99));
                }
            }
        });
        let engine = engine.unwrap();
        let _ = own.set(engine.clone());
        engine.schedule(SECOND, 0).unwrap();
        clock.advance(HOUR).unwrap();
        assert_eq!(log.take(), (0..=5).map(|n| (SECOND * (n + 1), n)).collect::<Vec<_>>());
    });
}

#[test]
fn a_handler_that_panics_is_called_again() {
    let clock = VirtualClock::new();
    let (log, reported) = (Log::new(), Log::new());
    let (told, report) = (log.clone(), reported.clone());
    let builder = Timer::builder().clock(&clock).on_panic(move |_| report.add(()));
    let engine = builder.deliver(move |batch| {
        batch.take(1).for_each(|timer| told.add(timer.value));
        panic_quietly();
    });
    let engine = engine.unwrap();
    (0..10).for_each(|n| _ = engine.schedule(SECOND * n, n).unwrap());
    clock.advance(HOUR).unwrap();
    assert_eq!(log.take(), (0..10).collect::<Vec<_>>());
    let counts = engine.counts();
    assert_eq!((counts.fired, counts.panicked, reported.len()), (10, 10, 10));
    assert!(engine.stop().is_empty());
}

#[test]
fn a_value_whose_drop_panics() {
    let clock = VirtualClock::new();
    let engine = Timer::builder().clock(&clock).deliver(|_batch| ()).unwrap();
    engine.schedule(SECOND, PanicsWhenDropped).unwrap();
    clock.advance(SECOND).unwrap();
    assert_eq!(engine.counts().panicked, 1);
    engine.schedule(SECOND, PanicsWhenDropped).unwrap();
    engine.schedule(SECOND, PanicsWhenDropped).unwrap();
    drop(engine);
}

/// Two values in one batch whose drops panic, without and with a panic of the handler: in a careless engine, the second
/// panic comes during an unwind and aborts the process. So a child process runs it.
#[test]
fn values_whose_drops_panic_in_one_batch_do_not_abort() {
    const TRY: &str = "TOURBILLON_TEST_TWO_PANICS";
    if let Ok(which) = std::env::var(TRY) {
        let clock = VirtualClock::new();
        let panics = which == "handler";
        let engine = Timer::builder().clock(&clock).shards(1).deliver(move |batch| {
            let _batch = batch;
            if panics {
                panic_quietly();
            }
        });
        let engine = engine.unwrap();
        (0..2).for_each(|_| _ = engine.schedule(SECOND, PanicsWhenDropped).unwrap());
        clock.advance(SECOND).unwrap();
        assert!(engine.counts().panicked > 0);
        return;
    }
    for which in ["values", "handler"] {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "typed::values_whose_drops_panic_in_one_batch_do_not_abort"])
            .env(TRY, which)
            .output()
            .unwrap()
            .status;
        assert!(status.success(), "{which}: {status}");
    }
}

/// Real time, milliseconds: until the handler is called, a ready timer can be cancelled.
#[test]
fn a_batch_is_claimed_as_a_whole() {
    let (enter, entered) = mpsc::channel();
    let (leave, left) = mpsc::channel::<()>();
    let log = Log::new();
    let told = log.clone();
    let engine = Timer::builder().shards(1).budget(10).deliver(move |batch| {
        let values: Vec<u32> = batch.map(|timer| timer.value).collect();
        enter.send(values[0]).unwrap();
        left.recv().unwrap();
        told.add(values.len());
    });
    let engine = engine.unwrap();
    let at = engine.now() + 50 * MS;
    let keys: Vec<_> = (0..20).map(|n| engine.schedule_at(at, n).unwrap()).collect();
    entered.recv().unwrap();
    let cancelled = keys.iter().filter(|&&key| engine.cancel(key).is_some()).count();
    assert_eq!(cancelled, 10, "the batch has started, the rest has not");
    leave.send(()).unwrap();
    eventually(|| log.len() == 1);
    assert_eq!(log.take(), [10]);
    drop(leave);
    engine.stop();
    let counts = engine.counts();
    assert_eq!((counts.fired, counts.cancelled), (10, 10));
}

#[test]
fn handlers_own_their_state_and_executors_are_not_for_them() {
    let clock = VirtualClock::new();
    let total = Arc::new(Mutex::new(0));
    let (sum, mut own) = (total.clone(), 0);
    let engine = Timer::builder().clock(&clock).on_driver().deliver(move |batch| {
        own += batch.map(|timer| timer.value).sum::<u32>();
        *sum.lock().unwrap() = own;
    });
    let engine = engine.unwrap();
    (1..=10).for_each(|n| _ = engine.schedule(SECOND * n, n).unwrap());
    clock.advance(HOUR).unwrap();
    assert_eq!(*total.lock().unwrap(), 55);
    let wrong = Timer::builder().pool(2).deliver::<u32, _>(|_| ()).unwrap_err();
    assert_eq!((wrong.setting(), wrong.value()), ("pool", "2"));
    // The pool of a preset was not requested explicitly.
    assert!(tourbillon::Builder::kafka().deliver::<u32, _>(|_| ()).is_ok());
}
