//! With the system's clock, which the tests do not set. In real time: a test can neither move that clock nor see its
//! watcher sleep.

use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use tourbillon::{Clock, State, Timer};

use crate::common::asleep::{Tid, await_asleep};
use crate::common::{HOUR, MS, PLACES, accounted, eventually, running_on};

#[test]
fn a_moment_soon_by_the_systems_clock() {
    for place in PLACES {
        let timer = running_on(place).build().unwrap();
        let (sender, receiver) = mpsc::channel();
        let at = SystemTime::now() + 50 * MS;
        let timeout = timer
            .schedule_wall(at, move |context| {
                sender.send((SystemTime::now(), context.wall_deadline())).unwrap();
            })
            .unwrap();
        let (ran, waited_for) = receiver.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(ran >= at, "{place}: early by the wall clock");
        assert_eq!(waited_for, Some(at));
        eventually(|| timeout.state() == State::Fired);
        accounted(&timer);
    }
}

/// A user-defined clock that runs eight times as fast reaches the deadline long before the wall clock does: the timer
/// waits again, and that is neither visible nor counted.
#[test]
fn an_engine_that_is_ahead_of_the_wall_clock_waits() {
    struct Fast(Instant);
    impl Clock for Fast {
        fn now(&self) -> Instant {
            self.0 + self.0.elapsed() * 8
        }
    }
    let timer = Timer::builder().clock(Fast(Instant::now())).build().unwrap();
    let (sender, receiver) = mpsc::channel();
    let at = SystemTime::now() + 200 * MS;
    let timeout =
        timer.schedule_wall(at, move |_| sender.send(SystemTime::now()).unwrap()).unwrap();
    let key = timeout.key();
    while receiver.try_recv().map(|ran| assert!(ran >= at, "early by the wall clock")).is_err() {
        assert_ne!(timeout.state(), State::Cancelled);
        let counts = timer.counts();
        assert_eq!((counts.armed, counts.fired + counts.pending), (1, 1));
        std::thread::sleep(MS);
    }
    assert_eq!(timeout.key(), key);
    accounted(&timer);
}

/// The thread that watches the clock, from the kernel: its context switches, and the clock ticks of CPU it has used.
#[cfg(target_os = "linux")]
fn watcher() -> Option<(u64, u64)> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    tasks.into_iter().find_map(|task| {
        let read = |file: &str| std::fs::read_to_string(task.path().join(file)).ok();
        let status = read("status")?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        if field("Name:")?.trim() != "tourbillon-wall" {
            return None;
        }
        let number = |name: &str| field(name)?.trim().parse::<u64>().ok();
        let switches = number("voluntary_ctxt_switches:")? + number("nonvoluntary_ctxt_switches:")?;
        // After the name in brackets: user and system time are the 12th and 13th.
        let stat = read("stat")?;
        let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
        Some((switches, fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?))
    })
}

/// One thread for the process, which the kernel never runs while the clock is not set, whatever is scheduled and
/// cancelled. The other tests of this file share it.
#[cfg(target_os = "linux")]
#[test]
fn the_watcher_sleeps() {
    let timers: Vec<Timer> = (0..3).map(|_| Timer::new()).collect();
    let at = SystemTime::now() + HOUR;
    let all: Vec<_> = timers.iter().map(|timer| timer.schedule_wall(at, |_| ()).unwrap()).collect();
    eventually(|| watcher().is_some());
    await_asleep(&Tid::called("tourbillon-wall"));
    let before = watcher().unwrap();
    for n in 0..1000 {
        assert!(timers[n % 3].schedule_wall(at, |_| ()).unwrap().cancel());
    }
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(watcher(), Some(before), "it was woken");
    assert!(all.iter().all(|timeout| timeout.is_pending()));
}
