//! After any number of rounds of every verb, with every possible end, everything is as it was after the first rounds:
//! allocated bytes, threads, file descriptors, and the free places under a limit.
//!
//! A case creates what is kept over its rounds, and defines one round. The rounds run one after another, in one test,
//! because the counts are those of the process. They are read from `/proc`, so this test is for Linux.
//!
//! In real time where it waits for threads to end: only the kernel knows when they have.

#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;

mod allocator;
mod closures;
mod crowds;
mod engines;
mod faces;
mod no_memory;
mod tasks;

use std::fs;
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use tourbillon::{Key, ScheduleError, Timer};

use common::{HOUR, case, eventually};

/// One round.
pub(crate) type Round = Box<dyn FnMut() + Send>;

/// Creates what is kept over the rounds.
pub(crate) type Make = fn(usize) -> Round;

/// A name, and the rounds.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) make: Make,
    /// The index of this case among those of `make`.
    pub(crate) number: usize,
    pub(crate) rounds: usize,
}

/// A fifth of them are for warm-up, during which tables grow.
pub(crate) const ROUNDS: usize = 120;
/// The bytes by which a case may differ: three bytes a round would be more.
const SLACK: usize = 256;

/// A case for each name.
pub(crate) fn cases(names: &[&str], rounds: usize, make: Make) -> Vec<Case> {
    let case = |(number, name): (usize, &&str)| Case { name: (*name).into(), make, number, rounds };
    names.iter().enumerate().map(case).collect()
}

/// One test at a time: the counts are those of the process.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[test]
fn everything_is_as_it_was() {
    let _alone = alone();
    let faces = faces::cases().into_iter().chain(tasks::cases());
    for one in closures::cases().into_iter().chain(engines::cases()).chain(faces) {
        let Case { name, make, number, rounds } = one;
        case(&name, move || {
            // Whatever is created once for the process is created now.
            let mut round = make(number);
            (0..(rounds / 4).clamp(1, 5)).for_each(|_| round());
            drop(round);
            let empty = Held::at_rest();
            let mut round = make(number);
            (0..rounds / 5 + 2).for_each(|_| round());
            let before = Held::at_rest();
            (0..rounds).for_each(|_| round());
            before.still(&format!("after {rounds} rounds"));
            drop(round);
            empty.still("when all is gone");
        });
    }
}

/// What a process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    bytes: usize,
    threads: usize,
    descriptors: usize,
}

impl Held {
    fn now() -> Self {
        let count = |folder| fs::read_dir(folder).map_or(0, Iterator::count);
        let (threads, descriptors) = (count("/proc/self/task"), count("/proc/self/fd"));
        Held { bytes: allocator::held(), threads, descriptors }
    }

    /// Once ending threads have ended: when the counts have not changed for a while.
    fn at_rest() -> Self {
        loop {
            let first = Held::now();
            thread::sleep(Duration::from_millis(2));
            if Held::now() == first {
                return first;
            }
        }
    }

    /// Waits until no more than this is held. It fails before the watchdog would report its case as a hang.
    fn still(&self, when: &str) {
        let begin = Instant::now();
        loop {
            let now = Held::now();
            let more = now.bytes > self.bytes + SLACK
                || now.threads > self.threads
                || now.descriptors > self.descriptors;
            if !more {
                return;
            }
            assert!(
                begin.elapsed() < Duration::from_secs(8),
                "{when} more is held: {now:?}, and was: {self:?}"
            );
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// As [`eventually`], for conditions that hold at once or a tick later: longer sleeps would take most of the test's
/// time.
pub(crate) fn until(mut so: impl FnMut() -> bool) {
    for _ in 0..100 {
        if so() {
            return;
        }
        thread::sleep(Duration::from_micros(10));
    }
    eventually(so);
}

/// The limit on pending timers in the engines of the rounds.
pub(crate) const LIMIT: usize = 4;

/// Fills the engine up to its limit. A running timer may hold its place until it has ended; nothing else does.
pub(crate) fn take_all_places(timer: &Timer) -> Vec<Key> {
    let mut keys = Vec::new();
    until(|| {
        keys.extend(std::iter::from_fn(|| timer.arm(HOUR, |_| ()).ok()).take(LIMIT));
        let all = keys.len() == LIMIT;
        if !all {
            give_back(timer, std::mem::take(&mut keys));
        }
        all
    });
    keys
}

pub(crate) fn give_back(timer: &Timer, keys: Vec<Key>) {
    keys.into_iter().for_each(|key| assert!(timer.cancel(key)));
}

/// Asserts that all places can be taken, and no more.
pub(crate) fn all_places(timer: &Timer) {
    let keys = take_all_places(timer);
    assert!(matches!(timer.arm(HOUR, |_| ()), Err(ScheduleError::Full(_))), "one too many");
    give_back(timer, keys);
    assert_eq!(timer.check(), Ok(()));
}
