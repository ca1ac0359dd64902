//! Retrying: the times of the tries, and the one outcome of each retry.
//!
//! Some are in real time: an advance of virtual time would wait for a running try, and the time limit of a wait is
//! always real time.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use tourbillon::{
    Attempt, Backoff, Jitter, Job, Retried, ScheduleError, State, Timer, VirtualClock,
};

use crate::common::asleep::spawn_asleep;
use crate::common::{
    Drops, HOUR, Log, MS, PLACES, PanicsWhenDropped, SECOND, accounted, panic_quietly, virtual_on,
    within,
};

type Outcome = Retried<&'static str, u32>;

/// Fails this many times with the number of the try, and then succeeds.
fn fails(times: u32) -> impl FnMut(&Attempt) -> Result<&'static str, u32> + Send {
    move |attempt| if attempt.number() > times { Ok("done") } else { Err(attempt.number()) }
}

#[test]
fn it_is_tried_at_once_and_then_later_and_later() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let log = Log::new();
        let (times, own) = (log.clone(), clock.clone());
        let mut job = fails(4);
        let retry = timer.retry(Backoff::new(SECOND), move |attempt| {
            times.add((attempt.number(), own.elapsed().as_secs()));
            job(attempt)
        });
        let retry = retry.unwrap();
        assert_eq!(log.len(), 0, "{place}: never inside the call");
        assert!(!retry.is_over());
        clock.advance(HOUR).unwrap();
        assert_eq!(log.take(), [(1, 0), (2, 1), (3, 3), (4, 7), (5, 15)], "{place}");
        assert!(retry.is_over() && !retry.cancel(), "{place}");
        assert_eq!(retry.timeout().state(), State::Fired);
        assert_eq!(retry.wait(), Retried::Success("done"), "{place}");
        accounted(&timer);
    }
}

#[test]
fn it_gives_up_by_tries_by_time_and_by_itself() {
    let (timer, clock) = virtual_on("pool");
    let tries = timer.retry(Backoff::new(SECOND).tries(3), fails(9)).unwrap();
    let time = timer.retry(Backoff::new(SECOND).within(SECOND * 20), fails(9)).unwrap();
    let only = timer.retry(Backoff::new(SECOND).tries(1), fails(9)).unwrap();
    let hopeless = timer.retry(Backoff::new(SECOND), |attempt| {
        if attempt.number() == 2 {
            attempt.give_up();
        }
        Err::<(), _>(attempt.number())
    });
    let lucky = timer.retry(Backoff::new(SECOND), |attempt| {
        attempt.give_up();
        Ok::<_, ()>("a success all the same")
    });
    clock.advance(HOUR).unwrap();
    let gave_up = |tries| Retried::GaveUp { error: tries, tries };
    assert_eq!(tries.wait(), gave_up(3));
    // At 0, 1, 3, 7, 15; the next would be at 31.
    assert_eq!(time.wait(), gave_up(5));
    assert_eq!(only.wait(), gave_up(1));
    assert_eq!(hopeless.unwrap().wait(), Retried::GaveUp { error: 2, tries: 2 });
    assert_eq!(lucky.unwrap().wait(), Retried::Success("a success all the same"));
}

#[test]
fn no_delay_at_all_is_a_tick_and_lets_time_go_on() {
    let nothing = [Backoff::new(Duration::ZERO), Backoff::new(SECOND).most(Duration::ZERO)];
    for backoff in nothing {
        let (timer, clock) = virtual_on("driver");
        timer.retry(backoff, |_| Err::<(), _>("no")).unwrap();
        let own = clock.clone();
        within(move || own.advance(MS * 10).unwrap());
        assert_eq!(timer.counts().fired, 11, "one at once, then one each tick");
    }
}

#[test]
fn the_time_of_a_slow_try_counts() {
    let clock = VirtualClock::new();
    let (timer, mut driver) = Timer::builder().clock(&clock).build_driven().unwrap();
    let own = clock.clone();
    let backoff = Backoff::new(SECOND).factor(1.0).within(SECOND * 10);
    let retry = timer.retry(backoff, move |attempt| {
        // A try takes three seconds.
        let clock = own.clone();
        thread::spawn(move || clock.advance(SECOND * 3).unwrap()).join().unwrap();
        Err::<(), _>(attempt.number())
    });
    while driver.turn_within(SECOND).ran > 0 {}
    // They start at 0, 4 and 8: a fourth would start at 12.
    assert_eq!(retry.unwrap().wait(), Retried::GaveUp { error: 3, tries: 3 });
}

