//! `Interval`: ticks that do not drift, and what happens to missed ticks.

use std::task::Poll;
use std::time::Duration;

use tourbillon::Missed;
use tourbillon::tasks::{self, Interval};
use tourbillon::{Timer, VirtualClock};

use crate::by_hand::{Task, timer};
use crate::common::{HOUR, MS, SECOND};

/// For the next ticks, the seconds at which they are taken and were due.
fn ticks(
    clock: &VirtualClock,
    interval: &mut Interval<tasks::Given>,
    count: usize,
) -> Vec<(u64, u64)> {
    let begin = clock.now() - clock.elapsed();
    let tick = |_| {
        let due = tasks::block_on(clock, interval.tick()).unwrap().unwrap();
        (clock.elapsed().as_secs(), (due - begin).as_secs())
    };
    (0..count).map(tick).collect()
}

#[test]
fn it_ticks_at_once_and_then_every_period() {
    let (timer, clock) = timer();
    clock.advance(SECOND).unwrap();
    let mut interval = timer.interval(10 * SECOND);
    assert_eq!(ticks(&clock, &mut interval, 3), [(1, 1), (11, 11), (21, 21)]);
    let mut later = timer.interval_at(clock.now() + 4 * SECOND, 10 * SECOND);
    assert_eq!(ticks(&clock, &mut later, 2), [(25, 25), (35, 35)]);
}

/// An interval that began before the engine was created keeps its phase.
#[test]
fn it_may_have_begun_long_ago() {
    for (missed, expected) in [
        (Missed::Burst, [(0, -25), (0, -15), (0, -5), (5, 5)]),
        (Missed::Skip, [(0, -25), (5, 5), (15, 15), (25, 25)]),
        (Missed::Delay, [(0, -25), (10, 10), (20, 20), (30, 30)]),
    ] {
        let (timer, clock) = timer();
        let begin = clock.now();
        let first = begin - 25 * SECOND;
        let mut interval = timer.interval_at(first, 10 * SECOND).missed(missed);
        for (at, due) in expected {
            let tick = tasks::block_on(&clock, interval.tick()).unwrap().unwrap();
            let since = (tick - first).as_secs() as i64 - 25;
            assert_eq!((clock.elapsed().as_secs(), since), (at, due), "{missed:?}");
        }
    }
}

#[test]
fn missed_ticks() {
    for (missed, expected) in [
        (Missed::Burst, [(35, 10), (35, 20), (35, 30), (40, 40)]),
        (Missed::Skip, [(35, 10), (40, 40), (50, 50), (60, 60)]),
        (Missed::Delay, [(35, 10), (45, 45), (55, 55), (65, 65)]),
    ] {
        let (timer, clock) = timer();
        let mut interval = timer.interval(10 * SECOND).missed(missed);
        assert_eq!(ticks(&clock, &mut interval, 1), [(0, 0)]);
        clock.advance(35 * SECOND).unwrap();
        assert_eq!(ticks(&clock, &mut interval, 4), expected, "{missed:?}");
    }
}

/// Two ticks are at least a period apart, even if the first was late.
#[test]
fn a_late_tick_shifts_the_rhythm_of_delay() {
    for (missed, expected) in [
        (Missed::Burst, [(16, 10), (20, 20), (30, 30)]),
        (Missed::Skip, [(16, 10), (20, 20), (30, 30)]),
        (Missed::Delay, [(16, 10), (26, 26), (36, 36)]),
    ] {
        let (timer, clock) = timer();
        let mut interval = timer.interval(10 * SECOND).missed(missed);
        assert_eq!(ticks(&clock, &mut interval, 1), [(0, 0)]);
        clock.advance(16 * SECOND).unwrap();
        assert_eq!(ticks(&clock, &mut interval, 3), expected, "{missed:?}");
    }
}

/// With a backlog it yields 128 ticks, and then lets other tasks run: it is pending once, with its task woken.
#[test]
fn a_backlog_lets_others_run() {
    let (timer, clock) = timer();
    let mut interval = timer.interval(SECOND);
    clock.advance(1000 * SECOND).unwrap();
    let task = Task::new();
    for _ in 0..3 {
        for n in 0..128 {
            assert!(task.poll(&mut Box::pin(interval.tick())).is_ready(), "{n}");
        }
        assert_eq!(task.wakes(), 0);
        assert!(task.poll(&mut Box::pin(interval.tick())).is_pending());
        assert_eq!(task.wakes(), 1);
    }
}

#[test]
fn resets() {
    let (timer, clock) = timer();
    let mut interval = timer.interval(10 * SECOND);
    assert_eq!(ticks(&clock, &mut interval, 1), [(0, 0)]);
    clock.advance(7 * SECOND).unwrap();
    interval.reset();
    assert_eq!(ticks(&clock, &mut interval, 2), [(17, 17), (27, 27)]);
    interval.reset_after(SECOND);
    assert_eq!(ticks(&clock, &mut interval, 2), [(28, 28), (38, 38)]);
    interval.reset_at(clock.now());
    assert_eq!(ticks(&clock, &mut interval, 2), [(38, 38), (48, 48)]);
}

#[test]
fn a_tick_that_is_not_waited_for_is_not_lost() {
    let (timer, clock) = timer();
    let mut interval = timer.interval(10 * SECOND);
    assert_eq!(ticks(&clock, &mut interval, 1), [(0, 0)]);
    let task = Task::new();
    for _ in 0..3 {
        let mut tick = Box::pin(interval.tick());
        assert!(task.poll(&mut tick).is_pending());
        drop(tick);
    }
    clock.advance(10 * SECOND).unwrap();
    assert_eq!(task.wakes(), 1);
    assert_eq!(ticks(&clock, &mut interval, 1), [(10, 10)]);
}

#[test]
fn odd_periods() {
    let clock = VirtualClock::new();
    let timer = Timer::builder().tick(5 * MS).clock(&clock).build().unwrap();
    let mut none = timer.interval(Duration::ZERO);
    assert_eq!(none.period(), 5 * MS, "a tick");
    for _ in 0..4 {
        tasks::block_on(&clock, none.tick()).unwrap().unwrap();
    }
    assert_eq!(clock.elapsed(), 15 * MS);
    // The second tick and all others are at the end of time.
    let mut longest = timer.interval(Duration::MAX).missed(Missed::Skip);
    tasks::block_on(&clock, longest.tick()).unwrap().unwrap();
    let task = Task::new();
    assert!(task.poll_fn(|context| longest.poll_tick(context)).is_pending());
    clock.advance(HOUR).unwrap();
    assert!(task.poll_fn(|context| longest.poll_tick(context)).is_pending());
    longest.reset_at(clock.now());
    assert!(matches!(task.poll_fn(|context| longest.poll_tick(context)), Poll::Ready(Ok(_))));
}
