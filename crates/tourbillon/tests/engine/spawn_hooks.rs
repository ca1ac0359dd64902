//! A hook that starts a thread is foreign code: it may use the engine that asks it for the thread. What needs that very
//! thread is refused.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::SystemTime;

use crate::common::{HOUR, Log, MS, accounted, eventually, within};
use tourbillon::{
    Attempt, Backoff, Engine, KeyedTimer, Purgatory, Repeat, ScheduleError, StartError, Timer,
    WaitError,
};

/// A verb that needs the driver, and whether it was refused for want of a thread.
type Verb = (&'static str, fn(&Timer) -> bool);

const VERBS: [Verb; 10] = [
    ("start", |timer| matches!(timer.start(), Err(StartError::Thread(_)))),
    ("arm", |timer| matches!(timer.arm(MS, |_| ()), Err(ScheduleError::Thread(..)))),
    ("arm_at", |timer| matches!(timer.arm_at(timer.now(), |_| ()), Err(ScheduleError::Thread(..)))),
    ("schedule", |timer| matches!(timer.schedule(MS, |_| ()), Err(ScheduleError::Thread(..)))),
    ("schedule_repeating", |timer| {
        matches!(timer.schedule_repeating(MS, |_| ()), Err(ScheduleError::Thread(..)))
    }),
    ("repeat", |timer| {
        matches!(timer.repeat(Repeat::every(MS), |_| ()), Err(ScheduleError::Thread(..)))
    }),
    ("schedule_wall", |timer| {
        matches!(timer.schedule_wall(SystemTime::now(), |_| ()), Err(ScheduleError::Thread(..)))
    }),
    ("retry", |timer| {
        let job = |_: &Attempt| Err::<(), ()>(());
        matches!(timer.retry(Backoff::new(MS), job), Err(ScheduleError::Thread(..)))
    }),
    ("KeyedTimer::schedule", |timer| {
        let timers = KeyedTimer::new(timer);
        let refused = timers.schedule(1, MS, |_| ()).is_err();
        refused && timers.is_empty()
    }),
    ("Purgatory::when", |timer| {
        let purgatory: Purgatory<u32> = Purgatory::new(timer);
        let then = |_: Result<(), WaitError>| ();
        purgatory.when([1], HOUR, || None, then).is_err() && purgatory.delayed() == 0
    }),
];

/// A timer whose hook tries the verb, and what became of that.
fn tried(verb: Verb) -> (Timer, Log<bool>) {
    let (own, log): (Arc<OnceLock<Timer>>, _) = (Arc::default(), Log::new());
    let (inner, told) = (own.clone(), log.clone());
    let spawn = move |name: String, body: Box<dyn FnOnce() + Send>| {
        if name.ends_with("driver") {
            told.add(verb.1(inner.get().unwrap()));
        }
        thread::Builder::new().name(name).spawn(body).map(drop)
    };
    let timer = Timer::builder().limit(1).spawn(spawn).build().unwrap();
    let _ = own.set(timer.clone());
    (timer, log)
}

#[test]
fn what_needs_the_thread_that_is_being_started_is_refused() {
    for verb in VERBS {
        within(move || {
            let (timer, log) = tried(verb);
            timer.start().unwrap();
            assert_eq!(log.take(), [true], "{}", verb.0);
            // The one that was started runs what comes later, and nothing has taken the only place.
            let told = log.clone();
            timer.schedule(MS, move |_| told.add(true)).unwrap();
            eventually(|| log.len() == 1);
            timer.stop();
            accounted(&timer);
        });
    }
}

#[test]
fn values_too() {
    within(|| {
        let (own, log): (Arc<OnceLock<Engine<u32>>>, _) = (Arc::default(), Log::new());
        let (inner, told) = (own.clone(), log.clone());
        let spawn = move |name, body: Box<dyn FnOnce() + Send>| {
            let refused = inner.get().unwrap().schedule(MS, 7);
            told.add(matches!(refused, Err(ScheduleError::Thread(7, _))));
            thread::Builder::new().name(name).spawn(body).map(drop)
        };
        let engine = Timer::builder().spawn(spawn).deliver(|_| ()).unwrap();
        let _ = own.set(engine.clone());
        engine.schedule(MS, 1).unwrap();
        assert_eq!(log.take(), [true]);
        engine.stop();
    });
}

/// The driver runs by then: what a hook schedules for a worker that it starts runs as well.
#[test]
fn a_hook_for_a_worker_may_schedule() {
    within(|| {
        let (own, log): (Arc<OnceLock<Timer>>, _) = (Arc::default(), Log::new());
        let (inner, told) = (own.clone(), log.clone());
        let spawn = move |name: String, body: Box<dyn FnOnce() + Send>| {
            if name.ends_with("worker") {
                let told = told.clone();
                inner.get().unwrap().arm(MS, move |_| told.add("of the hook")).unwrap();
            }
            thread::Builder::new().name(name).spawn(body).map(drop)
        };
        let timer = Timer::builder().pool(1).spawn(spawn).build().unwrap();
        let _ = own.set(timer.clone());
        let told = log.clone();
        timer.arm(MS, move |_| told.add("first")).unwrap();
        eventually(|| log.len() == 2);
        timer.stop();
        accounted(&timer);
    });
}

/// A hook that stops its timer: whoever wanted to start it hears of that.
#[test]
fn a_hook_may_stop() {
    within(|| {
        let (timer, log) = tried(("stop", |timer| timer.stop().is_empty()));
        assert!(matches!(timer.arm(MS, |_| ()), Err(ScheduleError::Stopped(_))));
        assert_eq!(log.take(), [true]);
        accounted(&timer);
    });
}
