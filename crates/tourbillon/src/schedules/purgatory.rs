//! A purgatory under shuttle: threads add, check, cancel, withdraw and stop while time passes.

use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::time::Duration;

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use shuttle::thread;

use super::explore;
use crate::{Builder, Operation, Purgatory, Timer, VirtualClock, WaitError};

const MS: Duration = Duration::from_millis(1);

/// A fixed hasher: a schedule must be reproducible.
type Shared = Purgatory<u8, Flagged, BuildHasherDefault<DefaultHasher>>;

/// Waits for its flag, and counts how it ends: completed, expired.
struct Flagged(Arc<AtomicBool>, Arc<[AtomicUsize; 2]>);

impl Operation for Flagged {
    fn try_complete(&mut self) -> bool {
        self.0.load(SeqCst)
    }

    fn on_complete(self) {
        self.1[0].fetch_add(1, SeqCst);
    }

    fn on_expire(self) {
        self.1[1].fetch_add(1, SeqCst);
    }
}

fn made(builder: Builder) -> (Shared, Timer, VirtualClock) {
    let clock = VirtualClock::new();
    let timer = builder.clock(&clock).shards(2).build().unwrap();
    (Purgatory::with_hasher(&timer, BuildHasherDefault::default()), timer, clock)
}

/// Check, expiry, cancel and stop: every operation ends in one way, and nothing is left.
#[test]
fn every_operation_ends_in_one_way() {
    explore(|| {
        let (purgatory, timer, clock) = made(Timer::builder().pool(2));
        let ends: Arc<[AtomicUsize; 2]> = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let threads: Vec<_> = (0..2_u8)
            .map(|n| {
                let (purgatory, ends) = (purgatory.clone(), ends.clone());
                thread::spawn(move || {
                    let mut back = 0;
                    for round in 0..2 {
                        let flag = Arc::new(AtomicBool::new(false));
                        let operation = Flagged(flag.clone(), ends.clone());
                        let keys = [round, 2 + n, 9];
                        let timeout = MS * thread_rng().gen_range(0..3);
                        let added = purgatory.try_complete_else_watch(operation, keys, timeout);
                        back += usize::from(added.is_err());
                        match thread_rng().gen_range(0..3) {
                            0 => {
                                flag.store(true, SeqCst);
                                purgatory.check(&9);
                            }
                            1 => back += purgatory.cancel_key(&round).len(),
                            _ => {}
                        }
                    }
                    back
                })
            })
            .collect();
        let time = thread::spawn(move || (0..3).for_each(|_| clock.advance(MS).unwrap()));
        if thread_rng().gen_bool(0.5) {
            time.join().unwrap();
        }
        let mut back = purgatory.stop().len();
        back += threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>();
        assert!(purgatory.stop().is_empty());
        // A worker may be about to run an expiry.
        timer.stop();
        let ended = back + ends[0].load(SeqCst) + ends[1].load(SeqCst);
        let left = (purgatory.watched(), purgatory.delayed(), timer.len());
        assert_eq!((ended, left), (4, (0, 0, 0)));
    });
}

/// A future is dropped during a check, and a closure expires: neither leaves anything behind. The closure is called
/// once.
#[test]
fn a_wait_that_is_dropped_leaves_nothing() {
    explore(|| {
        let (purgatory, timer, clock) = made(Timer::builder().on_driver());
        let (kept, told) = (Arc::new(()), Arc::new(AtomicUsize::new(0)));
        let seen = kept.clone();
        let wait = purgatory.wait([1, 2], MS * 9, move || {
            let _seen = &seen;
            None::<()>
        });
        let count = told.clone();
        let then = move |outcome: Result<(), WaitError>| {
            assert_eq!(outcome, Err(WaitError::Expired));
            count.fetch_add(1, SeqCst);
        };
        assert!(purgatory.when([2], MS, || None, then).is_ok());
        let other = purgatory.clone();
        let check = thread::spawn(move || other.check(&1) + other.check(&2));
        let time = thread::spawn(move || clock.advance(MS).unwrap());
        drop(wait);
        assert_eq!(check.join().unwrap(), 0);
        time.join().unwrap();
        assert_eq!((purgatory.watched(), timer.len()), (0, 0));
        assert_eq!((Arc::strong_count(&kept), told.load(SeqCst)), (1, 1));
    });
}
