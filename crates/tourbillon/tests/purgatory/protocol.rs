//! Up to three events during a trial, in every order: each kind of operation ends as the table in `node.rs` says, and
//! is tried no more often than it says.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;

use self::Kind::{Closure, Future, Operation};
use self::Meanwhile::{Cancel, Check, Dropped, Force, Stop, TakeBack, Timeout};
use crate::common::asleep::spawn_asleep;
use crate::common::{Log, SECOND, case};
use crate::{End, Op, is_empty, purgatory};
use tourbillon::{Purgatory, WaitError};

/// An event caused by another thread than the one that tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meanwhile {
    Check,
    Timeout,
    Cancel,
    Stop,
    /// Its handle completes it.
    Force,
    /// Its handle cancels it.
    TakeBack,
    /// The future is dropped.
    Dropped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Operation,
    Closure,
    Future,
}

/// How a waiting operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Completed,
    Expired,
    /// Handed back, or ended with an error that says so.
    Cancelled,
    Stopped,
    /// The future was dropped.
    Withdrawn,
    /// It is still waiting.
    Rests,
}

/// The number of the trial during which all events come: the first by a check, after two trials by the thread that adds
/// it.
const TRIAL: usize = 3;

/// The table: the fate, and the number of trials. The condition is met from trial `met` on.
fn expected(script: &[Meanwhile], met: Option<usize>) -> (Fate, usize) {
    let (mut again, mut expires, mut back) = (false, false, None);
    for meanwhile in script {
        match (meanwhile, back) {
            // Whatever its outcome would have been.
            (Dropped, _) => (again, back) = (false, Some(Fate::Withdrawn)),
            (_, Some(_)) => {}
            (Check, None) => again = true,
            (Timeout, None) => expires = true,
            // Whatever its condition returns, and whatever comes later.
            (Force, None) => (again, back) = (false, Some(Fate::Completed)),
            (Cancel | TakeBack, None) => back = Some(Fate::Cancelled),
            (Stop, None) => back = Some(Fate::Stopped),
        }
    }
    let expires = expires && back.is_none();
    let trials = TRIAL + usize::from(again || expires);
    match met {
        Some(met) if met <= trials => (Fate::Completed, met),
        _ if expires => (Fate::Expired, trials),
        _ => (back.unwrap_or(Fate::Rests), trials),
    }
}

fn fate(outcome: Result<(), WaitError>) -> Fate {
    match outcome {
        Ok(()) => Fate::Completed,
        Err(WaitError::Expired) => Fate::Expired,
        Err(WaitError::Cancelled) => Fate::Cancelled,
        Err(WaitError::Stopped) => Fate::Stopped,
        Err(other) => unreachable!("{other}"),
    }
}

