//! Cron, and a wall clock that is set: nothing runs twice, and a setting past several moments runs once for all of
//! them.

use std::thread;
use std::time::SystemTime;

use jiff::{SignedDuration, Timestamp};
use tourbillon::{Context, Cron, Timeout, Timer, VirtualClock};

use crate::common::{HOUR, Log, MS, SECOND, YEAR, accounted};

struct Job {
    timer: Timer,
    clock: VirtualClock,
    timeout: Timeout,
    log: Log<String>,
}

/// The wall clock as `2000-01-01T00:00:00Z`.
fn show(time: SystemTime) -> String {
    Timestamp::try_from(time).unwrap().to_string()
}

impl Job {
    fn new(expression: &str, zone: &str, begin: &str) -> Self {
        let clock = VirtualClock::new();
        clock.set_wall(begin.parse::<Timestamp>().unwrap().into()).unwrap();
        let timer = Timer::builder().clock(&clock).on_driver().shards(4).build().unwrap();
        let log = Log::new();
        let (write, own) = (log.clone(), clock.clone());
        let cron = Cron::parse(expression, zone).unwrap();
        let run = move |context: &Context<'_>| {
            let moment = context.wall_deadline().unwrap();
            assert!(own.wall_now() >= moment, "early by the wall clock");
            write.add(show(moment));
        };
        // Each job is on the shard of another thread.
        let schedule = || timer.schedule_cron(&cron, run).unwrap();
        let timeout = thread::scope(|scope| scope.spawn(schedule).join().unwrap());
        Job { timer, clock, timeout, log }
    }

    fn set(&self, to: &str) -> &Self {
        self.clock.set_wall(to.parse::<Timestamp>().unwrap().into()).unwrap();
        self
    }

    fn step(&self, by: SignedDuration) -> &Self {
        let now = Timestamp::try_from(self.clock.wall_now()).unwrap();
        self.clock.set_wall((now + by).into()).unwrap();
        self
    }

    /// Asserts that exactly these runs took place.
    #[track_caller]
    fn ran(&self, expected: &[&str]) -> &Self {
        assert_eq!(self.log.take(), expected);
        assert_eq!(self.timer.counts().panicked, 0);
        accounted(&self.timer);
        self
    }

    fn pass(&self, time: std::time::Duration) -> &Self {
        self.clock.advance(time).unwrap();
        self
    }

    #[track_caller]
    fn next_is(&self, expected: &str) -> &Self {
        assert_eq!(self.timeout.wall_deadline().map(show).as_deref(), Some(expected));
        self
    }
}

const HOURLY: &str = "0 * * * *";

#[test]
fn an_hour_forward_and_back() {
    let job = Job::new(HOURLY, "UTC", "2025-06-01T08:30:00Z");
    job.pass(HOUR).ran(&["2025-06-01T09:00:00Z"]);
    // At 09:30 the clock is set to 10:30: the run of 10:00 runs now, late by the wall clock.
    job.step(SignedDuration::from_hours(1)).ran(&["2025-06-01T10:00:00Z"]);
    job.next_is("2025-06-01T11:00:00Z");
    // And set back: 10:00 comes a second time, but has run already.
    job.step(SignedDuration::from_hours(-1)).next_is("2025-06-01T11:00:00Z");
    job.pass(HOUR).ran(&[]);
    job.pass(HOUR).ran(&["2025-06-01T11:00:00Z"]);
}

#[test]
fn a_second_forward_and_back() {
    let job = Job::new(HOURLY, "UTC", "2025-06-01T08:59:59.500Z");
    job.step(SignedDuration::from_secs(1)).ran(&["2025-06-01T09:00:00Z"]);
    job.step(SignedDuration::from_secs(-1)).ran(&[]);
    job.pass(SECOND).ran(&[]).next_is("2025-06-01T10:00:00Z");
    // To a millisecond before a run, and past it, repeatedly.
    job.set("2025-06-01T09:59:59.999Z").pass(MS).ran(&["2025-06-01T10:00:00Z"]);
    for _ in 0..100 {
        job.step(SignedDuration::from_millis(-2)).pass(2 * MS);
    }
    job.ran(&[]).next_is("2025-06-01T11:00:00Z");
}

#[test]
fn ten_years_forward_is_one_run() {
    let job = Job::new(HOURLY, "UTC", "2025-06-01T08:30:00Z");
    job.set("2035-06-01T08:30:00Z").ran(&["2025-06-01T09:00:00Z"]);
    job.pass(HOUR).ran(&["2035-06-01T09:00:00Z"]);
}

