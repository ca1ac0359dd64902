//! Threads that race: in any order, each operation ends once.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

use crate::common::asleep::spawn_asleep;
use crate::common::{HOUR, Log, SECOND, case, eventually};
use crate::{End, Flag, Op, is_empty, purgatory};
use tourbillon::{Purgatory, Timer, VirtualClock, Watched};

/// Counts of ends by kind. An operation cannot end twice, because its end consumes it; the sum shows whether each has
/// ended.
#[derive(Clone)]
struct Tally(Arc<[AtomicUsize; 2]>);

impl Tally {
    fn new() -> Self {
        Tally(Arc::new([const { AtomicUsize::new(0) }; 2]))
    }

    /// An operation whose condition is the flag.
    fn operation(&self, flag: &Flag) -> Op {
        let met = flag.clone();
        Op::new(move || met.is_set(), self.end())
    }

    /// Counts the end of one operation.
    fn end(&self) -> impl FnOnce(End) + Send + 'static {
        let tally = self.clone();
        move |end| {
            tally.0[end as usize].fetch_add(1, SeqCst);
        }
    }

    /// How many were completed, and how many expired.
    fn get(&self) -> (usize, usize) {
        (self.0[0].load(SeqCst), self.0[1].load(SeqCst))
    }
}

#[test]
fn expiry_races_completion_a_hundred_thousand_times() {
    const ROUNDS: usize = 1000;
    const EACH: u64 = 100;
    let (purgatory, timer, clock) = purgatory();
    let (tally, meet) = (Tally::new(), Arc::new(Barrier::new(2)));
    let checks = {
        let (purgatory, meet) = (purgatory.clone(), meet.clone());
        thread::spawn(move || {
            let mut completed = 0;
            for _ in 0..ROUNDS {
                meet.wait();
                completed += (0..EACH).map(|key| purgatory.check(&key)).sum::<usize>();
                meet.wait();
            }
            completed
        })
    };
    for _ in 0..ROUNDS {
        for key in 0..EACH {
            // Not met when it is added; after that, half of them are met at their next trial.
            let mut trials = 0;
            let condition = move || {
                trials += 1;
                trials > 2 && key % 2 == 0
            };
            let op = Op::new(condition, tally.end());
            purgatory.try_complete_else_watch(op, [key, key + 1000], SECOND).unwrap();
        }
        meet.wait();
        clock.advance(SECOND).unwrap();
        meet.wait();
        is_empty(&purgatory, &timer);
    }
    let by_check = checks.join().unwrap();
    let half = ROUNDS * EACH as usize / 2;
    assert_eq!(tally.get(), (half, half), "one that is never met expires, any other does not");
    assert!(by_check <= half, "{by_check}");
}

#[test]
fn checked_by_twenty_threads_at_once_it_completes_once() {
    for _ in 0..200 {
        let (purgatory, timer, _clock) = purgatory();
        let (tally, flag, meet) = (Tally::new(), Flag::new(), Arc::new(Barrier::new(20)));
        purgatory.try_complete_else_watch(tally.operation(&flag), [1, 2], SECOND).unwrap();
        let threads: Vec<_> = (0..20)
            .map(|n| {
                let (purgatory, flag, meet) = (purgatory.clone(), flag.clone(), meet.clone());
                thread::spawn(move || {
                    meet.wait();
                    flag.set();
                    purgatory.check(&(1 + n % 2))
                })
            })
            .collect();
        let completed: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!((completed, tally.get()), (1, (1, 0)));
        is_empty(&purgatory, &timer);
    }
}

/// An event at any moment while an operation is being added is not missed.
#[test]
fn an_event_during_the_adding_is_not_missed() {
    let (purgatory, timer, _clock) = purgatory();
    let (tally, meet) = (Tally::new(), Arc::new(Barrier::new(2)));
    let flags: Arc<Vec<Flag>> = Arc::new((0..20_000).map(|_| Flag::new()).collect());
    let events = {
        let (purgatory, flags, meet) = (purgatory.clone(), flags.clone(), meet.clone());
        thread::spawn(move || {
            meet.wait();
            for (key, flag) in flags.iter().enumerate() {
                flag.set();
                purgatory.check(&(key as u64));
            }
        })
    };
    meet.wait();
    for (key, flag) in flags.iter().enumerate() {
        let keys = [1_000_000, key as u64];
        purgatory.try_complete_else_watch(tally.operation(flag), keys, SECOND).unwrap();
    }
    events.join().unwrap();
    assert_eq!(tally.get(), (20_000, 0));
    is_empty(&purgatory, &timer);
}

