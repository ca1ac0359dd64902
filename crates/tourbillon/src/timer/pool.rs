//! Threads that run callbacks, so that a slow one delays nobody while a thread is free.
//!
//! A worker runs what is ready until nothing is, then sleeps. The driver calls them: one when it has made timers of a
//! shard ready, or as many again as are at work; and as long as something is ready still, it comes back after
//! [a while](PATIENCE) and does the same. So callbacks that are many and short wake one thread a shard, and who stands
//! behind some that block waits for others to be woken, twice as many each time. The tempting alternative, that each
//! worker calls the next before it runs a callback, has all of them awake for every crowd, on fewer cores, at one lock.
//!
//! Only the system's clock is sure to bring the driver back after a while. On any other, a worker is called at once for
//! each timer that is ready.
//!
//! Nobody is called if nobody is free: every worker that is awake looks once more before it sleeps. That look cannot
//! miss what a caller knew of, because both go through the shard's lock:
//!
//! ```text
//!   the driver                                  a worker that wants to sleep
//!   shard's lock: makes ready                   free += 1
//!   looks at free                               shard's lock: is anything ready?
//! ```
//!
//! Whoever takes the lock second sees what the other wrote before.

use std::sync::Arc;

use super::TimerCore;
use super::executor::Run;
use super::run::run_one;
use crate::spawn::Spawn;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::sync::{Condvar, Mutex, lock, wait};
use crate::timer::TimerShard;

/// The driver comes back after so long, in nanoseconds, or after an eighth of a tick if that is less: about as long as
/// it takes to wake a thread.
const PATIENCE: u64 = 125_000;

pub(crate) struct Pool {
    most: usize,
    name: String,
    spawn: Spawn,
    state: Mutex<Workers>,
    called: Condvar,
    /// Workers that sleep and were not called, and those that may still be started. Written under the mutex.
    free: AtomicUsize,
}

#[derive(Default)]
struct Workers {
    threads: usize,
    sleeping: usize,
    /// Calls that no sleeping worker has answered yet: never more than sleep.
    calls: usize,
    closed: bool,
}

impl Pool {
    pub(crate) fn new(most: usize, name: &str, spawn: Spawn) -> Self {
        let (state, called) = (Mutex::new(Workers::default()), Condvar::new());
        let name = format!("{name}-worker");
        Pool { most, name, spawn, state, called, free: AtomicUsize::new(most) }
    }

    /// Sees to it that what is ready runs. The driver calls this, after it was at the shard.
    pub(super) fn deliver(&self, core: &Arc<TimerCore>, shard: &TimerShard) {
        let ready = || core.shards.iter().map(|shard| shard.seen_ready()).sum::<usize>();
        let first = ready();
        if core.context.clock.is_system() {
            // As many again as are at work. Each takes one at least; for more than that somebody has to come back.
            let more = (self.most - self.free.load(Relaxed)).max(1).min(first);
            let called = (0..more).take_while(|_| self.call(core)).count();
            if planted!(
                "timer.pool-looks-every-125-microseconds",
                first > called,
                called == more && first > more
            ) {
                shard.remind(core.context.clock.now() + PATIENCE.min(core.context.tick / 8));
            }
            return;
        }
        for _ in 0..planted!("timer.one-worker-called-for-all", first.min(1), first) {
            if ready() == 0 || !self.call(core) {
                break;
            }
        }
    }

    /// There is work: has a worker look for it, if one is free. `false` if none is.
    fn call(&self, core: &Arc<TimerCore>) -> bool {
        // Relaxed: the shard's lock orders it, see above.
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
        if workers.threads == self.most {
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
            // Then the driver called, and better here and now than never.
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

    /// How many threads it has.
    pub(super) fn threads(&self) -> usize {
        lock(&self.state).threads
    }

    fn count_free(&self, workers: &Workers) {
        // In this order nothing overflows: those that sleep are among the threads.
        let free = self.most - workers.threads + (workers.sleeping - workers.calls);
        self.free.store(free, Relaxed);
    }

    /// Ends the workers, as soon as each has returned from its callback.
    pub(super) fn close(&self) {
        planted!("timer.stop-leaves-the-workers", (), lock(&self.state).closed = true);
        planted!(
            "timer.closed-pool-wakes-one-worker",
            self.called.notify_one(),
            self.called.notify_all()
        );
    }

    /// Sleeps until called, or not at all if there is work. `false` if the pool was closed.
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
        // Awake without being called, it leaves the call to one that sleeps, if there is one.
        if !work || workers.calls > workers.sleeping {
            workers.calls = workers.calls.saturating_sub(1);
        }
        self.count_free(&workers);
        !workers.closed
    }
}

/// One of the threads of a pool, which it counts as such until it is dropped, however it ends.
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

/// Runs one callback of any shard, each in its turn: a shard that is never done must not keep the others waiting.
/// `false` if there is none.
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
