//! Conditions and actions that use the purgatory that runs them.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use crate::common::{Log, SECOND, within};
use crate::{End, Flag, Op, is_empty, purgatory};
use tourbillon::{Outcome, Purgatory};

/// Runs it on a stack so small that a recursion would overflow it.
fn on_a_small_stack(body: impl FnOnce() + Send + 'static) {
    let small = std::thread::Builder::new().stack_size(256 << 10);
    small.spawn(body).unwrap().join().unwrap();
}

/// Each action adds the next operation, on the same key, and completes it.
#[test]
fn a_chain_of_ten_thousand_on_one_key_neither_recurses_nor_deadlocks() {
    fn add(purgatory: &Purgatory<u64, Op>, left: usize, log: &Log<usize>) -> Flag {
        let (flag, own, told) = (Flag::new(), purgatory.clone(), log.clone());
        let met = flag.clone();
        let end = move |_| {
            told.add(left);
            if left > 0 {
                add(&own, left - 1, &told).set();
                assert_eq!(own.check(&1), 1);
            }
        };
        let op = Op::new(move || met.is_set(), end);
        let outcome = purgatory.try_complete_else_watch(op, [1, 2], SECOND);
        assert_eq!(outcome.unwrap(), Outcome::Watched);
        flag
    }
    on_a_small_stack(|| {
        let (purgatory, timer, _clock) = purgatory();
        let log = Log::new();
        add(&purgatory, 10_000, &log).set();
        assert_eq!(purgatory.check(&1), 1);
        assert_eq!(log.take(), (0..=10_000).rev().collect::<Vec<_>>());
        assert_eq!(timer.counts().panicked, 0);
        is_empty(&purgatory, &timer);
    });
}

/// Thousands wait under one key, and each completes the next: each of them is counted once.
#[test]
fn a_chain_of_those_who_wait_under_one_key() {
    const WAITING: usize = 3_000;
    on_a_small_stack(|| {
        let (purgatory, timer, _clock) = purgatory();
        let (reached, counts) = (Arc::new(AtomicUsize::new(0)), Log::new());
        for n in 0..WAITING {
            let (seen, next) = (reached.clone(), reached.clone());
            let (own, told) = (purgatory.clone(), counts.clone());
            let end = move |_| {
                next.fetch_max(n + 2, SeqCst);
                told.add(own.check(&1));
            };
            let op = Op::new(move || seen.load(SeqCst) > n, end);
            purgatory.try_complete_else_watch(op, [1, 2], SECOND).unwrap();
        }
        reached.store(1, SeqCst);
        let first = purgatory.check(&2);
        assert_eq!(first + counts.take().into_iter().sum::<usize>(), WAITING);
        is_empty(&purgatory, &timer);
    });
}

/// The same in reverse order: every check completes exactly one.
#[test]
fn a_chain_that_runs_against_the_order_is_counted_exactly() {
    on_a_small_stack(|| {
        let (purgatory, timer, _clock) = purgatory();
        let reached = Arc::new(AtomicUsize::new(1000));
        let counts = Log::new();
        for n in 0..1000 {
            let (seen, next) = (reached.clone(), reached.clone());
            let (own, told) = (purgatory.clone(), counts.clone());
            let op = Op::new(
                move || seen.load(SeqCst) <= n,
                move |_| {
                    next.fetch_min(n.saturating_sub(1), SeqCst);
                    told.add(own.check(&1));
                },
            );
            purgatory.try_complete_else_watch(op, [1, 2], SECOND).unwrap();
        }
        reached.store(999, SeqCst);
        assert_eq!(purgatory.check(&2), 1);
        let counts = counts.take();
        assert_eq!(counts.len(), 1000);
        assert!(counts[..999].iter().all(|&count| count == 1) && counts[999] == 0);
        is_empty(&purgatory, &timer);
    });
}

/// An action adds an operation that is ready at once, whose action does the same.
#[test]
fn a_chain_of_operations_that_are_ready_at_once() {
    fn add(purgatory: &Purgatory<u64, Op>, left: usize, log: &Log<usize>) {
        let (own, told) = (purgatory.clone(), log.clone());
        let end = move |_| {
            told.add(left);
            if left > 0 {
                add(&own, left - 1, &told);
            }
        };
        let outcome = purgatory.try_complete_else_watch(Op::new(|| true, end), [1], SECOND);
        assert_eq!(outcome.unwrap(), Outcome::Completed);
    }
    on_a_small_stack(|| {
        let (purgatory, timer, _clock) = purgatory();
        let log = Log::new();
        add(&purgatory, 10_000, &log);
        assert_eq!(log.take(), (0..=10_000).rev().collect::<Vec<_>>());
        is_empty(&purgatory, &timer);
    });
}

