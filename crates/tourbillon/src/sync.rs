//! Synchronization primitives: the standard library's, or a model checker's in a model build.
//!
//! Engine state that the models exercise uses these, so that loom and shuttle see every access. The standard ones are
//! used directly where no model looks: `Arc` and `OnceLock`, statistics that order nothing (the number of engines,
//! thread numbers, the latest reading of a user's clock), and the wall-clock watch, which belongs to no engine.

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

/// How often a held lock is retried before blocking. The pause doubles each time; together a few microseconds.
const LOOKS: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 8 };

/// loom's own macro does not accept a `const` block.
#[cfg(loom)]
macro_rules! local {
    ($(static $name:ident: $type:ty = const { $init:expr };)*) => {
        loom::thread_local! { $(static $name: $type = $init;)* }
    };
}
#[cfg(loom)]
pub(crate) use local as thread_local;

/// Locks a mutex and ignores poisoning.
/// No user code runs under these locks, so a poisoned one means that a thread was torn down inside the engine. The
/// guarded state is still consistent, and the engine continues.
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

/// Always fails: in a model, a waiting thread yields to the others anyway.
#[cfg(any(loom, shuttle))]
fn try_lock<T>(_mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    None
}

/// Waits for a lock that another thread holds: spins with exponential backoff, then blocks.
/// The lock is usually free again within nanoseconds. The standard library spins without backoff, and once a thread
/// blocks, every unlock is a system call: two threads that arm and cancel in one shard took up to twice as long.
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

/// Waits for a notification, at most `limit`; without a limit, for ever.
pub(crate) fn wait<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    limit: Option<Duration>,
) -> MutexGuard<'a, T> {
    match limit {
        // The model checkers have no clock: time is a thread of the model, which notifies.
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
