//! When a timer runs: never before its deadline, at its tick, for any delay, and never inside the call that arms it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use crate::common::{
    HOUR, HandClock, Log, MS, PLACES, SECOND, YEAR, accounted, eventually, running_on, virtual_on,
};
use tourbillon::{BootClock, State, Timer, VirtualClock};

#[test]
fn zero_and_past_deadlines_run_but_not_inside_the_call() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        clock.advance(HOUR).unwrap();
        let log = Log::new();
        let past = clock.now() - SECOND;
        let (a, b, c, d) = (log.clone(), log.clone(), log.clone(), log.clone());
        let zero = timer.schedule(Duration::ZERO, move |_| a.add("zero")).unwrap();
        timer.arm(Duration::ZERO, move |_| b.add("zero by key")).unwrap();
        timer.schedule_at(past, move |_| c.add("past")).unwrap();
        timer.arm_at(past - 2 * HOUR, move |_| d.add("before the clock began")).unwrap();
        assert_eq!((log.len(), timer.len()), (0, 4), "{place}");
        assert_eq!(zero.state(), State::Pending);
        assert_eq!(zero.remaining(), Some(Duration::ZERO));
        clock.advance(Duration::ZERO).unwrap();
        assert_eq!(log.len(), 4, "{place}");
        assert_eq!(clock.elapsed(), HOUR);
        accounted(&timer);
    }
}

/// A deadline before the engine was created is kept as it is: reported deadline and lateness are true.
#[test]
fn a_moment_before_the_engine_was_made_keeps_its_distance() {
    let clock = VirtualClock::new();
    let builders = [
        ("system", Timer::builder()),
        ("boot", Timer::builder().clock(BootClock)),
        ("virtual", Timer::builder().clock(&clock)),
        ("own", Timer::builder().clock(HandClock::new())),
    ];
    for (name, builder) in builders {
        let timer = builder.on_driver().build().unwrap();
        let log = Log::new();
        let now = timer.now();
        for ago in [300 * SECOND, HOUR, 10 * YEAR] {
            let (told, at) = (log.clone(), now - ago);
            timer
                .schedule_at(at, move |run| told.add((run.deadline() == at, run.lateness() >= ago)))
                .unwrap();
        }
        let told = log.clone();
        let mut left = 2;
        let at = now - 300 * SECOND;
        timer
            .schedule_repeating_at(at, move |run| {
                let at = at + (2 - left) * SECOND;
                told.add((run.deadline() == at, run.lateness() >= 290 * SECOND));
                left -= 1;
                if left > 0 {
                    run.again_at(run.deadline() + SECOND);
                }
            })
            .unwrap();
        let _ = clock.advance(Duration::ZERO);
        eventually(|| log.len() == 5);
        assert_eq!(log.take(), [(true, true); 5], "{name}");
    }
    let engine = Timer::builder().clock(&clock).queue().unwrap();
    engine.put_at(clock.now() - HOUR, 1).unwrap();
    let [fired] = &engine.close()[..] else { panic!("it is there") };
    assert_eq!(fired.deadline(), clock.now() - HOUR);
}

/// Real time, a few milliseconds: the driver's thread may be faster than the return from `schedule`, and even then the
/// callback runs on another thread.
#[test]
fn a_callback_never_runs_on_the_thread_that_schedules() {
    for place in PLACES {
        let timer = running_on(place).build().unwrap();
        let me = thread::current().id();
        let log = Log::new();
        for n in 0..200 {
            let log = log.clone();
            let after = if n % 2 == 0 { Duration::ZERO } else { Duration::from_nanos(1) };
            timer.schedule(after, move |_| log.add(thread::current().id())).unwrap();
        }
        crate::common::eventually(|| log.len() == 200);
        assert!(log.take().iter().all(|&thread| thread != me), "{place}");
    }
}

#[test]
fn the_greatest_delays_never_fire_and_never_panic() {
    for tick in [Duration::from_nanos(1), MS, HOUR, Duration::MAX] {
        crate::common::within(move || {
            let clock = VirtualClock::new();
            let timer = Timer::builder().clock(&clock).tick(tick).build().unwrap();
            let fired = Arc::new(AtomicBool::new(false));
            let told = fired.clone();
            let never = timer.schedule(Duration::MAX, move |_| told.store(true, SeqCst)).unwrap();
            let seconds = timer.schedule(Duration::from_secs(u64::MAX), |_| ()).unwrap();
            clock.advance(100 * YEAR).unwrap();
            assert!(never.is_pending() && seconds.is_pending(), "{tick:?}");
            assert!(never.remaining().unwrap() > 400 * YEAR);
            never.reschedule(Duration::MAX).unwrap();
            never.reschedule_at(never.deadline().unwrap()).unwrap();
            assert!(!fired.load(SeqCst));
            assert!(never.cancel() && seconds.cancel());
            accounted(&timer);
        });
    }
}

