//! The interface of a contestant, and the conditions that its operations wait for.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// The conditions of operations: a flag for each number. The flags live as long as the process and are not measured.
pub struct Flags {
    ready: Box<[AtomicBool]>,
    expired: AtomicUsize,
}

impl Flags {
    pub fn new(count: usize) -> &'static Self {
        let ready = (0..count).map(|_| AtomicBool::new(false)).collect();
        Box::leak(Box::new(Flags { ready, expired: AtomicUsize::new(0) }))
    }

    // Relaxed everywhere: the thread that sets a flag then calls `check`, which takes the contestant's locks.
    pub fn set(&self, number: usize) {
        self.ready[number].store(true, Relaxed);
    }

    pub fn is_set(&self, number: u32) -> bool {
        self.ready[number as usize].load(Relaxed)
    }

    pub fn count_expired(&self) {
        self.expired.fetch_add(1, Relaxed);
    }

    pub fn expired(&self) -> usize {
        self.expired.load(Relaxed)
    }
}

/// The clock: virtual time passes only in [`Contestant::pass`], real time by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Time {
    Virtual,
    Real,
}

pub trait Contestant: Sync + Sized {
    const NAME: &'static str;
    const SETTINGS: &'static str;

    fn new(flags: &'static Flags, time: Time) -> Self;
    /// Lets operation `number` wait under its keys. Its flag is not set.
    fn add(&self, number: u32, keys: [u64; 3], timeout: Duration);
    /// Tries the operations that wait under the key. Returns how many were completed.
    fn check(&self, key: u64) -> usize;
    /// Advances virtual time. Due operations expire.
    fn pass(&self, by: Duration);
}
