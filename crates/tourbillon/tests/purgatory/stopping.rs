//! The end of a purgatory: every operation is handed back, once.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;

use crate::common::{Drops, Log, SECOND, case, within};
use crate::waits::block_on;
use crate::{End, Flag, Op, is_empty, purgatory};
use tourbillon::{Purgatory, Timer, WaitError, WatchError};

#[test]
fn stop_hands_back_every_operation_once() {
    let (purgatory, timer, clock) = purgatory();
    let log = Log::new();
    for name in 0..500 {
        let op = Op::flagged(name, &Flag::new(), &log);
        let keys = [name as u64 % 10, 10 + name as u64 % 7, 20];
        purgatory.try_complete_else_watch(op, keys, SECOND).unwrap();
    }
    let told = log.clone();
    let then = move |outcome: Result<(), _>| {
        assert_eq!(outcome, Err(WaitError::Stopped));
        told.add((1000, End::Expired));
    };
    purgatory.when([20], SECOND, || None, then).unwrap();
    let mut names: Vec<usize> = purgatory.stop().iter().map(|op| op.name).collect();
    names.sort_unstable();
    assert_eq!(names, (0..500).collect::<Vec<_>>());
    assert_eq!(log.take(), [(1000, End::Expired)], "a closure is told");
    assert!(purgatory.stop().is_empty(), "a second stop");
    is_empty(&purgatory, &timer);

    let refused = purgatory.try_complete_else_watch(Op::new(|| true, |_| ()), [1], SECOND);
    assert!(matches!(refused, Err(WatchError::Stopped(_))), "also if it is ready");
    assert_eq!(purgatory.check(&20), 0);
    clock.advance(SECOND).unwrap();
    assert_eq!(log.len(), 0);
    // The timer goes on.
    timer.schedule(SECOND, |_| ()).unwrap();
}

#[test]
fn stop_while_threads_add_and_check() {
    within(|| {
        for _ in 0..100 {
            let (purgatory, timer, _clock) = purgatory();
            let (ended, meet) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(4)));
            let threads: Vec<_> = (0..3_u64)
                .map(|n| {
                    let (purgatory, ended, meet) = (purgatory.clone(), ended.clone(), meet.clone());
                    thread::spawn(move || {
                        meet.wait();
                        let mut refused = 0;
                        for round in 0..100_u64 {
                            let (flag, ended) = (Flag::new(), ended.clone());
                            let met = flag.clone();
                            let end = move |_| {
                                ended.fetch_add(1, SeqCst);
                            };
                            let op = Op::new(move || met.is_set(), end);
                            let keys = [round % 3, 3 + n, 10];
                            let added = purgatory.try_complete_else_watch(op, keys, SECOND);
                            refused += usize::from(added.is_err());
                            if round % 2 == 0 {
                                flag.set();
                                purgatory.check(&10);
                            }
                        }
                        refused
                    })
                })
                .collect();
            meet.wait();
            let back = purgatory.stop().len();
            let refused: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
            assert_eq!(back + refused + ended.load(SeqCst), 300);
            is_empty(&purgatory, &timer);
        }
    });
}

#[test]
fn dropping_the_last_clone_drops_what_waits() {
    let (purgatory, timer, clock) = purgatory();
    let (drops, log) = (Drops::new(), Log::new());
    for name in 0..10 {
        let op = Op::never(name).counted(&drops);
        purgatory.try_complete_else_watch(op, [1, 2], SECOND).unwrap();
    }
    let told = log.clone();
    purgatory.when([1], SECOND, || None::<()>, move |outcome| told.add(outcome)).unwrap();
    let clone = purgatory.clone();
    drop(purgatory);
    assert_eq!((drops.count(), clone.delayed(), timer.len()), (0, 11, 11));
    drop(clone);
    assert_eq!((drops.count(), timer.len()), (10, 0));
    assert_eq!(log.take(), [Err(WaitError::Stopped)]);
    clock.advance(SECOND).unwrap();
}