#[test]
fn the_end_of_time_can_be_reached() {
    for tick in [Duration::from_nanos(1), MS, YEAR] {
        crate::common::within(move || {
            let clock = VirtualClock::new();
            let timer = Timer::builder().clock(&clock).tick(tick).build().unwrap();
            timer.schedule(Duration::MAX, |_| ()).unwrap();
            timer.schedule(511 * YEAR, |_| ()).unwrap();
            while clock.advance_to_next().unwrap() {}
            clock.advance(Duration::MAX).unwrap();
            clock.advance(Duration::MAX).unwrap();
            assert_eq!(timer.counts().fired, 1 + u64::from(tick == Duration::from_nanos(1)));
            // A timer that is armed at the end of time is still counted, and can be cancelled.
            let late = timer.schedule(SECOND, |_| ()).unwrap();
            assert!(late.cancel());
            accounted(&timer);
        });
    }
}

/// Random deadlines near edge cases: every timer runs at the first tick that is not before its deadline.
#[test]
fn each_runs_at_the_first_tick_that_is_not_before_its_deadline() {
    let mut random = fastrand::Rng::with_seed(1);
    for (tick, geometry) in
        [(1, vec![64]), (1_000, vec![256]), (1_000_000, vec![20]), (7, vec![60, 60, 24])]
    {
        let clock = VirtualClock::new();
        let builder = Timer::builder().clock(&clock).tick(Duration::from_nanos(tick));
        let timer = builder.hierarchical(&geometry).on_driver().build().unwrap();
        let log = Log::new();
        clock.advance(Duration::from_nanos(random.u64(0..1 << 40))).unwrap();
        for n in 0..2000_u64 {
            let edge = 1_u64 << random.u32(0..45);
            let delay = edge.saturating_add(random.u64(0..9)).saturating_sub(4);
            let deadline = clock.elapsed().as_nanos() as u64 + delay;
            let (log, read) = (log.clone(), clock.clone());
            let run = move |context: &tourbillon::Context<'_>| {
                let now = read.elapsed().as_nanos() as u64;
                log.add((deadline, now, context.lateness().as_nanos() as u64));
            };
            timer.schedule(Duration::from_nanos(delay), run).unwrap();
            if n % 100 == 99 {
                clock.advance(Duration::from_nanos(1 << random.u32(0..30))).unwrap();
            }
        }
        while clock.advance_to_next().unwrap() {}
        let ran = log.take();
        assert_eq!(ran.len(), 2000);
        for (deadline, now, lateness) in ran {
            assert_eq!(
                now,
                deadline.div_ceil(tick) * tick,
                "due at {deadline}, with a tick of {tick}"
            );
            assert_eq!(lateness, now - deadline);
        }
        assert_eq!(timer.lateness().count(), 2000);
        assert!(timer.lateness().max() < Duration::from_nanos(tick));
    }
}

#[test]
fn reschedule_moves_to_earlier_and_to_later() {
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let log = Log::new();
        let at = |name: &'static str| {
            let (log, clock) = (log.clone(), clock.clone());
            move |_: &tourbillon::Context<'_>| log.add((name, clock.elapsed()))
        };
        let sooner = timer.schedule(HOUR, at("sooner")).unwrap();
        let later = timer.schedule(SECOND, at("later")).unwrap();
        let key = timer.arm(SECOND, at("by key")).unwrap();
        sooner.reschedule(2 * SECOND).unwrap();
        later.reschedule(4 * SECOND).unwrap();
        timer.reschedule(key, 3 * SECOND).unwrap();
        assert_eq!(sooner.deadline(), Some(clock.now() + 2 * SECOND));
        assert_eq!(timer.deadline(key), Some(clock.now() + 3 * SECOND));
        clock.advance(SECOND).unwrap();
        assert_eq!(sooner.remaining(), Some(SECOND));
        clock.advance(HOUR).unwrap();
        let expected = [("sooner", 2 * SECOND), ("by key", 3 * SECOND), ("later", 4 * SECOND)];
        assert_eq!(log.take(), expected, "{place}");
        assert!(sooner.reschedule(SECOND).is_err() && timer.reschedule(key, SECOND).is_err());
    }
}
