//! A clock that really sleeps until the requested time, and jumps meanwhile: no face is early, and none misses a jump
//! that the clock announces.
//!
//! In real time, some milliseconds: with a clock set by hand the driver would read it all the time, and the engine's
//! knowledge of the time would never be outdated.

use std::thread;
use std::time::{Duration, Instant};

use crate::common::faces::{Arm, FACES};
use crate::common::jumping::JumpingClock;
use crate::common::{HOUR, Log, MS, PLACES, SECOND, YEAR, becomes, running_on};
use tourbillon::{Builder, Clock, Timer};

/// A face on the clock, and for each event how late it was: `None` if it was early.
struct Watched {
    name: String,
    arm: Arm,
    clock: JumpingClock,
    happened: Log<Option<Duration>>,
}

/// Every face, in every place where its callbacks can run.
struct All(Vec<Watched>);

impl All {
    fn on(clock: &JumpingClock) -> Self {
        All::with(clock, |builder, clock| builder.clock(clock))
    }

    fn with(clock: &JumpingClock, set: fn(Builder, JumpingClock) -> Builder) -> Self {
        let mut all = Vec::new();
        for face in FACES {
            for place in if face.callbacks { &PLACES[..] } else { &PLACES[..1] } {
                let builder = if face.callbacks { running_on(place) } else { Timer::builder() };
                all.push(Watched {
                    name: format!("{}, {place}", face.name),
                    arm: (face.open)(set(builder, clock.clone())),
                    clock: clock.clone(),
                    happened: Log::new(),
                });
            }
        }
        All(all)
    }

    fn arm(&self, after: Duration) {
        for face in &self.0 {
            let (clock, happened) = (face.clock.clone(), face.happened.clone());
            let deadline = clock.now() + after;
            let happen = move || happened.add(clock.now().checked_duration_since(deadline));
            (face.arm)(after, Box::new(happen));
        }
    }

    /// Asserts that each face has had this many events since the last call, none of them early.
    #[track_caller]
    fn happen(&self, count: usize) {
        for face in &self.0 {
            assert!(becomes(|| face.happened.len() >= count), "{}: it never happens", face.name);
            let late = face.happened.take();
            assert_eq!(late.len(), count, "{}: {late:?}", face.name);
            assert!(late.iter().all(Option::is_some), "{}: early, {late:?}", face.name);
        }
    }

    /// Asserts that nothing happens for a while.
    #[track_caller]
    fn nothing_happens(&self) {
        self.nothing_happens_for(40 * MS);
    }

    #[track_caller]
    fn nothing_happens_for(&self, time: Duration) {
        thread::sleep(time);
        let happened = self.0.iter().filter(|face| face.happened.len() > 0);
        let names: Vec<&str> = happened.map(|face| &*face.name).collect();
        assert!(names.is_empty(), "happened before its time: {names:?}");
    }
}

/// What the faces have done before the clock jumps.
type Before = (&'static str, fn(&All));

const BEFORE: [Before; 3] = [
    ("nothing was ever armed", |_| ()),
    ("nothing is pending", |all| {
        all.arm(MS);
        all.happen(1);
    }),
    ("something waits for later", |all| {
        all.arm(MS);
        all.arm(1000 * HOUR);
        all.happen(1);
    }),
];

/// The clock has jumped an hour, silently: a new timer counts from the new time.
#[test]
fn a_timer_counts_from_the_time_at_which_it_is_armed() {
    for (case, before) in BEFORE {
        println!("{case}");
        let clock = JumpingClock::new();
        let all = All::on(&clock);
        before(&all);
        clock.jump_silently(HOUR);
        all.arm(HOUR);
        all.nothing_happens();
        all.arm(20 * MS);
        all.happen(1);
        clock.jump(HOUR);
        all.happen(1);
        // Again, by a time that no thread has read yet.
        clock.jump_silently(100 * MS);
        all.arm(100 * MS);
        all.happen(1);
    }
}

/// How far the clock has advanced when it goes back by an hour: to before the engine was created, and not.
const AHEAD: [Duration; 2] = [Duration::ZERO, Duration::from_secs(36_000)];

/// The clock goes back before a timer is armed: the timer fires when the clock has reached its deadline, or later.
#[test]
fn a_clock_that_has_gone_back_makes_nothing_early() {
    for (case, before) in BEFORE {
        for ahead in AHEAD {
            println!("{case}, {ahead:?} ahead");
            let clock = JumpingClock::new();
            let all = All::on(&clock);
            clock.jump(ahead);
            before(&all);
            clock.back(HOUR);
            all.arm(SECOND);
            all.nothing_happens();
            // A zero delay makes the sleeping thread read the clock. It may have to wait until the clock is back at its
            // tick.
            all.arm(Duration::ZERO);
            thread::sleep(40 * MS);
            clock.jump(HOUR + 2 * SECOND);
            all.happen(2);
        }
    }
}

/// The clock goes back during a wait: the sleep ends before the clock has reached the deadline.
#[test]
fn a_clock_that_goes_back_under_a_wait_makes_nothing_early() {
    for ahead in AHEAD {
        println!("{ahead:?} ahead");
        // Long enough for the clock to go back before the first is due, however slow the machine.
        let mut after = 100 * MS;
        let (clock, all) = loop {
            let clock = JumpingClock::new();
            let all = All::on(&clock);
            clock.jump(ahead);
            let begin = Instant::now();
            all.arm(after);
            clock.back(HOUR);
            if begin.elapsed() < after {
                break (clock, all);
            }
            after *= 2;
        };
        all.nothing_happens_for(after + 20 * MS);
        clock.jump(HOUR);
        all.happen(1);
        // The face still works.
        all.arm(5 * MS);
        all.happen(1);
    }
}

/// The clock jumps past pending deadlines, and announces it.
#[test]
fn a_jump_is_not_missed() {
    let clock = JumpingClock::new();
    let all = All::on(&clock);
    for _ in 0..20 {
        all.arm(HOUR);
        clock.jump(HOUR);
        all.happen(1);
    }
    all.arm(HOUR);
    clock.jump(HOUR - 60 * SECOND);
    all.nothing_happens();
}

/// The clock runs as the system's does: nothing is early by it, and nothing is lost.
#[test]
fn a_clock_that_only_runs() {
    let clock = JumpingClock::new();
    let all = All::on(&clock);
    for n in 0..20 {
        all.arm(Duration::from_micros(700) * n);
    }
    all.happen(20);
}

/// A clock that only implements `now`: a year ahead of the system's, or a year behind. Its wait uses the differences of
/// its own readings.
#[test]
fn a_clock_without_a_wait_of_its_own() {
    struct Plain(JumpingClock);
    impl Clock for Plain {
        fn now(&self) -> Instant {
            self.0.now()
        }
    }
    for behind in [Duration::ZERO, 2 * YEAR] {
        println!("{behind:?} behind the year ahead");
        let clock = JumpingClock::new();
        clock.back(behind);
        let all = All::with(&clock, |builder, clock| builder.clock(Plain(clock)));
        all.arm(HOUR);
        for n in 1..=3 {
            all.arm(5 * MS * n);
        }
        all.happen(3);
        all.nothing_happens();
    }
}
