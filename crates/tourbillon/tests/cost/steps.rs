//! A step of the virtual clock takes as long as what runs in it: it is told when that has ended, and does not look.
//!
//! In real time: virtual time does not pass while a step waits.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{HOUR, MS, PLACES, SECOND, eventually, running_on};
use crate::meter::alone;
use tourbillon::{Builder, Job, Timeout, Timer, VirtualClock};

const STEPS: u32 = 20;
/// A step that is told takes some microseconds. One that looks takes a millisecond.
const LIMIT: Duration = Duration::from_millis(8);

/// Callbacks that arm one another, each at a step of its own.
fn steps(builder: Builder, repeats: bool) -> Duration {
    let clock = VirtualClock::new();
    let timer = builder.clock(&clock).build().unwrap();
    // The threads are there before.
    timer.arm(MS, |_| ()).unwrap();
    clock.advance(SECOND).unwrap();
    if repeats {
        timer.schedule_repeating(SECOND, |context| _ = context.again(SECOND)).unwrap();
    } else {
        (1..=STEPS).for_each(|n| _ = timer.arm(SECOND * n, |_| ()).unwrap());
    }
    let began = Instant::now();
    clock.advance(SECOND * STEPS).unwrap();
    let took = began.elapsed();
    assert_eq!(timer.counts().fired, u64::from(1 + STEPS));
    took
}

#[test]
fn a_step_takes_no_longer_than_what_runs_in_it() {
    let _alone = alone();
    type Place = (&'static str, fn(&str) -> Builder);
    let rows: [Place; 3] = PLACES.map(|place| (place, running_on as fn(&str) -> Builder));
    let others: [Place; 2] = [
        ("a pool of one", |_| Timer::builder().pool(1)),
        ("a pool, eight shards", |_| Timer::builder().pool(4).shards(8)),
    ];
    for (place, builder) in rows.into_iter().chain(others) {
        for repeats in [false, true] {
            // The best of many: a machine that is busy with something else makes them longer, and none shorter.
            let best = (0..20).map(|_| steps(builder(place), repeats)).find(|took| *took < LIMIT);
            assert!(best.is_some(), "{place}, repeating {repeats}: more than {LIMIT:?} each time");
        }
    }
}

type Jobs = Arc<Mutex<Vec<Job>>>;

/// How a timer goes for whose end a step waits.
type Way = (&'static str, fn(&Timer, &Timeout, &Jobs));

const WAYS: [Way; 6] = [
    ("Timeout::cancel", |_, timeout, _| assert!(timeout.cancel())),
    ("Timer::cancel", |timer, timeout, _| assert!(timer.cancel(timeout.key()))),
    ("Timeout::reschedule", |_, timeout, _| timeout.reschedule(HOUR).unwrap()),
    ("Timer::reschedule", |timer, timeout, _| timer.reschedule(timeout.key(), HOUR).unwrap()),
    ("Timer::stop", |timer, _, _| drop(timer.stop())),
    ("Job::run", |_, _, jobs| {
        let all = std::mem::take(&mut *jobs.lock().unwrap());
        all.into_iter().for_each(Job::run);
    }),
];

/// How long steps wait for what has gone already, all together. It goes at no particular part of a millisecond.
fn waits(way: fn(&Timer, &Timeout, &Jobs)) -> Duration {
    let wait = |n: u32| {
        let (clock, jobs) = (VirtualClock::new(), Jobs::default());
        let keeps = jobs.clone();
        let executor = move |job| {
            keeps.lock().unwrap().push(job);
            Ok(())
        };
        let timer = Timer::builder().clock(&clock).executor(executor).build().unwrap();
        let timeout = timer.schedule(SECOND, |_| ()).unwrap();
        let advancing = thread::spawn(move || {
            clock.advance(SECOND).unwrap();
            Instant::now()
        });
        eventually(|| !jobs.lock().unwrap().is_empty());
        thread::sleep(MS / STEPS * n);
        way(&timer, &timeout, &jobs);
        let gone = Instant::now();
        advancing.join().unwrap().saturating_duration_since(gone)
    };
    (0..STEPS).map(wait).sum()
}

/// One that looks every millisecond waits for half of that.
#[test]
fn a_step_goes_on_when_what_it_waits_for_has_gone() {
    let _alone = alone();
    for (name, way) in WAYS {
        let best = (0..20).map(|_| waits(way)).find(|took| *took < STEPS * MS / 5);
        assert!(best.is_some(), "{name}: it looks now and then");
    }
}
