//! One case each: when an operation is completed, when it expires, and what is left of it.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Drops, Log, MS, SECOND};
use crate::{End, Flag, Op, is_empty, purgatory};
use tourbillon::{Operation, Outcome, Purgatory, Timer, VirtualClock, WatchError};

#[test]
fn an_operation_that_is_ready_at_once_arms_no_timer_and_watches_nothing() {
    let (purgatory, timer, _clock) = purgatory();
    let log = Log::new();
    let told = log.clone();
    let seen = (purgatory.clone(), timer.clone());
    let op = Op::new(|| true, move |end| told.add((end, seen.0.watched(), seen.1.counts().armed)));
    let outcome = purgatory.try_complete_else_watch(op, [1, 2, 3], SECOND).unwrap();
    assert_eq!(outcome, Outcome::Completed);
    assert_eq!(log.take(), [(End::Completed, 0, 0)]);
    is_empty(&purgatory, &timer);
}

#[test]
fn empty_keys_are_an_error_and_the_operation_comes_back() {
    let (purgatory, timer, _clock) = purgatory();
    let op = Op { name: 7, ..Op::new(|| panic!("it is not even tried"), |_| unreachable!()) };
    let error = purgatory.try_complete_else_watch(op, [], SECOND).unwrap_err();
    assert!(matches!(&error, WatchError::NoKeys(op) if op.name == 7), "{error:?}");
    assert_eq!((error.into_inner().name, timer.counts().panicked), (7, 0));
}

/// The event comes between the first trial and the watch, so no check notices it.
#[test]
fn it_is_tried_once_more_after_it_is_watched() {
    let (purgatory, timer, _clock) = purgatory();
    let (log, tried) = (Log::new(), Arc::new(AtomicUsize::new(0)));
    let (told, seen) = (log.clone(), purgatory.clone());
    let condition = move || {
        // At the first trial it is not watched, at the second it is watched under all keys.
        let trial = tried.fetch_add(1, SeqCst);
        assert_eq!(seen.watched(), [0, 3][trial]);
        trial == 1
    };
    let op = Op::new(condition, move |end| told.add(end));
    let outcome = purgatory.try_complete_else_watch(op, [1, 2, 3], SECOND).unwrap();
    assert_eq!((outcome, log.take()), (Outcome::Completed, vec![End::Completed]));
    assert_eq!(timer.counts().panicked, 0);
    is_empty(&purgatory, &timer);
}

#[test]
fn true_only_at_the_deadline_and_without_an_event_it_is_completed_and_not_expired() {
    let (purgatory, timer, clock) = purgatory();
    let log = Log::new();
    let (told, time) = (log.clone(), clock.clone());
    let op = Op::new(move || time.elapsed() >= SECOND, move |end| told.add(end));
    purgatory.try_complete_else_watch(op, [1], SECOND).unwrap();
    clock.advance(SECOND - MS).unwrap();
    assert_eq!(log.take(), []);
    clock.advance(MS).unwrap();
    assert_eq!(log.take(), [End::Completed]);
    is_empty(&purgatory, &timer);
}

#[test]
fn it_expires_at_its_timeout_and_never_before() {
    let (purgatory, timer, clock) = purgatory();
    let log = Log::new();
    for (name, timeout) in [(0, Duration::ZERO), (1, MS), (2, SECOND), (3, Duration::MAX)] {
        let op = Op::flagged(name, &Flag::new(), &log);
        purgatory.try_complete_else_watch(op, [1, 2], timeout).unwrap();
    }
    clock.advance(Duration::ZERO).unwrap();
    assert_eq!(log.take(), [(0, End::Expired)]);
    clock.advance(MS).unwrap();
    assert_eq!(log.take(), [(1, End::Expired)]);
    clock.advance(SECOND - MS - Duration::from_nanos(1)).unwrap();
    assert_eq!((log.take(), purgatory.delayed()), (vec![], 2));
    clock.advance(Duration::from_nanos(1)).unwrap();
    assert_eq!(log.take(), [(2, End::Expired)]);
    clock.advance(SECOND * 86_400 * 365 * 100).unwrap();
    assert_eq!((purgatory.delayed(), purgatory.stop().len()), (1, 1));
    is_empty(&purgatory, &timer);
}

