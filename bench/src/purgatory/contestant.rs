//! What a contestant can be asked to do, and what its operations wait for.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// What operations wait for: the flag of their number. It lives as long as the process, and costs no memory of theirs.
pub struct Flags {
    ready: Box<[AtomicBool]>,
    expired: AtomicUsize,
}

impl Flags {
    pub fn new(count: usize) -> &'static Self {
        let ready = (0..count).map(|_| AtomicBool::new(false)).collect();
        Box::leak(Box::new(Flags { ready, expired: AtomicUsize::new(0) }))
    }

    // Relaxed everywhere: whoever sets a flag checks after that, under the contestant's own locks.
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

/// Whether time passes when it is told to, or by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Time {
    Virtual,
    Real,
}

pub trait Contestant: Sync + Sized {
    const NAME: &'static str;
    const SETTINGS: &'static str;

    fn new(flags: &'static Flags, time: Time) -> Self;
    /// Has the operation of that number wait under its keys; its flag is not set.
    fn add(&self, number: u32, keys: [u64; 3], timeout: Duration);
    /// Tries whoever waits under the key. How many were completed.
    fn check(&self, key: u64) -> usize;
    /// Virtual time passes, and what is due expires.
    fn pass(&self, by: Duration);
}
