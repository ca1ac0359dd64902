//! Executors: where callbacks run.
//!
//! An executor never receives a callback, but a *job*: the right to claim the next ready callback. Ready timers stay in
//! the wheel, where they can be cancelled, moved and handed back until they start. If an executor refuses or drops a
//! job, nothing is lost.

use std::fmt;
use std::sync::{Arc, Weak};

use super::pool::Pool;
use super::run::run_one;
use super::{Callbacks, TimerCore, TimerShard};
use crate::contain::contain;
use crate::engine::Deliver;
use crate::leases::State;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use crate::sync::lock;

/// A user-defined executor, for [`Builder::executor`](crate::Builder::executor).
///
/// Closures with the same signature are executors too.
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use tourbillon::{Job, Timer, VirtualClock};
///
/// let (jobs, queue) = mpsc::sync_channel::<Job>(16);
/// std::thread::spawn(move || queue.into_iter().for_each(Job::run));
///
/// let clock = VirtualClock::new();
/// let timer = Timer::builder()
///     .clock(&clock)
///     // If the queue is full, return the job; it is offered again later.
///     .executor(move |job| jobs.try_send(job).map_err(|full| match full {
///         mpsc::TrySendError::Full(job) | mpsc::TrySendError::Disconnected(job) => job,
///     }))
///     .build()?;
/// for _ in 0..100 {
///     timer.schedule(Duration::from_secs(1), |_| ())?;
/// }
/// clock.advance(Duration::from_secs(1))?;
/// assert_eq!(timer.counts().fired, 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Executor: Send + Sync + 'static {
    /// Accepts a job, to [run](Job::run) it soon on some thread, or returns it.
    ///
    /// A job that is returned is offered again a little later.
    ///
    /// # Errors
    /// The job, if the executor cannot accept it now.
    fn execute(&self, job: Job) -> Result<(), Job>;
}

impl<E: Fn(Job) -> Result<(), Job> + Send + Sync + 'static> Executor for E {
    fn execute(&self, job: Job) -> Result<(), Job> {
        self(job)
    }
}

/// The right to run one callback: whichever is next when the job runs.
///
/// A dropped job is offered again.
pub struct Job {
    /// Weak, because the timer owns the executor: an executor that keeps jobs must not keep its own timer alive.
    core: Weak<TimerCore>,
    shard: usize,
    /// Whether it is counted in [`Tickets::out`].
    counted: bool,
}

impl Job {
    /// Runs a callback on this thread, if one is still ready.
    pub fn run(mut self) {
        // The job is subtracted before it claims a timer: while it is counted, no other job is sent for its timer.
        if let Some(core) =
            planted!("timer.job-gives-up-its-place-late", self.core.upgrade(), self.give_up())
        {
            let _at_work = core.context.work();
            run_one(&core, &core.shards[self.shard]);
        }
    }

    /// Removes the job from the count. `None` if it is not counted, or the timer is gone.
    fn give_up(&mut self) -> Option<Arc<TimerCore>> {
        let core = self.core.upgrade().filter(|_| std::mem::take(&mut self.counted))?;
        if let Run::Own(_, tickets) = &core.delivery.run {
            tickets.out[self.shard].fetch_sub(1, SeqCst);
        }
        Some(core)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let Some(core) = self.give_up() else { return };
        if let Run::Own(_, tickets) = &core.delivery.run {
            planted!(
                "more.dropped-job-is-not-offered-again",
                (),
                tickets.remind(&core, &core.shards[self.shard])
            );
        }
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Job")
    }
}

/// Where the callbacks of a timer are to run, as configured by the builder.
#[derive(Clone)]
pub(crate) enum Where {
    Driver,
    Pool(usize),
    Own(Arc<dyn Executor>),
}

/// Where the callbacks of a timer run.
pub(super) enum Run {
    Driver,
    Pool(Pool),
    Own(Arc<dyn Executor>, Tickets),
}

/// The number of outstanding jobs of each shard. After the driver's visit, there are at least as many as ready timers.
///
/// All accesses are sequentially consistent: the driver, and the thread that ends a job, each access the count only
/// once per job. If the driver read a count that is too high, it would leave a timer without a job.
pub(super) struct Tickets {
    out: Box<[AtomicUsize]>,
    /// How long to wait before a refused job is offered again, in nanoseconds.
    wait: AtomicU64,
}

