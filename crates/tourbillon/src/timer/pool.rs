//! A pool of threads that run callbacks: a slow callback delays no other while a thread is free.
//!
//! A worker runs ready callbacks until there is none, then sleeps. The driver wakes workers: after it has made timers
//! of a shard ready, it wakes one, or as many as are already running. While timers are still ready, it returns after [a
//! while](PATIENCE) and does the same. A large number of short callbacks therefore wakes one thread per shard, and
//! callbacks that are queued behind blocking ones wait until more workers are woken, twice as many each time. The
//! tempting alternative, that each worker wakes the next before it runs a callback, would have all of them awake for
//! every batch, on fewer cores, contending for one lock.
//!
//! Only the system's clock is sure to bring the driver back after a while. On any other clock, the driver wakes a
//! worker at once for each timer that is ready.
//!
//! If no worker is free, none is woken: every worker that is awake looks once more before it sleeps. That look cannot
//! miss a timer that the driver made ready, because both go through the shard's lock:
//!
//! ```text
//!   the driver                                  a worker that is about to sleep
//!   shard's lock: makes ready                   free += 1
//!   reads free                                  shard's lock: is anything ready?
//! ```
//!
//! Whichever takes the lock second sees what the other wrote before.

use std::sync::Arc;

use super::TimerCore;
use super::executor::Run;
use super::run::run_one;
use crate::spawn::Spawn;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::sync::{Condvar, Mutex, lock, wait};
use crate::timer::TimerShard;

/// How long until the driver returns, in nanoseconds; an eighth of a tick if that is less.
///
/// It is about the time that it takes to wake a thread.
const PATIENCE: u64 = 125_000;

pub(crate) struct Pool {
    most: usize,
    name: String,
    spawn: Spawn,
    state: Mutex<Workers>,
    called: Condvar,
    /// The workers that sleep and were not woken, plus those that may still be started. Written under the mutex.
    free: AtomicUsize,
}

#[derive(Default)]
struct Workers {
    threads: usize,
    sleeping: usize,
    /// Wake-ups that no sleeping worker has taken yet: never more than there are sleeping workers.
    calls: usize,
    closed: bool,
}

impl Pool {
    pub(crate) fn new(most: usize, name: &str, spawn: Spawn) -> Self {
        let (state, called) = (Mutex::new(Workers::default()), Condvar::new());
        let name = format!("{name}-worker");
        Pool { most, name, spawn, state, called, free: AtomicUsize::new(most) }
    }

    /// Makes ready timers run. The driver calls this after it visited the shard.
    pub(super) fn deliver(&self, core: &Arc<TimerCore>, shard: &TimerShard) {
        let ready = || core.shards.iter().map(|shard| shard.seen_ready()).sum::<usize>();
        let first = ready();
        if core.context.clock.is_system() {
            // As many again as are running. Each worker takes one timer at least; for more than that, the driver has to
            // return.
            let more = (self.most - self.free.load(Relaxed)).max(1).min(first);
            let called = (0..more).take_while(|_| self.call(core)).count();
            if planted!(
                "timer.pool-looks-every-125-microseconds",
                first > called,
                called == more && first > more
            ) {
                let patience = planted!(
                    "timer.pool-waits-an-eighth-of-a-long-tick",
                    PATIENCE.max(core.context.tick / 8),
                    PATIENCE.min(core.context.tick / 8)
                );
                planted!(
                    "timer.nobody-comes-back-for-those-behind",
                    (),
                    shard.remind(core.context.clock.now() + patience)
                );
            }
            return;
        }
        for _ in 0..planted!("timer.one-worker-called-for-all", first.min(1), first) {
            if ready() == 0 || !self.call(core) {
                break;
            }
        }
    }

    /// Makes a free worker look for work. `false` if none is free.
    fn call(&self, core: &Arc<TimerCore>) -> bool {
        // Relaxed: the shard's lock orders it, as the module's documentation explains.
        self.free.load(Relaxed) > 0 && self.call_one(core)
    }

