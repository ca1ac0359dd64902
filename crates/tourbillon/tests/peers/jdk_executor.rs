//! The JDK's `ScheduledExecutorTest`.
//!
//! Some in real time: callbacks that block, and a shutdown, take real time; the rest is virtual.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use tourbillon::{NoResult, Repeat, State, Timer, VirtualClock};

use crate::common::{HOUR, Log, MS, SECOND, accounted, eventually, panic_quietly, within};

fn executor() -> (Timer, VirtualClock) {
    let clock = VirtualClock::new();
    (Timer::builder().pool(2).clock(&clock).build().unwrap(), clock)
}

#[test]
fn a_task_gives_its_result_after_its_delay() {
    let (timer, clock) = executor();
    let (now, later) = (timer.compute(Duration::ZERO, |_| 1), timer.compute(SECOND, |_| "done"));
    let (now, later) = (now.unwrap(), later.unwrap());
    clock.advance(Duration::ZERO).unwrap();
    assert_eq!(now.wait(), Ok(1));
    clock.advance(999 * MS).unwrap();
    assert!(!later.is_over());
    assert_eq!(later.timeout().remaining(), Some(MS));
    clock.advance(MS).unwrap();
    assert_eq!(later.wait(), Ok("done"));
}

#[test]
fn a_task_that_fails_says_so_to_whoever_waits() {
    let (timer, clock) = executor();
    let fails = timer.compute(SECOND, |_| -> u32 { panic_quietly() }).unwrap();
    clock.advance(SECOND).unwrap();
    assert_eq!((fails.wait(), timer.counts().panicked), (Err(NoResult::Panicked), 1));
}

#[test]
fn a_fixed_rate_and_a_fixed_delay() {
    let (timer, clock) = executor();
    let log = Log::new();
    let note = |name: &'static str| {
        let (log, clock) = (log.clone(), clock.clone());
        move |_: &tourbillon::Context<'_>| log.add((clock.elapsed().as_secs(), name))
    };
    timer.repeat(Repeat::every(3 * SECOND).first(SECOND), note("rate")).unwrap();
    timer.repeat(Repeat::after_each(4 * SECOND).first(Duration::ZERO), note("delay")).unwrap();
    clock.advance(8 * SECOND).unwrap();
    let mut all = log.take();
    all.sort_unstable();
    let expected =
        [(0, "delay"), (1, "rate"), (4, "delay"), (4, "rate"), (7, "rate"), (8, "delay")];
    assert_eq!(all, expected);
}

/// A period beyond the end of the clock's time delays no other task.
#[test]
fn the_longest_period_does_not_overflow() {
    let (timer, clock) = executor();
    let (sender, ran) = mpsc::channel();
    let forever = Repeat::after_each(Duration::MAX).first(Duration::ZERO);
    timer
        .repeat(forever, move |context| {
            let sender = sender.clone();
            context.timer().arm(Duration::ZERO, move |_| sender.send(()).unwrap()).unwrap();
        })
        .unwrap();
    clock.advance(SECOND).unwrap();
    assert_eq!((ran.try_iter().count(), timer.len()), (1, 1));
}

/// In real time, milliseconds, like those below: the callbacks block.
#[test]
fn counts_of_threads_and_tasks_do_not_overestimate() {
    within(|| {
        let timer = Timer::builder().pool(2).build().unwrap();
        let activity = timer.activity();
        assert_eq!((activity.running, activity.threads, activity.completed), (0, 0, 0));
        let (release, wait) = mpsc::channel::<()>();
        let blocked = timer.compute(Duration::ZERO, move |_| wait.recv()).unwrap();
        eventually(|| blocked.timeout().state() == State::Running);
        let activity = timer.activity();
        assert_eq!((activity.running, activity.completed), (1, 0));
        assert!((1..=2).contains(&activity.threads));
        assert_eq!(timer.counts().armed, 1);
        drop(release);
        assert!(blocked.wait().is_ok());
        eventually(|| timer.activity().completed == 1);
    });
}

