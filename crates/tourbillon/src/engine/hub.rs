//! What all shards of an engine share and nobody writes on the way: the clock, the signal, the limit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::signal::Signal;
use crate::clock::EngineClock;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use crate::sync::{Condvar, Mutex, lock, wait};

pub(crate) struct Hub {
    pub(crate) clock: EngineClock,
    pub(crate) signal: Signal,
    pub(crate) quiet: Quiet,
    pub(crate) limit: Option<Limit>,
    /// Threads of this engine that live: the driver and the pool's.
    pub(crate) threads: AtomicUsize,
    pub(crate) on_panic: Option<OnPanic>,
}

/// What to do with the payload of a panic.
pub(crate) type OnPanic = Arc<dyn Fn(Box<dyn std::any::Any + Send>) + Send + Sync>;

impl Hub {
    /// What tells this engine from others.
    pub(crate) fn id(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// So many timers are no longer pending.
    #[inline]
    pub(crate) fn give_back(&self, places: usize) {
        if let Some(limit) = &self.limit {
            limit.give_back(places);
        }
    }

    pub(crate) fn clock_id(&self) -> usize {
        self.clock.as_virtual().map_or(0, |clock| clock.id())
    }
}

/// Waiting until callbacks have ended. Costs those who run them one look at a word that rarely changes.
pub(crate) struct Quiet {
    watchers: AtomicUsize,
    mutex: Mutex<()>,
    condvar: Condvar,
}

impl Quiet {
    pub(crate) fn new() -> Self {
        Quiet { watchers: AtomicUsize::new(0), mutex: Mutex::new(()), condvar: Condvar::new() }
    }

    /// Something ended that somebody may wait for. No lock of a shard is held.
    #[inline]
    pub(crate) fn changed(&self) {
        // Pairs with the increment in `wait_until`: what ended was written before, and is read after it.
        if self.watchers.load(SeqCst) > 0 {
            self.tell();
        }
    }

    #[cold]
    fn tell(&self) {
        // The watcher holds the mutex from its look to its sleep; so it has not looked yet, or sleeps already.
        drop(lock(&self.mutex));
        self.condvar.notify_all();
    }

    /// Waits until `done` says so; `false` if the limit (of real time) passes first.
    pub(crate) fn wait_until(
        &self,
        limit: Option<Duration>,
        mut done: impl FnMut() -> bool,
    ) -> bool {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        self.watchers.fetch_add(1, SeqCst);
        let mut guard = lock(&self.mutex);
        let answer = loop {
            if done() {
                break true;
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                break false;
            }
            guard = wait(&self.condvar, guard, left);
        };
        drop(guard);
        self.watchers.fetch_sub(1, SeqCst);
        answer
    }
}

/// The most timers that may be pending. The one counter that all threads write, and only if it was asked for.
pub(crate) struct Limit {
    most: usize,
    used: AtomicUsize,
}

impl Limit {
    pub(crate) fn new(most: usize) -> Self {
        Limit { most, used: AtomicUsize::new(0) }
    }

    /// Takes a place, if there is one. Relaxed: it is a count, and orders nothing else.
    pub(crate) fn take(&self) -> bool {
        let more = |used: usize| (used < self.most).then_some(used + 1);
        self.used.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    /// Takes a place for a timer that had one a moment ago, whatever the limit.
    pub(crate) fn take_again(&self) {
        self.used.fetch_add(1, Relaxed);
    }

    fn give_back(&self, places: usize) {
        self.used.fetch_sub(places, Relaxed);
    }
}
