//! State shared by all shards of an engine: the clock, the signal, the limit, the count of busy threads.
//!
//! Arming and cancelling mostly read this state, so fields that threads write often are kept off its cache lines:
//! `busy` and the signal's `next` are padded, and the limit is a separate allocation.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::signal::{Padded, Signal};
use crate::clock::EngineClock;
use crate::contain::OnPanic;
use crate::in_callback::InCallback;
use crate::sync::atomic::{AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use crate::sync::{Condvar, Mutex, lock, wait};

pub(crate) struct EngineContext {
    pub(crate) clock: EngineClock,
    pub(crate) signal: Signal,
    pub(crate) quiescence: Quiescence,
    pub(crate) limit: Option<Arc<Limit>>,
    /// The number of threads that run callbacks, plus [`WATCHED`] while a thread waits for them to finish.
    /// Padded, so that writes do not slow readers of the other fields.
    busy: Padded<AtomicUsize>,
    /// The number of callbacks whose threads wait in a shutdown.
    shutting_down: AtomicUsize,
    pub(crate) on_panic: Option<OnPanic>,
    /// The tick in nanoseconds.
    pub(crate) tick: u64,
}

/// The top bit of `busy`: a thread that finishes its work must notify [`Quiescence`].
const WATCHED: usize = 1 << (usize::BITS - 1);

/// Guard of a thread that claims and runs timers. It is counted in `busy`.
pub(crate) struct AtWork<'a> {
    context: &'a EngineContext,
    _in_callback: InCallback,
}

impl Drop for AtWork<'_> {
    #[inline]
    fn drop(&mut self) {
        // AcqRel: a thread that sees the count fall also sees the callbacks' writes. The count and the mark are one
        // word, so a thread that finishes after `watch` sees the mark.
        let busy = self.context.busy.0.fetch_sub(1, AcqRel);
        if planted!("engine.only-the-last-says-so", busy == WATCHED | 1, busy & WATCHED != 0) {
            self.context.quiescence.changed();
        }
    }
}

/// Guard of a thread that waits in a shutdown. The callbacks on its stack are counted in `shutting_down`.
pub(crate) struct ShuttingDown<'a> {
    context: &'a EngineContext,
    callbacks: usize,
}

impl Drop for ShuttingDown<'_> {
    fn drop(&mut self) {
        self.context.shutting_down.fetch_sub(self.callbacks, AcqRel);
    }
}

/// Settings that all shards share.
#[derive(Clone)]
pub(crate) struct ContextSettings {
    pub(crate) clock: EngineClock,
    pub(crate) limit: Option<Arc<Limit>>,
    pub(crate) on_panic: Option<OnPanic>,
    /// Whether the caller's event loop drives the engine.
    pub(crate) driven: bool,
}

impl EngineContext {
    pub(crate) fn new(settings: ContextSettings, shards: usize, tick: u64) -> Self {
        let ContextSettings { clock, limit, on_panic, driven } = settings;
        EngineContext {
            clock,
            signal: Signal::new(shards, driven),
            quiescence: Quiescence::new(),
            limit,
            busy: Padded(AtomicUsize::new(0)),
            shutting_down: AtomicUsize::new(0),
            on_panic,
            tick,
        }
    }

    /// Counts the current thread as busy until the guard is dropped. The thread takes the guard before its first claim,
    /// so that another thread that acquires the shard's lock after that claim sees the count.
    #[inline]
    pub(crate) fn work(&self) -> AtWork<'_> {
        self.busy.0.fetch_add(1, AcqRel);
        AtWork { context: self, _in_callback: InCallback::enter(self.id(), self.clock_id()) }
    }

    /// The number of busy threads.
    pub(crate) fn busy(&self) -> usize {
        self.busy.0.load(Acquire) & !WATCHED
    }

    /// Counts the callbacks on the current thread's stack as waiting in a shutdown until the guard is dropped.
    ///
    /// A shutdown must not wait for them, because they wait for the shutdown's thread in turn.
    pub(crate) fn shut_down(&self, callbacks: usize) -> ShuttingDown<'_> {
        self.shutting_down.fetch_add(callbacks, AcqRel);
        self.quiescence.changed();
        ShuttingDown { context: self, callbacks }
    }

    /// Whether every callback that runs waits in a shutdown. The caller has found nothing pending.
    pub(crate) fn rest_shuts_down(&self) -> bool {
        // Read in this order, a callback that enters a shutdown in between is counted in both: a thread counts as busy
        // before it claims, and every timer was claimed before.
        let busy = self.busy();
        busy <= self.shutting_down.load(Acquire)
    }

    /// Sets the mark [`WATCHED`], for good: a thread that finishes its work then notifies [`Quiescence`]. Called by a
    /// stop and by a virtual clock.
    pub(crate) fn watch(&self) {
        self.busy.0.fetch_or(WATCHED, AcqRel);
    }

    /// Identifies this engine among others.
    pub(crate) fn id(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// Frees the places of timers that are no longer pending, if there is a limit. The caller holds their shard's lock,
    /// so a thread that finds the shard empty also finds the places free.
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

/// Where a thread waits until callbacks have ended. The end of a callback notifies only if [`WATCHED`] is set.
pub(crate) struct Quiescence {
    mutex: Mutex<()>,
    condvar: Condvar,
}

impl Quiescence {
    pub(crate) fn new() -> Self {
        Quiescence { mutex: Mutex::new(()), condvar: Condvar::new() }
    }

    /// Notifies waiting threads, which check their condition again. The caller holds no shard's lock.
    #[cold]
    pub(crate) fn changed(&self) {
        // A waiter holds the mutex from its check until it blocks. While this thread holds the mutex, every waiter is
        // either before its check or already blocked, so none misses the notification.
        planted!("engine.change-told-without-the-mutex", (), drop(lock(&self.mutex)));
        planted!(
            "fifth.one-of-two-stops-waits-for-ever",
            self.condvar.notify_one(),
            self.condvar.notify_all()
        );
    }

    /// Waits until `done` returns true; returns `false` if `limit` (real time) passes first.
    pub(crate) fn wait_until(
        &self,
        limit: Option<Duration>,
        mut done: impl FnMut() -> bool,
    ) -> bool {
        let end = planted!(
            "engine.stop-within-for-ever-panics",
            limit.map(|limit| Instant::now() + limit),
            limit.and_then(|limit| Instant::now().checked_add(limit))
        );
        let mut guard = lock(&self.mutex);
        loop {
            let may_look =
                planted!("more.stop-within-zero-never-looks", limit != Some(Duration::ZERO), true);
            if may_look && done() {
                return true;
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return false;
            }
            guard = wait(&self.condvar, guard, left);
        }
    }
}

/// The maximum number of pending timers. The only counter that all threads write; present only if a limit is set.
pub(crate) struct Limit {
    most: usize,
    used: AtomicUsize,
}

impl Limit {
    pub(crate) fn new(most: usize) -> Self {
        Limit { most, used: AtomicUsize::new(0) }
    }

    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Takes a place, if one is free. Relaxed: the count synchronizes no other memory.
    pub(crate) fn take(&self) -> bool {
        let room = |used| planted!("engine.limit-off-by-one", used <= self.most, used < self.most);
        let more = |used: usize| room(used).then_some(used + 1);
        self.used.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    fn give_back(&self, places: usize) {
        self.used.fetch_sub(places, Relaxed);
    }
}
