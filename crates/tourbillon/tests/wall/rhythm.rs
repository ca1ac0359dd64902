//! `schedule_wall_every`: a rhythm of the wall clock, which is set meanwhile. No moment runs twice, a setting past
//! several moments runs once, and skipped moments run when the clock comes back to them.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use tourbillon::{Timeout, Timer, VirtualClock};

use crate::common::{HOUR, Log, MS, SECOND, YEAR, accounted};

struct Rhythm {
    timer: Timer,
    clock: VirtualClock,
    timeout: Timeout,
    begin: SystemTime,
    log: Log<u64>,
}

/// Runs whenever the clock shows `first` seconds or a multiple of `period` seconds after that.
fn rhythm(first: u64, period: u64) -> Rhythm {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).on_driver().build().unwrap();
    let (begin, log) = (clock.wall_now(), Log::new());
    let (write, own) = (log.clone(), clock.clone());
    let callback = move |context: &tourbillon::Context<'_>| {
        let moment = context.wall_deadline().unwrap();
        assert!(own.wall_now() >= moment, "early by the wall clock");
        write.add(moment.duration_since(begin).unwrap().as_secs());
    };
    let first = begin + SECOND * first as u32;
    let timeout = timer.schedule_wall_every(first, SECOND * period as u32, callback).unwrap();
    Rhythm { timer, clock, timeout, begin, log }
}

impl Rhythm {
    #[track_caller]
    fn pass(&self, seconds: u32, expected: &[u64]) -> &Self {
        self.clock.advance(SECOND * seconds).unwrap();
        self.ran(expected)
    }

    #[track_caller]
    fn set(&self, seconds: u32, expected: &[u64]) -> &Self {
        self.clock.set_wall(self.begin + SECOND * seconds).unwrap();
        self.ran(expected)
    }

    #[track_caller]
    fn ran(&self, expected: &[u64]) -> &Self {
        assert_eq!(self.log.take(), expected);
        assert_eq!(self.timer.counts().panicked, 0);
        accounted(&self.timer);
        self
    }

    #[track_caller]
    fn next_is(&self, seconds: u32) -> &Self {
        assert_eq!(self.timeout.wall_deadline(), Some(self.begin + SECOND * seconds));
        self
    }
}

#[test]
fn it_runs_at_its_first_moment_and_in_its_period() {
    rhythm(0, 10).pass(0, &[0]).pass(25, &[10, 20]).next_is(30);
    rhythm(7, 10).pass(6, &[]).pass(1, &[7]).pass(30, &[17, 27, 37]);
}

#[test]
fn no_moment_runs_twice_and_what_was_passed_over_comes_again() {
    let beat = rhythm(10, 10);
    beat.pass(15, &[10]);
    // 20, 30 and 40 are skipped: one run, for the first of them.
    beat.set(45, &[20]).next_is(50);
    beat.pass(5, &[50]);
    beat.set(5, &[]).next_is(30);
    beat.pass(60, &[30, 40, 60]);
    assert!(beat.timeout.cancel());
    beat.pass(60, &[]);
}

#[test]
fn a_first_moment_that_has_passed_is_due_now_and_once() {
    for late in [Duration::from_nanos(1), SECOND * 25, HOUR] {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).on_driver().build().unwrap();
        clock.advance(HOUR).unwrap();
        let first = clock.wall_now() - late;
        let beat = timer.schedule_wall_every(first, SECOND * 10, |_| ()).unwrap();
        clock.advance(MS).unwrap();
        assert_eq!(timer.counts().fired, 1, "{late:?}");
        let next = beat.wall_deadline().unwrap();
        let periods = next.duration_since(first).unwrap().as_secs_f64() / 10.0;
        assert_eq!(periods, (late + MS).as_secs_f64().div_euclid(10.0) + 1.0, "{late:?}");
    }
}

