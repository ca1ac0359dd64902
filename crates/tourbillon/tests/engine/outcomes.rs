//! Timers with a result, an orderly shutdown, and what callbacks are doing.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use futures_lite::future::block_on;
use tourbillon::{NoResult, Repeat, ScheduleError, State, Timer, VirtualClock};

use crate::common::{
    HOUR, MS, PLACES, SECOND, accounted, eventually, panic_quietly, virtual_on, within,
};

#[test]
fn a_result_is_waited_for_or_awaited() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let (one, two) =
            (timer.compute(SECOND, |_| 1).unwrap(), timer.compute(SECOND, |_| 2).unwrap());
        assert!(!one.is_over());
        let waiting = thread::spawn(move || block_on(one));
        clock.advance(SECOND).unwrap();
        assert_eq!(waiting.join().unwrap(), Ok(1), "{place}");
        assert!(two.is_over() && two.timeout().has_started());
        assert_eq!(two.wait(), Ok(2));
        accounted(&timer);
    }
}

#[test]
fn whoever_waits_hears_why_there_is_no_result() {
    let (timer, clock) = virtual_on("pool");
    let hour = || timer.compute(HOUR, |_| ()).unwrap();
    let (cancelled, stopped) = (hour(), hour());
    assert!(timer.cancel(cancelled.timeout().key()), "by key too");
    assert_eq!(cancelled.wait(), Err(NoResult::Cancelled));
    let panics = timer.compute(SECOND, |_| -> () { panic_quietly() }).unwrap();
    let waits = timer.compute(SECOND, |_| ()).unwrap().wait_within(Duration::ZERO).unwrap_err();
    clock.advance(SECOND).unwrap();
    assert_eq!(block_on(panics), Err(NoResult::Panicked));
    assert_eq!(waits.wait_within(Duration::MAX).unwrap(), Ok(()));
    let waiting = thread::spawn(move || stopped.wait());
    let unfired = timer.stop();
    assert_eq!(waiting.join().unwrap(), Err(NoResult::Stopped), "before the unfired is dropped");
    unfired.into_iter().for_each(|unfired| unfired.run());
    let refused = timer.compute(SECOND, |_| 7).unwrap_err();
    assert!(matches!(refused, ScheduleError::Stopped(_)));
    for why in [NoResult::Cancelled, NoResult::Stopped, NoResult::Panicked] {
        assert!(why.to_string().len() > 20);
    }
}

/// In real time, milliseconds: a shutdown waits for time to pass.
#[test]
fn a_shutdown_runs_what_is_pending_and_takes_nothing_new() {
    for place in PLACES {
        let timer = crate::common::running_on(place).build().unwrap();
        let (sender, log) = mpsc::channel();
        let again = sender.clone();
        timer
            .schedule(20 * MS, move |context| {
                let new = context.timer().schedule(Duration::ZERO, |_| ());
                sender
                    .send(if new.is_err() { "ran, and could add nothing" } else { "added" })
                    .unwrap();
            })
            .unwrap();
        let repeat = Repeat::every(20 * MS).first(10 * MS);
        let beat = timer.repeat(repeat, move |_| again.send("beat").unwrap()).unwrap();
        let ended = timer.shutdown_within(Duration::from_secs(20));
        assert!(ended.finished && ended.unfired.is_empty(), "{place}: {ended:?}");
        let log: Vec<_> = log.try_iter().collect();
        assert!(log.contains(&"ran, and could add nothing"), "{place}: {log:?}");
        assert_eq!(
            log.iter().filter(|&&what| what == "beat").count(),
            1,
            "{place}: once, and no more"
        );
        assert_eq!(beat.state(), State::Fired);
        assert!(timer.is_stopped() && timer.schedule(SECOND, |_| ()).is_err());
        accounted(&timer);
    }
}

#[test]
fn a_shutdown_has_a_limit_and_hears_of_a_cancel() {
    within(|| {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).build().unwrap();
        let (late, gone) =
            (timer.schedule(HOUR, |_| ()).unwrap(), timer.schedule(HOUR, |_| ()).unwrap());
        gone.cancel();
        let ended = timer.shutdown_within(20 * MS);
        assert_eq!(ended.unfired.len(), 1);
        assert!(ended.unfired[0].is_of(&late) && !ended.unfired[0].is_of(&gone));

        let timer = Timer::new();
        let last = timer.schedule(HOUR, |_| ()).unwrap();
        let closing = timer.clone();
        let shutdown = thread::spawn(move || closing.shutdown_within(HOUR));
        eventually(|| timer.schedule(HOUR, |_| ()).map(|extra| extra.cancel()).is_err());
        assert!(!timer.is_stopped(), "it waits for the last");
        assert!(last.cancel());
        assert!(shutdown.join().unwrap().unfired.is_empty());
    });
}

#[test]
fn an_unfired_is_matched_with_its_handle() {
    let (timer, _clock) = virtual_on("driver");
    let (other, _) = virtual_on("driver");
    let handles: Vec<_> = (1..=3).map(|n| timer.schedule(SECOND * n, |_| ()).unwrap()).collect();
    let foreign = other.schedule(SECOND, |_| ()).unwrap();
    for unfired in timer.stop() {
        let own: Vec<_> = handles.iter().filter(|handle| unfired.is_of(handle)).collect();
        assert_eq!(own.len(), 1);
        assert_eq!(own[0].key(), unfired.key());
        assert!(!unfired.is_of(&foreign), "the same key, maybe, of another engine");
    }
}

#[test]
fn a_rhythm_begins_at_a_moment() {
    let (timer, clock) = virtual_on("driver");
    clock.advance(HOUR).unwrap();
    let beat = timer.repeat(Repeat::every(SECOND).first_at(clock.now() + HOUR), |_| ()).unwrap();
    let wall = clock.wall_now() + 2 * HOUR;
    let daily = timer.repeat(Repeat::every(24 * HOUR).first_wall(wall), |_| ()).unwrap();
    assert_eq!(beat.deadline(), Some(clock.now() + HOUR));
    assert_eq!(daily.deadline(), Some(clock.now() + 2 * HOUR));
    clock.advance(26 * HOUR).unwrap();
    assert_eq!(timer.counts().fired, (25 * 3600 + 1) + 2);
}

/// In real time: callbacks that block, on a pool.
#[test]
fn activity_counts_what_runs() {
    let timer = Timer::builder().pool(3).build().unwrap();
    assert_eq!(timer.activity().threads, 0, "they start when they are needed");
    let (release, wait) = mpsc::channel::<()>();
    let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
    for _ in 0..3 {
        let wait = wait.clone();
        timer.schedule(Duration::ZERO, move |_| _ = wait.lock().unwrap().recv()).unwrap();
    }
    eventually(|| timer.activity().running == 3);
    assert_eq!(timer.activity().threads, 3);
    drop(release);
    eventually(|| timer.activity().completed == 3 && timer.activity().running == 0);
}
