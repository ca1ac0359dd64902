//! The wall clock is set: if it is set past the timer's moment, the timer is due; if it is set back, it waits. It runs
//! once.

use std::time::{Duration, SystemTime};

use tourbillon::{State, Timer, VirtualClock};

use crate::common::{HOUR, Log, MS, PLACES, SECOND, YEAR, accounted, running_on};

const MINUTE: Duration = Duration::from_secs(60);

fn virtual_timer() -> (Timer, VirtualClock) {
    let clock = VirtualClock::new();
    (Timer::builder().clock(&clock).on_driver().shards(1).build().unwrap(), clock)
}

#[test]
fn a_virtual_wall_clock_begins_with_2000_and_moves_with_time() {
    let clock = VirtualClock::new();
    let begin = SystemTime::UNIX_EPOCH + Duration::from_secs(946_684_800);
    assert_eq!(clock.wall_now(), begin);
    clock.advance(HOUR).unwrap();
    assert_eq!(clock.wall_now(), begin + HOUR);
    clock.set_wall(begin).unwrap();
    assert_eq!((clock.wall_now(), clock.elapsed()), (begin, HOUR), "no time has passed");
    clock.advance(MS).unwrap();
    assert_eq!(clock.wall_now(), begin + MS);
}

#[test]
fn it_runs_when_the_clock_shows_its_moment() {
    for place in PLACES {
        let clock = VirtualClock::new();
        let timer = running_on(place).clock(&clock).build().unwrap();
        let (log, at) = (Log::new(), clock.wall_now() + HOUR);
        let (write, own) = (log.clone(), clock.clone());
        let timeout = timer.schedule_wall(at, move |context| {
            assert_eq!(context.lateness(), Duration::ZERO);
            write.add((context.wall_deadline(), own.wall_now()));
        });
        let timeout = timeout.unwrap();
        assert_eq!(timeout.wall_deadline(), Some(at));
        assert_eq!(timeout.deadline(), Some(timer.now() + HOUR));
        clock.advance(HOUR - Duration::from_nanos(1)).unwrap();
        assert!(timeout.is_pending(), "{place}");
        clock.advance(Duration::from_nanos(1)).unwrap();
        assert_eq!(log.take(), [(Some(at), at)], "{place}");
        assert_eq!((timeout.state(), timeout.wall_deadline()), (State::Fired, None));
        accounted(&timer);
    }
}

/// A timer two hours away, and a clock that is set after half an hour: how long the timer then takes to run.
#[test]
fn set_forward_and_back() {
    let left = HOUR + 30 * MINUTE;
    for (forward, step, expected) in [
        (true, HOUR, 30 * MINUTE),
        (false, HOUR, 2 * HOUR + 30 * MINUTE),
        (true, SECOND, left - SECOND),
        (false, SECOND, left + SECOND),
        (true, MS, left - MS),
        (false, MS, left + MS),
        (true, left, Duration::ZERO),
        (true, left - MS, MS),
        (true, 10 * YEAR, Duration::ZERO),
        (false, 10 * YEAR, 10 * YEAR + left),
        // To before 1970, and to the year 12000.
        (false, 100 * YEAR, 100 * YEAR + left),
        (true, 10_000 * YEAR, Duration::ZERO),
    ] {
        let (timer, clock) = virtual_timer();
        let at = clock.wall_now() + 2 * HOUR;
        let own = clock.clone();
        let timeout = timer.schedule_wall(at, move |context| {
            assert!(own.wall_now() >= at);
            assert_eq!(context.lateness(), Duration::ZERO, "late since the clock was set");
        });
        let timeout = timeout.unwrap();
        clock.advance(30 * MINUTE).unwrap();
        let now = clock.wall_now();
        clock.set_wall(if forward { now + step } else { now - step }).unwrap();
        let what = format!("set by {step:?}, forward: {forward}");
        if let Some(almost) = expected.checked_sub(Duration::from_nanos(1)) {
            assert!(timeout.is_pending(), "{what}");
            assert_eq!(timeout.remaining(), Some(expected), "{what}");
            clock.advance(almost).unwrap();
            assert!(timeout.is_pending(), "{what}: early");
            clock.advance(Duration::from_nanos(1)).unwrap();
        }
        assert_eq!((timeout.state(), timer.counts().panicked), (State::Fired, 0), "{what}");
        // Nothing more, even when the moment comes again.
        clock.set_wall(at - SECOND).unwrap();
        clock.advance(HOUR).unwrap();
        let counts = timer.counts();
        assert_eq!((counts.armed, counts.fired), (1, 1), "{what}: a look is no arming");
        accounted(&timer);
    }
}

