//! An advance of the virtual clock waits for what is due, and continues when that has run, was cancelled, was moved, or
//! its engine is gone.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use tourbillon::{DelayQueue, Job, KeyedTimer, Purgatory, Timer, VirtualClock};

use crate::common::asleep::spawn_asleep;
use crate::common::{HOUR, PLACES, SECOND, case, eventually, running_on};

/// The jobs that an executor keeps without running them.
type Jobs = Arc<Mutex<Vec<Job>>>;

fn keeping(jobs: &Jobs) -> impl Fn(Job) -> Result<(), Job> + Send + Sync + 'static {
    let jobs = jobs.clone();
    move |job| {
        jobs.lock().unwrap().push(job);
        Ok(())
    }
}

/// An action that lets an advance continue which waits for a timer of one second.
type Acts = Box<dyn FnOnce() + Send>;

/// Arms a timer and returns that action.
type Arms = fn(Timer, Jobs) -> Acts;

const READY: &[(&str, Arms)] = &[
    ("Job::run", |timer, jobs| {
        timer.arm(SECOND, |_| ()).unwrap();
        Box::new(move || {
            let all = std::mem::take(&mut *jobs.lock().unwrap());
            all.into_iter().for_each(Job::run);
            drop(timer);
        })
    }),
    ("Timer::cancel", |timer, _| {
        let key = timer.arm(SECOND, |_| unreachable!()).unwrap();
        Box::new(move || assert!(timer.cancel(key)))
    }),
    ("Timer::reschedule", |timer, _| {
        let key = timer.arm(SECOND, |_| unreachable!()).unwrap();
        Box::new(move || {
            timer.reschedule(key, HOUR).unwrap();
            std::mem::forget(timer);
        })
    }),
    ("Timeout::cancel", |timer, _| {
        let timeout = timer.schedule(SECOND, |_| unreachable!()).unwrap();
        Box::new(move || assert!(timeout.cancel() && timer.is_empty()))
    }),
    ("Timeout::cancel of one that repeats", |timer, _| {
        let timeout = timer.schedule_repeating(SECOND, |_| unreachable!()).unwrap();
        Box::new(move || assert!(timeout.cancel() && timer.is_empty()))
    }),
    ("Timeout::reschedule_at", |timer, _| {
        let timeout = timer.schedule(SECOND, |_| unreachable!()).unwrap();
        Box::new(move || {
            timeout.reschedule_at(timer.now() + HOUR).unwrap();
            std::mem::forget(timer);
        })
    }),
    ("Timeout::cancel by the wall", |timer, _| {
        let at = timer.wall_now() + SECOND;
        let timeout = timer.schedule_wall(at, |_| unreachable!()).unwrap();
        Box::new(move || assert!(timeout.cancel() && timer.is_empty()))
    }),
    ("KeyedTimer::cancel", |timer, _| {
        let timers = KeyedTimer::new(&timer);
        timers.schedule(1, SECOND, |_| unreachable!()).unwrap();
        Box::new(move || assert!(timers.cancel(&1) && timer.is_empty()))
    }),
    ("Purgatory::cancel_key", |timer, _| {
        let purgatory: Purgatory<u32> = Purgatory::new(&timer);
        purgatory.when([1], SECOND, || None::<()>, |_| ()).unwrap();
        Box::new(move || {
            purgatory.cancel_key(&1);
            assert!(timer.is_empty());
        })
    }),
    ("Timer::stop", |timer, _| {
        timer.arm(SECOND, |_| unreachable!()).unwrap();
        Box::new(move || assert_eq!(timer.stop().len(), 1))
    }),
    ("drop of the timer", |timer, _| {
        timer.arm(SECOND, |_| unreachable!()).unwrap();
        Box::new(move || drop(timer))
    }),
];

#[test]
fn an_advance_goes_on_when_what_an_executor_keeps_is_gone() {
    for &(verb, arm) in READY {
        case(verb, move || {
            let (clock, jobs) = (VirtualClock::new(), Jobs::default());
            let builder = Timer::builder().clock(&clock).executor(keeping(&jobs));
            let acts = arm(builder.build().unwrap(), jobs.clone());
            let own = clock.clone();
            let advancing = thread::spawn(move || own.advance(SECOND * 2));
            eventually(|| !jobs.lock().unwrap().is_empty());
            assert!(!advancing.is_finished() && clock.elapsed() == SECOND, "it waits");
            acts();
            advancing.join().unwrap().unwrap();
            assert_eq!(clock.elapsed(), SECOND * 2);
        });
    }
}

