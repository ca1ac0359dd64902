//! The mutex and condition variable of this crate: the standard library's, or loom's in its models.
//!
//! `Arc`, the atomics and the mutex of `disk/overlay.rs` are the standard ones everywhere.

#[cfg(loom)]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

use std::time::Duration;

/// Locks, ignoring poison: no foreign code runs under a lock of this crate, so the guarded state is always consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Waits for a notification, at most `limit`; without a limit, indefinitely. May return early.
pub(crate) fn wait<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    limit: Option<Duration>,
) -> MutexGuard<'a, T> {
    match limit {
        // A loom model has no clock.
        Some(limit) if cfg!(not(loom)) => {
            condvar.wait_timeout(guard, limit).unwrap_or_else(|poisoned| poisoned.into_inner()).0
        }
        _ => condvar.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner()),
    }
}
