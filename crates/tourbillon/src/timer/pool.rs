//! A pool of threads that run callbacks. While a thread is free, a slow callback delays no other callback.
//!
//! A worker runs ready callbacks until there is none, then sleeps. The driver wakes workers: after it has made timers
//! of a shard ready, it wakes as many workers as are already running, at least one. While timers are still ready, it
//! does the same again after [a short wait](PATIENCE). So a large number of short callbacks wakes only one thread per
//! shard, and if callbacks are queued behind blocking ones, the number of running workers doubles each time. The
//! tempting alternative, that each worker wakes the next before it runs a callback, would wake all workers for every
//! batch, on fewer cores, and they would contend for one lock.
//!
//! Only with the system's clock is the driver certain to return after that wait. With any other clock, the driver at
//! once wakes a worker for each ready timer.
//!
//! If no worker is free, none is woken, because every worker that is awake looks once more before it sleeps. That look
//! cannot miss a timer that the driver made ready, because both threads take the shard's lock:
//!
//! ```text
//!   the driver                                  a worker that is about to sleep
//!   shard's lock: makes ready                   free += 1
//!   reads free                                  shard's lock: is anything ready?
//! ```
//!
//! The thread that takes the lock second sees what the other wrote before.

use std::sync::Arc;

use super::TimerCore;
use super::executor::Run;
use super::run::run_one;
use crate::spawn::Spawn;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::sync::{Condvar, Mutex, lock, wait};
use crate::timer::TimerShard;

/// How long the driver waits before it returns, in nanoseconds; an eighth of a tick if that is less.
///
/// About as long as waking a thread takes.
const PATIENCE: u64 = 125_000;

pub(crate) struct Pool {
    most: usize,
    name: String,
    spawn: Spawn,
    state: Mutex<Workers>,
    called: Condvar,
    /// The number of workers that sleep and were not woken, plus workers that may still be started. Written under the
    /// mutex.
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

    /// Makes ready timers run. The driver calls this after it has visited the shard.
    pub(super) fn deliver(&self, core: &Arc<TimerCore>, shard: &TimerShard) {
        let ready = || core.shards.iter().map(|shard| shard.seen_ready()).sum::<usize>();
        let first = ready();
        if core.context.clock.is_system() {
            // As many workers as are already running. Each of them runs at least one timer; if more timers are ready,
            // the driver must return.
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

    /// Makes a free worker look for work. `false` if no worker is free.
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
            // There is no worker at all, so run the callbacks here, on the driver's thread, rather than never.
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

    /// Whether the pool has no threads, not even one that is about to start.
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.state).threads == 0
    }

    /// The number of its threads.
    pub(super) fn threads(&self) -> usize {
        lock(&self.state).threads
    }

    fn count_free(&self, workers: &Workers) {
        // In this order nothing overflows, because the sleeping workers are a part of the threads.
        let free = self.most - workers.threads + (workers.sleeping - workers.calls);
        self.free.store(free, Relaxed);
    }

    /// Ends the workers, each as soon as its callback has returned.
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
        // A worker that is awake leaves a wake-up to a sleeping worker, if there is one.
        if !work || workers.calls > workers.sleeping {
            workers.calls = workers.calls.saturating_sub(1);
        }
        self.count_free(&workers);
        !workers.closed
    }
}

/// A thread of a pool. The pool counts the thread until this is dropped, however the thread ends.
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
