//! Nothing is due: no face uses CPU time, and no thread wakes up.
//!
//! In real time: the kernel counts the wake-ups of threads, and a virtual clock has none.

use std::time::Duration;

use crate::common::faces::{Arm, FACES, Face, WALL_FACES};
use crate::common::jumping::JumpingClock;
use crate::common::{HOUR, MS, PLACES, YEAR, running_on};
use crate::meter::{End, Row, stand};
use tourbillon::{BootClock, Builder, DelayQueue, Timer, VirtualClock};

/// An idle engine has no wake-ups; these few allow for other work of the machine.
const WAKES: u64 = 3;
const TIME: Duration = Duration::from_millis(50);

/// The faces, each with the places where its callbacks can run.
fn faces() -> impl Iterator<Item = (&'static Face, &'static str)> {
    let places = |face: &Face| if face.callbacks { &PLACES[..] } else { &PLACES[..1] };
    let all = FACES.iter().chain(WALL_FACES);
    all.flat_map(move |face| places(face).iter().map(move |place| (face, *place)))
}

fn builder(face: &Face, place: &str) -> Builder {
    if face.callbacks { running_on(place) } else { Timer::builder() }
}

/// Arms a timer for an hour from now, and one that comes first and fires.
fn wait_an_hour(arm: &Arm) {
    let (done, happened) = std::sync::mpsc::channel();
    arm(MS, Box::new(move || done.send(()).unwrap()));
    happened.recv_timeout(Duration::from_secs(20)).expect("it happens");
    arm(HOUR, Box::new(|| unreachable!("an hour is longer")));
}

#[test]
fn every_face_on_the_systems_clock() {
    let row = |(face, place): (&'static Face, &'static str)| {
        let name =
            if face.callbacks { format!("{}, {place}", face.name) } else { face.name.into() };
        let begin = move || -> End {
            let arm = (face.open)(builder(face, place));
            wait_an_hour(&arm);
            Box::new(move || drop(arm))
        };
        Row::new(&name, WAKES, begin)
    };
    // The place makes no difference to a face; the next test covers all places.
    let first = FACES[0].name;
    let some = faces().filter(|(face, place)| face.name == first || *place == PLACES[0]);
    stand(&some.map(row).collect::<Vec<_>>(), TIME);
}

/// All faces together: while idle, their total is as small as each alone.
fn all_on(clock: impl Fn(Builder) -> Builder + 'static) -> impl Fn() -> End + 'static {
    move || {
        let open = |(face, place): (&Face, &str)| (face.open)(clock(builder(face, place)));
        let all: Vec<Arm> = faces().map(open).collect();
        all.iter().for_each(wait_an_hour);
        Box::new(move || drop(all))
    }
}

/// A timer with this many timers an hour away.
fn crowd(timer: Timer, count: u32) -> End {
    timer.start().unwrap();
    for n in 0..count {
        timer.arm(HOUR + MS * n, |_| ()).unwrap();
    }
    Box::new(move || drop(timer.stop()))
}

#[test]
fn clocks_wheels_and_crowds() {
    let rows = [
        Row::new("every face, everywhere", WAKES, all_on(|builder| builder)),
        Row::new("every face, boot clock", WAKES, all_on(|builder| builder.clock(BootClock))),
        Row::new("every face, a clock of the user's", WAKES, {
            all_on(|builder| builder.clock(JumpingClock::new()))
        }),
        Row::new("no timer at all", WAKES, || crowd(Timer::new(), 0)),
        Row::new("1000 timers", WAKES, || crowd(Timer::new(), 1000)),
        Row::new("1000 timers, hashed", WAKES, || {
            crowd(Timer::builder().hashed(64).build().unwrap(), 1000)
        }),
        Row::new("1000 timers, levels of four, a tick of 1 µs", WAKES, || {
            let builder = Timer::builder().hierarchical(&[4]).tick(Duration::from_micros(1));
            crowd(builder.build().unwrap(), 1000)
        }),
        Row::new("1000 timers, all cancelled", WAKES, || {
            let timer = Timer::new();
            let all: Vec<_> = (0..1000).map(|_| timer.arm(HOUR, |_| ()).unwrap()).collect();
            assert!(all.into_iter().all(|key| timer.cancel(key)));
            Box::new(move || drop(timer))
        }),
        Row::new("delays up to the longest", WAKES, || {
            let timer = Timer::new();
            for after in [HOUR, YEAR, 500 * YEAR, Duration::MAX] {
                timer.arm(after, |_| ()).unwrap();
            }
            Box::new(move || drop(timer))
        }),
        Row::new("1000 timers, virtual clock", WAKES, || {
            crowd(Timer::builder().clock(&VirtualClock::new()).build().unwrap(), 1000)
        }),
        Row::new("an empty queue with takers", WAKES, || {
            let queue = DelayQueue::<u32>::new();
            for n in 0..4 {
                let queue = queue.clone();
                std::thread::spawn(move || match n % 2 {
                    0 => queue.take(),
                    _ => queue.take_within(HOUR),
                });
            }
            Box::new(move || drop(queue.close()))
        }),
        #[cfg(feature = "calendar")]
        Row::new("a cron expression", WAKES, || {
            let timer = Timer::new();
            // Once in four years.
            let cron = tourbillon::Cron::parse("0 0 29 2 *", "UTC").unwrap();
            timer.schedule_cron(&cron, |_| ()).unwrap();
            Box::new(move || drop(timer))
        }),
        #[cfg(feature = "tasks")]
        Row::new("a sleep on the default engine", WAKES, || {
            // Its thread and its engine are never stopped.
            std::thread::spawn(|| {
                futures_lite::future::block_on(tourbillon::tasks::sleep(HOUR));
            });
            Box::new(|| ())
        }),
    ];
    stand(&rows, TIME);
}
