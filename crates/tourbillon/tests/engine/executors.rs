//! Where callbacks run: executors that refuse, drop, panic or run at once lose nothing; threads that cannot be started
//! lose nothing; a blocking callback delays only those that share its thread.
//!
//! Some are in real time: they test which threads a pool starts, and when.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use crate::common::asleep::{await_asleep, spawn_known};
use crate::common::{
    HOUR, HandClock, Log, MS, PLACES, SECOND, accounted, case, eventually, one_thread,
    panic_quietly, running_on, within,
};
use tourbillon::{Builder, Context, Job, ScheduleError, StartError, State, Timer, VirtualClock};

/// Fifty timers at one moment and fifty at fifty others, on this executor: each runs once, at its moment.
fn loses_nothing(build: impl FnOnce() -> Builder + Send + 'static) -> Timer {
    within(|| {
        let clock = VirtualClock::new();
        let timer = build().clock(&clock).shards(2).build().unwrap();
        let log = Log::new();
        for n in 0..100_u32 {
            let (log, read) = (log.clone(), clock.clone());
            let after = SECOND * n.min(50);
            timer.schedule(after, move |_| log.add((n, read.elapsed() - after))).unwrap();
        }
        clock.advance(HOUR).unwrap();
        let mut ran = log.take();
        ran.sort_unstable();
        assert_eq!(ran, (0..100).map(|n| (n, Duration::ZERO)).collect::<Vec<_>>());
        accounted(&timer);
        timer
    })
}

#[test]
fn an_executor_that_refuses_is_offered_again() {
    loses_nothing(|| {
        let (calls, run) = (AtomicU64::new(0), one_thread());
        let execute = move |job: Job| match calls.fetch_add(1, SeqCst) % 4 {
            3 => run(job),
            _ => Err(job),
        };
        Timer::builder().executor(execute)
    });
}

#[test]
fn an_executor_that_drops_jobs_is_offered_again() {
    loses_nothing(|| {
        let (calls, run) = (AtomicU64::new(0), one_thread());
        let execute = move |job: Job| match calls.fetch_add(1, SeqCst) % 2 {
            1 => run(job),
            _ => {
                drop(job);
                Ok(())
            }
        };
        Timer::builder().executor(execute)
    });
}

#[test]
fn an_executor_may_run_jobs_at_once() {
    loses_nothing(|| {
        Timer::builder().executor(|job: Job| {
            job.run();
            Ok(())
        })
    });
}

#[test]
fn an_executor_may_keep_jobs_for_later_in_any_order() {
    loses_nothing(|| {
        let queue = Arc::new(Mutex::new(Vec::<Job>::new()));
        let jobs = Arc::downgrade(&queue);
        thread::spawn(move || {
            while let Some(jobs) = jobs.upgrade() {
                let job = jobs.lock().unwrap().pop();
                job.into_iter().for_each(Job::run);
                thread::yield_now();
            }
        });
        Timer::builder().executor(move |job| {
            queue.lock().unwrap().push(job);
            Ok(())
        })
    });
}

/// While the clock stands still the driver offers nothing: it does not spin.
#[test]
fn a_refused_job_is_offered_again_by_the_driver_thread() {
    let (refusing, offers) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU64::new(0)));
    let (refuse, count) = (refusing.clone(), offers.clone());
    let execute = move |job: Job| {
        count.fetch_add(1, SeqCst);
        if refuse.load(SeqCst) {
            return Err(job);
        }
        job.run();
        Ok(())
    };
    let clock = HandClock::new();
    let builder = Timer::builder().shards(1).clock(clock.clone());
    let timer = builder.executor(execute).build().unwrap();
    let handles: Vec<_> = (0..10).map(|_| timer.schedule(MS, |_| ()).unwrap()).collect();
    for _ in 0..3 {
        let before = offers.load(SeqCst);
        clock.forward(SECOND);
        eventually(|| offers.load(SeqCst) > before);
        clock.await_driver();
        let before = offers.load(SeqCst);
        (0..20).for_each(|_| clock.await_driver());
        assert_eq!(offers.load(SeqCst), before, "it must not spin");
    }
    // Not started: each can still be cancelled, moved and counted.
    assert!(handles.iter().all(|handle| handle.state() == State::Pending));
    assert!(handles[0].cancel());
    handles[1].reschedule(HOUR).unwrap();
    refusing.store(false, SeqCst);
    clock.forward(SECOND);
    eventually(|| timer.counts().fired == 8);
    assert_eq!((handles[0].state(), handles[1].state()), (State::Cancelled, State::Pending));
    accounted(&timer);
}