/// A running callback cannot be cancelled: the advance, and any later advance, waits until it has ended and no longer.
#[test]
fn an_advance_goes_on_when_a_callback_of_a_stopped_engine_has_ended() {
    let rows = PLACES.into_iter().chain(["handler"]);
    for place in rows {
        case(format!("VirtualClock::advance by two, callbacks on the {place}"), move || {
            let clock = VirtualClock::new();
            let ((began, begun), (release, released)) = (mpsc::channel(), mpsc::channel());
            let run = move || {
                began.send(()).unwrap();
                released.recv().unwrap();
            };
            let stop: Box<dyn FnOnce() -> bool> = if place == "handler" {
                let engine = Timer::builder().clock(&clock).deliver(move |_| run()).unwrap();
                engine.schedule(SECOND, 7).unwrap();
                Box::new(move || engine.stop_within(Duration::ZERO).finished)
            } else {
                let timer = running_on(place).clock(&clock).build().unwrap();
                timer.schedule(SECOND, move |_| run()).unwrap();
                Box::new(move || timer.stop_within(Duration::ZERO).finished)
            };
            let advance = |clock: VirtualClock| thread::spawn(move || clock.advance(SECOND * 2));
            let threads = [advance(clock.clone()), advance(clock.clone())];
            begun.recv().unwrap();
            assert!(!stop(), "it runs");
            assert!(threads.iter().all(|thread| !thread.is_finished()));
            release.send(()).unwrap();
            threads.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
            assert_eq!(clock.elapsed(), SECOND * 4);
        });
    }
}

/// What another thread does to a value that an advance has made ready, before the waiting taker gets it.
type Takes = fn(&DelayQueue<u32>, tourbillon::Key);

const DUE: [(&str, Takes); 4] = [
    ("DelayQueue::remove", |queue, key| _ = queue.remove(key)),
    ("DelayQueue::reschedule", |queue, key| _ = queue.reschedule(key, HOUR)),
    ("DelayQueue::try_take", |queue, _| _ = queue.try_take()),
    ("DelayQueue::close", |queue, _| drop(queue.close())),
];

/// A race, many times: whichever thread is first, the advance must not wait for a value that nobody will take.
#[test]
fn an_advance_goes_on_when_a_due_value_is_taken_from_who_waits() {
    for (verb, takes) in DUE {
        for round in 0..150 {
            case(format!("{verb}, round {round}"), move || {
                let clock = VirtualClock::new();
                let queue = Timer::builder().clock(&clock).queue().unwrap();
                let key = queue.put(SECOND, 7).unwrap();
                let (own, other, ticks) = (queue.clone(), queue.clone(), clock.clone());
                let taker = spawn_asleep(move || own.take());
                let racer = thread::spawn(move || {
                    while ticks.elapsed() < SECOND {
                        thread::yield_now();
                    }
                    takes(&other, key);
                });
                clock.advance(SECOND * 2).unwrap();
                racer.join().unwrap();
                queue.close();
                let _either = taker.join().unwrap();
            });
        }
    }
}

/// A value that is due before the clock moves is taken before the advance returns, even an advance by zero.
#[test]
fn an_advance_by_nothing_waits_for_who_takes_what_is_due() {
    for round in 0..100 {
        case(format!("round {round}"), move || {
            let clock = VirtualClock::new();
            let queue = Timer::builder().clock(&clock).queue().unwrap();
            let (own, taken) = (queue.clone(), Arc::new(Mutex::new(Vec::new())));
            let told = taken.clone();
            let taker = spawn_asleep(move || told.lock().unwrap().push(own.take()));
            queue.put(Duration::ZERO, 7).unwrap();
            clock.advance(Duration::ZERO).unwrap();
            assert_eq!(queue.len(), 0, "nobody has taken it");
            taker.join().unwrap();
            assert_eq!(*taken.lock().unwrap(), [Ok(7)]);
        });
    }
}