/// However late the first try is, because the loop was not turned or the retry was moved.
#[test]
fn the_limits_count_from_the_first_try() {
    let every = || Backoff::new(SECOND).factor(1.0);
    let rows = [
        (every().tries(1), 1),
        (every().tries(4), 4),
        (every().within(Duration::ZERO), 1),
        (every().within(SECOND * 3), 4),
        (every().within(SECOND * 3).tries(2), 2),
        (every().within(SECOND * 3).tries(9), 4),
    ];
    for late in [Duration::ZERO, MS, SECOND, SECOND * 3, HOUR] {
        for moved in [false, true] {
            for (backoff, tries) in rows.clone() {
                let clock = VirtualClock::new();
                let (timer, mut driver) = Timer::builder().clock(&clock).build_driven().unwrap();
                let retry = timer.retry(backoff, fails(99)).unwrap();
                if moved {
                    retry.timeout().reschedule(late).unwrap();
                } else {
                    clock.advance(late).unwrap();
                }
                while driver.turn_within(HOUR).ran > 0 {}
                let gave_up = Retried::GaveUp { error: tries, tries };
                assert_eq!(retry.wait(), gave_up, "late by {late:?}, moved: {moved}");
            }
        }
    }
}

#[test]
fn jitter_with_a_seed_is_the_same_in_every_run() {
    let times = || {
        let (timer, clock) = virtual_on("driver");
        let log = Log::new();
        let (seen, own) = (log.clone(), clock.clone());
        let backoff = Backoff::new(SECOND).jitter(Jitter::Full).seed(42).tries(10);
        timer
            .retry(backoff, move |_| {
                seen.add(own.elapsed());
                Err::<(), ()>(())
            })
            .unwrap();
        clock.advance(HOUR).unwrap();
        log.take()
    };
    let once = times();
    assert_eq!(once, times());
    assert_eq!(once.len(), 10);
}

#[test]
fn a_seed_begins_anew_after_a_draw() {
    // All delays have the same bounds: only the random numbers differ.
    let fresh = Backoff::new(SECOND).most(SECOND).jitter(Jitter::Full);
    let mut used = fresh.clone();
    used.next_delay(Duration::ZERO);
    let delays = |mut backoff: Backoff| [(); 8].map(|()| backoff.next_delay(Duration::ZERO));
    assert_eq!(delays(used.seed(7)), delays(fresh.seed(7)));
}

#[test]
fn cancel_between_tries() {
    let (timer, clock) = virtual_on("pool");
    let drops = Drops::new();
    let held = drops.one();
    let retry = timer.retry(Backoff::new(SECOND), move |_| {
        let _held = &held;
        Err::<(), ()>(())
    });
    let retry = retry.unwrap();
    clock.advance(SECOND * 2).unwrap();
    assert!(retry.cancel());
    assert!(!retry.cancel());
    assert_eq!(drops.count(), 1, "what the job held is gone");
    assert_eq!(retry.wait(), Retried::Cancelled);
    clock.advance(HOUR).unwrap();
    assert_eq!(timer.counts().fired, 2);
    accounted(&timer);
}

#[test]
fn cancel_before_the_first_try_and_by_key() {
    let (timer, clock) = virtual_on("pool");
    let one = timer.retry(Backoff::new(SECOND), fails(0)).unwrap();
    assert!(one.cancel());
    assert_eq!(one.wait(), Retried::Cancelled);
    let other = timer.retry(Backoff::new(SECOND), fails(9)).unwrap();
    clock.advance(SECOND).unwrap();
    assert!(timer.cancel(other.timeout().key()), "it is a timer like any other");
    assert_eq!(other.wait(), Retried::Cancelled);
}

