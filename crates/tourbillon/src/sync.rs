//! The primitives that threads meet on, from the standard library, or from a model checker when one looks.
//!
//! Everything in this crate that two threads touch comes through here, so that loom and shuttle see all of it.
//! `Arc` is the standard one everywhere: who owns what is not in question, who sees what when is.

#[cfg(loom)]
pub(crate) use loom::{
    sync::{Condvar, Mutex, MutexGuard, atomic},
    thread,
};
#[cfg(shuttle)]
pub(crate) use shuttle::{
    sync::{Condvar, Mutex, MutexGuard, atomic},
    thread, thread_local,
};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard, atomic},
    thread, thread_local,
};

#[cfg(not(any(loom, shuttle)))]
use std::sync::TryLockError;
use std::time::Duration;

/// So often a lock that is held is looked at, after twice as long each time: some microseconds in all.
const LOOKS: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 8 };

/// loom's own does not take a `const` block.
#[cfg(loom)]
macro_rules! local {
    ($(static $name:ident: $type:ty = const { $init:expr };)*) => {
        loom::thread_local! { $(static $name: $type = $init;)* }
    };
}
#[cfg(loom)]
pub(crate) use local as thread_local;

/// Locks. No user code runs under a lock of ours, so a poisoned one means that a thread was torn down between two
/// of our own lines; what it guards is still whole, and the engine goes on.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    try_lock(mutex).unwrap_or_else(|| lock_held(mutex))
}

#[cfg(not(any(loom, shuttle)))]
#[inline]
fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// A model has no use for it: whoever waits lets others go first.
#[cfg(any(loom, shuttle))]
fn try_lock<T>(_mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    None
}

/// Waits for a lock that another thread holds. That takes nanoseconds, mostly: so it looks again and again, ever less
/// often, before it sleeps. The standard library's own look does not step back, and once somebody sleeps every unlock
/// is a call of the kernel: two threads that arm and cancel in one shard took up to twice as long.
#[cold]
fn lock_held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    for looks in 0..LOOKS {
        (0..1 << looks).for_each(|_| std::hint::spin_loop());
        if let Some(guard) = try_lock(mutex) {
            return guard;
        }
    }
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Waits to be notified, or for as long as `limit`; without one, for ever.
pub(crate) fn wait<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    limit: Option<Duration>,
) -> MutexGuard<'a, T> {
    match limit {
        // The model checkers have no clock: time is a thread of the model, and it notifies.
        Some(limit) if cfg!(not(any(loom, shuttle))) => {
            let span = planted!(
                "engine.waits-end-after-a-tenth-of-a-second",
                limit.min(Duration::from_millis(100)),
                limit
            );
            condvar.wait_timeout(guard, span).unwrap_or_else(|poisoned| poisoned.into_inner()).0
        }
        _ => condvar.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner()),
    }
}
