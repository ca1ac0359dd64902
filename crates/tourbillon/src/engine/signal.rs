//! How the driver sleeps, and who wakes it: the one way to wake the driver.
//!
//! Every shard publishes the moment of its next work in `next`. The driver sleeps until the least of them, which
//! it publishes in `until`. Both sides write their own word first and read the other's second, with a fence between
//! the two, so at least one of them sees the other:
//!
//! ```text
//!   who arms (under the shard's lock)         the driver
//!   next[shard] = due   (only if earlier)     until = least of next
//!   ─── fence ───                             ─── fence ───
//!   if due < until: wake                      if least of next < until: don't sleep
//! ```
//!
//! | `until` | means |
//! |---|---|
//! | [`AWAKE`] | the driver is awake, or was woken: it looks at `next` before it sleeps |
//! | any other | the driver sleeps until then, or is about to |
//!
//! `next` is lowered by whoever arms an earlier timer and raised by the driver alone, both under the shard's lock.
//! It may be too early (its timer was cancelled), never too late: a timer that is armed later than `next` needs no
//! signal at all, which is what makes arming silent and free of shared writes.

use std::cell::Cell;
use std::sync::Arc;

use crate::sleeper::Sleeper;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use crate::sync::{Mutex, lock, thread_local};

/// `until` while the driver is awake.
const AWAKE: u64 = 0;
/// A moment that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

pub(crate) struct Signal {
    next: Box<[Padded<AtomicU64>]>,
    until: AtomicU64,
    stopping: AtomicBool,
    sleeper: Sleeper,
    /// There if the caller drives the engine.
    hook: Option<Hook>,
}

/// How an event loop is woken that turns the engine. Foreign code, which must not run under the shard's lock: the wake
/// is owed there, and told by the same thread when it has given up the lock.
#[derive(Default)]
struct Hook {
    owed: AtomicBool,
    wake: Mutex<Option<Arc<Wake>>>,
}

pub(crate) type Wake = dyn Fn() + Send + Sync;

thread_local! {
    // The signal whose wakes this thread tells later, by its address; or 0.
    static LATER: Cell<usize> = const { Cell::new(0) };
}

/// While it lives, this thread tells no wake of the signal: it holds a lock, and arms under it.
struct Later {
    before: usize,
}

impl Drop for Later {
    fn drop(&mut self) {
        let _ = LATER.try_with(|later| later.set(self.before));
    }
}

/// A cache line of its own, and the one that is fetched with it: writers must not slow those who only read nearby.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Padded<X>(pub(crate) X);

/// What the driver found when it wanted to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Something may be due.
    Woken,
    /// The engine stops.
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

    /// The shard has work at `due`, earlier than it had said. The shard's lock is held.
    pub(crate) fn lower(&self, shard: usize, due: u64) {
        // Release pairs with the driver's look, which leads it to the shard's lock.
        planted!(
            "engine.shard-keeps-its-work-to-itself",
            (),
            self.next[shard].0.store(due, Ordering::Release)
        );
        // Pairs with the fence in `rest`.
        planted!("engine.no-fence-after-lowering", (), fence(Ordering::SeqCst));
        if due < self.until.load(Ordering::Acquire) {
            self.wake();
        }
    }

    /// The shard has no work before `due`. The shard's lock is held, by the driver.
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

    /// Sleeps until there is work; `sleep` is given the moment and the sleeper. The driver alone calls this.
    pub(crate) fn rest(&self, sleep: impl FnOnce(u64, &Sleeper)) -> Rest {
        let least = self.least();
        self.until.store(least, Ordering::Release);
        // Pairs with the fence in `lower`.
        planted!("engine.no-fence-before-the-second-look", (), fence(Ordering::SeqCst));
        // The second look, after publishing: who lowered before could not know that the driver goes to sleep.
        if planted!("engine.driver-looks-once", true, self.least() >= least) {
            sleep(least, &self.sleeper);
        }
        self.until.store(AWAKE, Ordering::Release);
        if self.stopping.load(Ordering::Acquire) { Rest::Stopping } else { Rest::Woken }
    }

    /// Publishes until when nothing has to be done, and returns it: for a driver that sleeps elsewhere. From now on
    /// whoever lowers below it wakes.
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

    /// The driver is awake, wherever it has slept.
    pub(crate) fn awake(&self) {
        self.until.store(AWAKE, Ordering::Release);
    }

    /// Wakes the driver, or has it look once more before it sleeps.
    fn wake(&self) {
        // So that others need not. The tempting alternative, that only who finds the driver asleep here wakes it, loses
        // a wake when the driver wakes by itself at this moment: loom shows the order.
        self.until.store(AWAKE, Ordering::Release);
        if let Some(hook) = &self.hook {
            // Pairs with `owed`, which this thread calls too: it is told at the latest then.
            planted!("engine.owed-wake-forgotten", (), hook.owed.store(true, Ordering::Release));
        }
        self.sleeper.wake();
    }

    /// Whether the caller drives the engine.
    #[inline]
    pub(crate) fn has_hook(&self) -> bool {
        self.hook.is_some()
    }

    /// The one before. Foreign code: to be dropped with no lock held.
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

    /// From now on nobody is called. Foreign code: to be dropped with no lock held.
    pub(crate) fn take_hook(&self) -> Option<Arc<Wake>> {
        lock(&self.hook.as_ref()?.wake).take()
    }

    /// Does what arms timers under a lock of ours, and gives that up at its end. A wake that it owes is told by whoever
    /// asks next for what is [owed](Signal::owed): the caller must.
    pub(crate) fn tell_later<R>(&self, locked: impl FnOnce() -> R) -> R {
        let before = LATER.try_with(|later| later.replace(self.id())).unwrap_or_default();
        let _later = Later { before };
        locked()
    }

    fn id(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// What is to be called now, with no lock held, because a wake is owed.
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

    /// Where the driver sleeps, for a model in which time is a thread.
    #[cfg(all(loom, test))]
    pub(crate) fn sleeper(&self) -> &Sleeper {
        &self.sleeper
    }

    /// Tells the driver to end.
    pub(crate) fn stop(&self) {
        // Pairs with the look in `rest`, after a sleep that the permit ends.
        self.stopping.store(true, Ordering::Release);
        planted!("engine.stop-does-not-wake-the-driver", (), self.wake());
    }
}
