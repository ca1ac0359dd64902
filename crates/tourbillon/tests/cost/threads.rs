//! A waiting thread costs memory: it ends with what it waits for, and not before. In real time, because a virtual clock
//! has no threads.

use std::sync::{Arc, Barrier};
use std::time::SystemTime;

use crate::common::faces::{FACES, WALL_FACES};
use crate::common::{HOUR, MS, PLACES, eventually, running_on};
use crate::meter::{alone, threads_called};
use tourbillon::Timer;

/// Every thread of every face ends when the face is dropped, whatever waits in it.
#[test]
fn the_threads_of_a_face_end_with_it() {
    let _alone = alone();
    for face in FACES.iter().chain(WALL_FACES) {
        for place in if face.callbacks { &PLACES[..] } else { &PLACES[..1] } {
            let builder = if face.callbacks { running_on(place) } else { Timer::builder() };
            let arm = (face.open)(builder.name("faces"));
            let (done, happened) = std::sync::mpsc::channel();
            arm(MS, Box::new(move || done.send(()).unwrap()));
            happened.recv().unwrap();
            arm(HOUR, Box::new(|| unreachable!("an hour is longer")));
            drop(arm);
            eventually_none("faces-driver", face.name, place);
            eventually_none("faces-worker", face.name, place);
            eventually_none(WATCH, face.name, place);
        }
    }
}

#[track_caller]
fn eventually_none(thread: &str, face: &str, place: &str) {
    let none = crate::common::becomes(|| threads_called(thread) == 0);
    assert!(none, "{face}, {place}: a thread called {thread} is left");
}

/// The thread that watches the wall clock.
const WATCH: &str = "tourbillon-wall";

/// A way in which the last wall timer of an engine ends.
type End = (&'static str, fn(Timer));

/// Whatever ends the last engine that had a wall timer also ends the watch; the next such timer starts it again.
const ENDS: [End; 6] = [
    ("stopped", |timer| drop(timer.stop())),
    ("stopped, and kept", |timer| {
        timer.stop();
        std::mem::forget(timer);
    }),
    ("stopped with a limit", |timer| drop(timer.stop_within(HOUR))),
    ("dropped", drop),
    ("stopped by a callback", |timer| {
        let own = timer.clone();
        timer.arm(MS, move |_| drop(own.stop())).unwrap();
        eventually(|| timer.is_stopped());
    }),
    ("the last clone dropped by a callback", |timer| {
        let last = timer.clone();
        timer.arm(MS, move |_| drop(last)).unwrap();
    }),
];

#[test]
fn the_watch_ends_with_the_last_engine_and_starts_again() {
    let _alone = alone();
    for (name, end) in ENDS {
        for place in PLACES {
            let timers = [0; 2].map(|_| running_on(place).build().unwrap());
            assert_eq!(threads_called(WATCH), 0, "{name}, {place}: nobody asked for it");
            let at = SystemTime::now() + HOUR;
            let kept = timers.clone().map(|timer| timer.schedule_wall(at, |_| ()).unwrap());
            let [first, last] = timers;
            eventually(|| threads_called(WATCH) == 1);
            end(first);
            // The other engine still needs it: now, and after the time in which a watch would end.
            eventually(|| !kept[0].is_pending());
            std::thread::sleep(3 * MS);
            assert_eq!(threads_called(WATCH), 1, "{name}, {place}: one for the process");
            assert!(kept[1].is_pending());
            end(last);
            eventually_none(WATCH, name, place);
            // Handles that are kept do not keep the watch alive.
            assert!(kept.iter().all(|timeout| !timeout.is_pending()), "{name}, {place}");
        }
    }
}

/// The watch stays when all its timers have ended, in whatever way: the engine may need it again, and starting a thread
/// for each timer would cost more than one that sleeps.
#[test]
fn the_watch_stays_one_while_timers_come_and_go() {
    let _alone = alone();
    let timer = Timer::new();
    for n in 0..20 {
        let soon = timer.schedule_wall(SystemTime::now() + MS, |_| ()).unwrap();
        let far = timer.schedule_wall(SystemTime::now() + HOUR, |_| ()).unwrap();
        eventually(|| !soon.is_pending());
        assert!(far.cancel());
        eventually(|| threads_called(WATCH) > 0);
        assert_eq!(threads_called(WATCH), 1, "timer {n}");
    }
    drop(timer);
    eventually_none(WATCH, "Timer::schedule_wall", "after twenty");
}

/// Every worker of a pool ends with its timer, however many there are and whatever they are doing.
#[test]
fn all_the_threads_of_a_pool_end() {
    let _alone = alone();
    for (name, end) in ENDS {
        for workers in [1, 2, 5] {
            let timer = Timer::builder().name("pools").pool(workers).build().unwrap();
            let meet = Arc::new(Barrier::new(workers + 1));
            for _ in 0..workers {
                let meet = meet.clone();
                timer.arm(MS, move |_| _ = meet.wait()).unwrap();
            }
            // Each of them needs its own thread.
            meet.wait();
            assert_eq!(threads_called("pools-worker"), workers, "{name}");
            end(timer);
            eventually_none("pools-worker", name, &format!("a pool of {workers}"));
            eventually_none("pools-driver", name, &format!("a pool of {workers}"));
        }
    }
}