#[test]
fn a_task_that_waits_for_a_thread_can_be_removed_and_one_that_runs_cannot() {
    within(|| {
        let timer = Timer::builder().pool(1).build().unwrap();
        let (release, wait) = mpsc::channel::<()>();
        let runs = timer.schedule(Duration::ZERO, move |_| _ = wait.recv()).unwrap();
        eventually(|| runs.state() == State::Running);
        let waits: Vec<_> =
            (0..4).map(|_| timer.schedule(Duration::ZERO, |_| ()).unwrap()).collect();
        assert!(!runs.cancel());
        assert!(waits[3].cancel() && !waits[3].cancel());
        assert_eq!(timer.len(), 3, "gone at once: there is nothing to purge");
        assert!(!timer.is_pending(waits[3].key()) && timer.is_pending(waits[2].key()));
        drop(release);
        eventually(|| timer.is_empty());
        accounted(&timer);
    });
}

/// A stopping timer accepts nothing new, and waits for running callbacks.
#[test]
fn a_stop_hands_back_what_was_queued_and_waits_for_what_runs() {
    within(|| {
        let timer = Timer::builder().pool(2).build().unwrap();
        let (ran, release) = (Arc::new(AtomicU32::new(0)), Arc::new(std::sync::Barrier::new(3)));
        for _ in 0..5 {
            let (ran, release) = (ran.clone(), release.clone());
            timer
                .schedule(Duration::ZERO, move |_| {
                    release.wait();
                    thread::sleep(5 * MS);
                    ran.fetch_add(1, SeqCst);
                })
                .unwrap();
        }
        eventually(|| timer.activity().running == 2 && timer.counts().fired == 2);
        let (stopping, own) = (timer.clone(), release);
        let stop = thread::spawn(move || stopping.stop());
        eventually(|| timer.is_stopped());
        assert!(timer.schedule(MS, |_| ()).is_err());
        own.wait();
        let unfired = stop.join().unwrap();
        assert_eq!((unfired.len(), ran.load(SeqCst)), (3, 2));
        assert_eq!(timer.counts().handed_back, 3);
    });
}

#[test]
fn a_stop_hands_back_tasks_of_every_kind() {
    let (timer, _clock) = executor();
    let mut handles = Vec::new();
    for _ in 0..3 {
        handles.push(timer.schedule(9 * SECOND, |_| ()).unwrap());
        handles.push(timer.repeat(Repeat::every(9 * SECOND), |_| ()).unwrap());
        handles.push(timer.repeat(Repeat::after_each(9 * SECOND), |_| ()).unwrap());
    }
    let unfired = timer.stop();
    assert_eq!((unfired.len(), timer.is_stopped(), timer.len()), (9, true, 0));
    for handle in &handles {
        assert_eq!(unfired.iter().filter(|unfired| unfired.is_of(handle)).count(), 1);
        assert_eq!(handle.state(), State::HandedBack);
    }
}

/// As in the JDK, delayed tasks run after a shutdown. Unlike there, a periodic task runs its pending run.
#[test]
fn a_shutdown_runs_delayed_tasks_and_ends() {
    within(|| {
        let timer = Timer::builder().pool(2).build().unwrap();
        let delayed = timer.compute(20 * MS, |_| "ran").unwrap();
        let beats = Arc::new(AtomicU32::new(0));
        let count = beats.clone();
        timer.repeat(Repeat::every(5 * MS), move |_| _ = count.fetch_add(1, SeqCst)).unwrap();
        let ended = timer.shutdown_within(HOUR);
        assert!(ended.finished && ended.unfired.is_empty() && timer.is_stopped());
        assert_eq!(delayed.wait(), Ok("ran"));
        let after = beats.load(SeqCst);
        thread::sleep(20 * MS);
        assert_eq!(beats.load(SeqCst), after, "none after the end");
    });
}
