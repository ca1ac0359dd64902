//! The end of a purgatory: every operation is handed back once.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;

use crate::common::{Drops, Log, SECOND, within};
use crate::{End, Flag, Op, is_empty, purgatory};
use tourbillon::{Purgatory, WaitError, WatchError};

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
    // The timer still works.
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

/// The timer of a purgatory is stopped: operations continue to wait; closures, which would wait forever, receive an
/// error.
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
    // To run an unfired timeout is to let the operation expire.
    unfired.remove(2).run();
    assert_eq!(log.take(), [(3, End::Expired)]);
    drop(unfired);
    assert_eq!(told.take(), [Err(WaitError::Stopped)]);
    flag.set();
    assert_eq!((purgatory.check(&1), log.take()), (1, vec![(1, End::Completed)]));
    assert_eq!(purgatory.stop().iter().map(|op| op.name).collect::<Vec<_>>(), [2]);
    is_empty(&purgatory, &timer);
}

/// A condition may stop its purgatory, at any trial: its operation is refused, handed back or ended, and not watched.
#[test]
fn a_condition_that_stops_is_not_watched_any_more() {
    for stops_in in 1..=3 {
        let condition = move |own: &Purgatory<u64, Op>, handed_back: &Log<usize>| {
            let (own, told, mut trial) = (own.clone(), handed_back.clone(), 0);
            move || {
                trial += 1;
                if trial == stops_in {
                    told.add(own.stop().len());
                }
                false
            }
        };
        for face in ["operation", "closure", "future"] {
            within(move || {
                let (purgatory, timer, clock) = purgatory();
                let (back, drops, told) = (Log::new(), Drops::new(), Log::new());
                let mut holds = condition(&purgatory, &back);
                let none = move || holds().then_some(());
                match face {
                    "operation" => {
                        let end = |end: End| panic!("{end:?}");
                        let op = Op::new(condition(&purgatory, &back), end).counted(&drops);
                        let added = purgatory.try_complete_else_watch(op, [1, 2], SECOND);
                        assert_eq!(added.is_err(), stops_in == 1, "{stops_in}");
                    }
                    "closure" => {
                        let tell = told.clone();
                        let held = drops.one();
                        let then = move |outcome: Result<(), WaitError>| {
                            drop(held);
                            tell.add(outcome);
                        };
                        let added = purgatory.when([1, 2], SECOND, none, then);
                        assert_eq!(added.is_err(), stops_in == 1, "{stops_in}");
                    }
                    _ => {
                        drop(drops.one());
                        let mut wait = Box::pin(purgatory.wait([1, 2], SECOND, none));
                        purgatory.check(&2);
                        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                        let outcome = wait.as_mut().poll(&mut context);
                        let stopped = std::task::Poll::Ready(Err(WaitError::Stopped));
                        assert_eq!(outcome, stopped, "{stops_in}");
                    }
                }
                purgatory.check(&2);
                assert_eq!(back.len(), 1, "{face}, {stops_in}: it was stopped");
                is_empty(&purgatory, &timer);
                clock.advance(SECOND * 2).unwrap();
                assert_eq!(drops.count(), 1, "{face}, {stops_in}: it is gone");
                let heard = told.take();
                assert!(heard.iter().all(|outcome| *outcome == Err(WaitError::Stopped)));
                assert_eq!(heard.len(), usize::from(face == "closure" && stops_in > 1));
                assert!(purgatory.stop().is_empty());
            });
        }
    }
}

/// A purgatory can be shared between threads.
#[test]
fn a_purgatory_is_send_and_sync() {
    fn check<T: Send + Sync + Clone>() {}
    check::<Purgatory<String>>();
    check::<Purgatory<u64, Op>>();
    fn future<T: Send + Sync>() {}
    future::<tourbillon::Wait<String>>();
}