/// The timer is stopped under a purgatory: operations wait on, closures would wait for ever and are told.
#[test]
fn a_timer_that_is_stopped_tells_those_who_cannot_be_handed_back() {
    let (purgatory, timer, _clock) = purgatory();
    let (log, told) = (Log::new(), Log::new());
    let flag = Flag::new();
    purgatory.try_complete_else_watch(Op::flagged(1, &flag, &log), [1], SECOND).unwrap();
    purgatory.try_complete_else_watch(Op::flagged(2, &Flag::new(), &log), [2], SECOND).unwrap();
    purgatory.try_complete_else_watch(Op::flagged(3, &Flag::new(), &log), [3], SECOND).unwrap();
    let tell = told.clone();
    purgatory.when([1], SECOND, || None::<()>, move |outcome| tell.add(outcome)).unwrap();
    let mut unfired = timer.stop();
    assert_eq!(unfired.len(), 4);
    unfired.sort_by_key(tourbillon::Unfired::key);
    // To run one is to let its timeout come.
    unfired.remove(2).run();
    assert_eq!(log.take(), [(3, End::Expired)]);
    drop(unfired);
    assert_eq!(told.take(), [Err(WaitError::Stopped)]);
    flag.set();
    assert_eq!((purgatory.check(&1), log.take()), (1, vec![(1, End::Completed)]));
    assert_eq!(purgatory.stop().iter().map(|op| op.name).collect::<Vec<_>>(), [2]);
    is_empty(&purgatory, &timer);
}

/// The purgatory, or its timer, is stopped by a condition that does not hold, in one of the two trials of the adding.
#[test]
fn a_condition_that_stops_is_not_watched() {
    type Stop = (&'static str, fn(&Purgatory<u64, Op>, &Timer));
    let stops: [Stop; 3] = [
        ("purgatory", |purgatory, _| drop(purgatory.stop())),
        ("timer", |_, timer| drop(timer.stop())),
        ("both", |purgatory, timer| drop((purgatory.stop(), timer.stop()))),
    ];
    for (name, stop) in stops {
        for trial in [1, 2] {
            case(format!("{name}, trial {trial}"), move || {
                let told = Log::new();
                let add = |kind: &str| {
                    let (purgatory, timer, _clock) = purgatory();
                    let (drops, own, mut tried) =
                        (Drops::new(), (purgatory.clone(), timer.clone()), 0);
                    let held = drops.one();
                    let mut condition = move || {
                        let _held = &held;
                        tried += 1;
                        if tried == trial {
                            stop(&own.0, &own.1);
                        }
                        false
                    };
                    let refused = match kind {
                        "operation" => {
                            let op = Op::new(condition, |end| panic!("{end:?}"));
                            let added = purgatory.try_complete_else_watch(op, [1, 2], SECOND);
                            matches!(added, Err(WatchError::Stopped(_)))
                        }
                        "closure" => {
                            let tell = told.clone();
                            let when = move || condition().then_some(());
                            let then = move |outcome| tell.add(outcome);
                            let added = purgatory.when([1, 2], SECOND, when, then);
                            matches!(added, Err(WatchError::Stopped(_)))
                        }
                        _ => {
                            let wait =
                                purgatory.wait([1, 2], SECOND, move || condition().then_some(()));
                            told.add(block_on(wait));
                            true
                        }
                    };
                    // In the second it is there already. An operation outlives its timer.
                    let stays = usize::from(kind == "operation" && name == "timer" && trial == 2);
                    assert_eq!(purgatory.delayed(), stays, "{kind}");
                    assert_eq!((purgatory.watched(), timer.len()), (2 * stays, 0), "{kind}");
                    assert_eq!(purgatory.stop().len(), stays, "{kind}");
                    assert_eq!((drops.count(), timer.counts().panicked), (1, 0), "{kind}");
                    refused
                };
                assert_eq!(add("operation"), trial == 1);
                assert_eq!((add("closure"), told.take().len()), (trial == 1, trial - 1));
                add("future");
                assert_eq!(told.take(), [Err(WaitError::Stopped)]);
            });
        }
    }
}

/// Purgatories are for threads.
#[test]
fn a_purgatory_is_send_and_sync() {
    fn check<T: Send + Sync + Clone>() {}
    check::<Purgatory<String>>();
    check::<Purgatory<u64, Op>>();
    fn future<T: Send + Sync>() {}
    future::<tourbillon::Wait<String>>();
}
