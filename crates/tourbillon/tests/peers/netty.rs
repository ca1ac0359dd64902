//! Netty's `HashedWheelTimerTest`, on a wheel with Netty's settings.

use std::sync::mpsc;
use std::time::Duration;

use tourbillon::{Builder, ScheduleError, State, Timer, VirtualClock};

use crate::common::{HOUR, Log, MS, SECOND, accounted, one_thread};

fn netty() -> (Timer, VirtualClock) {
    let clock = VirtualClock::new();
    (Builder::netty().clock(&clock).build().unwrap(), clock)
}

#[test]
fn nothing_runs_before_its_delay_and_all_of_it_after() {
    let (timer, clock) = netty();
    let timeout = timer.schedule(2 * SECOND, |_| ()).unwrap();
    clock.advance(1999 * MS).unwrap();
    assert_eq!(timeout.state(), State::Pending);
    clock.advance(101 * MS).unwrap();
    assert_eq!(timeout.state(), State::Fired, "at the next tick of 100 ms at the latest");
}

#[test]
fn a_stop_hands_back_what_has_not_run_and_refuses_the_rest() {
    let (timer, clock) = netty();
    (0..3).for_each(|_| _ = timer.arm(MS, |_| ()).unwrap());
    clock.advance(SECOND).unwrap();
    assert!(timer.stop().is_empty(), "all have run");
    assert!(matches!(timer.schedule(MS, |_| ()), Err(ScheduleError::Stopped(_))));

    let (timer, _clock) = netty();
    let handles: Vec<_> = (0..3).map(|_| timer.schedule(5 * SECOND, |_| ()).unwrap()).collect();
    let unfired = timer.stop();
    assert_eq!(unfired.len(), 3);
    for unfired in &unfired {
        assert!(handles.iter().any(|handle| unfired.is_of(handle)));
    }
    assert!(handles.iter().all(|handle| handle.state() == State::HandedBack && !handle.cancel()));
}

/// A task that schedules the next, for more turns of the ring than the ring has slots.
#[test]
fn a_task_that_makes_the_next_goes_round_and_round() {
    fn again(timer: &Timer, log: Log<Duration>, clock: VirtualClock) {
        let (own, at) = (log.clone(), clock.clone());
        timer
            .arm(100 * MS, move |context| {
                own.add(at.elapsed());
                again(&context.timer(), own.clone(), at.clone());
            })
            .unwrap();
    }
    let (timer, clock) = netty();
    let log = Log::new();
    again(&timer, log.clone(), clock.clone());
    clock.advance(100 * SECOND).unwrap();
    let moments = log.take();
    assert_eq!(moments.len(), 1000);
    assert!(moments.iter().enumerate().all(|(n, at)| *at == 100 * MS * (n as u32 + 1)));
    assert_eq!(timer.stop().len(), 1);
}

#[test]
fn every_delay_is_late_by_less_than_a_tick() {
    let (timer, clock) = netty();
    let log = Log::new();
    for ms in (1..6000).step_by(7) {
        let log = log.clone();
        timer.arm(MS * ms, move |context| log.add((ms, context.lateness()))).unwrap();
    }
    clock.advance(7 * SECOND).unwrap();
    let all = log.take();
    assert_eq!(all.len(), (1..6000).step_by(7).count());
    assert!(all.iter().all(|(_, late)| *late < 100 * MS), "{all:?}");
}

#[test]
fn tasks_run_on_an_executor_of_the_users() {
    let clock = VirtualClock::new();
    let timer = Builder::netty().clock(&clock).executor(one_thread()).build().unwrap();
    let (sender, ran) = mpsc::channel();
    timer.arm(SECOND, move |_| sender.send(std::thread::current().id()).unwrap()).unwrap();
    clock.advance(SECOND).unwrap();
    assert_ne!(ran.recv().unwrap(), std::thread::current().id());
}

#[test]
fn what_is_too_much_comes_back_until_one_is_cancelled_or_has_run() {
    let clock = VirtualClock::new();
    let timer = Builder::netty().clock(&clock).limit(2).build().unwrap();
    let first = timer.schedule(SECOND, |_| ()).unwrap();
    timer.schedule(2 * SECOND, |_| ()).unwrap();
    let full = |timer: &Timer| matches!(timer.schedule(HOUR, |_| ()), Err(ScheduleError::Full(_)));
    assert!(full(&timer));
    first.cancel();
    let third = timer.schedule(2 * SECOND, |_| ()).unwrap();
    assert!(full(&timer));
    clock.advance(2 * SECOND).unwrap();
    assert_eq!(third.state(), State::Fired);
    assert!(!full(&timer));
    accounted(&timer);
}

#[test]
fn pending_ones_are_counted() {
    let (timer, clock) = netty();
    let cancelled = timer.schedule(SECOND, |_| ()).unwrap();
    (0..2).for_each(|_| _ = timer.arm(SECOND, |_| ()).unwrap());
    assert_eq!(timer.len(), 3);
    cancelled.cancel();
    assert_eq!(timer.len(), 2, "at once, and not with the next tick");
    clock.advance(SECOND).unwrap();
    assert_eq!(timer.len(), 0);
}

#[test]
fn the_longest_delay_does_not_overflow() {
    let (timer, clock) = netty();
    let timeout = timer.schedule(Duration::MAX, |_| ()).unwrap();
    clock.advance(1000 * HOUR).unwrap();
    assert!(timeout.cancel());
}

/// The first callback of a tick cancels the others that are due in that tick.
#[test]
fn what_is_cancelled_within_its_own_tick_is_not_pending() {
    let clock = VirtualClock::new();
    let timer = Builder::netty().clock(&clock).on_driver().build().unwrap();
    let (hand_over, handles) = mpsc::channel::<Vec<tourbillon::Timeout>>();
    timer
        .schedule(200 * MS, move |_| {
            assert!(handles.recv().unwrap().iter().all(|handle| handle.cancel()));
        })
        .unwrap();
    let all = (0..10).map(|_| timer.schedule(200 * MS, |_| ()).unwrap()).collect();
    hand_over.send(all).unwrap();
    clock.advance(SECOND).unwrap();
    let counts = timer.counts();
    assert_eq!((counts.fired, counts.cancelled, counts.pending, counts.panicked), (1, 10, 0, 0));
}