/// A check inside an action returns its count at once, and what it completes is no longer watched; the actions follow.
#[test]
fn inside_an_action_what_is_completed_is_gone_and_its_action_follows() {
    let (purgatory, timer, _clock) = purgatory();
    let (log, flag) = (Log::new(), Flag::new());
    for name in 1..=3 {
        let (told, met) = (log.clone(), flag.clone());
        let op = Op::new(move || met.is_set(), move |_| told.add(format!("{name} runs")));
        purgatory.try_complete_else_watch(op, [2], SECOND).unwrap();
    }
    let (told, own, met) = (log.clone(), purgatory.clone(), flag.clone());
    let end = move |_| {
        met.set();
        told.add(format!("completes {}", own.check(&2)));
        told.add(format!("{} wait", own.delayed()));
    };
    let met = Flag::new();
    let seen = met.clone();
    purgatory.try_complete_else_watch(Op::new(move || seen.is_set(), end), [1], SECOND).unwrap();
    met.set();
    assert_eq!(purgatory.check(&1), 1);
    assert_eq!(log.take(), ["completes 3", "0 wait", "1 runs", "2 runs", "3 runs"]);
    is_empty(&purgatory, &timer);
}

/// Places where user code is called.
const PLACES: [&str; 3] = ["condition", "completion", "expiry"];

/// An operation on key 1 that acts on its purgatory in one of those places, once; and one of another kind on key 2.
/// Returns what is handed back at the end.
fn inside(
    place: &'static str,
    act: impl FnOnce(&Purgatory<u64, Op>) + Send + 'static,
) -> Vec<usize> {
    within(move || {
        let (purgatory, timer, clock) = purgatory();
        let flag = Flag::new();
        let act = Arc::new(Mutex::new(Some((act, purgatory.clone()))));
        let run = move || {
            let taken = act.lock().unwrap().take();
            if let Some((act, purgatory)) = taken {
                act(&purgatory);
            }
        };
        let (met, tries) = (flag.clone(), run.clone());
        let condition = move || {
            if met.is_set() && place == "condition" {
                tries();
            }
            met.is_set() && place == "completion"
        };
        let op = Op {
            name: 1,
            ..Op::new(condition, move |_| {
                if place != "condition" {
                    run();
                }
            })
        };
        purgatory.try_complete_else_watch(op, [1], SECOND).unwrap();
        let other = Op { name: 2, ..Op::new(|| false, |_| ()) };
        purgatory.try_complete_else_watch(other, [2], SECOND * 9).unwrap();
        if place == "expiry" {
            clock.advance(SECOND).unwrap();
        } else {
            flag.set();
            purgatory.check(&1);
        }
        let mut names: Vec<usize> = purgatory.stop().iter().map(|op| op.name).collect();
        names.sort_unstable();
        is_empty(&purgatory, &timer);
        assert_eq!(timer.counts().panicked, 0, "{place}");
        names
    })
}

/// What remains of the first operation in each place, if nothing else happens to it.
fn left(place: &str) -> &'static [usize] {
    if place == "condition" { &[1, 2] } else { &[2] }
}

#[test]
fn code_of_the_user_may_check() {
    for place in PLACES {
        let names = inside(place, |purgatory| {
            assert_eq!(purgatory.check(&1) + purgatory.check(&2), 0);
        });
        assert_eq!(names, left(place), "{place}");
    }
}

#[test]
fn code_of_the_user_may_cancel_a_key() {
    for place in PLACES {
        let names = inside(place, |purgatory| {
            assert!(purgatory.cancel_key(&1).is_empty(), "what is being tried is left alone");
            assert_eq!(purgatory.cancel_key(&2).len(), 1);
        });
        assert_eq!(names, if place == "condition" { vec![1] } else { vec![] }, "{place}");
    }
}

#[test]
fn code_of_the_user_may_stop() {
    for place in PLACES {
        let names = inside(place, |purgatory| {
            assert_eq!(purgatory.stop().len(), 1);
            assert!(purgatory.try_complete_else_watch(Op::never(3), [1], SECOND).is_err());
        });
        // The operation that was being tried is dropped.
        assert_eq!(names, [0; 0], "{place}");
    }
}

#[test]
fn code_of_the_user_may_add() {
    for place in PLACES {
        let names = inside(place, |purgatory| {
            let outcome = purgatory.try_complete_else_watch(Op::never(3), [1, 2], SECOND);
            assert_eq!(outcome.unwrap(), Outcome::Watched);
        });
        assert_eq!(names, [left(place), &[3]].concat(), "{place}");
    }
}

