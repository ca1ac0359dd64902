//! The first and the last time that the system can represent: nothing panics, nothing is early.

use std::time::{Duration, SystemTime};

use tourbillon::{State, Timer, VirtualClock};

use crate::common::{HOUR, MS, SECOND, YEAR, accounted};

/// The last or the first time of the system, to the second.
fn farthest(step: impl Fn(SystemTime, Duration) -> Option<SystemTime>) -> SystemTime {
    let spans = (0..64).rev().map(|bit| Duration::from_secs(1 << bit));
    spans.fold(SystemTime::UNIX_EPOCH, |time, span| step(time, span).unwrap_or(time))
}

fn first() -> SystemTime {
    farthest(|time, span| time.checked_sub(span))
}

fn last() -> SystemTime {
    farthest(|time, span| time.checked_add(span))
}

#[test]
fn what_has_passed_is_due_now() {
    for at in [first(), SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH - HOUR] {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).build().unwrap();
        let timeout = timer.schedule_wall(at, |_| ()).unwrap();
        assert!(timeout.is_pending(), "never inside the call");
        clock.advance(Duration::ZERO).unwrap();
        assert_eq!(timeout.state(), State::Fired);
        assert_eq!(timer.lateness().max(), Duration::ZERO);
    }
}

#[test]
fn what_never_comes_waits_for_ever() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).build().unwrap();
    let timeout = timer.schedule_wall(last(), |_| ()).unwrap();
    clock.advance(500 * YEAR).unwrap();
    assert!(timeout.is_pending());
    // The engine's time ends before the wall clock's: at its end, the timer is checked, and continues to wait.
    clock.advance(Duration::MAX).unwrap();
    assert!(timeout.is_pending());
    accounted(&timer);
}

#[test]
fn a_wall_clock_at_either_end() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).build().unwrap();
    let timeout = timer.schedule_wall(last(), |_| ()).unwrap();
    clock.set_wall(first()).unwrap();
    assert_eq!(clock.wall_now(), first());
    clock.advance(HOUR).unwrap();
    assert_eq!(clock.wall_now(), first() + HOUR);
    assert!(timeout.is_pending());
    clock.set_wall(last() - SECOND).unwrap();
    clock.advance(SECOND - MS).unwrap();
    assert!(timeout.is_pending());
    clock.advance(MS).unwrap();
    assert_eq!(timeout.state(), State::Fired);
    // There is no later time: the clock stays there.
    clock.advance(HOUR).unwrap();
    assert_eq!(clock.wall_now(), last());
    let late = timer.schedule_wall(last(), |_| ()).unwrap();
    clock.advance(MS).unwrap();
    assert_eq!(late.state(), State::Fired);
}

/// Before 1970 the clock runs forward, too.
#[test]
fn before_1970() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).build().unwrap();
    let moon = SystemTime::UNIX_EPOCH - Duration::from_secs(14_182_940);
    let timeout = timer.schedule_wall(SystemTime::UNIX_EPOCH, |_| ()).unwrap();
    clock.set_wall(moon).unwrap();
    // It was due before the clock was set back, and had not run: it waits again.
    assert_eq!(timeout.remaining(), Some(Duration::from_secs(14_182_940)));
    clock.advance(Duration::from_secs(14_182_939)).unwrap();
    assert!(timeout.is_pending());
    clock.advance(SECOND).unwrap();
    assert_eq!((timeout.state(), clock.wall_now()), (State::Fired, SystemTime::UNIX_EPOCH));
}