/// Threads add, check, cancel and advance, interleaved by real scheduling: every operation ends in one way.
#[test]
fn every_operation_ends_in_one_way() {
    let (purgatory, timer, clock) = purgatory();
    let (tally, back, done) = (Tally::new(), Arc::new(AtomicUsize::new(0)), Flag::new());
    let adders: Vec<_> = (0..2_u64)
        .map(|n| {
            let (purgatory, tally) = (purgatory.clone(), tally.clone());
            thread::spawn(move || {
                for round in 0..5_000 {
                    let flag = Flag::new();
                    let keys = [round % 7, 7 + round % 3, 100 + n];
                    let op = tally.operation(&flag);
                    let timeout = SECOND * (round % 5) as u32;
                    purgatory.try_complete_else_watch(op, keys, timeout).unwrap();
                    if round % 3 == 0 {
                        flag.set();
                        purgatory.check(&(round % 7));
                    }
                }
            })
        })
        .collect();
    let cancels = {
        let (purgatory, back, done) = (purgatory.clone(), back.clone(), done.clone());
        thread::spawn(move || {
            while !done.is_set() {
                back.fetch_add(purgatory.cancel_key(&8).len(), SeqCst);
                thread::yield_now();
            }
        })
    };
    let time = {
        let (clock, done) = (clock.clone(), done.clone());
        thread::spawn(move || {
            while !done.is_set() {
                clock.advance(SECOND).unwrap();
            }
        })
    };
    adders.into_iter().for_each(|adder| adder.join().unwrap());
    done.set();
    time.join().unwrap();
    cancels.join().unwrap();
    let stopped = purgatory.stop().len();
    let (completed, expired) = tally.get();
    assert_eq!(completed + expired + back.load(SeqCst) + stopped, 10_000);
    is_empty(&purgatory, &timer);
}

/// A cancel that overlaps a trial waits for it, and returns the operation or nothing.
#[test]
fn a_cancel_waits_for_a_condition_that_another_thread_tries() {
    for met in [false, true] {
        let (purgatory, timer, _clock) = purgatory();
        let (entered, leave, log) = (Flag::new(), Flag::new(), Log::new());
        let (mut trials, told) = (0, log.clone());
        let (says, waits) = (entered.clone(), leave.clone());
        let condition = move || {
            trials += 1;
            if trials == 3 {
                says.set();
                eventually(|| waits.is_set());
            }
            trials == 3 && met
        };
        let op = Op::new(condition, move |end| told.add(end));
        purgatory.try_complete_else_watch(op, [1], SECOND).unwrap();
        let other = purgatory.clone();
        let check = thread::spawn(move || other.check(&1));
        eventually(|| entered.is_set());
        let other = purgatory.clone();
        let cancel = spawn_asleep(move || {
            // This thread has tried a condition before, and is no longer inside it.
            let met = Op::new(|| true, |_| ());
            other.try_complete_else_watch(met, [9], SECOND).unwrap();
            other.cancel_key(&1).len()
        });
        // A check does not wait.
        assert_eq!(purgatory.check(&1), 0);
        assert!(!cancel.is_finished());
        leave.set();
        assert_eq!(cancel.join().unwrap(), usize::from(!met));
        assert_eq!(check.join().unwrap(), usize::from(met));
        assert_eq!(log.take(), if met { vec![End::Completed] } else { vec![] });
        is_empty(&purgatory, &timer);
    }
}

