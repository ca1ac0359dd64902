//! A step of the virtual clock takes only as long as what runs in it: it is notified when that has ended, and does not
//! poll.
//!
//! In real time: virtual time does not pass while a step waits.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{HOUR, MS, PLACES, SECOND, eventually, running_on};
use crate::meter::alone;
use tourbillon::{Builder, Job, Timeout, Timer, VirtualClock};

const STEPS: u32 = 20;
/// A step that is notified takes some microseconds, one that polls takes a millisecond.
const LIMIT: Duration = Duration::from_millis(8);
/// Other load makes a step longer, and none shorter: the best of this many attempts counts.
const TRIES: u32 = 40;
/// If it takes longer than this, the machine is too busy for the measurement.
const PATIENCE: Duration = Duration::from_secs(2);

/// Callbacks that arm one another, each in a step of its own.
fn steps(builder: Builder, repeats: bool) -> Duration {
    let clock = VirtualClock::new();
    let timer = builder.clock(&clock).build().unwrap();
    // Starts the threads before the measurement.
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
            let (began, mut slow) = (Instant::now(), 0);
            while slow < TRIES
                && began.elapsed() < PATIENCE
                && steps(builder(place), repeats) > LIMIT
            {
                slow += 1;
            }
            assert!(slow < TRIES, "{place}, repeating {repeats}: more than {LIMIT:?} each time");
        }
    }
}

type Jobs = Arc<Mutex<Vec<Job>>>;

/// A way to end a timer for which a step waits.
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

/// How long a step waits for a timer that has just ended. The timer ends just after the step has begun to sleep: a step
/// that polls every millisecond would sleep for most of that. `None` if the machine was too busy.
fn waits(way: fn(&Timer, &Timeout, &Jobs)) -> Option<Duration> {
    let (clock, jobs) = (VirtualClock::new(), Jobs::default());
    let keeps = jobs.clone();
    let executor = move |job| {
        keeps.lock().unwrap().push(job);
        Ok(())
    };
    let timer = Timer::builder().clock(&clock).executor(executor).build().unwrap();
    let timeout = timer.schedule(SECOND, |_| ()).unwrap();
    let (told, thread) = mpsc::channel();
    let advancing = thread::spawn(move || {
        told.send(fs::read_link("/proc/thread-self").unwrap()).unwrap();
        clock.advance(SECOND).unwrap();
        Instant::now()
    });
    let status = Path::new("/proc").join(thread.recv().unwrap()).join("status");
    let sleeps = || {
        let status = fs::read_to_string(&status).unwrap();
        status.lines().find(|line| line.starts_with("voluntary")).map(str::to_owned)
    };
    eventually(|| !jobs.lock().unwrap().is_empty());
    let mut last = (Instant::now(), sleeps());
    loop {
        let now = (Instant::now(), sleeps());
        if now.1 != last.1 {
            break;
        }
        last = now;
    }
    way(&timer, &timeout, &jobs);
    let gone = Instant::now();
    let took = advancing.join().unwrap().saturating_duration_since(gone);
    (gone - last.0 < MS / 4).then_some(took)
}

#[test]
fn a_step_goes_on_when_what_it_waits_for_has_gone() {
    let _alone = alone();
    for (name, way) in WAYS {
        let (began, mut prompt, mut slow) = (Instant::now(), 0, 0);
        while prompt < 3 && slow < TRIES && began.elapsed() < PATIENCE {
            match waits(way) {
                Some(took) if took < MS / 2 => prompt += 1,
                Some(_) => slow += 1,
                None => {}
            }
        }
        assert!(slow < TRIES, "{name}: it looks now and then");
    }
}
