//! What all shards of an engine share and nobody writes on the way: the clock, the signal, the limit.

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
    /// The number of threads that run callbacks, and [`WATCHED`] while somebody waits for them. On a cache line of its
    /// own: every operation reads the other fields, and none writes them.
    busy: Padded<AtomicUsize>,
    pub(crate) on_panic: Option<OnPanic>,
    /// Nanoseconds.
    pub(crate) tick: u64,
}

/// The top bit of the count of those that are at work.
const WATCHED: usize = 1 << (usize::BITS - 1);

/// A thread that claims timers and runs them.
pub(crate) struct AtWork<'a> {
    context: &'a EngineContext,
    _in_callback: InCallback,
}

impl Drop for AtWork<'_> {
    #[inline]
    fn drop(&mut self) {
        // AcqRel: who sees it fall sees what the callbacks did, and who is watched sees the mark: it is one word.
        let busy = self.context.busy.0.fetch_sub(1, AcqRel);
        if planted!("engine.only-the-last-says-so", busy == WATCHED | 1, busy & WATCHED != 0) {
            self.context.quiescence.changed();
        }
    }
}

/// The settings that all shards share.
#[derive(Clone)]
pub(crate) struct ContextSettings {
    pub(crate) clock: EngineClock,
    pub(crate) limit: Option<Arc<Limit>>,
    pub(crate) on_panic: Option<OnPanic>,
    /// Whether the caller drives the engine.
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
            on_panic,
            tick,
        }
    }

    /// As long as what is returned lives, the current thread claims timers and runs them. It is there before the first
    /// claim, so who takes a shard's lock after that claim sees it.
    #[inline]
    pub(crate) fn work(&self) -> AtWork<'_> {
        self.busy.0.fetch_add(1, AcqRel);
        AtWork { context: self, _in_callback: InCallback::enter(self.id(), self.clock_id()) }
    }

    /// How many threads are at work.
    pub(crate) fn busy(&self) -> usize {
        self.busy.0.load(Acquire) & !WATCHED
    }

    /// From now on, who is done with its work says so. For a stop, and for a virtual clock: it is never taken back.
    pub(crate) fn watch(&self) {
        self.busy.0.fetch_or(WATCHED, AcqRel);
    }

    /// What tells this engine from others.
    pub(crate) fn id(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// Returns the places of timers that are no longer pending. The caller holds their shard's lock, so that a thread
    /// which finds the shard empty also finds room.
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

/// Where those wait who wait for callbacks to end. Who ends one says so only if it is being watched.
pub(crate) struct Quiescence {
    mutex: Mutex<()>,
    condvar: Condvar,
}

impl Quiescence {
    pub(crate) fn new() -> Self {
        Quiescence { mutex: Mutex::new(()), condvar: Condvar::new() }
    }

    /// Something ended that somebody may wait for. No lock of a shard is held.
    #[cold]
    pub(crate) fn changed(&self) {
        // Who waits holds the mutex from its look to its sleep; so it has not looked yet, or sleeps already.
        planted!("engine.change-told-without-the-mutex", (), drop(lock(&self.mutex)));
        self.condvar.notify_all();
    }

    /// Waits until `done` says so; `false` if the limit (of real time) passes first.
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

/// The most timers that may be pending. The one counter that all threads write, and only if it was asked for.
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

    /// Takes a place, if there is one. Relaxed: it is a count, and orders nothing else.
    pub(crate) fn take(&self) -> bool {
        let room = |used| planted!("engine.limit-off-by-one", used <= self.most, used < self.most);
        let more = |used: usize| room(used).then_some(used + 1);
        self.used.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    fn give_back(&self, places: usize) {
        self.used.fetch_sub(places, Relaxed);
    }
}