/// A way not to run a job.
type Refuse = (&'static str, fn(Job) -> Result<(), Job>);

const REFUSALS: [Refuse; 3] = [
    ("returns", Err),
    ("drops", |job| {
        drop(job);
        Ok(())
    }),
    ("panics with", |_| panic_quietly()),
];

/// The reminder to offer a refused job again puts off nothing that is due earlier.
#[test]
fn a_refusal_puts_off_nothing_that_is_due_before_the_next_offer() {
    // The wait for the next offer doubles with each refusal, from a millisecond to a hundred.
    for (how, refuse) in REFUSALS {
        for refusals in [1, 4, 9] {
            case(format!("it {how} the job {refusals} times"), move || {
                let (refusing, offers) =
                    (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU64::new(0)));
                let (refuses, count) = (refusing.clone(), offers.clone());
                let execute = move |job: Job| {
                    count.fetch_add(1, SeqCst);
                    if refuses.load(SeqCst) {
                        return refuse(job);
                    }
                    job.run();
                    Ok(())
                };
                let (clock, tick) = (HandClock::new(), Duration::from_micros(10));
                let builder = Timer::builder().shards(1).tick(tick).clock(clock.clone());
                let timer = builder.executor(execute).build().unwrap();
                timer.arm(MS, |_| ()).unwrap();
                timer.arm(SECOND * refusals + tick, |_| ()).unwrap();
                for _ in 0..refusals {
                    let before = offers.load(SeqCst);
                    clock.forward(SECOND);
                    eventually(|| offers.load(SeqCst) > before);
                    clock.await_driver();
                }
                refusing.store(false, SeqCst);
                // The second is due, up to a tick later.
                clock.forward(2 * tick);
                eventually(|| timer.counts().fired == 2);
                accounted(&timer);
            });
        }
    }
}

/// An executor that never accepts a job again: a stop hands back every pending timer.
#[test]
fn an_executor_that_always_refuses_does_not_keep_stop_from_handing_back() {
    within(|| {
        let offers = Arc::new(AtomicU64::new(0));
        let count = offers.clone();
        let execute = move |job: Job| {
            count.fetch_add(1, SeqCst);
            Err(job)
        };
        let timer = Timer::builder().executor(execute).build().unwrap();
        let handles: Vec<_> = (0..10).map(|_| timer.schedule(MS, |_| ()).unwrap()).collect();
        eventually(|| offers.load(SeqCst) > 3);
        assert_eq!(timer.stop().len(), 10);
        assert!(handles.iter().all(|handle| handle.state() == State::HandedBack));
    });
}

/// Jobs that outlive their timer have nothing to run, and do no harm.
#[test]
fn a_job_may_outlive_its_timer() {
    let kept: Arc<Mutex<Vec<Job>>> = Arc::default();
    let keep = kept.clone();
    let execute = move |job| {
        keep.lock().unwrap().push(job);
        Ok(())
    };
    let timer = Timer::builder().executor(execute).build().unwrap();
    let handles: Vec<_> = (0..4).map(|_| timer.schedule(MS, |_| ()).unwrap()).collect();
    eventually(|| kept.lock().unwrap().len() == 4);
    assert!(
        handles.iter().all(|handle| handle.state() == State::Pending),
        "in a queue is not started"
    );
    drop(timer);
    let mut jobs = std::mem::take(&mut *kept.lock().unwrap());
    jobs.pop();
    jobs.into_iter().for_each(Job::run);
    assert!(handles.iter().all(|handle| handle.state() == State::HandedBack));
}

fn no_thread() -> io::Error {
    io::Error::new(io::ErrorKind::WouldBlock, "no thread today")
}

