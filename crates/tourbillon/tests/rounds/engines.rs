//! One engine a round, of each kind, with a pending timer of each verb and closure, ended in each possible way.
//!
//! Most are in real time: what an engine could leave behind are threads and descriptors.

use std::fs;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime};

use tourbillon::{
    BootClock, Builder, Clock, DelayQueue, Driver, Sleeper, Timer, Unfired, VirtualClock,
};

use crate::closures::{KINDS, VERBS, arm};
use crate::common::{HOUR, MS, one_thread};
use crate::{Case, ROUNDS, Round, cases as named, until};

/// Fewer rounds: each engine has threads, which a round starts and ends.
const FEWER: usize = ROUNDS / 3;

const ENGINES: [&str; 8] =
    ["virtual", "virtual pool", "system", "executor", "boot", "own clock", "loop", "hashed"];

/// The system's clock, as a user-defined clock.
struct Own;

impl Clock for Own {
    fn now(&self) -> std::time::Instant {
        std::time::Instant::now()
    }

    fn wait(&self, until: Option<std::time::Instant>, sleeper: &Sleeper) {
        sleeper.sleep(until.map(|until| until.saturating_duration_since(self.now())));
    }
}

fn engine(name: &str) -> (Timer, Option<Driver>) {
    let build = |builder: Builder| (builder.build().unwrap(), None);
    let builder = Timer::builder();
    match name {
        "virtual" => build(builder.clock(&VirtualClock::new()).on_driver()),
        "virtual pool" => build(builder.clock(&VirtualClock::new())),
        "system" => build(builder),
        "executor" => build(builder.executor(one_thread())),
        "boot" => build(builder.clock(BootClock)),
        "own clock" => build(builder.clock(Own)),
        "hashed" => build(builder.hashed(512).on_driver()),
        "loop" => {
            let (timer, mut driver) = builder.build_driven().unwrap();
            let bell = driver.wake_fd().unwrap();
            assert_eq!(format!("{bell:?}"), format!("{:?}", driver.wake_fd().unwrap()));
            (timer, Some(driver))
        }
        _ => unreachable!("{name}"),
    }
}

/// Whether all threads of engines have ended. Handles do not keep threads alive.
fn no_threads() -> bool {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    let names =
        threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    !names.into_iter().any(|name| name.starts_with("tourbillon-"))
}

/// Ends the engine in the way with this number.
fn end(way: usize, timer: Timer, mut driver: Option<Driver>) {
    match way % 6 {
        0 => drop(timer.stop()),
        1 => timer.stop().into_iter().for_each(Unfired::run),
        2 => drop(timer.stop_within(Duration::ZERO)),
        3 => drop(timer),
        4 => {
            let other = timer.clone();
            thread::spawn(move || drop(other.stop())).join().unwrap();
        }
        5 => {
            // From inside a callback, if that runs in time.
            let (done, wait) = mpsc::channel();
            let stops = move |context: &tourbillon::Context<'_>| {
                drop(context.timer().stop());
                let _gone = done.send(());
            };
            timer.schedule(Duration::ZERO, stops).unwrap();
            if let Some(driver) = &mut driver {
                driver.turn();
                driver.on_wake(|| ());
            }
            let _late = wait.recv_timeout(MS);
        }
        _ => unreachable!(),
    }
}

pub(crate) fn cases() -> Vec<Case> {
    let names = ENGINES.map(|engine| format!("an engine a round: {engine}"));
    let mut all = named(&names.each_ref().map(String::as_str), FEWER, |number| {
        let mut way = 0;
        Box::new(move || {
            let (timer, driver) = engine(ENGINES[number]);
            let mut handles = Vec::new();
            for verb in VERBS {
                let kinds = KINDS.into_iter();
                handles.extend(kinds.map(|kind| arm(&timer, verb, kind, HOUR, |_| ()).unwrap()));
            }
            // Some handles are dropped before the engine, and some after.
            handles.truncate(handles.len() / 2);
            way += 1;
            end(way, timer, driver);
            until(no_threads);
        }) as Round
    });
    all.extend(named(&["a loop whose driver goes first"], FEWER, |_| {
        Box::new(|| {
            let (timer, driver) = engine("loop");
            let timeout = timer.schedule(HOUR, |_| ()).unwrap();
            drop(driver);
            assert!(!timeout.is_pending() && timer.is_stopped());
        })
    }));
    all.extend(named(&["the thread that watches the wall clock"], FEWER, |_| {
        Box::new(|| {
            let timer = Timer::builder().on_driver().build().unwrap();
            let kept = timer.schedule_wall(SystemTime::now() + HOUR, |_| ()).unwrap();
            timer.schedule_wall(SystemTime::now() + HOUR, |_| ()).unwrap().cancel();
            drop(timer);
            assert!(!kept.is_pending());
            until(no_threads);
        })
    }));
    all.extend(named(&["engines on one virtual clock"], FEWER, |_| {
        let clock = VirtualClock::new();
        Box::new(move || {
            let timer = Timer::builder().clock(&clock).shards(1).on_driver().build().unwrap();
            timer.schedule(HOUR, |_| ()).unwrap();
            let queue: DelayQueue<u32> = Timer::builder().clock(&clock).queue().unwrap();
            queue.put(HOUR, 7).unwrap();
        })
    }));
    all.extend(named(&["clocks of a round"], FEWER, |_| {
        Box::new(|| {
            let clock = VirtualClock::new();
            let timer = Timer::builder().clock(&clock).build().unwrap();
            timer.schedule(HOUR, |_| ()).unwrap();
            clock.advance(HOUR).unwrap();
            clock.set_wall(SystemTime::now()).unwrap();
        })
    }));
    all
}