/// Timers that become due by one setting run in the order of their moments, whatever the order in which they were
/// armed.
#[test]
fn what_is_due_by_one_setting_runs_in_order() {
    let (timer, clock) = virtual_timer();
    let log = Log::new();
    let begin = clock.wall_now();
    for hours in [3, 1, 4, 2, 5] {
        let write = log.clone();
        timer.schedule_wall(begin + HOUR * hours, move |_| write.add(hours)).unwrap();
    }
    clock.set_wall(begin + 4 * HOUR).unwrap();
    assert_eq!(log.take(), [1, 2, 3, 4]);
    clock.set_wall(begin).unwrap();
    clock.advance(5 * HOUR - MS).unwrap();
    assert_eq!(log.len(), 0);
    clock.advance(MS).unwrap();
    assert_eq!(log.take(), [5]);
}

/// Timers at random moments, and a clock that advances and is set at random: each runs once, at the first tick at which
/// the wall clock shows its moment or a later one.
#[test]
fn any_walk_of_the_clock() {
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (timer, clock) = virtual_timer();
        let begin = clock.wall_now();
        let log = Log::new();
        // The waiting timers, by number, with their moments.
        let mut waiting: Vec<(usize, SystemTime)> = Vec::new();
        for step in 0..300 {
            let span = MS * random.u32(0..20) * [1, 1000, 1_000_000][random.usize(0..3)];
            let before = clock.wall_now();
            match random.u32(0..10) {
                0..4 => {
                    let at = if random.bool() { before + span } else { before - span };
                    let (write, own) = (log.clone(), clock.clone());
                    let callback =
                        move |_: &tourbillon::Context<'_>| write.add((step, own.wall_now()));
                    timer.schedule_wall(at, callback).unwrap();
                    waiting.push((step, at));
                    continue;
                }
                4..7 => clock.advance(span).unwrap(),
                7 => clock.set_wall(before + span).unwrap(),
                8 => clock.set_wall(before - span).unwrap(),
                _ => clock.set_wall(begin).unwrap(),
            }
            let now = clock.wall_now();
            // An advance passes all moments on the way; a setting only reaches its end.
            let (due, later): (Vec<_>, Vec<_>) =
                waiting.into_iter().partition(|&(_, at)| at <= now);
            let mut ran = log.take();
            ran.sort_unstable();
            let numbers =
                |list: &[(usize, SystemTime)]| list.iter().map(|&(n, _)| n).collect::<Vec<_>>();
            assert_eq!(numbers(&ran), numbers(&due), "seed {seed}, step {step}");
            let early = ran.iter().zip(&due).any(|((_, shown), (_, at))| shown < at);
            assert!(!early, "seed {seed}: early by the wall clock");
            waiting = later;
        }
        assert_eq!(timer.len(), waiting.len());
        accounted(&timer);
    }
}

/// Timers of two engines on one clock, and ordinary timers beside them, which are not affected.
#[test]
fn every_engine_of_the_clock_is_told() {
    let clock = VirtualClock::new();
    let timers: Vec<Timer> =
        (0..2).map(|_| Timer::builder().clock(&clock).build().unwrap()).collect();
    let at = clock.wall_now() + HOUR;
    let all: Vec<_> = timers.iter().map(|timer| timer.schedule_wall(at, |_| ()).unwrap()).collect();
    let ordinary = timers[0].schedule(HOUR, |_| ()).unwrap();
    clock.set_wall(at).unwrap();
    assert!(all.iter().all(|timeout| timeout.state() == State::Fired));
    assert!(ordinary.is_pending());
    assert_eq!(ordinary.remaining(), Some(HOUR));
}

#[test]
fn a_callback_cannot_set_the_clock_that_runs_it() {
    let (timer, clock) = virtual_timer();
    let own = clock.clone();
    let at = clock.wall_now() + SECOND;
    timer
        .schedule_wall(at, move |_| {
            assert!(own.set_wall(at + HOUR).is_err());
            assert_eq!(own.wall_now(), at);
        })
        .unwrap();
    clock.advance(SECOND).unwrap();
    assert_eq!((timer.counts().fired, timer.counts().panicked), (1, 0));
}

#[test]
fn timers_for_one_moment_run_in_the_same_order_every_time() {
    let order = || {
        let (timer, clock) = virtual_timer();
        let (log, at) = (Log::new(), clock.wall_now() + HOUR);
        for n in 0..100 {
            let write = log.clone();
            timer.schedule_wall(at, move |_| write.add(n)).unwrap();
        }
        clock.set_wall(at).unwrap();
        clock.advance(MS).unwrap();
        log.take()
    };
    let first = order();
    assert_eq!(first.len(), 100);
    assert!((0..5).all(|_| order() == first));
}