/// Real time, milliseconds.
#[test]
fn a_driver_that_cannot_be_started_gives_the_closure_back_and_can_be_later() {
    let failing = Arc::new(AtomicBool::new(true));
    let fail = failing.clone();
    let spawn = move |_, body: Box<dyn FnOnce() + Send>| {
        if fail.load(SeqCst) {
            return Err(no_thread());
        }
        thread::spawn(body);
        Ok(())
    };
    let timer = Timer::builder().limit(2).spawn(spawn).build().unwrap();
    let log = Log::new();
    for _ in 0..5 {
        let told = log.clone();
        let Err(ScheduleError::Thread(callback, wrong)) = timer.schedule(MS, move |_| told.add(()))
        else {
            panic!("there was no thread");
        };
        assert_eq!(wrong.to_string(), "no thread today");
        drop(callback);
        assert!(matches!(timer.arm(MS, |_| ()), Err(ScheduleError::Thread(..))));
        assert!(matches!(timer.start(), Err(StartError::Thread(_))));
    }
    assert_eq!(timer.counts(), Default::default(), "nothing was armed");
    failing.store(false, SeqCst);
    for _ in 0..2 {
        let told = log.clone();
        timer.schedule(MS, move |_| told.add(())).expect("the limit is whole");
    }
    eventually(|| log.len() == 2);
    timer.stop();
    accounted(&timer);
}

#[test]
fn a_stop_after_a_driver_that_could_not_be_started_does_not_wait() {
    within(|| {
        let timer = Timer::builder().spawn(|_, _| Err(no_thread())).build().unwrap();
        assert!(timer.arm(MS, |_| ()).is_err());
        assert!(timer.stop().is_empty());
        assert!(matches!(timer.arm(MS, |_| ()), Err(ScheduleError::Stopped(_))));
    });
}

#[test]
fn workers_that_cannot_be_started_lose_nothing() {
    // None can be started, only the first can, every second can.
    for which in ["none", "first", "some"] {
        let timer = loses_nothing(move || {
            let starts = AtomicUsize::new(0);
            Timer::builder().pool(3).spawn(move |_, body| {
                let start = starts.fetch_add(1, SeqCst);
                match which {
                    "first" if start == 0 => {}
                    "some" if start % 2 == 1 => {}
                    _ => return Err(no_thread()),
                }
                thread::spawn(body);
                Ok(())
            })
        });
        within(move || assert!(timer.stop().is_empty()));
    }
}

/// A hook may use the timer whose thread it starts: it is user code, so no lock is held.
#[test]
fn a_spawn_hook_may_use_the_timer() {
    within(|| {
        let own: Arc<OnceLock<Timer>> = Arc::default();
        let inner = own.clone();
        let spawn = move |_, body: Box<dyn FnOnce() + Send>| {
            assert!(!inner.get().unwrap().is_stopped());
            thread::spawn(body);
            Ok(())
        };
        let timer = Timer::builder().spawn(spawn).build().unwrap();
        let _ = own.set(timer.clone());
        timer.start().unwrap();
        timer.stop();
    });
}

#[test]
fn a_pool_without_a_limit_to_speak_of() {
    within(|| {
        let (clock, workers) = (VirtualClock::new(), Arc::new(Mutex::new(Vec::new())));
        let all = workers.clone();
        let spawn = move |_, body: Box<dyn FnOnce() + Send>| {
            all.lock().unwrap().push(spawn_known(body).0);
            Ok(())
        };
        let builder = Timer::builder().clock(&clock).pool(usize::MAX).spawn(spawn);
        let timer = builder.build().unwrap();
        for _ in 0..5 {
            timer.schedule(SECOND, |_| ()).unwrap();
            clock.advance(SECOND).unwrap();
            await_asleep(&workers.lock().unwrap());
        }
        assert_eq!(timer.counts().fired, 5);
        let started = workers.lock().unwrap().len();
        assert_eq!(started, 1, "a worker that sleeps is called again");
        timer.stop();
    });
}