#[test]
fn complete_from_any_key_removes_it_from_all() {
    for key in 1..=5 {
        let (purgatory, timer, clock) = purgatory();
        let (log, flag, drops) = (Log::new(), Flag::new(), Drops::new());
        let (told, seen) = (log.clone(), (purgatory.clone(), timer.clone()));
        let met = flag.clone();
        // While its own action runs, it is no longer watched.
        let op = Op::new(
            move || met.is_set(),
            move |end| told.add((end, seen.0.watched(), seen.0.delayed(), seen.1.len())),
        );
        purgatory.try_complete_else_watch(op.counted(&drops), 1..=5, SECOND).unwrap();
        assert_eq!((purgatory.watched(), purgatory.delayed(), timer.len()), (5, 1, 1));
        assert_eq!(purgatory.check(&key), 0, "not yet");
        flag.set();
        assert_eq!(purgatory.check(&9), 0, "another key");
        assert_eq!(purgatory.check(&key), 1);
        assert_eq!(log.take(), [(End::Completed, 0, 0, 0)]);
        assert_eq!(drops.count(), 1, "its memory too");
        (1..=5).for_each(|key| assert_eq!(purgatory.check(&key), 0));
        clock.advance(SECOND * 2).unwrap();
        assert_eq!(log.len(), 0);
        is_empty(&purgatory, &timer);
    }
}

#[test]
fn a_check_tries_in_the_order_in_which_they_came_and_returns_how_many_it_completed() {
    let (purgatory, timer, _clock) = purgatory();
    let log = Log::new();
    let flags: Vec<Flag> = (0..100).map(|_| Flag::new()).collect();
    for (name, flag) in flags.iter().enumerate() {
        let op = Op::flagged(name, flag, &log);
        purgatory.try_complete_else_watch(op, [1, 2], SECOND).unwrap();
    }
    let names = |log: &Log<(usize, End)>| log.take().iter().map(|end| end.0).collect::<Vec<_>>();
    flags.iter().step_by(3).for_each(Flag::set);
    assert_eq!(purgatory.check(&1), 34);
    assert_eq!(names(&log), (0..100).step_by(3).collect::<Vec<_>>());
    flags.iter().step_by(2).for_each(Flag::set);
    assert_eq!(purgatory.check(&2), 33);
    assert_eq!(names(&log), (0..100).step_by(2).filter(|n| n % 3 > 0).collect::<Vec<_>>());
    flags.iter().for_each(Flag::set);
    assert_eq!(purgatory.check(&2), 33);
    assert_eq!(names(&log), (1..100).step_by(2).filter(|n| n % 3 > 0).collect::<Vec<_>>());
    is_empty(&purgatory, &timer);
}

#[test]
fn cancel_a_key_hands_its_operations_back() {
    let (purgatory, timer, clock) = purgatory();
    let log = Log::new();
    for name in 0..50 {
        let op = Op::flagged(name, &Flag::new(), &log);
        let keys = if name % 2 == 0 { [1, 2] } else { [2, 3] };
        purgatory.try_complete_else_watch(op, keys, SECOND).unwrap();
    }
    let names: Vec<_> = purgatory.cancel_key(&1).iter().map(|op| op.name).collect();
    assert_eq!(names, (0..50).step_by(2).collect::<Vec<_>>());
    assert_eq!((purgatory.watched(), purgatory.delayed(), timer.len()), (50, 25, 25));
    assert_eq!(timer.counts().cancelled, 25);
    assert!(purgatory.cancel_key(&1).is_empty() && purgatory.cancel_key(&9).is_empty());
    clock.advance(SECOND).unwrap();
    assert!(log.take().iter().all(|&(name, end)| name % 2 == 1 && end == End::Expired));
    is_empty(&purgatory, &timer);
}

