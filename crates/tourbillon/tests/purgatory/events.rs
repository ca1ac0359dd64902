//! Events that come at a bad moment: during a trial, or from inside a condition.
//!
//! One test is in real time: its conditions take a millisecond for each step, so that the trials of two threads
//! overlap.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;

use crate::common::asleep::spawn_asleep;
use crate::common::{HOUR, Log, MS, SECOND, eventually};
use crate::{End, Flag, Op, is_empty, purgatory};
use tourbillon::Purgatory;

/// An operation under key 1 whose third trial reads the flag and then blocks. Returns: the trial has begun, the trial
/// may continue, and the log of its end.
fn slow(purgatory: &Purgatory<u64, Op>, flag: &Flag) -> (Flag, Flag, Log<End>) {
    let (entered, leave, log) = (Flag::new(), Flag::new(), Log::new());
    let (met, says, waits, told) = (flag.clone(), entered.clone(), leave.clone(), log.clone());
    let mut trials = 0;
    let condition = move || {
        trials += 1;
        let seen = met.is_set();
        if trials == 3 {
            says.set();
            eventually(|| waits.is_set());
        }
        seen
    };
    let op = Op::new(condition, move |end| told.add(end));
    purgatory.try_complete_else_watch(op, [1], SECOND).unwrap();
    (entered, leave, log)
}

#[test]
fn an_event_during_the_last_trial_is_not_missed() {
    let (purgatory, timer, clock) = purgatory();
    let flag = Flag::new();
    let (entered, leave, log) = slow(&purgatory, &flag);
    let time = thread::spawn(move || clock.advance(SECOND).unwrap());
    eventually(|| entered.is_set());
    assert_eq!(purgatory.delayed(), 1, "it has not expired yet");
    flag.set();
    purgatory.check(&1);
    leave.set();
    time.join().unwrap();
    assert_eq!(log.take(), [End::Completed]);
    is_empty(&purgatory, &timer);
}

#[test]
fn a_check_during_the_last_trial_puts_the_expiry_off_and_not_away() {
    let (purgatory, timer, clock) = purgatory();
    let (entered, leave, log) = slow(&purgatory, &Flag::new());
    let time = thread::spawn(move || clock.advance(SECOND).unwrap());
    eventually(|| entered.is_set());
    purgatory.check(&1);
    leave.set();
    time.join().unwrap();
    assert_eq!(log.take(), [End::Expired]);
    is_empty(&purgatory, &timer);
}

#[test]
fn an_event_before_a_cancel_is_not_missed() {
    for event in [true, false] {
        let (purgatory, timer, _clock) = purgatory();
        let flag = Flag::new();
        let (entered, leave, log) = slow(&purgatory, &flag);
        let own = purgatory.clone();
        let trial = thread::spawn(move || own.check(&1));
        eventually(|| entered.is_set());
        if event {
            flag.set();
        }
        purgatory.check(&1);
        // The cancel waits for the trial.
        let own = purgatory.clone();
        let cancel = spawn_asleep(move || own.cancel_key(&1).len());
        assert!(!cancel.is_finished());
        leave.set();
        let back = cancel.join().unwrap();
        assert_eq!(trial.join().unwrap(), usize::from(event));
        let ends = if event { vec![End::Completed] } else { vec![] };
        assert_eq!((log.take(), back), (ends, usize::from(!event)));
        is_empty(&purgatory, &timer);
    }
}

/// The condition has read the flag when another condition, tried by a check inside it, sets that flag.
#[test]
fn an_event_inside_a_condition_is_not_missed() {
    let (purgatory, _timer, _clock) = purgatory();
    let (flag, armed, log) = (Flag::new(), Flag::new(), Log::new());
    let (own, met, on, told) = (purgatory.clone(), flag.clone(), armed.clone(), log.clone());
    let looks_and_checks = move || {
        let seen = met.is_set();
        if on.is_set() {
            own.check(&2);
        }
        seen
    };
    let op = Op::new(looks_and_checks, move |end| told.add(end));
    purgatory.try_complete_else_watch(op, [1], SECOND).unwrap();
    let (own, met, on) = (purgatory.clone(), flag.clone(), armed.clone());
    let changes = move || {
        if on.is_set() {
            met.set();
            own.check(&1);
        }
        false
    };
    purgatory.try_complete_else_watch(Op::new(changes, |_| ()), [2], SECOND).unwrap();
    armed.set();
    assert_eq!(purgatory.check(&1), 1);
    assert_eq!(log.take(), [End::Completed]);
}

#[test]
fn conditions_that_check_each_other_on_two_threads_come_to_an_end() {
    let (purgatory, _timer, _clock) = purgatory();
    let (tried, slow) = (Arc::new(AtomicUsize::new(0)), Flag::new());
    for key in [1, 2] {
        let (own, count, slow) = (purgatory.clone(), tried.clone(), slow.clone());
        let condition = move || {
            // They reach this count only if they are tried forever.
            let goes_on = slow.is_set() && count.fetch_add(1, SeqCst) < 1000;
            for _ in 0..if goes_on { 10 } else { 0 } {
                thread::sleep(MS);
                own.check(&(3 - key));
            }
            false
        };
        purgatory.try_complete_else_watch(Op::new(condition, |_| ()), [key], HOUR).unwrap();
    }
    slow.set();
    let (done, ended) = mpsc::channel();
    for key in [1, 2] {
        let (own, done) = (purgatory.clone(), done.clone());
        thread::spawn(move || done.send(own.check(&key)).unwrap());
    }
    assert_eq!((ended.recv().unwrap(), ended.recv().unwrap()), (0, 0));
    // Each is tried twice; each trial checks the other key ten times, with two trials for each check.
    let tried = tried.load(SeqCst);
    assert!(tried <= 2 * (2 + 2 * 10 * 2), "{tried} trials");
}
