//! Cancel, reschedule and stop of timers that wait for the wall clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use tourbillon::{RescheduleError, ScheduleError, State, Timer, VirtualClock};

use crate::common::{Drops, HOUR, Log, MS, SECOND, accounted, panic_quietly, within};

fn virtual_timer() -> (Timer, VirtualClock) {
    let clock = VirtualClock::new();
    (Timer::builder().clock(&clock).build().unwrap(), clock)
}

#[test]
fn cancelled_it_never_starts() {
    let (timer, clock) = virtual_timer();
    let drops = Drops::new();
    let held = drops.one();
    let timeout = timer
        .schedule_wall(clock.wall_now() + HOUR, move |_| {
            drop(held);
            unreachable!("it was cancelled");
        })
        .unwrap();
    assert!(timeout.cancel());
    assert_eq!((timeout.state(), drops.count()), (State::Cancelled, 1));
    assert!(!timeout.cancel());
    assert_eq!(timeout.wall_deadline(), None);
    clock.set_wall(clock.wall_now() + 2 * HOUR).unwrap();
    assert!(!timer.cancel(timeout.key()));
    assert_eq!((timer.counts().cancelled, timer.counts().fired), (1, 0));
    accounted(&timer);
}

/// By key as well; the key stays valid while the clock is set.
#[test]
fn cancelled_by_its_key() {
    let (timer, clock) = virtual_timer();
    let timeout = timer.schedule_wall(clock.wall_now() + HOUR, |_| unreachable!()).unwrap();
    let key = timeout.key();
    for _ in 0..10 {
        clock.set_wall(clock.wall_now() - HOUR).unwrap();
        clock.advance(HOUR).unwrap();
    }
    assert_eq!(timeout.key(), key);
    assert!(timer.is_pending(key) && timer.cancel(key));
    assert_eq!(timeout.state(), State::Cancelled);
}

/// After a move it is an ordinary timer: the wall clock no longer affects it.
#[test]
fn rescheduled_it_leaves_the_wall_clock() {
    for by_key in [false, true] {
        let (timer, clock) = virtual_timer();
        let log = Log::new();
        let (write, own) = (log.clone(), clock.clone());
        let timeout = timer
            .schedule_wall(clock.wall_now() + HOUR, move |context| {
                assert_eq!(context.wall_deadline(), None);
                write.add(own.elapsed());
            })
            .unwrap();
        match by_key {
            false => timeout.reschedule(SECOND).unwrap(),
            true => timer.reschedule(timeout.key(), SECOND).unwrap(),
        }
        assert_eq!(timeout.wall_deadline(), None);
        clock.set_wall(clock.wall_now() + 10 * HOUR).unwrap();
        assert_eq!(timeout.remaining(), Some(SECOND));
        clock.set_wall(clock.wall_now() - 20 * HOUR).unwrap();
        clock.advance(SECOND).unwrap();
        assert_eq!(log.take(), [SECOND], "before the moment that it waited for");
        assert_eq!(timer.counts().panicked, 0);
        assert_eq!(timeout.reschedule(SECOND), Err(RescheduleError::NotPending));
    }
}

#[test]
fn stopped_it_is_handed_back() {
    let (timer, clock) = virtual_timer();
    let log = Log::new();
    let write = log.clone();
    let at = clock.wall_now() + HOUR;
    let callback = move |context: &tourbillon::Context<'_>| write.add(context.wall_deadline());
    let timeout = timer.schedule_wall(at, callback).unwrap();
    let mut unfired = timer.stop();
    assert_eq!((unfired.len(), timeout.state()), (1, State::HandedBack));
    clock.set_wall(at + HOUR).unwrap();
    assert_eq!(log.len(), 0);
    unfired.pop().unwrap().run();
    assert_eq!(log.take(), [Some(at)]);
    let refused = timer.schedule_wall(at, |_| ()).unwrap_err();
    assert!(matches!(refused, ScheduleError::Stopped(_)));
    accounted(&timer);
}

#[test]
fn a_limit_and_a_panic() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).limit(1).build().unwrap();
    let at = clock.wall_now() + SECOND;
    let first = timer.schedule_wall(at, |_| panic_quietly()).unwrap();
    let refused = timer.schedule_wall(at, |_| ()).unwrap_err();
    assert!(matches!(refused, ScheduleError::Full(_)));
    clock.advance(SECOND).unwrap();
    assert_eq!((first.state(), timer.counts().panicked), (State::Fired, 1));
    let second = timer.schedule_wall(at, refused.into_inner()).unwrap();
    clock.set_wall(at - HOUR).unwrap();
    assert!(second.is_pending());
    clock.set_wall(at).unwrap();
    assert_eq!(second.state(), State::Fired);
    accounted(&timer);
}

/// Threads schedule and cancel, time passes, and the clock is set forward and back: each timer ends in one way, and no
/// timer whose moment has passed is left behind.
#[test]
fn many_threads_and_a_restless_clock() {
    within(|| {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).shards(2).pool(2).build().unwrap();
        let (ran, cancelled) = (Arc::new(AtomicU64::new(0)), AtomicU64::new(0));
        let done = AtomicBool::new(false);
        let begin = clock.wall_now();
        thread::scope(|scope| {
            let threads: Vec<_> = (0..3)
                .map(|seed| {
                    let (timer, clock, ran, cancelled) = (&timer, &clock, &ran, &cancelled);
                    scope.spawn(move || {
                        let mut random = fastrand::Rng::with_seed(seed);
                        for _ in 0..2000 {
                            let at = begin + MS * random.u32(0..2000);
                            let (ran, own) = (ran.clone(), clock.clone());
                            let timeout = timer.schedule_wall(at, move |_| {
                                // No assertion: the clock may be set back while this runs, after the claim has read it.
                                let _ = own.wall_now();
                                ran.fetch_add(1, SeqCst);
                            });
                            if random.u32(0..3) == 0 && timeout.unwrap().cancel() {
                                cancelled.fetch_add(1, SeqCst);
                            }
                        }
                    })
                })
                .collect();
            let restless = scope.spawn(|| {
                let mut random = fastrand::Rng::with_seed(9);
                while !done.load(SeqCst) {
                    match random.bool() {
                        true => clock.advance(MS * random.u32(0..10)).unwrap(),
                        false => clock.set_wall(begin + MS * random.u32(0..2000)).unwrap(),
                    }
                }
            });
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            done.store(true, SeqCst);
            restless.join().unwrap();
        });
        clock.set_wall(begin + SECOND * 2).unwrap();
        clock.advance(MS).unwrap();
        assert_eq!(ran.load(SeqCst) + cancelled.load(SeqCst), 6000);
        assert_eq!((timer.counts().armed, timer.len()), (6000, 0));
        accounted(&timer);
    });
}

/// The last clone is dropped while timers wait: they are dropped, and a later setting of the clock finds no timer.
#[test]
fn dropped_with_its_timer() {
    let (timer, clock) = virtual_timer();
    let drops = Drops::new();
    for _ in 0..100 {
        let held = drops.one();
        timer.schedule_wall(clock.wall_now() + HOUR, move |_| drop(held)).unwrap();
    }
    drop(timer);
    assert_eq!(drops.count(), 100);
    clock.set_wall(clock.wall_now() + Duration::from_secs(86_400)).unwrap();
}