#[test]
fn cancel_during_a_try_waits_for_its_end() {
    for (succeeds, expected) in [(true, Retried::Success(())), (false, Retried::Cancelled)] {
        let (timer, clock) = virtual_on("pool");
        let meet = Arc::new(Barrier::new(2));
        let inside = meet.clone();
        let retry = timer.retry(Backoff::new(SECOND), move |_| {
            inside.wait();
            inside.wait();
            if succeeds { Ok(()) } else { Err("no") }
        });
        let retry = retry.unwrap();
        let time = {
            let clock = clock.clone();
            thread::spawn(move || clock.advance(HOUR).unwrap())
        };
        meet.wait();
        assert!(retry.cancel(), "no further try starts");
        assert!(!retry.is_over(), "this one has not ended");
        meet.wait();
        time.join().unwrap();
        assert_eq!(retry.wait(), expected);
        assert_eq!(timer.counts().fired, 1);
    }
}

#[test]
fn cancel_from_inside_the_job() {
    let (timer, clock) = virtual_on("driver");
    let own = Arc::new(Mutex::new(None::<tourbillon::Timeout>));
    let inside = own.clone();
    let retry = timer.retry(Backoff::new(SECOND), move |_| {
        assert!(inside.lock().unwrap().take().unwrap().cancel());
        Err::<(), ()>(())
    });
    let retry = retry.unwrap();
    *own.lock().unwrap() = Some(retry.timeout());
    clock.advance(HOUR).unwrap();
    assert_eq!(retry.wait(), Retried::Cancelled);
    assert_eq!((timer.counts().fired, timer.counts().panicked), (1, 0));
}

#[test]
fn stop_and_drop_tell_that_it_was_stopped() {
    let (timer, clock) = virtual_on("pool");
    let retry = timer.retry(Backoff::new(SECOND), fails(9)).unwrap();
    clock.advance(SECOND).unwrap();
    let unfired = timer.stop();
    assert_eq!(unfired.len(), 1);
    assert!(retry.is_over(), "though what was handed back is still held");
    assert_eq!(retry.wait(), Retried::Stopped);
    unfired.into_iter().for_each(|timer| timer.run());

    let (timer, clock) = virtual_on("pool");
    let retry = timer.retry(Backoff::new(SECOND), fails(9)).unwrap();
    clock.advance(SECOND).unwrap();
    drop(timer);
    assert_eq!(retry.wait(), Retried::Stopped);
}

#[test]
fn stop_during_a_try() {
    let timer = Timer::new();
    let meet = Arc::new(Barrier::new(2));
    let inside = meet.clone();
    let retry = timer.retry(Backoff::new(MS), move |_| {
        inside.wait();
        inside.wait();
        Err::<(), _>("no")
    });
    meet.wait();
    let stopping = spawn_asleep(move || timer.stop().len());
    assert!(!stopping.is_finished(), "it waits");
    meet.wait();
    assert_eq!(within(move || stopping.join().unwrap()), 1, "the next try");
    assert_eq!(retry.unwrap().wait(), Retried::Stopped);
}

#[test]
fn a_callback_that_waits_for_a_retry_does_not_hang_a_stop() {
    // Real time, and two threads: one waits, one tries.
    let timer = Timer::builder().pool(2).build().unwrap();
    let retry = timer.retry(Backoff::new(HOUR), fails(9)).unwrap();
    let (done, outcome) = std::sync::mpsc::channel();
    let waits = Arc::new(Barrier::new(2));
    let inside = waits.clone();
    timer
        .schedule(Duration::ZERO, move |_| {
            inside.wait();
            done.send(retry.wait()).unwrap();
        })
        .unwrap();
    waits.wait();
    within(move || drop(timer.stop()));
    assert!(matches!(outcome.recv(), Ok(Retried::Stopped)));
}

#[test]
fn a_panic_is_an_outcome() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let retry = timer.retry(Backoff::new(SECOND), |attempt| {
            if attempt.number() == 2 {
                panic_quietly();
            }
            Err::<(), ()>(())
        });
        clock.advance(HOUR).unwrap();
        assert_eq!(retry.unwrap().wait(), Retried::Panicked, "{place}");
        assert_eq!((timer.counts().fired, timer.counts().panicked), (2, 1), "{place}");
    }
}

