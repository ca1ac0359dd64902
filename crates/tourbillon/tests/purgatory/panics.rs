//! User code that panics: the panic is counted and reported, and affects nothing else.

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::common::{Drops, HOUR, Log, PanicsWhenDropped, SECOND, panic_quietly};
use crate::{End, Flag, Op, is_empty, purgatory};
use tourbillon::{Operation, Outcome, Purgatory, Timer, VirtualClock};

#[test]
fn a_condition_that_panics_is_not_met_and_goes_on_waiting() {
    let (purgatory, timer, clock) = purgatory();
    let (log, calm) = (Log::new(), Flag::new());
    for name in 0..2 {
        let (told, calm) = (log.clone(), calm.clone());
        let condition = move || if calm.is_set() && name == 0 { true } else { panic_quietly() };
        let op = Op::new(condition, move |end| told.add((name, end)));
        let outcome = purgatory.try_complete_else_watch(op, [1, 2], SECOND).unwrap();
        assert_eq!(outcome, Outcome::Watched);
    }
    assert_eq!((timer.counts().panicked, purgatory.delayed()), (4, 2));
    assert_eq!((purgatory.check(&1), timer.counts().panicked), (0, 6));
    calm.set();
    assert_eq!(purgatory.check(&2), 1);
    // The other one panics at its last trial, too.
    clock.advance(SECOND).unwrap();
    assert_eq!(log.take(), [(0, End::Completed), (1, End::Expired)]);
    assert_eq!(timer.counts().panicked, 8);
    is_empty(&purgatory, &timer);
}

#[test]
fn an_action_that_panics_ends_its_operation_and_no_other() {
    let reported = Arc::new(AtomicUsize::new(0));
    let count = reported.clone();
    let clock = VirtualClock::new();
    let builder = Timer::builder().clock(&clock).on_driver().on_panic(move |_| {
        count.fetch_add(1, SeqCst);
    });
    let timer = builder.build().unwrap();
    let purgatory: Purgatory<u64, Op> = Purgatory::new(&timer);
    let (log, flag) = (Log::new(), Flag::new());
    for name in 0..10 {
        let (told, met) = (log.clone(), flag.clone());
        let op = Op::new(
            move || met.is_set() && name < 6,
            move |end| {
                told.add((name, end));
                if name % 2 == 0 {
                    panic_quietly();
                }
            },
        );
        purgatory.try_complete_else_watch(op, [1], SECOND).unwrap();
    }
    flag.set();
    assert_eq!(purgatory.check(&1), 6);
    assert_eq!((log.take().len(), timer.counts().panicked), (6, 3));
    clock.advance(SECOND).unwrap();
    assert_eq!((log.take().len(), timer.counts().panicked), (4, 5));
    assert_eq!(reported.load(SeqCst), 5);
    // An operation that is ready at once.
    let op = Op::new(|| true, |_| panic_quietly());
    assert_eq!(purgatory.try_complete_else_watch(op, [1], SECOND).unwrap(), Outcome::Completed);
    assert_eq!(timer.counts().panicked, 6);
    is_empty(&purgatory, &timer);
}

/// Actions of other operations, some of which panic, are queued inside user code and run after it: the panics are
/// contained.
#[test]
fn an_action_that_waited_for_its_turn_may_panic() {
    // Where they are queued, and whether that code panics as well.
    for place in ["condition", "completion", "expiry"] {
        for also in [false, true] {
            let (purgatory, timer, clock) = purgatory();
            let (log, flag) = (Log::new(), Flag::new());
            for name in 0..5 {
                let (told, met) = (log.clone(), flag.clone());
                let action = move || {
                    told.add(name);
                    if name % 2 == 0 {
                        panic_quietly();
                    }
                };
                // Operations and closures.
                if name < 3 {
                    let op = Op::new(move || met.is_set(), move |_| action());
                    purgatory.try_complete_else_watch(op, [2], HOUR).unwrap();
                } else {
                    let then = move |_| action();
                    let when = move || met.is_set().then_some(());
                    assert!(purgatory.when([2], HOUR, when, then).is_ok());
                }
            }
            let (own, armed, counts) = (purgatory.clone(), Flag::new(), Log::new());
            let (met, told) = (flag.clone(), counts.clone());
            let mut once = Some(move || {
                met.set();
                told.add(own.check(&2));
                if also {
                    panic_quietly();
                }
            });
            let (on, here) = (armed.clone(), place);
            let completes = Arc::new(std::sync::Mutex::new(move || {
                once.take().into_iter().for_each(|once| once());
            }));
            let tries = completes.clone();
            let condition = move || {
                if on.is_set() && here == "condition" {
                    tries.lock().unwrap()();
                }
                on.is_set() && here == "completion"
            };
            let end = move |_| completes.lock().unwrap()();
            purgatory.try_complete_else_watch(Op::new(condition, end), [1], SECOND).unwrap();
            armed.set();
            if place == "expiry" {
                clock.advance(SECOND).unwrap();
            } else {
                assert_eq!(purgatory.check(&1), usize::from(place == "completion"));
            }
            let case = format!("{place}, panics as well: {also}");
            assert_eq!((counts.take(), log.take()), (vec![5], vec![0, 1, 2, 3, 4]), "{case}");
            assert_eq!(timer.counts().panicked, 3 + u64::from(also), "{case}");
            purgatory.stop();
            is_empty(&purgatory, &timer);
        }
    }
}

