//! A hook that starts a thread is user code: it may use the engine for which it starts the thread. A verb that needs
//! that very thread is refused. In real time, milliseconds of it: a virtual clock needs no thread.

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::SystemTime;

use crate::common::{HOUR, Log, MS, SECOND, accounted, eventually, within};
use tourbillon::{
    Attempt, Backoff, Engine, KeyedTimer, Purgatory, Repeat, ScheduleError, Timer, VirtualClock,
    WaitError,
};

/// The error of a verb that needs the driver.
pub(crate) type Refused = Box<dyn Error + Send>;

pub(crate) type Verb = (&'static str, fn(&Timer) -> Refused);

fn refused<T, E: Error + Send + 'static>(outcome: Result<T, E>) -> Refused {
    Box::new(outcome.err().expect("it needs the thread"))
}

fn fails(_: &Attempt) -> Result<(), ()> {
    Err(())
}

pub(crate) const VERBS: [Verb; 15] = [
    ("start", |timer| refused(timer.start())),
    ("arm", |timer| refused(timer.arm(MS, |_| ()))),
    ("arm_at", |timer| refused(timer.arm_at(timer.now(), |_| ()))),
    ("schedule", |timer| refused(timer.schedule(MS, |_| ()))),
    ("schedule_at", |timer| refused(timer.schedule_at(timer.now(), |_| ()))),
    ("schedule_repeating", |timer| refused(timer.schedule_repeating(MS, |_| ()))),
    ("repeat", |timer| refused(timer.repeat(Repeat::every(MS), |_| ()))),
    ("schedule_wall", |timer| refused(timer.schedule_wall(SystemTime::now(), |_| ()))),
    ("schedule_wall_every", |timer| {
        refused(timer.schedule_wall_every(SystemTime::now(), MS, |_| ()))
    }),
    ("retry", |timer| refused(timer.retry(Backoff::new(MS), fails))),
    ("retry_then", |timer| refused(timer.retry_then(Backoff::new(MS), fails, |_| ()))),
    ("KeyedTimer::schedule", |timer| {
        let timers = KeyedTimer::new(timer);
        let wrong = refused(timers.schedule(1, MS, |_| ()));
        assert!(timers.is_empty());
        wrong
    }),
    ("KeyedTimer::schedule_if_absent", |timer| {
        let timers = KeyedTimer::new(timer);
        let wrong = refused(timers.schedule_if_absent(1, MS, |_| ()));
        assert!(timers.is_empty());
        wrong
    }),
    ("KeyedTimer::retry", |timer| {
        let timers = KeyedTimer::new(timer);
        let wrong = refused(timers.retry(1, Backoff::new(MS), fails, |_| ()));
        assert!(timers.is_empty());
        wrong
    }),
    ("Purgatory::when", |timer| {
        let purgatory: Purgatory<u32> = Purgatory::new(timer);
        let wrong = refused(purgatory.when([1], HOUR, || None, |_: Result<(), WaitError>| ()));
        assert_eq!(purgatory.delayed(), 0);
        wrong
    }),
];

/// A timer whose driver hook calls the verb on that timer, and the logged result.
fn tried<R: Send + 'static>(verb: fn(&Timer) -> R, fail: bool) -> (Timer, Arc<Log<R>>) {
    let (own, log): (Arc<OnceLock<Timer>>, Arc<Log<R>>) = Default::default();
    let (inner, told) = (own.clone(), log.clone());
    let spawn = move |name: String, body: Box<dyn FnOnce() + Send>| {
        if name.ends_with("driver") {
            if fail {
                return Err(io::Error::other("no thread today"));
            }
            told.add(verb(inner.get().unwrap()));
        }
        thread::Builder::new().name(name).spawn(body).map(drop)
    };
    let timer = Timer::builder().limit(1).spawn(spawn).build().unwrap();
    let _ = own.set(timer.clone());
    (timer, log)
}

/// The error says that there is no thread, and includes the system's reason.
fn is_want_of_a_thread(verb: &str, wrong: &Refused, reason: &str) {
    let told = wrong.to_string();
    assert!(told.contains("thread") && told.contains(reason), "{verb}: {told}");
    let source = wrong.source().and_then(|source| source.downcast_ref::<io::Error>());
    assert_eq!(source.map(ToString::to_string).as_deref(), Some(reason), "{verb}: its source");
}

#[test]
fn what_needs_the_thread_that_is_being_started_is_refused() {
    for (name, verb) in VERBS {
        within(move || {
            let (timer, log) = tried(verb, false);
            timer.start().unwrap();
            let [wrong] = &log.take()[..] else { panic!("{name}: once") };
            let reason = "the spawn hook used the timer that it was to start a thread for";
            is_want_of_a_thread(name, wrong, reason);
            // The driver that was started runs later timers, and the refused verb has not taken the only place.
            let ran = Log::new();
            let told = ran.clone();
            timer.schedule(MS, move |_| told.add(())).unwrap();
            eventually(|| ran.len() == 1);
            timer.stop();
            accounted(&timer);
        });
    }
}

