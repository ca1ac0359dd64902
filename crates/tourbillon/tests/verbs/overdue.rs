//! A timer whose deadline has passed when it is armed runs now: a virtual clock never goes back to that deadline.

use std::time::Duration;

use tourbillon::{Builder, Context, Timer, VirtualClock};

use crate::common::{HOUR, Log, SECOND, case};

/// Arms a timer whose deadline was ten seconds after the clock began; it logs when it runs.
type Row = (&'static str, fn(Builder, VirtualClock, Log<Duration>));

/// A callback that logs the clock's time.
fn tells(clock: &VirtualClock, log: &Log<Duration>) -> impl Fn(&Context<'_>) + Send + 'static {
    let (clock, log) = (clock.clone(), log.clone());
    move |context| {
        assert_eq!(context.timer().now(), clock.now());
        log.add(clock.elapsed());
    }
}

fn past(clock: &VirtualClock) -> std::time::Instant {
    clock.now() - clock.elapsed() + SECOND * 10
}

const ROWS: &[Row] = &[
    ("Timer::arm_at", |builder, clock, log| {
        let timer = builder.build().unwrap();
        timer.arm_at(past(&clock), tells(&clock, &log)).unwrap();
        std::mem::forget(timer);
    }),
    ("Timer::schedule_at", |builder, clock, log| {
        let timer = builder.build().unwrap();
        timer.schedule_at(past(&clock), tells(&clock, &log)).unwrap();
        std::mem::forget(timer);
    }),
    ("Timer::schedule_repeating_at", |builder, clock, log| {
        let timer = builder.build().unwrap();
        timer.schedule_repeating_at(past(&clock), tells(&clock, &log)).unwrap();
        std::mem::forget(timer);
    }),
    ("Timer::reschedule_at", |builder, clock, log| {
        let timer = builder.build().unwrap();
        let key = timer.arm(HOUR, tells(&clock, &log)).unwrap();
        timer.reschedule_at(key, past(&clock)).unwrap();
        std::mem::forget(timer);
    }),
    ("Timeout::reschedule_at", |builder, clock, log| {
        let timer = builder.build().unwrap();
        let handle = timer.schedule(HOUR, tells(&clock, &log)).unwrap();
        handle.reschedule_at(past(&clock)).unwrap();
        std::mem::forget(timer);
    }),
    ("Timer::schedule_wall", |builder, clock, log| {
        let timer = builder.build().unwrap();
        timer.schedule_wall(clock.wall_now() - SECOND * 10, tells(&clock, &log)).unwrap();
        std::mem::forget(timer);
    }),
    ("Engine::schedule_at", |builder, clock, log| {
        let (reads, told) = (clock.clone(), log.clone());
        let handler = move |batch: tourbillon::Batch<'_, u32>| {
            batch.for_each(|_| told.add(reads.elapsed()));
        };
        let engine = builder.deliver(handler).unwrap();
        engine.schedule_at(past(&clock), 7).unwrap();
        std::mem::forget(engine);
    }),
    ("DelayQueue::put_at", |builder, clock, log| {
        let queue = builder.queue().unwrap();
        queue.put_at(past(&clock), 7).unwrap();
        std::thread::spawn(move || {
            queue.take().unwrap();
            log.add(clock.elapsed());
        })
        .join()
        .unwrap();
    }),
];

#[test]
fn a_virtual_clock_never_goes_back() {
    for &(verb, arm) in ROWS {
        for by in [Duration::ZERO, SECOND] {
            case(format!("{verb}, advanced by {by:?}"), move || {
                let (clock, log) = (VirtualClock::new(), Log::new());
                let builder = Timer::builder().clock(&clock).shards(1);
                let builder = if verb.starts_with("Time") { builder.on_driver() } else { builder };
                clock.advance(HOUR).unwrap();
                arm(builder, clock.clone(), log.clone());
                assert_eq!(clock.elapsed(), HOUR);
                clock.advance(by).unwrap();
                assert_eq!(log.take(), [HOUR], "it runs now");
                assert_eq!(clock.elapsed(), HOUR + by);
            });
        }
    }
}

/// One event loop lags behind others on its clock: the clock is not set back for the timers that it has yet to run.
#[test]
fn nor_for_a_loop_that_is_late() {
    let (clock, log) = (VirtualClock::new(), Log::new());
    let (timer, mut driver) = Timer::builder().clock(&clock).build_driven().unwrap();
    let other = Timer::builder().clock(&clock).on_driver().build().unwrap();
    timer.arm(SECOND, tells(&clock, &log)).unwrap();
    other.arm(SECOND * 2, tells(&clock, &log)).unwrap();
    clock.advance(HOUR).unwrap();
    assert_eq!((log.take(), clock.elapsed()), (vec![SECOND * 2], HOUR));
    other.arm_at(past(&clock), tells(&clock, &log)).unwrap();
    assert_eq!(driver.turn_within(SECOND).ran, 1);
    clock.advance(Duration::ZERO).unwrap();
    assert_eq!((log.take(), clock.elapsed()), (vec![HOUR; 2], HOUR));
}
