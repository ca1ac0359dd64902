//! The table of the protocol: whatever comes while a condition is tried, in whatever order, ends as the table says.
//!
//! A model of the table says what must become of each series of events. In real time are only the waits for threads
//! that cancel or stop to go to sleep, of which the kernel knows.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread::{self, JoinHandle};

use crate::common::{Drops, Log, SECOND, eventually, within};
use crate::{End, Op, purgatory};
use tourbillon::{Purgatory, WaitError};

/// What may come while the condition is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Check,
    Timeout,
    Cancel,
    Stop,
    Withdraw,
}

/// When the condition is met, from the trial on during which everything comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Met {
    InThisTrial,
    InTheNext,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Face {
    Operation,
    Closure,
    Future,
}

#[derive(Clone, Debug)]
struct Case {
    face: Face,
    /// Whether the trial is the last one, after the timeout; or else for a check.
    last: bool,
    events: Vec<Event>,
    met: Met,
}

/// What has become of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Became {
    Rests,
    Completed,
    Expired,
    /// Handed back for that event; a closure or a future is told why.
    Back(usize),
    Withdrawn,
}

impl Case {
    /// What must become of it, and after how many more trials.
    fn model(&self) -> (Became, usize) {
        let (mut again, mut expire, mut back, mut last) = (false, false, None, self.last);
        for (number, event) in self.events.iter().enumerate() {
            if back.is_some() {
                continue;
            }
            match event {
                Event::Check => again = true,
                Event::Timeout => expire = true,
                Event::Cancel | Event::Stop => back = Some(Became::Back(number)),
                Event::Withdraw => (again, back) = (false, Some(Became::Withdrawn)),
            }
        }
        expire &= back.is_none();
        for trials in 0.. {
            let met = match self.met {
                Met::InThisTrial => trials == 0,
                Met::InTheNext => trials > 0,
                Met::Never => false,
            };
            if met {
                return (Became::Completed, trials);
            }
            let another = std::mem::take(&mut again);
            if std::mem::take(&mut expire) {
                last = true;
            } else if !another {
                let end = if last { Became::Expired } else { Became::Rests };
                return (back.unwrap_or(end), trials);
            }
        }
        unreachable!("no wish is left")
    }
}

/// A thread that cancels or stops, and the operations that it got.
type Ends = JoinHandle<usize>;

/// Calls that on a thread, and waits until it has returned or sleeps.
fn begun(ends: impl FnOnce() -> usize + Send + 'static) -> Ends {
    let (tell, told) = mpsc::channel();
    let thread = thread::spawn(move || {
        tell.send(fs::read_link("/proc/thread-self").unwrap()).unwrap();
        ends()
    });
    let stat = std::path::Path::new("/proc").join(told.recv().unwrap()).join("stat");
    let sleeps = || {
        let stat = fs::read_to_string(&stat).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('S'))
    };
    let mut times = 0;
    eventually(|| {
        times = if sleeps() { times + 1 } else { 0 };
        times == 2 || thread.is_finished()
    });
    thread
}