/// A machine whose clock was ten years ahead, and was corrected after an hour, continues normally.
#[test]
fn ten_years_ahead_for_an_hour() {
    let job = Job::new(HOURLY, "UTC", "2025-06-01T08:30:00Z");
    job.pass(2 * HOUR).ran(&["2025-06-01T09:00:00Z", "2025-06-01T10:00:00Z"]);
    job.set("2035-06-01T10:45:00Z").ran(&["2025-06-01T11:00:00Z"]);
    job.pass(HOUR).ran(&["2035-06-01T11:00:00Z"]);
    job.set("2025-06-01T11:45:00Z").ran(&[]).next_is("2025-06-01T12:00:00Z");
    job.pass(HOUR).ran(&["2025-06-01T12:00:00Z"]);
    // And when that year comes, moments that have run do not run again.
    job.set("2035-06-01T09:30:00Z").ran(&["2025-06-01T13:00:00Z"]);
    job.pass(3 * HOUR).ran(&["2035-06-01T10:00:00Z", "2035-06-01T12:00:00Z"]);
}

/// The clock is set past the last year of the expression by mistake, and set back: the skipped moments have not run, so
/// they run now.
#[test]
fn past_the_last_year_and_back() {
    let job = Job::new("0 0 0 1 * * 2026", "UTC", "2026-03-15T00:00:00Z");
    job.set("2030-01-01T00:00:00Z").ran(&["2026-04-01T00:00:00Z"]);
    assert!(job.timeout.is_pending() && job.timeout.wall_deadline().is_none());
    job.pass(YEAR).set("2031-06-01T00:00:00Z").pass(YEAR).ran(&[]);
    job.set("2026-03-20T00:00:00Z").next_is("2026-05-01T00:00:00Z");
    job.pass(HOUR * 24 * 60).ran(&["2026-05-01T00:00:00Z"]).next_is("2026-06-01T00:00:00Z");
    // It ends by itself.
    job.set("2026-11-15T00:00:00Z").ran(&["2026-06-01T00:00:00Z"]).pass(HOUR * 24 * 60);
    job.ran(&["2026-12-01T00:00:00Z"]);
    assert!(!job.timeout.is_pending());

    // Only the last moment was skipped: it has run, and none is left.
    let job = Job::new("0 0 0 1 * * 2026", "UTC", "2026-11-15T00:00:00Z");
    job.set("2030-01-01T00:00:00Z").ran(&["2026-12-01T00:00:00Z"]);
    assert!(!job.timeout.is_pending());
}

/// Skipped moments run when the clock comes back to them, here the latest first: with the last of them the timer ends,
/// wherever that moment is.
#[test]
fn it_is_over_when_every_moment_has_run() {
    let job = Job::new("0 0 0 1 9-12 * 2026", "UTC", "2026-08-15T00:00:00Z");
    job.set("2030-01-01T00:00:00Z").ran(&["2026-09-01T00:00:00Z"]);
    for (month, before) in [(12, 11), (11, 10), (10, 9)] {
        assert!(job.timeout.is_pending(), "{month} has not run");
        job.set(&format!("2026-{before:02}-15T00:00:00Z")).pass(HOUR * 24 * 20);
        job.ran(&[&format!("2026-{month:02}-01T00:00:00Z")]);
    }
    assert!(!job.timeout.is_pending() && job.timer.is_empty());
}

/// Random settings of the clock over the eight months that the expression names: while the timer is pending, some
/// moment has not run; when all have run, it has ended.
#[test]
fn any_walk_of_the_clock_to_the_end() {
    let day = HOUR * 24;
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let job = Job::new("0 0 0 1 5-12 * 2026", "UTC", "2026-04-15T00:00:00Z");
        let mut seen = std::collections::HashSet::new();
        for _ in 0..400 {
            match random.bool() {
                true => {
                    let first = "2026-04-15T00:00:00Z".parse::<Timestamp>().unwrap();
                    let to = first + SignedDuration::from_hours(24 * random.i64(0..300));
                    job.set(&to.to_string())
                }
                false => job.pass(day * random.u32(0..40)),
            };
            for moment in job.log.take() {
                assert!(seen.insert(moment.clone()), "seed {seed}: {moment} ran twice");
            }
            let is_pending = job.timeout.is_pending();
            assert!(!is_pending || seen.len() < 8, "seed {seed}: pending, and all have run");
            if !is_pending {
                break;
            }
        }
        assert_eq!((job.timeout.is_pending(), job.timer.len()), (false, 0), "seed {seed}");
        accounted(&job.timer);
    }
}