#[test]
fn the_listener_is_called_once_whatever_else_panics() {
    let (timer, clock) = virtual_on("driver");
    let log = Log::<Outcome>::new();
    let then = |log: &Log<Outcome>| {
        let log = log.clone();
        move |outcome| {
            log.add(outcome);
            panic_quietly()
        }
    };
    // The values that the job and the listener hold panic when dropped.
    for cancels in [false, true] {
        let held = PanicsWhenDropped;
        let job = move |_: &Attempt| {
            let _held = &held;
            Err(7)
        };
        let handle = timer.retry_then(Backoff::new(SECOND).tries(2), job, then(&log)).unwrap();
        clock.advance(Duration::ZERO).unwrap();
        if cancels {
            assert!(handle.cancel());
        }
        clock.advance(HOUR).unwrap();
    }
    assert_eq!(log.take(), [Retried::GaveUp { error: 7, tries: 2 }, Retried::Cancelled]);
    assert_eq!(timer.counts().panicked, 4);
    accounted(&timer);
}

#[test]
fn closures_that_hold_nothing_are_told_too() {
    static TOLD: AtomicUsize = AtomicUsize::new(0);
    let timer = Timer::new();
    let handle = timer.retry_then(
        Backoff::new(HOUR),
        |_| Err::<(), ()>(()),
        |outcome| {
            assert!(matches!(outcome, Retried::Cancelled | Retried::Stopped));
            TOLD.fetch_add(1, SeqCst);
        },
    );
    handle.unwrap().cancel();
    assert_eq!(TOLD.load(SeqCst), 1);
    timer
        .retry_then(Backoff::new(HOUR), |_| Err::<(), ()>(()), |_| _ = TOLD.fetch_add(1, SeqCst))
        .unwrap();
    timer.stop();
    assert_eq!(TOLD.load(SeqCst), 2);
}

#[test]
fn what_is_refused_comes_back_and_nobody_is_told() {
    let timer = Timer::new();
    timer.stop();
    let refused = timer.retry(Backoff::new(SECOND), fails(0)).unwrap_err();
    assert!(matches!(refused, ScheduleError::Stopped(_)));
    let (job, told) = (refused.into_inner(), Log::new());
    let log = told.clone();
    let refused = timer.retry_then(Backoff::new(SECOND), job, move |outcome| log.add(outcome));
    let (job, then) = refused.unwrap_err().into_inner();
    assert_eq!(told.len(), 0);
    let other = Timer::new();
    other.retry_then(Backoff::new(SECOND), job, then).unwrap();
    crate::common::eventually(|| told.len() == 1);
}

#[test]
fn an_executor_that_refuses_makes_tries_late_and_loses_none() {
    let clock = VirtualClock::new();
    let offers = AtomicUsize::new(0);
    let builder = Timer::builder().clock(&clock).executor(move |job: Job| {
        if offers.fetch_add(1, SeqCst) % 2 == 0 {
            return Err(job);
        }
        thread::spawn(move || job.run());
        Ok(())
    });
    let retry = builder.build().unwrap();
    let outcome = retry.retry(Backoff::new(SECOND), fails(5)).unwrap();
    clock.advance(HOUR).unwrap();
    assert_eq!(outcome.wait(), Retried::Success("done"));
}

#[test]
fn waiting_with_a_limit_gives_the_handle_back() {
    let (timer, clock) = virtual_on("pool");
    let retry = timer.retry(Backoff::new(SECOND), fails(1)).unwrap();
    let retry = retry.try_wait().unwrap_err();
    // Real time: virtual time stands still.
    let retry = retry.wait_within(MS * 5).unwrap_err();
    // As if the network were back: the try need not wait for the second.
    clock.advance(Duration::ZERO).unwrap();
    retry.timeout().reschedule(MS).unwrap();
    clock.advance(MS).unwrap();
    assert_eq!(retry.wait_within(Duration::MAX).unwrap(), Retried::Success("done"));
}

#[test]
fn dropping_the_handle_changes_nothing() {
    let (timer, clock) = virtual_on("pool");
    drop(timer.retry(Backoff::new(SECOND).tries(5), fails(9)).unwrap());
    clock.advance(HOUR).unwrap();
    assert_eq!((timer.counts().fired, timer.len()), (5, 0));
}

#[test]
fn an_error_whose_drop_panics_is_one_more_failure() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let retry = timer.retry(Backoff::new(SECOND), |attempt| match attempt.number() {
            3 => Ok("done"),
            _ => Err(PanicsWhenDropped),
        });
        let retry = retry.unwrap();
        clock.advance(HOUR).unwrap();
        assert!(matches!(retry.wait(), Retried::Success("done")), "{place}");
        assert_eq!((timer.counts().fired, timer.counts().panicked), (3, 2), "{place}");
    }
}