fn try_it(case: &Case) {
    let (purgatory, timer, clock) = purgatory();
    let ((enter, entered), (release, released)) = (mpsc::channel(), mpsc::channel());
    let (trials, drops, log) = (Arc::new(AtomicUsize::new(0)), Drops::new(), Log::new());
    let (count, met, held) = (trials.clone(), case.met, drops.one());
    let condition = move || {
        let _held = &held;
        // Two belong to whoever adds it.
        let trial = count.fetch_add(1, SeqCst) + 1;
        if trial == 3 {
            enter.send(()).unwrap();
            released.recv().unwrap();
        }
        (trial == 3 && met == Met::InThisTrial) || (trial > 3 && met == Met::InTheNext)
    };
    // Those who cancel or stop have returned when the action of a completed operation runs.
    let enders = case.events.iter().filter(|event| matches!(event, Event::Cancel | Event::Stop));
    let (enders, returned) = (enders.count(), Arc::new(AtomicUsize::new(0)));
    let (all_returned, told) = (returned.clone(), log.clone());
    let await_enders = move || eventually(|| all_returned.load(SeqCst) == enders);
    let mut wait = None;
    match case.face {
        Face::Operation => {
            let end = move |end: End| {
                await_enders();
                told.add(if end == End::Completed { Ok(()) } else { Err(WaitError::Expired) });
            };
            purgatory.try_complete_else_watch(Op::new(condition, end), [1], SECOND).unwrap();
        }
        Face::Closure => {
            let then = move |outcome| told.add(outcome);
            purgatory.when([1], SECOND, move || condition().then_some(()), then).unwrap();
        }
        Face::Future => {
            let condition = move || condition().then_some(());
            wait = Some(Box::pin(purgatory.wait([1], SECOND, condition)));
        }
    }
    let (own, time, last) = (purgatory.clone(), clock.clone(), case.last);
    let tries = thread::spawn(move || {
        if last {
            time.advance(SECOND).unwrap();
        } else {
            own.check(&1);
        }
    });
    entered.recv().unwrap();
    let mut threads: Vec<Option<Ends>> = Vec::new();
    for event in &case.events {
        let (own, returned) = (purgatory.clone(), returned.clone());
        let ends = |end: fn(&Purgatory<u64, Op>) -> usize| {
            Some(begun(move || {
                let got = end(&own);
                returned.fetch_add(1, SeqCst);
                got
            }))
        };
        threads.push(match event {
            Event::Cancel => ends(|purgatory| purgatory.cancel_key(&1).len()),
            Event::Stop => ends(|purgatory| purgatory.stop().len()),
            Event::Check => {
                assert_eq!(purgatory.check(&1), 0, "another thread tries it");
                None
            }
            Event::Timeout => {
                clock.advance(SECOND).unwrap();
                None
            }
            Event::Withdraw => {
                drop(wait.take());
                None
            }
        });
    }
    release.send(()).unwrap();
    tries.join().unwrap();
    let got: Vec<usize> = threads
        .into_iter()
        .map(|thread| thread.map_or(0, |thread| thread.join().unwrap()))
        .collect();
    if let Some(wait) = &mut wait {
        match wait.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => log.add(outcome),
            Poll::Pending => {}
        }
    }
    let (became, more) = case.model();
    assert_eq!(trials.load(SeqCst), 3 + more, "trials");
    let returns = case.face == Face::Operation;
    let expected = match became {
        // Nobody is there to hear of it.
        _ if case.events.contains(&Event::Withdraw) => vec![],
        Became::Completed => vec![Ok(())],
        Became::Expired => vec![Err(WaitError::Expired)],
        Became::Back(by) if !returns => match case.events[by] {
            Event::Stop => vec![Err(WaitError::Stopped)],
            _ => vec![Err(WaitError::Cancelled)],
        },
        Became::Rests | Became::Back(_) | Became::Withdrawn => vec![],
    };
    assert_eq!(log.take(), expected);
    let whose = |by: usize| usize::from(returns && became == Became::Back(by));
    assert_eq!(got, (0..got.len()).map(whose).collect::<Vec<_>>(), "who was handed it");
    let rests = usize::from(became == Became::Rests);
    assert_eq!((purgatory.delayed(), timer.len()), (rests, rests));
    assert_eq!(drops.count(), 1 - rests as u64, "the condition is gone");
}

/// All series of up to so many events.
fn series(face: Face, last: bool, most: usize) -> Vec<Vec<Event>> {
    let mut all = vec![vec![]];
    let mut longest = all.clone();
    for _ in 0..most {
        let longer = |events: &Vec<Event>| {
            let events = events.clone();
            let alphabet =
                [Event::Check, Event::Timeout, Event::Cancel, Event::Stop, Event::Withdraw];
            let may_come = move |event: &Event, before: &[Event]| match event {
                Event::Timeout => !last && !before.contains(event),
                Event::Withdraw => face == Face::Future && !before.contains(event),
                _ => true,
            };
            let next: Vec<Event> =
                alphabet.into_iter().filter(|event| may_come(event, &events)).collect();
            next.into_iter().map(move |event| [&events[..], &[event]].concat())
        };
        longest = longest.iter().flat_map(longer).collect();
        all.extend(longest.clone());
    }
    all
}

fn all_series(face: Face) {
    for last in [false, true] {
        for met in [Met::InThisTrial, Met::InTheNext, Met::Never] {
            let most = if met == Met::Never { 3 } else { 2 };
            for events in series(face, last, most) {
                let case = Case { face, last, events, met };
                println!("{case:?}");
                within(move || try_it(&case));
            }
        }
    }
}

#[test]
fn an_operation() {
    all_series(Face::Operation);
}

#[test]
fn a_closure() {
    all_series(Face::Closure);
}

#[test]
fn a_future() {
    all_series(Face::Future);
}