#[test]
fn an_operation_whose_drop_panics_is_dropped_all_the_same() {
    struct Fragile(
        #[allow(dead_code)] PanicsWhenDropped,
        bool,
        #[allow(dead_code)] crate::common::Dropped,
    );
    impl Operation for Fragile {
        fn try_complete(&mut self) -> bool {
            self.1
        }
        fn on_complete(self) {}
        fn on_expire(self) {}
    }
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).on_driver().build().unwrap();
    let purgatory = Purgatory::new(&timer);
    let drops = Drops::new();
    let fragile = |ready| Fragile(PanicsWhenDropped, ready, drops.one());
    // Completed, expired, and dropped with the last clone.
    purgatory.try_complete_else_watch(fragile(true), [1], SECOND).unwrap();
    purgatory.try_complete_else_watch(fragile(false), [1], SECOND).unwrap();
    clock.advance(SECOND).unwrap();
    purgatory.try_complete_else_watch(fragile(false), [1], SECOND).unwrap();
    purgatory.try_complete_else_watch(fragile(false), [1], SECOND).unwrap();
    assert_eq!((drops.count(), timer.counts().panicked), (2, 2));
    drop(purgatory);
    assert_eq!((drops.count(), timer.counts().panicked, timer.len()), (4, 4, 0));
}

/// A panic during an unwind would abort the process.
#[test]
fn a_listener_may_panic_beside_a_condition_whose_drop_panics() {
    let (purgatory, timer, clock) = purgatory();
    let fragile = |found: Option<()>| {
        let held = PanicsWhenDropped;
        move || {
            let _held = &held;
            found
        }
    };
    // Completed, expired, cancelled.
    purgatory.when([1], SECOND, fragile(Some(())), |_| panic_quietly()).unwrap();
    assert_eq!(timer.counts().panicked, 2);
    purgatory.when([1], SECOND, fragile(None), |_| panic_quietly()).unwrap();
    clock.advance(SECOND).unwrap();
    assert_eq!(timer.counts().panicked, 4);
    purgatory.when([1], SECOND, fragile(None), |_| panic_quietly()).unwrap();
    purgatory.cancel_key(&1);
    assert_eq!(timer.counts().panicked, 6);
    is_empty(&purgatory, &timer);
}

#[test]
fn who_hears_of_an_outcome_finds_what_the_condition_held_gone() {
    let (purgatory, _timer, _clock) = purgatory();
    let (drops, log) = (Drops::new(), Log::new());
    let (held, dropped, told) = (drops.one(), drops.clone(), log.clone());
    let condition = move || {
        let _held = &held;
        Some(())
    };
    purgatory.when([1], SECOND, condition, move |_| told.add(dropped.count())).unwrap();
    assert_eq!(log.take(), [1]);
}

/// A panic during an unwind would abort the process.
#[test]
fn a_hash_may_panic_beside_an_operation_whose_drop_panics() {
    #[derive(PartialEq, Eq)]
    struct Unhashable;
    impl Hash for Unhashable {
        fn hash<H: Hasher>(&self, _: &mut H) {
            panic_quietly();
        }
    }
    let timer = Timer::new();
    let purgatory: Purgatory<Unhashable, Op> = Purgatory::new(&timer);
    let held = PanicsWhenDropped;
    let condition = move || {
        let _held = &held;
        false
    };
    let op = Op::new(condition, |_| ());
    let added = catch_unwind(AssertUnwindSafe(|| {
        purgatory.try_complete_else_watch(op, [Unhashable], SECOND)
    }));
    assert!(added.is_err());
    assert_eq!((timer.counts().panicked, timer.len()), (1, 0));
}

#[test]
fn an_operation_that_stops_the_purgatory_may_panic_when_it_is_dropped() {
    let (purgatory, _timer, _clock) = purgatory();
    let (own, calm, kept) = (purgatory.clone(), Flag::new(), PanicsWhenDropped);
    let stops = calm.clone();
    let condition = move || {
        let _kept = &kept;
        if stops.is_set() {
            own.stop();
        }
        false
    };
    let op = Op::new(condition, |_| ());
    purgatory.try_complete_else_watch(op, [1], SECOND).unwrap();
    calm.set();
    assert_eq!(purgatory.check(&1), 0);
}

/// The condition drops the wait to which it then returns a value.
#[test]
fn a_value_that_nobody_waits_for_any_more_may_panic_when_it_is_dropped() {
    let (purgatory, _timer, _clock) = purgatory();
    let slot = Arc::new(std::sync::Mutex::new(None));
    let own = slot.clone();
    let condition = move || {
        let wait: Option<tourbillon::Wait<PanicsWhenDropped>> = own.lock().unwrap().take();
        wait.map(|wait| {
            drop(wait);
            PanicsWhenDropped
        })
    };
    let wait = purgatory.wait([1], SECOND, condition);
    *slot.lock().unwrap() = Some(wait);
    purgatory.check(&1);
    assert_eq!(purgatory.delayed(), 0);
}