#[test]
fn code_of_the_user_may_drop_the_last_clone() {
    for place in PLACES {
        within(move || {
            let (purgatory, timer, clock) = purgatory();
            let (log, flag) = (Log::new(), Flag::new());
            let last = Arc::new(Mutex::new(None));
            let (held, told, met) = (last.clone(), log.clone(), flag.clone());
            let condition = move || {
                if met.is_set() && place == "condition" {
                    held.lock().unwrap().take();
                }
                met.is_set() && place == "completion"
            };
            let held = last.clone();
            let end = move |end: End| {
                held.lock().unwrap().take();
                told.add(end);
            };
            purgatory.try_complete_else_watch(Op::new(condition, end), [1], SECOND).unwrap();
            purgatory.try_complete_else_watch(Op::never(2), [1, 2], SECOND * 9).unwrap();
            flag.set();
            // The check needs a clone of its own: the last clone is dropped during the check, by the user code.
            let check = purgatory.clone();
            *last.lock().unwrap() = Some(purgatory);
            if place == "expiry" {
                drop(check);
                clock.advance(SECOND).unwrap();
            } else {
                check.check(&1);
                drop(check);
            }
            assert_eq!(timer.len(), 0, "{place}");
            assert_eq!(log.len(), usize::from(place != "condition"));
        });
    }
}

/// A condition completes others, whose actions stop the purgatory: no call waits for a trial of its own thread.
#[test]
fn an_action_that_came_up_in_a_condition_runs_after_it() {
    within(|| {
        let (purgatory, timer, _clock) = purgatory();
        let (log, flag) = (Log::new(), Flag::new());
        let (own, met, told) = (purgatory.clone(), flag.clone(), log.clone());
        let condition = move || {
            if met.is_set() {
                told.add(format!("condition completes {}", own.check(&2)));
            }
            false
        };
        purgatory.try_complete_else_watch(Op::new(condition, |_| ()), [1], SECOND).unwrap();
        let (own, met, told) = (purgatory.clone(), flag.clone(), log.clone());
        let end = move |_| told.add(format!("stop hands back {}", own.stop().len()));
        purgatory.try_complete_else_watch(Op::new(move || met.is_set(), end), [2], SECOND).unwrap();
        flag.set();
        assert_eq!(purgatory.check(&1), 0);
        assert_eq!(log.take(), ["condition completes 1", "stop hands back 1"]);
        is_empty(&purgatory, &timer);
    });
}

/// A condition that checks its own key is not tried forever.
#[test]
fn a_condition_that_checks_its_own_key_comes_to_an_end() {
    within(|| {
        let (purgatory, timer, clock) = purgatory();
        let tried = Arc::new(AtomicUsize::new(0));
        for _ in 0..3 {
            let (own, count) = (purgatory.clone(), tried.clone());
            let condition = move || {
                count.fetch_add(1, SeqCst);
                own.check(&1);
                false
            };
            purgatory.try_complete_else_watch(Op::new(condition, |_| ()), [1], SECOND).unwrap();
        }
        purgatory.check(&1);
        clock.advance(SECOND).unwrap();
        assert!(tried.load(SeqCst) < 200);
        is_empty(&purgatory, &timer);
    });
}

/// A wait that is ready at once wakes no task: actions that were queued in its condition run nevertheless.
#[test]
fn an_action_that_came_up_in_the_condition_of_a_wait_runs_after_it() {
    within(|| {
        let (purgatory, timer, _clock) = purgatory();
        let (log, flag) = (Log::new(), Flag::new());
        purgatory.try_complete_else_watch(Op::flagged(7, &flag, &log), [2], SECOND).unwrap();
        let own = purgatory.clone();
        let condition = move || {
            flag.set();
            Some(own.check(&2))
        };
        let wait = purgatory.wait([1], SECOND, condition);
        assert_eq!(log.take(), [(7, End::Completed)]);
        drop(wait);
        is_empty(&purgatory, &timer);
    });
}

/// The timer is stopped in the condition, so the wait is refused: actions that were queued in it run nevertheless.
#[test]
fn an_action_that_came_up_in_the_condition_of_a_refused_wait_runs_after_it() {
    within(|| {
        let (purgatory, timer, _clock) = purgatory();
        let (log, flag) = (Log::new(), Flag::new());
        purgatory.try_complete_else_watch(Op::flagged(7, &flag, &log), [2], SECOND).unwrap();
        let (own, stopped) = (purgatory.clone(), timer.clone());
        let condition = move || {
            flag.set();
            own.check(&2);
            stopped.stop();
            None::<()>
        };
        let wait = purgatory.wait([1], SECOND, condition);
        assert_eq!(log.take(), [(7, End::Completed)]);
        drop(wait);
    });
}