/// A group join: the first member waits for others for a window of time. As long as new members joined in the last
/// window, it waits for another one, up to a total.
#[test]
fn a_join_waits_again_for_a_further_window_up_to_a_total() {
    struct Join {
        members: Arc<AtomicUsize>,
        known: usize,
        window: Duration,
        left: Duration,
        purgatory: Purgatory<&'static str, Join>,
        clock: VirtualClock,
        log: Log<(Duration, usize)>,
    }

    impl Join {
        fn watch(self) {
            let (purgatory, window) = (self.purgatory.clone(), self.window.min(self.left));
            let left = self.left - window;
            purgatory.try_complete_else_watch(Join { left, ..self }, ["group"], window).unwrap();
        }
    }

    impl Operation for Join {
        /// Only time ends a window.
        fn try_complete(&mut self) -> bool {
            false
        }

        fn on_complete(self) {
            unreachable!()
        }

        fn on_expire(self) {
            let members = self.members.load(SeqCst);
            if members > self.known && !self.left.is_zero() {
                Join { known: members, ..self }.watch();
            } else {
                self.log.add((self.clock.elapsed(), members));
            }
        }
    }

    // When members join, and when the group is complete: windows of three seconds, ten seconds at most.
    for (joins, expected) in [
        (vec![], (3, 1)),
        (vec![1], (6, 2)),
        (vec![1, 4], (9, 3)),
        (vec![4], (3, 1)),
        (vec![2, 4, 8], (10, 4)),
        (vec![1, 4, 7, 8, 9], (10, 6)),
    ] {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).on_driver().build().unwrap();
        let purgatory = Purgatory::new(&timer);
        let (members, log) = (Arc::new(AtomicUsize::new(1)), Log::new());
        let join = Join {
            members: members.clone(),
            known: 1,
            window: SECOND * 3,
            left: SECOND * 10,
            purgatory: purgatory.clone(),
            clock: clock.clone(),
            log: log.clone(),
        };
        join.watch();
        for second in 1..=12 {
            clock.advance(SECOND).unwrap();
            if joins.contains(&second) && log.len() == 0 {
                members.fetch_add(1, SeqCst);
                assert_eq!(purgatory.check("group"), 0);
            }
        }
        let (seconds, members) = expected;
        assert_eq!(log.take(), [(SECOND * seconds, members)], "{joins:?}");
        assert_eq!((purgatory.watched(), timer.len()), (0, 0));
    }
}

#[test]
fn a_key_that_is_given_twice_counts_once() {
    let (purgatory, timer, _clock) = purgatory();
    purgatory.try_complete_else_watch(Op::never(0), [1, 2, 1, 1, 2], SECOND).unwrap();
    assert_eq!(purgatory.watched(), 2);
    // The same with many keys.
    let keys = (0..3000).map(|n| n * 7 % 1000);
    purgatory.try_complete_else_watch(Op::never(1), keys, SECOND).unwrap();
    assert_eq!(purgatory.watched(), 1002);
    assert_eq!(purgatory.cancel_key(&999).len(), 1);
    assert_eq!(purgatory.cancel_key(&2).len(), 1);
    is_empty(&purgatory, &timer);
}

/// A hasher that gives all keys the same hash.
#[derive(Default)]
struct Alike;

impl Hasher for Alike {
    fn finish(&self) -> u64 {
        0
    }
    fn write(&mut self, _: &[u8]) {}
}

#[test]
fn keys_that_collide_are_told_apart() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).on_driver().build().unwrap();
    let hasher = BuildHasherDefault::<Alike>::default();
    let purgatory: Purgatory<String, Op, _> = Purgatory::with_hasher(&timer, hasher);
    let (log, flag) = (Log::new(), Flag::new());
    for name in 0..20 {
        let op = Op::flagged(name, &flag, &log);
        let keys = [name, name + 1].map(|key| key.to_string());
        purgatory.try_complete_else_watch(op, keys, SECOND).unwrap();
    }
    assert_eq!(purgatory.watched(), 40);
    flag.set();
    assert_eq!(purgatory.check("7"), 2);
    assert_eq!(log.take(), [(6, End::Completed), (7, End::Completed)]);
    assert_eq!(purgatory.cancel_key("0").len(), 1);
    assert_eq!((purgatory.check("20"), purgatory.watched()), (1, 32));
    clock.advance(SECOND).unwrap();
    assert_eq!((purgatory.watched(), timer.len()), (0, 0));
}