    fn call_one(&self, core: &Arc<TimerCore>) -> bool {
        let mut workers = lock(&self.state);
        if workers.closed {
            return false;
        }
        if planted!(
            "timer.pool-calls-one-worker-twice",
            workers.sleeping > 0,
            workers.calls < workers.sleeping
        ) {
            workers.calls += 1;
            self.count_free(&workers);
            drop(workers);
            self.called.notify_one();
            return true;
        }
        let most = planted!(
            "fifth.last-thread-of-a-pool-is-never-started",
            (self.most - 1).max(1),
            self.most
        );
        if workers.threads == most {
            return false;
        }
        workers.threads += 1;
        self.count_free(&workers);
        drop(workers);
        self.hire(core)
    }

    fn hire(&self, core: &Arc<TimerCore>) -> bool {
        let worker = Worker(core.clone());
        if self.spawn.run(self.name.clone(), Box::new(move || worker.work())).is_ok() {
            return true;
        }
        if planted!("timer.no-worker-at-all-runs-nothing", false, self.is_empty()) {
            // There is no worker at all, so the driver's thread is the caller: run the callbacks here rather than
            // never.
            let _at_work = planted!(
                "later.callback-on-the-driver-is-not-at-work",
                None,
                Some(core.context.work())
            );
            let mut from = 0;
            while run_any(core, &mut from) {}
        }
        false
    }

    /// Whether it has no threads, not even one that is about to start.
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.state).threads == 0
    }

    /// The number of its threads.
    pub(super) fn threads(&self) -> usize {
        lock(&self.state).threads
    }

    fn count_free(&self, workers: &Workers) {
        // In this order nothing overflows: sleeping workers are among the threads.
        let free = self.most - workers.threads + (workers.sleeping - workers.calls);
        self.free.store(free, Relaxed);
    }

    /// Ends the workers, each as soon as it has returned from its callback.
    pub(super) fn close(&self) {
        planted!("timer.stop-leaves-the-workers", (), lock(&self.state).closed = true);
        planted!(
            "timer.closed-pool-wakes-one-worker",
            self.called.notify_one(),
            self.called.notify_all()
        );
    }

    /// Sleeps until woken, or not at all if there is work. `false` if the pool was closed.
    fn sleep(&self, core: &TimerCore) -> bool {
        let mut workers = lock(&self.state);
        workers.sleeping += 1;
        self.count_free(&workers);
        let work = core.shards.iter().any(|shard| shard.count_ready() > 0);
        let work = planted!("timer.worker-sleeps-without-a-last-look", false, work);
        while !work && workers.calls == 0 && !workers.closed {
            workers = wait(&self.called, workers, None);
        }
        workers.sleeping -= 1;
        // A worker that is awake without a wake-up leaves it to one that sleeps, if there is one.
        if !work || workers.calls > workers.sleeping {
            workers.calls = workers.calls.saturating_sub(1);
        }
        self.count_free(&workers);
        !workers.closed
    }
}

/// A thread of a pool. The pool counts it until it is dropped, however the thread ends.
struct Worker(Arc<TimerCore>);

impl Worker {
    fn work(self) {
        let Run::Pool(pool) = &self.0.delivery.run else { return };
        let mut from = 0;
        loop {
            let at_work = self.0.context.work();
            while run_any(&self.0, &mut from) {}
            drop(at_work);
            if !pool.sleep(&self.0) {
                break;
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let Run::Pool(pool) = &self.0.delivery.run else { return };
        let mut workers = lock(&pool.state);
        workers.threads -= planted!("timer.worker-that-is-gone-stays-counted", 0, 1);
        planted!("third.worker-that-failed-to-start-is-not-free", (), pool.count_free(&workers));
    }
}

/// Runs one callback of any shard. `false` if there is none.
///
/// The shards take turns: a shard that never runs out of work must not starve the others.
fn run_any(core: &Arc<TimerCore>, from: &mut usize) -> bool {
    let count = core.shards.len();
    let last = planted!("timer.worker-begins-at-the-same-shard", 0, *from);
    for step in 1..=count {
        *from = (last + step) % count;
        if run_one(core, &core.shards[*from]) {
            return true;
        }
    }
    false
}