/// A timer that waits for the clock to be set back can be moved and cancelled.
#[test]
fn what_waits_for_the_clock_to_be_set_back_is_a_timer() {
    let clock = VirtualClock::new();
    clock.set_wall("2026-03-15T00:00:00Z".parse::<Timestamp>().unwrap().into()).unwrap();
    let timer = Timer::builder().clock(&clock).on_driver().build().unwrap();
    let cron = Cron::parse("0 0 0 1 * * 2026", "UTC").unwrap();
    let job = timer.schedule_cron(&cron, |_| ()).unwrap();
    clock.set_wall("2030-01-01T00:00:00Z".parse::<Timestamp>().unwrap().into()).unwrap();
    job.reschedule(SECOND).unwrap();
    clock.advance(HOUR).unwrap();
    assert_eq!((timer.counts().fired, job.is_pending()), (2, true));
    assert!(job.cancel());
    accounted(&timer);
}

#[test]
fn what_was_passed_over_comes_again() {
    let job = Job::new(HOURLY, "UTC", "2025-06-01T08:30:00Z");
    job.set("2025-06-01T13:20:00Z").ran(&["2025-06-01T09:00:00Z"]);
    job.pass(HOUR).ran(&["2025-06-01T14:00:00Z"]);
    job.set("2025-06-01T08:30:00Z").next_is("2025-06-01T10:00:00Z");
    job.pass(7 * HOUR).ran(&[
        "2025-06-01T10:00:00Z",
        "2025-06-01T11:00:00Z",
        "2025-06-01T12:00:00Z",
        "2025-06-01T13:00:00Z",
        "2025-06-01T15:00:00Z",
    ]);
}

/// Set back to before the timer was scheduled: the moments there have never run.
#[test]
fn back_to_before_the_beginning_and_before_1970() {
    let job = Job::new(HOURLY, "UTC", "2025-06-01T08:30:00Z");
    job.set("2025-06-01T06:30:00Z").next_is("2025-06-01T07:00:00Z");
    job.pass(HOUR).ran(&["2025-06-01T07:00:00Z"]);
    job.set("1969-12-31T23:30:00Z").next_is("1970-01-01T00:00:00Z");
    job.pass(HOUR).ran(&["1970-01-01T00:00:00Z"]);
    job.set("0000-06-01T00:00:00Z").pass(SECOND).ran(&[]).next_is("0001-01-01T00:00:00Z");
    // The last hour of croner's calendar: no run follows it.
    job.set("4999-12-31T22:30:00Z").ran(&["0001-01-01T00:00:00Z"]);
    job.pass(HOUR).ran(&["4999-12-31T23:00:00Z"]);
    assert!(job.timer.len() <= 1);
}

/// Random settings of the clock: no moment runs twice, none runs early, and each is one that the expression names.
#[test]
fn any_walk_of_the_clock() {
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let job = Job::new("*/10 * * * *", "Europe/Berlin", "2025-03-29T20:00:00Z");
        let mut seen = std::collections::HashSet::new();
        for _ in 0..200 {
            let minutes = random.i64(-200..300);
            match random.bool() {
                true => job.step(SignedDuration::from_mins(minutes)),
                false => job.pass(SECOND * random.u32(0..4000)),
            };
            for moment in job.log.take() {
                assert!(moment.ends_with("0:00Z"), "{moment}");
                assert!(seen.insert(moment.clone()), "seed {seed}: {moment} ran twice");
            }
            let next: Timestamp = job.timeout.wall_deadline().unwrap().try_into().unwrap();
            assert!(!seen.contains(&next.to_string()), "seed {seed}");
            assert!(next > Timestamp::try_from(job.clock.wall_now()).unwrap(), "seed {seed}");
        }
        assert_eq!(job.timer.counts().panicked, 0);
        accounted(&job.timer);
    }
}

/// Through the night in which an hour is missing and the night in which one repeats; the clock is not set.
#[test]
fn a_year_in_berlin() {
    let job = Job::new("30 2 * * *", "Europe/Berlin", "2025-01-01T00:00:00Z");
    job.pass(YEAR);
    let ran = job.log.take();
    assert_eq!(ran.len(), 365);
    assert_eq!(ran[88], "2025-03-30T01:00:00Z", "03:00, for 02:30 does not exist");
    assert_eq!(ran[298], "2025-10-26T00:30:00Z", "the first 02:30");
    assert_eq!(ran[299], "2025-10-27T01:30:00Z");
    assert_eq!(job.timer.counts().fired, 365);
}
