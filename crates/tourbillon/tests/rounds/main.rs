//! After any number of rounds of every verb, with every way in which it can end, everything is as it was after the
//! first of them: allocated bytes, threads, file descriptors, and the places under a limit.
//!
//! A case makes what is kept over its rounds, and says what one round does. The rounds run one after the other, in
//! one test: the counts are those of the process. They are read from `/proc`, so this is for Linux.
//!
//! In real time where it waits for threads to end: the kernel alone knows when they have.

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

/// What a round does.
pub(crate) type Round = Box<dyn FnMut() + Send>;

/// Makes what is kept over the rounds.
pub(crate) type Make = fn(usize) -> Round;

/// A name, and what makes the rounds.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) make: Make,
    /// Which of the cases that `make` makes.
    pub(crate) number: usize,
    pub(crate) rounds: usize,
}

/// A fifth of them come first, in which tables grow.
pub(crate) const ROUNDS: usize = 120;
/// Bytes by which a case may differ: three a round are more.
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
            // What is made once for the process is made now.
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

    /// When threads that end have ended: it stays the same for a while.
    fn at_rest() -> Self {
        loop {
            let first = Held::now();
            thread::sleep(Duration::from_millis(2));
            if Held::now() == first {
                return first;
            }
        }
    }

    /// No more than this is held, as soon as threads that end have ended. It fails before its case counts as hanging.
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

/// [`eventually`], for what is so at once or a tick later: longer sleeps would be most of the test.
pub(crate) fn until(mut so: impl FnMut() -> bool) {
    for _ in 0..100 {
        if so() {
            return;
        }
        thread::sleep(Duration::from_micros(10));
    }
    eventually(so);
}

/// So many timers may be pending in the engines of the rounds.
pub(crate) const LIMIT: usize = 4;

/// Takes all places. One that runs may hold its own until it has ended; nothing else does.
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

/// All places can be taken, and no more.
pub(crate) fn all_places(timer: &Timer) {
    let keys = take_all_places(timer);
    assert!(matches!(timer.arm(HOUR, |_| ()), Err(ScheduleError::Full(_))), "one too many");
    give_back(timer, keys);
    assert_eq!(timer.check(), Ok(()));
}