/// A timer of 10 s that is cancelled, one of 1 s that blocks, one of 3 s. On the driver's thread, and on an executor
/// with one thread, the third waits for the second; on the pool it does not.
#[test]
fn a_callback_that_blocks_delays_those_that_share_its_thread() {
    for place in PLACES {
        let clock = HandClock::new();
        let timer = running_on(place).clock(clock.clone()).build().unwrap();
        let (log, (started, start), (end, ended)) = (Log::new(), mpsc::channel(), mpsc::channel());
        let ten = timer.schedule(SECOND * 10, |_| unreachable!()).unwrap();
        let told = log.clone();
        let second = move |_: &Context<'_>| {
            started.send(()).unwrap();
            ended.recv().unwrap();
            told.add("second");
        };
        timer.schedule(SECOND, second).unwrap();
        let told = log.clone();
        let third = timer.schedule(SECOND * 3, move |_| told.add("third")).unwrap();
        assert!(ten.cancel());
        clock.forward(SECOND);
        start.recv().unwrap();
        clock.forward(SECOND * 9);
        match place {
            "pool" => eventually(|| log.len() == 1),
            // The driver itself is blocked.
            "driver" => {}
            _ => (0..3).for_each(|_| clock.await_driver()),
        }
        end.send(()).unwrap();
        eventually(|| log.len() == 2);
        let first = if place == "pool" { "third" } else { "second" };
        assert_eq!(log.take()[0], first, "{place}");
        eventually(|| third.state() == State::Fired);
        assert_eq!(timer.stop().len(), 0);
    }
}

/// Real time: the driver wakes one worker for all of them, and returns for the timers queued behind that worker.
#[test]
fn those_behind_a_callback_that_blocks_find_another_thread() {
    for shards in [1, 4] {
        let timer = Timer::builder().shards(shards).pool(4).build().unwrap();
        let (meet, log) = (Arc::new(std::sync::Barrier::new(4)), Log::new());
        let at = timer.now() + Duration::from_millis(20);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (timer, meet, log) = (timer.clone(), meet.clone(), log.clone());
                let callback = move |context: &Context<'_>| {
                    log.add(context.lateness());
                    meet.wait();
                };
                thread::spawn(move || timer.arm_at(at, callback).unwrap())
            })
            .collect();
        threads.into_iter().for_each(|thread| _ = thread.join().unwrap());
        eventually(|| log.len() == 4);
        within(move || assert!(timer.stop().is_empty()));
    }
}

/// Real time: with one more worker each time the driver returns, the last timer would start at least 127 times 125 µs
/// late.
#[test]
fn a_crowd_that_blocks_has_twice_as_many_threads_each_time() {
    const CROWD: usize = 128;
    let timer = Timer::builder().shards(1).pool(CROWD).build().unwrap();
    let lateness = || {
        let (meet, log) = (Arc::new(std::sync::Barrier::new(CROWD)), Log::new());
        let at = timer.now() + Duration::from_millis(20);
        for _ in 0..CROWD {
            let (meet, log) = (meet.clone(), log.clone());
            let callback = move |context: &Context<'_>| {
                log.add(context.lateness());
                meet.wait();
            };
            timer.arm_at(at, callback).unwrap();
        }
        eventually(|| log.len() == CROWD);
        log.take().into_iter().max()
    };
    // The best of many attempts: other programs may delay all threads.
    let best = (0..100).filter_map(|_| lateness()).find(|late| late.as_micros() < 127 * 125);
    assert!(best.is_some(), "the last is always late");
    within(move || assert!(timer.stop().is_empty()));
}

/// A pool grows only as needed, and never past its limit.
#[test]
fn a_pool_starts_threads_when_they_are_needed() {
    let (clock, started) = (VirtualClock::new(), Arc::new(AtomicUsize::new(0)));
    let count = started.clone();
    let spawn = move |name: String, body: Box<dyn FnOnce() + Send>| {
        assert_eq!(name, "mine-worker");
        count.fetch_add(1, SeqCst);
        thread::spawn(body);
        Ok(())
    };
    let builder = Timer::builder().clock(&clock).shards(1).name("mine").pool(3).spawn(spawn);
    let timer = builder.build().unwrap();
    timer.schedule(SECOND, |_| ()).unwrap();
    assert_eq!(started.load(SeqCst), 0);
    clock.advance(SECOND).unwrap();
    assert_eq!(started.load(SeqCst), 1);
    // Three callbacks that wait for each other need three threads.
    let meet = Arc::new(std::sync::Barrier::new(3));
    for _ in 0..3 {
        let meet = meet.clone();
        timer.arm(SECOND, move |_| _ = meet.wait()).unwrap();
    }
    let advanced = clock.clone();
    within(move || advanced.advance(SECOND)).unwrap();
    assert_eq!(started.load(SeqCst), 3);
    (0..1000).for_each(|_| _ = timer.arm(SECOND, |_| ()).unwrap());
    clock.advance(SECOND).unwrap();
    assert_eq!((started.load(SeqCst), timer.counts().fired), (3, 1004));
}