/// Runs a closure in the action of another operation.
type Action = (&'static str, fn(&Purgatory<u64, Op>, &VirtualClock, Box<dyn FnOnce() + Send>));

const ACTIONS: [Action; 4] = [
    ("completed", |purgatory, _, act| {
        let op = Op::new(|| true, move |_| act());
        purgatory.try_complete_else_watch(op, [9], SECOND).unwrap();
    }),
    ("expired", |purgatory, clock, act| {
        let op = Op::new(|| false, move |_| act());
        purgatory.try_complete_else_watch(op, [9], SECOND).unwrap();
        clock.advance(SECOND).unwrap();
    }),
    ("a closure", |purgatory, _, act| {
        purgatory.when([9], SECOND, || Some(()), move |_| act()).unwrap();
    }),
    ("completed by a condition", |purgatory, _, act| {
        let (flag, own) = (Flag::new(), purgatory.clone());
        let met = flag.clone();
        let op = Op::new(move || met.is_set(), move |_| act());
        purgatory.try_complete_else_watch(op, [9], SECOND).unwrap();
        let condition = move || {
            flag.set();
            own.check(&9) == 1
        };
        purgatory.try_complete_else_watch(Op::new(condition, |_| ()), [8], SECOND).unwrap();
    }),
];

/// An action is no condition: what it cancels or stops is not skipped, but waited for and returned.
#[test]
fn inside_an_action_too_a_condition_that_another_thread_tries_is_waited_for() {
    type Verb = (&'static str, fn(&Purgatory<u64, Op>, &Watched<Op>) -> Vec<Op>);
    let verbs: [Verb; 3] = [
        ("cancel_key", |purgatory, _| purgatory.cancel_key(&1)),
        ("stop", |purgatory, _| purgatory.stop()),
        ("cancel", |_, watched| watched.cancel().into_iter().collect()),
    ];
    for (action, run) in ACTIONS {
        for (name, verb) in verbs {
            for met in [false, true] {
                case(format!("{action}, {name}, met: {met}"), move || {
                    let (purgatory, timer, clock) = purgatory();
                    let ((entered, comes), (leave, goes_on)) = (mpsc::channel(), mpsc::channel());
                    let (log, mut trials) = (Log::new(), 0);
                    let told = log.clone();
                    let condition = move || {
                        trials += 1;
                        if trials == 3 {
                            entered.send(()).unwrap();
                            goes_on.recv().unwrap();
                        }
                        trials == 3 && met
                    };
                    let op = Op { name: 7, ..Op::new(condition, move |end| told.add(end)) };
                    let watched = purgatory.watch(op, [1], HOUR).unwrap();
                    let own = purgatory.clone();
                    let check = thread::spawn(move || own.check(&1));
                    comes.recv().unwrap();
                    let (own, back) = (purgatory.clone(), Log::<Vec<usize>>::new());
                    let (inner, told) = (purgatory.clone(), back.clone());
                    let act = move || {
                        told.add(verb(&inner, &watched).iter().map(|op| op.name).collect());
                    };
                    let acting = spawn_asleep(move || run(&own, &clock, Box::new(act)));
                    assert_eq!(back.len(), 0, "it waits");
                    leave.send(()).unwrap();
                    acting.join().unwrap();
                    let handed_back = if met { vec![] } else { vec![7] };
                    assert_eq!(back.take(), [handed_back]);
                    assert_eq!(check.join().unwrap(), usize::from(met));
                    assert_eq!(log.take(), if met { vec![End::Completed] } else { vec![] });
                    assert_eq!(timer.counts().panicked, 0);
                    is_empty(&purgatory, &timer);
                });
            }
        }
    }
}

/// A condition was met while a cancel or a stop waited for its trial: its action may wait for that cancel or stop.
#[test]
fn a_cancel_and_a_stop_do_not_wait_for_an_action() {
    type Verb = (&'static str, fn(&Purgatory<u64, Op>) -> Vec<Op>);
    let verbs: [Verb; 2] =
        [("cancel_key", |purgatory| purgatory.cancel_key(&1)), ("stop", Purgatory::stop)];
    for (name, verb) in verbs {
        case(name, move || {
            let (purgatory, timer, _clock) = purgatory();
            let ((entered, comes), (leave, goes_on)) = (mpsc::channel(), mpsc::channel());
            let (returned, has_returned) = mpsc::channel();
            let mut trials = 0;
            let condition = move || {
                trials += 1;
                if trials == 3 {
                    entered.send(()).unwrap();
                    goes_on.recv().unwrap();
                }
                trials == 3
            };
            let op = Op::new(condition, move |_| has_returned.recv().unwrap());
            purgatory.try_complete_else_watch(op, [1], SECOND).unwrap();
            let own = purgatory.clone();
            let check = thread::spawn(move || own.check(&1));
            comes.recv().unwrap();
            let own = purgatory.clone();
            let ends = spawn_asleep(move || verb(&own).len());
            leave.send(()).unwrap();
            assert_eq!(ends.join().unwrap(), 0, "it was completed");
            returned.send(()).unwrap();
            assert_eq!((check.join().unwrap(), timer.counts().panicked), (1, 0));
            is_empty(&purgatory, &timer);
        });
    }
}

/// The timeout comes while another thread tries the condition: that thread tries once more, and then the operation
/// expires.
#[test]
fn a_timeout_during_a_trial_is_granted_by_who_tries() {
    let (purgatory, timer, clock) = purgatory();
    let log = Log::new();
    let (mut trials, told, time) = (0, log.clone(), clock.clone());
    let passes = Flag::new();
    let (says, seen) = (passes.clone(), passes.clone());
    let condition = move || {
        trials += 1;
        if trials == 3 {
            says.set();
            eventually(|| time.elapsed() >= SECOND * 2);
        }
        told.add(("tried", trials));
        false
    };
    let told = log.clone();
    let op = Op::new(condition, move |end| {
        told.add((if end == End::Expired { "expired" } else { "?" }, 0));
    });
    purgatory.try_complete_else_watch(op, [1], SECOND).unwrap();
    let other = purgatory.clone();
    let check = thread::spawn(move || other.check(&1));
    eventually(|| seen.is_set());
    clock.advance(SECOND * 2).unwrap();
    assert_eq!(check.join().unwrap(), 0);
    assert_eq!(
        log.take(),
        [("tried", 1), ("tried", 2), ("tried", 3), ("tried", 4), ("expired", 0)]
    );
    is_empty(&purgatory, &timer);
}

/// Several purgatories on one timer, with its pool and the real clock: they have no threads of their own, and nothing
/// is left.
#[test]
fn many_purgatories_share_one_timer() {
    let timer = Timer::builder().pool(2).build().unwrap();
    let tally = Tally::new();
    let purgatories: Vec<Purgatory<u64, Op>> = (0..50).map(|_| Purgatory::new(&timer)).collect();
    for (n, purgatory) in purgatories.iter().enumerate() {
        for key in 0..20_u64 {
            let timeout = crate::common::MS * (n as u32 % 4);
            let op = tally.operation(&Flag::new());
            purgatory.try_complete_else_watch(op, [key, key + 1], timeout).unwrap();
        }
    }
    eventually(|| tally.get() == (0, 1000));
    assert!(purgatories.iter().all(|purgatory| purgatory.watched() == 0));
    assert_eq!(timer.counts().fired, 1000);
}