/// Runs a script; returns the fate and the number of trials. A future that was dropped reports nothing; whether it was
/// completed nevertheless is known from the check.
fn run(kind: Kind, script: &[Meanwhile], met: Option<usize>) -> (Fate, usize) {
    let (purgatory, timer, clock) = purgatory();
    let (tried, fates) = (Log::new(), Log::new());
    let ((entered, comes), (leave, goes_on)) = (mpsc::channel(), mpsc::channel());
    let own = tried.clone();
    let condition = move || {
        own.add(());
        if own.len() == TRIAL {
            entered.send(()).unwrap();
            goes_on.recv().unwrap();
        }
        met.is_some_and(|met| own.len() >= met)
    };
    let (told, mut future, mut handle) = (fates.clone(), None, None);
    match kind {
        Operation => {
            let ends = |end| if end == End::Completed { Fate::Completed } else { Fate::Expired };
            let op = Op::new(condition, move |end| told.add(ends(end)));
            handle = Some(Arc::new(purgatory.watch(op, [1], SECOND).unwrap()));
        }
        Closure => {
            let then = move |outcome| told.add(fate(outcome));
            assert!(purgatory.when([1], SECOND, move || condition().then_some(()), then).is_ok());
        }
        Future => future = Some(purgatory.wait([1], SECOND, move || condition().then_some(()))),
    }
    let own = purgatory.clone();
    let trial = thread::spawn(move || own.check(&1));
    comes.recv().unwrap();
    let mut waiting = Vec::new();
    // Waits for the trial only if there is an operation to hand back.
    let mut ends = |fate, verb: fn(&Purgatory<u64, Op>) -> Vec<Op>| {
        let own = purgatory.clone();
        match kind {
            Operation => waiting.push((fate, spawn_asleep(move || verb(&own).len()))),
            Closure | Future => assert!(verb(&own).is_empty()),
        }
    };
    let mut taking = Vec::new();
    for (step, meanwhile) in script.iter().enumerate() {
        match meanwhile {
            Check => assert_eq!(purgatory.check(&1), 0, "it does not wait"),
            Timeout => clock.advance(SECOND).unwrap(),
            Cancel => ends(Fate::Cancelled, |purgatory| purgatory.cancel_key(&1)),
            Stop => ends(Fate::Stopped, Purgatory::stop),
            Force => {
                let before = &script[..step];
                let first =
                    !before.iter().any(|end| matches!(end, Cancel | Stop | Force | TakeBack));
                assert_eq!(handle.as_ref().unwrap().complete(), first, "it promises what it does");
            }
            TakeBack => {
                let own = handle.clone().unwrap();
                taking.push(spawn_asleep(move || usize::from(own.cancel().is_some())));
            }
            Dropped => drop(future.take()),
        }
    }
    leave.send(()).unwrap();
    let completed = trial.join().unwrap();
    let taking = taking.into_iter().map(|thread| (Fate::Cancelled, thread));
    for (fate, thread) in waiting.into_iter().chain(taking) {
        (0..thread.join().unwrap()).for_each(|_| fates.add(fate));
    }
    if let Some(future) = &mut future {
        let poll = Pin::new(future).poll(&mut Context::from_waker(Waker::noop()));
        fates.add(if let Poll::Ready(outcome) = poll { fate(outcome) } else { Fate::Rests });
    } else if kind == Future {
        fates.add(if completed == 1 { Fate::Completed } else { Fate::Withdrawn });
    } else if purgatory.delayed() > 0 {
        fates.add(Fate::Rests);
    }
    let (fates, tried) = (fates.take(), tried.len());
    assert_eq!(fates.len(), 1, "{fates:?}");
    assert_eq!(completed, usize::from(fates[0] == Fate::Completed));
    if let Some(handle) = handle {
        let ended = (handle.is_over(), handle.is_completed());
        assert_eq!(ended, (fates[0] != Fate::Rests, completed == 1), "the handle knows it");
    }
    assert_eq!(purgatory.delayed(), usize::from(fates[0] == Fate::Rests));
    purgatory.stop();
    is_empty(&purgatory, &timer);
    assert_eq!(timer.counts().panicked, 0);
    (fates[0], tried)
}

/// All scripts of up to three events.
fn scripts(of: &[Meanwhile]) -> Vec<Vec<Meanwhile>> {
    let longer = |shorter: &[Vec<Meanwhile>]| -> Vec<_> {
        let with = |script: &Vec<_>, next: &_| [script.as_slice(), &[*next]].concat();
        shorter.iter().flat_map(|script| of.iter().map(move |next| with(script, next))).collect()
    };
    let mut all = vec![vec![vec![]]];
    (0..3).for_each(|n| all.push(longer(&all[n])));
    all.concat()
}

#[test]
fn whatever_comes_during_a_trial_it_ends_as_the_table_says() {
    let by_handle = [Check, Timeout, Cancel, Stop, Force, TakeBack];
    let all = [Check, Timeout, Cancel, Stop, Dropped];
    for (kind, meanwhile) in [(Operation, &by_handle[..]), (Closure, &all[..4]), (Future, &all)] {
        for script in scripts(meanwhile) {
            case(format!("{kind:?}, {script:?}"), move || {
                for met in [None, Some(TRIAL), Some(TRIAL + 1)] {
                    assert_eq!(run(kind, &script, met), expected(&script, met), "met: {met:?}");
                }
            });
        }
    }
}
