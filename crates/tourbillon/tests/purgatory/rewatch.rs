//! Operations that are watched again while a check walks their key: the walk ends, and tries each operation that was
//! there when it began once.

use std::sync::{Arc, Mutex};

use crate::common::{HOUR, Log, within};
use crate::{Op, is_empty, purgatory};
use tourbillon::{Outcome, Purgatory};

/// Around one, the first of a walk, and around sixteen, the size of the batches that it then copies.
const WAITERS: [usize; 8] = [1, 2, 15, 16, 17, 18, 33, 100];

type Waiting = Purgatory<u64, Op>;

/// How an operation waits under key 1 and is added again when it has ended. Added to the purgatory, it logs each end.
type Comeback = (&'static str, fn(&Waiting, &Log<()>));

/// Met from its third trial on: the first two are made by the thread that adds it.
fn met_by_the_first_check() -> impl FnMut() -> bool + Send {
    let mut tried = 0;
    move || {
        tried += 1;
        tried > 2
    }
}

fn operation_comes_back(purgatory: &Waiting, log: &Log<()>) {
    let (own, told) = (purgatory.clone(), log.clone());
    let end = move |_| {
        told.add(());
        operation_comes_back(&own, &told);
    };
    let op = Op::new(met_by_the_first_check(), end);
    let outcome = purgatory.try_complete_else_watch(op, [1, 2], HOUR);
    assert_eq!(outcome.unwrap(), Outcome::Watched);
}

fn closure_comes_back(purgatory: &Waiting, log: &Log<()>) {
    let (own, told, mut is_met) = (purgatory.clone(), log.clone(), met_by_the_first_check());
    let then = move |_| {
        told.add(());
        closure_comes_back(&own, &told);
    };
    assert!(purgatory.when([1], HOUR, move || is_met().then_some(()), then).is_ok());
}

fn condition_brings_another(purgatory: &Waiting, log: &Log<()>) {
    let (own, told, mut is_met) = (purgatory.clone(), log.clone(), met_by_the_first_check());
    let condition = move || {
        let is_met = is_met();
        if is_met {
            condition_brings_another(&own, &told);
        }
        is_met
    };
    let told = log.clone();
    let op = Op::new(condition, move |_| told.add(()));
    assert_eq!(purgatory.try_complete_else_watch(op, [1], HOUR).unwrap(), Outcome::Watched);
}

/// A future whose waker starts a new wait: the waker is called when the outcome is there.
fn waker_comes_back(purgatory: &Waiting, log: &Log<()>) {
    use std::pin::Pin;
    use std::task::{Context, Wake, Waker};
    struct Anew {
        purgatory: Waiting,
        log: Log<()>,
        wait: Mutex<Option<tourbillon::Wait<()>>>,
    }
    impl Wake for Anew {
        fn wake(self: Arc<Self>) {
            drop(self.wait.lock().unwrap().take());
            self.log.add(());
            waker_comes_back(&self.purgatory, &self.log);
        }
    }
    let mut is_met = met_by_the_first_check();
    let mut wait = purgatory.wait([1], HOUR, move || is_met().then_some(()));
    let (purgatory, log) = (purgatory.clone(), log.clone());
    let anew = Arc::new(Anew { purgatory, log, wait: Mutex::new(None) });
    let waker = Waker::from(anew.clone());
    assert!(Future::poll(Pin::new(&mut wait), &mut Context::from_waker(&waker)).is_pending());
    *anew.wait.lock().unwrap() = Some(wait);
}

const COMEBACKS: [Comeback; 4] = [
    ("an action watches again", operation_comes_back),
    ("a closure watches again", closure_comes_back),
    ("a condition watches another", condition_brings_another),
    ("a waker waits again", waker_comes_back),
];

#[test]
fn a_check_ends_while_those_it_completes_come_back() {
    for (name, add) in COMEBACKS {
        for waiters in WAITERS {
            within(move || {
                let case = format!("{name}, {waiters} waiters");
                let (purgatory, timer, _clock) = purgatory();
                let log = Log::new();
                (0..waiters).for_each(|_| add(&purgatory, &log));
                for round in 0..3 {
                    assert_eq!(purgatory.check(&1), waiters, "{case}, round {round}");
                    assert_eq!(log.take().len(), waiters, "{case}, round {round}");
                    assert_eq!(purgatory.delayed(), waiters, "{case}, round {round}");
                }
                // They hold the purgatory, which holds them: stop it to break the cycle.
                purgatory.stop();
                is_empty(&purgatory, &timer);
            });
        }
    }
}

/// The same inside an action of another key: the new actions run after it, and what they add is not tried again.
#[test]
fn a_check_inside_an_action_ends_too() {
    for (name, add) in COMEBACKS {
        for waiters in WAITERS {
            within(move || {
                let (purgatory, _timer, _clock) = purgatory();
                let (log, counts) = (Log::new(), Log::new());
                (0..waiters).for_each(|_| add(&purgatory, &log));
                let (own, told) = (purgatory.clone(), counts.clone());
                let op = Op::new(met_by_the_first_check(), move |_| told.add(own.check(&1)));
                purgatory.try_complete_else_watch(op, [9], HOUR).unwrap();
                assert_eq!(purgatory.check(&9), 1);
                assert_eq!(counts.take(), [waiters], "{name}, {waiters} waiters");
                assert_eq!(purgatory.delayed(), waiters, "{name}, {waiters} waiters");
                purgatory.stop();
            });
        }
    }
}

/// Closures that receive a cancel are watched again under the key that is being cancelled.
#[test]
fn a_cancel_of_a_key_ends_while_those_it_ends_come_back() {
    for waiters in WAITERS {
        within(move || {
            let (purgatory, _timer, _clock) = purgatory();
            let log = Log::new();
            (0..waiters).for_each(|_| closure_comes_back(&purgatory, &log));
            assert!(purgatory.cancel_key(&1).is_empty());
            assert_eq!(log.take().len(), waiters, "{waiters} waiters");
            assert_eq!(purgatory.delayed(), waiters, "{waiters} waiters");
            // A stop refuses them.
            purgatory.stop();
            assert_eq!(purgatory.delayed(), 0, "{waiters} waiters");
        });
    }
}