#[test]
fn why_a_thread_could_not_be_started_is_told() {
    for (name, verb) in VERBS {
        let (timer, _) = tried(|_| (), true);
        is_want_of_a_thread(name, &verb(&timer), "no thread today");
        is_want_of_a_thread(name, &verb(&timer), "no thread today");
        assert_eq!(timer.len(), 0, "{name}");
        timer.stop();
        accounted(&timer);
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

/// The driver runs by then: a timer that the hook schedules while it starts a worker runs as well.
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

/// Also at the second attempt, when the first thread could not be started: no lock of the keys is held.
#[test]
fn a_hook_may_use_the_keys() {
    within(|| {
        let (own, tries) = (Arc::new(OnceLock::<KeyedTimer<u32>>::new()), AtomicUsize::new(0));
        let keys = own.clone();
        let spawn = move |name: String, body: Box<dyn FnOnce() + Send>| {
            if tries.fetch_add(1, SeqCst) == 0 {
                return Err(io::Error::other("no thread today"));
            }
            assert!(!keys.get().unwrap().cancel(&1));
            thread::Builder::new().name(name).spawn(body).map(drop)
        };
        let timer = Timer::builder().on_driver().spawn(spawn).build().unwrap();
        let timers = own.get_or_init(|| KeyedTimer::new(&timer));
        let log = Log::new();
        let told = log.clone();
        assert!(timers.schedule(1, MS, |_| ()).is_err());
        assert!(!timers.schedule(1, MS, move |_| told.add(())).unwrap());
        eventually(|| log.len() == 1);
        timer.stop();
        accounted(&timer);
    });
}

/// A hook that stops its timer: the call that wanted to start the driver returns that error.
#[test]
fn a_hook_may_stop() {
    within(|| {
        let (timer, log) = tried(|timer| timer.stop().is_empty(), false);
        assert!(matches!(timer.arm(MS, |_| ()), Err(ScheduleError::Stopped(_))));
        assert_eq!(log.take(), [true]);
        accounted(&timer);
    });
}

/// A hook that reports that it has started a worker, and drops it: at once, or later. An advance does not wait for it.
#[test]
fn a_worker_that_never_comes_holds_up_no_advance() {
    for (lost, later) in [(1, false), (1, true), (3, false), (3, true)] {
        within(move || {
            let (clock, workers) = (VirtualClock::new(), AtomicUsize::new(0));
            let spawn = move |_, body: Box<dyn FnOnce() + Send>| {
                if workers.fetch_add(1, SeqCst) >= lost {
                    thread::spawn(body);
                } else if later {
                    thread::spawn(move || drop(body));
                }
                Ok(())
            };
            let builder = Timer::builder().clock(&clock).shards(1).pool(1).spawn(spawn);
            let timer = builder.build().unwrap();
            let log = Log::new();
            for n in 0..3 {
                let told = log.clone();
                timer.arm(SECOND, move |_| told.add(n)).unwrap();
            }
            clock.advance(SECOND).unwrap();
            let mut ran = log.take();
            ran.sort_unstable();
            assert_eq!(ran, [0, 1, 2], "{lost} are lost, later: {later}");
            timer.stop();
            accounted(&timer);
        });
    }
}

/// A thread that comes while another starts the driver waits for that, and no longer. If the start fails, the next
/// thread tries in its turn.
#[test]
fn who_comes_while_the_driver_is_started_hears_of_the_outcome() {
    for (fails, others) in [(false, 1), (false, 3), (true, 1), (true, 3)] {
        within(move || {
            let ((begin, begun), (release, released)) = (mpsc::channel(), mpsc::channel());
            let first = Mutex::new(Some(released));
            let spawn = move |name: String, body: Box<dyn FnOnce() + Send>| {
                if let Some(released) = first.lock().unwrap().take() {
                    begin.send(()).unwrap();
                    released.recv().unwrap();
                    if fails {
                        return Err(io::Error::other("no thread today"));
                    }
                }
                thread::Builder::new().name(name).spawn(body).map(drop)
            };
            let timer = Timer::builder().spawn(spawn).on_driver().build().unwrap();
            let log = Log::new();
            let schedules = |n: usize| {
                let (timer, told) = (timer.clone(), log.clone());
                thread::spawn(move || timer.schedule(MS, move |_| told.add(n)).is_ok())
            };
            let starts = schedules(0);
            begun.recv().unwrap();
            let comes: Vec<_> = (1..=others).map(schedules).collect();
            // Real time: lets most of them begin to wait.
            thread::sleep(3 * MS);
            assert!(comes.iter().all(|thread| !thread.is_finished()), "there is no driver yet");
            release.send(()).unwrap();
            assert_eq!(starts.join().unwrap(), !fails);
            assert!(comes.into_iter().all(|thread| thread.join().unwrap()));
            let expected: Vec<usize> = (usize::from(fails)..=others).collect();
            eventually(|| log.len() == expected.len());
            let mut ran = log.take();
            ran.sort_unstable();
            assert_eq!(ran, expected);
            timer.stop();
            accounted(&timer);
        });
    }
}

#[test]
fn a_stop_while_the_driver_is_started_stands() {
    within(|| {
        let own: Arc<OnceLock<Timer>> = Arc::default();
        let stopped = own.clone();
        let spawn = move |name: String, body: Box<dyn FnOnce() + Send>| {
            assert!(stopped.get().expect("it is made").stop().is_empty());
            thread::Builder::new().name(name).spawn(body).map(drop)
        };
        let timer = Timer::builder().spawn(spawn).build().unwrap();
        assert!(own.set(timer.clone()).is_ok());
        assert!(matches!(timer.schedule(SECOND, |_| ()), Err(ScheduleError::Stopped(_))));
        assert!(timer.is_stopped());
        assert!(matches!(timer.schedule(SECOND, |_| ()), Err(ScheduleError::Stopped(_))));
    });
}
