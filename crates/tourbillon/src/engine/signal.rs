//! How the driver sleeps, and how the engine wakes it: only through this module.
//!
//! Every shard publishes in `next` when its next work is due. The driver sleeps until the least of these times, which
//! it publishes in `until`. Each side first writes its own word and then reads the other's, with a fence in between, so
//! at least one side sees the other's write:
//!
//! ```text
//!   arming (under the shard's lock)           the driver
//!   next[shard] = due   (only if earlier)     until = least of next
//!   ─── fence ───                             ─── fence ───
//!   if due < until: wake                      if least of next < until: don't sleep
//! ```
//!
//! | `until` | means |
//! |---|---|
//! | [`AWAKE`] | the driver is awake or was woken; it reads `next` before it sleeps |
//! | any other value | the driver sleeps until then, or is about to |
//!
//! A thread that arms an earlier timer lowers `next`, and only the driver raises it; both hold the shard's lock. `next`
//! may be too early (if its timer was cancelled), but is never too late. Arming a timer for later than `next` needs no
//! signal, so most arming writes no shared word.

use std::cell::Cell;
use std::sync::Arc;

use crate::sleeper::Sleeper;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use crate::sync::{Mutex, lock, thread_local};

/// The value of `until` while the driver is awake.
const AWAKE: u64 = 0;
/// A time that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

pub(crate) struct Signal {
    next: Box<[Padded<AtomicU64>]>,
    until: AtomicU64,
    stopping: AtomicBool,
    sleeper: Sleeper,
    /// Present if the caller's event loop drives the engine.
    hook: Option<Hook>,
}

/// How to wake the event loop that drives the engine. The hook is user code and must not run under the shard's lock:
/// under the lock, a thread marks the wake as *owed*, and calls the hook after it has released the lock.
#[derive(Default)]
struct Hook {
    owed: AtomicBool,
    wake: Mutex<Option<Arc<Wake>>>,
}

pub(crate) type Wake = dyn Fn() + Send + Sync;

thread_local! {
    // The address of the signal whose wakes this thread must defer, or 0.
    static LATER: Cell<usize> = const { Cell::new(0) };
}

/// Guard: while it lives, this thread defers wakes of the signal, because it arms timers under a lock.
struct Later {
    before: usize,
}

impl Drop for Later {
    fn drop(&mut self) {
        let _ = LATER.try_with(|later| later.set(self.before));
    }
}

/// Aligned to two cache lines, which the processor fetches together, so that writes do not slow reads of neighbouring
/// data.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Padded<X>(pub(crate) X);

/// The result of [`rest`](Signal::rest).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Something may be due.
    Woken,
    /// The engine is stopping.
    Stopping,
}

impl Signal {
    pub(crate) fn new(shards: usize, driven: bool) -> Self {
        Signal {
            next: (0..shards).map(|_| Padded(AtomicU64::new(NEVER))).collect(),
            until: AtomicU64::new(AWAKE),
            stopping: AtomicBool::new(false),
            sleeper: Sleeper::new(),
            hook: driven.then(Hook::default),
        }
    }

    /// The shard has work at `due`, earlier than published so far. The caller holds the shard's lock.
    pub(crate) fn lower(&self, shard: usize, due: u64) {
        // Release pairs with the driver's Acquire load, after which it takes the shard's lock.
        planted!(
            "engine.shard-keeps-its-work-to-itself",
            (),
            self.next[shard].0.store(due, Ordering::Release)
        );
        // Pairs with the fences in `rest` and `settle`.
        planted!("engine.no-fence-after-lowering", (), fence(Ordering::SeqCst));
        if due < self.until.load(Ordering::Acquire) {
            self.wake();
        }
    }

    /// The shard has no work before `due`. The caller is the driver and holds the shard's lock.
    pub(crate) fn raise(&self, shard: usize, due: u64) {
        self.next[shard].0.store(due, Ordering::Release);
    }

    /// When the shard has work.
    pub(crate) fn next(&self, shard: usize) -> u64 {
        self.next[shard].0.load(Ordering::Acquire)
    }

    /// When the first of the shards has work.
    pub(crate) fn least(&self) -> u64 {
        let next = planted!("engine.driver-sees-one-shard", &self.next[..1], &self.next[..]);
        next.iter().map(|next| next.0.load(Ordering::Acquire)).min().unwrap_or(NEVER)
    }

