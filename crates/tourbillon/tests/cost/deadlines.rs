//! A deadline costs a wake-up or two, but no CPU time while it is awaited.
//!
//! A driver that can only sleep whole milliseconds, and spins for the rest, uses most of a millisecond of CPU time for
//! each deadline; one that checks ever more often towards the end is woken for each check.
//!
//! In real time: the kernel measures what the wait until a deadline costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::faces::{FACES, Face, WALL_FACES};
use crate::common::jumping::JumpingClock;
use crate::common::{HOUR, eventually, running_on};
use crate::meter::{Cost, alone, judge, measure};
use tourbillon::{BootClock, Builder, Clock, Timer};

const DEADLINES: u32 = 7;
/// Not a whole number of milliseconds, nor of ticks.
const APART: Duration = Duration::from_micros(4_900);
/// The limit for each deadline: a third of a millisecond and six wake-ups, of a driver, of the thread that runs the
/// callback, and of either for a lock that was held.
const LIMIT: Cost =
    Cost { cpu: Duration::from_micros(350 * DEADLINES as u64), wakes: 6 * DEADLINES as u64 };

type Setting = (&'static str, fn(Builder) -> Builder);

/// A user-defined clock whose time differs from the system's, with the trait's default wait.
struct Plain {
    ahead: Duration,
    behind: Duration,
}

impl Clock for Plain {
    fn now(&self) -> Instant {
        Instant::now() + self.ahead - self.behind
    }
}

const CLOCKS: [Setting; 6] = [
    ("system's clock", |builder| builder),
    ("system's clock, a tick of 1 µs", |builder| builder.tick(Duration::from_micros(1))),
    ("boot clock", |builder| builder.clock(BootClock)),
    ("a clock of the user's", |builder| builder.clock(JumpingClock::new())),
    ("a clock of the user's without a wait, an hour ahead", |builder| {
        builder.clock(Plain { ahead: HOUR, behind: Duration::ZERO })
    }),
    ("a clock of the user's without a wait, an hour behind", |builder| {
        builder.clock(Plain { ahead: Duration::ZERO, behind: HOUR })
    }),
];

/// The cost of a series of deadlines, measured from when they are armed. Timers armed before have started the threads.
fn series(face: &Face, builder: Builder) -> Cost {
    let arm = (face.open)(builder);
    let happened = Arc::new(AtomicU32::new(0));
    let count = || {
        let happened = happened.clone();
        Box::new(move || _ = happened.fetch_add(1, SeqCst))
    };
    arm(Duration::ZERO, count());
    eventually(|| happened.load(SeqCst) == 1);
    (1..=DEADLINES).for_each(|n| arm(APART * n, count()));
    // The threads of tasks start before the first deadline, and do not count.
    thread::sleep(APART / 2);
    measure(|| {
        thread::sleep(APART * DEADLINES - APART / 2);
        while happened.load(SeqCst) <= DEADLINES {
            thread::sleep(APART);
        }
    })
}

fn each(face: &'static Face, settings: &[Setting]) -> Vec<String> {
    let _alone = alone();
    let fails = |(clock, set): &&Setting| {
        let name = format!("{}, {clock}", face.name);
        judge(&name, LIMIT, || {
            let place = if face.callbacks { running_on("driver") } else { Timer::builder() };
            series(face, set(place))
        })
    };
    let name = |(clock, _): &Setting| format!("{}, {clock}", face.name);
    settings.iter().filter(fails).map(name).collect()
}

#[test]
fn a_deadline_costs_no_more_than_its_wake_ups() {
    let all = FACES.iter().chain(WALL_FACES);
    let failed: Vec<String> = all.flat_map(|face| each(face, &CLOCKS[..1])).collect();
    assert!(failed.is_empty(), "too dear: {failed:?}");
}

/// In all faces, the thread that sleeps is a driver or a taker of a queue: one face for each will do.
#[test]
fn whatever_the_clock() {
    let some = FACES.iter().filter(|face| ["Timer::arm", "DelayQueue::take"].contains(&face.name));
    let failed: Vec<String> = some.flat_map(|face| each(face, &CLOCKS[1..])).collect();
    assert!(failed.is_empty(), "too dear: {failed:?}");
}

const PLACES: [Setting; 2] =
    [("pool", |_| running_on("pool")), ("own executor", |_| running_on("own executor"))];

#[test]
fn wherever_callbacks_run() {
    let failed = each(&FACES[0], &PLACES);
    assert!(failed.is_empty(), "too dear: {failed:?}");
}