/// Around sixteen keys: from there on, the keys of one operation are looked up by hash.
#[test]
fn the_keys_of_one_operation_are_told_apart_though_all_collide() {
    for count in [1, 2, 15, 16, 17, 18, 40] {
        let (log, flag) = (Log::new(), Flag::new());
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).on_driver().build().unwrap();
        let hasher = BuildHasherDefault::<Alike>::default();
        let purgatory: Purgatory<u64, Op, _> = Purgatory::with_hasher(&timer, hasher);
        for key in 0..count {
            let op = Op::flagged(key as usize, &flag, &log);
            // Each key a second time, and some a third time.
            let keys = (0..count).chain(0..count).chain(0..count / 2);
            purgatory.try_complete_else_watch(op, keys, SECOND).unwrap();
        }
        assert_eq!(purgatory.watched() as u64, count * count, "{count}");
        for key in 0..count {
            assert_eq!(purgatory.check(&key), 0, "{count}");
        }
        flag.set();
        assert_eq!(purgatory.check(&(count - 1)), count as usize, "{count}");
        assert_eq!((log.take().len() as u64, purgatory.watched(), timer.len()), (count, 0, 0));
        // A check of any of the keys reaches it.
        for key in 0..count {
            let op = Op::new(|| false, |_| ());
            purgatory.try_complete_else_watch(op, 0..count, SECOND).unwrap();
            assert_eq!(purgatory.cancel_key(&key).len(), 1, "key {key} of {count}");
        }
        assert_eq!((purgatory.watched(), timer.len()), (0, 0));
    }
}

#[test]
fn a_timer_that_refuses_leaves_nothing_watched() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).limit(1).build().unwrap();
    let purgatory: Purgatory<u64, Op> = Purgatory::new(&timer);
    purgatory.try_complete_else_watch(Op::never(0), [1, 2], SECOND).unwrap();
    let full = purgatory.try_complete_else_watch(Op::never(1), [1, 2], SECOND);
    assert!(matches!(full, Err(WatchError::Full(op)) if op.name == 1));
    assert_eq!((purgatory.watched(), purgatory.delayed()), (2, 1));
    timer.stop();
    let stopped = purgatory.try_complete_else_watch(Op::never(2), [1, 2], SECOND);
    assert!(matches!(stopped, Err(WatchError::Stopped(op)) if op.name == 2));
    // A watched operation can no longer expire; it can be completed or handed back.
    assert_eq!(purgatory.stop().len(), 1);
}

/// Most of a crowd under one key leave by their other keys: the remaining ones are tried in order, and can be removed.
#[test]
fn those_who_stay_close_ranks() {
    let (purgatory, timer, _clock) = purgatory();
    let log = Log::new();
    let flags: Vec<Flag> = (0..2000).map(|_| Flag::new()).collect();
    for (name, flag) in flags.iter().enumerate() {
        let op = Op::flagged(name, flag, &log);
        purgatory.try_complete_else_watch(op, [0, 1 + name as u64], SECOND).unwrap();
    }
    let gone = |name: usize| name % 97 != 0;
    let order: Vec<usize> = (0..2000).map(|n| n * 1201 % 2000).collect();
    for &name in order.iter().filter(|&&name| gone(name)) {
        flags[name].set();
        assert_eq!(purgatory.check(&(1 + name as u64)), 1);
    }
    assert_eq!(purgatory.watched(), 2 * (2000_usize).div_ceil(97));
    log.take();
    flags.iter().for_each(Flag::set);
    assert_eq!(purgatory.check(&0), (2000_usize).div_ceil(97));
    let names: Vec<usize> = log.take().into_iter().map(|end| end.0).collect();
    assert_eq!(names, (0..2000).step_by(97).collect::<Vec<_>>());
    is_empty(&purgatory, &timer);
}

/// A condition that was met is not tried again, and the value that it took is delivered.
#[test]
fn what_a_condition_takes_is_delivered() {
    let (purgatory, timer, clock) = purgatory();
    let queue = Arc::new(Mutex::new(Vec::new()));
    let log = Log::new();
    for _ in 0..10 {
        let (take, told) = (queue.clone(), log.clone());
        let condition = move || take.lock().unwrap().pop();
        purgatory.when([1], SECOND, condition, move |outcome| told.add(outcome)).unwrap();
    }
    queue.lock().unwrap().extend(0..7);
    assert_eq!(purgatory.check(&1), 7);
    assert_eq!(log.take(), (0..7).rev().map(Ok).collect::<Vec<_>>());
    queue.lock().unwrap().push(8);
    clock.advance(SECOND).unwrap();
    let outcomes = log.take();
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Ok(8)).count(), 1);
    assert_eq!(outcomes.len(), 3, "{outcomes:?}");
    is_empty(&purgatory, &timer);
}