    /// Sleeps until there is work. `sleep` receives the time and the sleeper. Only the driver calls this.
    pub(crate) fn rest(&self, sleep: impl FnOnce(u64, &Sleeper)) -> Rest {
        let least = self.least();
        self.until.store(least, Ordering::Release);
        // Pairs with the fence in `lower`.
        planted!("engine.no-fence-before-the-second-look", (), fence(Ordering::SeqCst));
        // The second look, after publishing: a thread that lowered `next` before could not see that the driver goes to
        // sleep.
        if planted!("engine.driver-looks-once", true, self.least() >= least) {
            sleep(least, &self.sleeper);
        }
        self.until.store(AWAKE, Ordering::Release);
        if self.stopping.load(Ordering::Acquire) { Rest::Stopping } else { Rest::Woken }
    }

    /// Publishes the time until which nothing is due, and returns it: for a driver that sleeps elsewhere.
    /// From now on, lowering a `next` below it wakes the driver.
    pub(crate) fn settle(&self) -> u64 {
        loop {
            let least = self.least();
            self.until.store(least, Ordering::Release);
            // As in `rest`.
            fence(Ordering::SeqCst);
            if planted!("engine.turn-looks-once", true, self.least() >= least) {
                return least;
            }
        }
    }

    /// Marks the driver as awake, however it slept.
    pub(crate) fn awake(&self) {
        self.until.store(AWAKE, Ordering::Release);
    }

    /// Wakes the driver, or makes it look once more before it sleeps.
    fn wake(&self) {
        // This store spares other threads the wake. The tempting alternative, to wake only if the old value shows the
        // driver asleep, loses a wake if the driver wakes by itself at this moment: loom finds the interleaving.
        planted!(
            "fourth.every-earlier-timer-wakes-the-loop",
            (),
            self.until.store(AWAKE, Ordering::Release)
        );
        if let Some(hook) = &self.hook {
            // Pairs with the swap in `owed`, which this thread calls later; the wake is delivered by then at the
            // latest.
            planted!("engine.owed-wake-forgotten", (), hook.owed.store(true, Ordering::Release));
        }
        self.sleeper.wake();
    }

    /// Whether the caller's event loop drives the engine.
    #[inline]
    pub(crate) fn has_hook(&self) -> bool {
        self.hook.is_some()
    }

    /// Sets the hook; returns the previous one, which is user code: drop it with no lock held.
    pub(crate) fn set_hook(&self, wake: Arc<Wake>) -> Option<Arc<Wake>> {
        let mut held = lock(&self.hook.as_ref()?.wake);
        let old = planted!(
            "more.first-wake-closure-stays",
            if held.is_some() { Some(wake) } else { held.replace(wake) },
            held.replace(wake)
        );
        planted!(
            "engine.old-waker-dropped-under-its-lock",
            {
                drop(old);
                None
            },
            old
        )
    }

    /// Removes the hook; returns it, which is user code: drop it with no lock held.
    pub(crate) fn take_hook(&self) -> Option<Arc<Wake>> {
        lock(&self.hook.as_ref()?.wake).take()
    }

    /// Runs `locked`, which arms timers under a lock and releases it. A wake caused by it is deferred: the caller must
    /// call [`owed`](Signal::owed) afterwards to deliver it.
    pub(crate) fn tell_later<R>(&self, locked: impl FnOnce() -> R) -> R {
        let before = LATER.try_with(|later| later.replace(self.id())).unwrap_or_default();
        let _later = Later { before };
        locked()
    }

    fn id(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// The hook to call now, with no lock held, if a wake is owed.
    pub(crate) fn owed(&self) -> Option<Arc<Wake>> {
        let hook = self.hook.as_ref()?;
        let later = LATER.try_with(Cell::get).is_ok_and(|later| later == self.id());
        if planted!("engine.loop-woken-under-a-lock", false, later) {
            return None;
        }
        let owed = planted!(
            "third.wake-that-was-told-is-owed-still",
            hook.owed.load(Ordering::Acquire),
            hook.owed.swap(false, Ordering::AcqRel)
        );
        if !owed {
            return None;
        }
        lock(&hook.wake).clone()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// The driver's sleeper, for a model in which a thread advances time.
    #[cfg(all(loom, test))]
    pub(crate) fn sleeper(&self) -> &Sleeper {
        &self.sleeper
    }

    /// Makes the driver end.
    pub(crate) fn stop(&self) {
        // Pairs with the load in `rest`, after the sleep that this wake ends.
        self.stopping.store(true, Ordering::Release);
        planted!("engine.stop-does-not-wake-the-driver", (), self.wake());
    }
}