const LEAST_WAIT: u64 = 1_000_000;
const MOST_WAIT: u64 = 100_000_000;

impl Tickets {
    pub(super) fn new(shards: usize) -> Self {
        let out = (0..shards).map(|_| AtomicUsize::new(0)).collect();
        Tickets { out, wait: AtomicU64::new(LEAST_WAIT) }
    }

    fn offer(&self, executor: &dyn Executor, core: &Arc<TimerCore>, shard: &Arc<TimerShard>) {
        let out = &self.out[shard.index];
        let ready = shard.count_ready();
        let ready = planted!("timer.one-job-too-few", ready.saturating_sub(1), ready);
        let mut missing = ready.saturating_sub(out.load(SeqCst));
        while missing > 0 {
            missing -= 1;
            out.fetch_add(1, SeqCst);
            let job = Job { core: Arc::downgrade(core), shard: shard.index, counted: true };
            let taken = planted!(
                "timer.executor-panic-not-contained",
                Some(executor.execute(job)),
                contain(shard, || executor.execute(job))
            );
            match taken {
                Some(Ok(())) => {
                    planted!(
                        "timer.refusal-wait-never-reset",
                        (),
                        self.wait.store(LEAST_WAIT, SeqCst)
                    );
                }
                // Dropping the job makes the driver return to the job's shard. That may be another shard if the
                // executor returned another job.
                Some(Err(job))
                    if planted!(
                        "sixth.job-of-another-shard-ends-the-offer-for-good",
                        true,
                        job.shard == shard.index
                    ) =>
                {
                    drop(job);
                    planted!("later.refusal-does-not-end-the-offer", continue, return);
                }
                Some(Err(_)) | None => return self.remind(core, shard),
            }
        }
    }

    /// Makes the driver offer again after a delay, which doubles until a job is accepted.
    fn remind(&self, core: &TimerCore, shard: &TimerShard) {
        let wait = self.wait.load(SeqCst);
        let longer = wait.saturating_mul(2);
        let longer =
            planted!("timer.refusal-wait-doubles-without-end", longer, longer.min(MOST_WAIT));
        self.wait.store(longer, SeqCst);
        shard.remind(core.context.clock.now() + wait);
    }
}

impl Deliver for Callbacks {
    fn deliver(core: &Arc<TimerCore>, shard: &Arc<TimerShard>) {
        match &core.delivery.run {
            Run::Driver => {
                let _at_work = core.context.work();
                // Timers that become ready during the loop wait for the next pass, so that they do not delay the other
                // shards.
                for _ in 0..shard.count_ready() {
                    run_one(core, shard);
                }
            }
            Run::Pool(pool) => pool.deliver(core, shard),
            Run::Own(executor, tickets) => tickets.offer(&**executor, core, shard),
        }
    }

    fn offer_again(core: &Arc<TimerCore>, shard: &Arc<TimerShard>) {
        match &core.delivery.run {
            Run::Own(executor, tickets) => tickets.offer(&**executor, core, shard),
            // The pool has no thread, because the worker that was started ended before it could run a callback.
            Run::Pool(pool)
                if planted!("timer.worker-that-never-came-is-awaited", false, pool.is_empty()) =>
            {
                pool.deliver(core, shard);
            }
            Run::Driver | Run::Pool(_) => {}
        }
    }

    fn abandon(core: &TimerCore) {
        let stopped = core.stop();
        let interrupted = lock(&core.delivery.interrupted).take();
        for (shard, taken) in stopped.into_iter().chain(interrupted).flatten() {
            let why = planted!(
                "fifth.retry-on-a-dropped-timer-says-cancelled",
                State::Cancelled,
                State::HandedBack
            );
            taken.value.discard(why, &core.shards[shard]);
        }
        planted!("timer.dropped-timer-leaves-its-tasks", (), core.delivery.tasks.stop());
    }

    fn wall_was_set(core: &Arc<TimerCore>) {
        core.delivery.wall.look_again(core);
    }

    fn close(&self) {
        self.wall.detach();
        if let Run::Pool(pool) = &self.run {
            pool.close();
        }
    }
}