/// A machine whose clock begins ten years ahead, and is corrected after some runs, continues normally.
#[test]
fn a_rhythm_of_long_ago_follows_a_clock_that_is_put_right() {
    for runs in 1..4 {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).on_driver().build().unwrap();
        let right = clock.wall_now();
        clock.set_wall(right + 10 * YEAR).unwrap();
        let first = SystemTime::UNIX_EPOCH;
        let beat = timer.schedule_wall_every(first, SECOND * 10, |_| ()).unwrap();
        clock.advance(SECOND * 10 * (runs - 1)).unwrap();
        assert_eq!(timer.counts().fired, u64::from(runs));
        clock.set_wall(right + SECOND).unwrap();
        assert_eq!(beat.wall_deadline(), Some(right + SECOND * 10), "after {runs}");
        clock.advance(SECOND * 30).unwrap();
        assert_eq!(timer.counts().fired, u64::from(runs) + 3);
    }
}

#[test]
fn a_clock_that_is_set_back_onto_a_moment_shows_it() {
    let beat = rhythm(10, 10);
    beat.pass(15, &[10]).set(45, &[20]).set(30, &[30]).next_is(40);
    // A moment that has run does not run again.
    beat.set(20, &[]).next_is(40).pass(40, &[40, 50, 60]);
}

#[test]
fn a_period_of_nothing_is_a_tick_and_the_end_of_time_is_no_moment() {
    for period in [Duration::ZERO, Duration::from_nanos(1), MS] {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).on_driver().build().unwrap();
        let beat = timer.schedule_wall_every(clock.wall_now(), period, |_| ()).unwrap();
        clock.advance(MS * 5).unwrap();
        assert_eq!(timer.counts().fired, 6, "{period:?}");
        assert!(beat.cancel());
    }
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).on_driver().build().unwrap();
    // A second run is impossible: the timer has ended.
    let once = timer.schedule_wall_every(clock.wall_now() + HOUR, Duration::MAX, |_| ()).unwrap();
    clock.advance(HOUR * 2).unwrap();
    assert_eq!((once.is_pending(), timer.counts().fired), (false, 1));
    accounted(&timer);
}

/// The next run is the first moment from now on that has not run; a setting past it runs it, and none of the others.
#[test]
fn a_random_life_of_a_rhythm_is_that_of_the_model() {
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (first, period) = (1000 + random.u64(0..20), 1 + random.u64(0..20));
        let beat = rhythm(first, period);
        // Moments by their index.
        let (mut ran, mut now, mut next) = (BTreeSet::new(), 0, 0);
        let after = |ran: &BTreeSet<u64>, now: u64| {
            let from = now.saturating_sub(first).div_ceil(period);
            (from..).find(|number| !ran.contains(number)).unwrap()
        };
        let mut set = 0;
        for _ in 0..40 {
            let mut expected = Vec::new();
            let mut run = |ran: &mut BTreeSet<u64>, next: u64| {
                assert!(ran.insert(next), "not twice");
                expected.push(first + period * next);
            };
            // Only a limited number of settings is remembered.
            let sets = set < 6 && random.u32(0..3) == 0;
            if sets {
                set += 1;
                let to = 900 + random.u64(0..300);
                let back = to < now;
                now = to;
                if back {
                    next = after(&ran, now);
                }
                if first + period * next <= now {
                    run(&mut ran, next);
                    next = after(&ran, now + 1);
                }
                beat.clock.set_wall(beat.begin + SECOND * now as u32).unwrap();
                // What is due runs with the next advance.
                beat.clock.advance(Duration::ZERO).unwrap();
            } else {
                let by = random.u64(0..30);
                now += by;
                while first + period * next <= now {
                    run(&mut ran, next);
                    next = after(&ran, first + period * next);
                }
                beat.clock.advance(SECOND * by as u32).unwrap();
            }
            assert_eq!(beat.log.take(), expected, "seed {seed}");
            beat.next_is((first + period * next) as u32);
        }
        accounted(&beat.timer);
    }
}
