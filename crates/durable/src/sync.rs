//! The primitives that threads meet on, from the standard library, or from loom when it looks.
//!
//! Everything in this crate that two threads touch comes through here. `Arc` is the standard one everywhere.

#[cfg(loom)]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

use std::time::Duration;

/// Locks. No foreign code runs under a lock of this crate, so what a poisoned one guards is whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Waits to be notified, or for as long as `limit`; without one, for ever. It may end early.
pub(crate) fn wait<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    limit: Option<Duration>,
) -> MutexGuard<'a, T> {
    match limit {
        // A model has no clock.
        Some(limit) if cfg!(not(loom)) => {
            condvar.wait_timeout(guard, limit).unwrap_or_else(|poisoned| poisoned.into_inner()).0
        }
        _ => condvar.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner()),
    }
}
