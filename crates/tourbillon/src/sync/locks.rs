//! Locks that are not poisoned. No user code runs under them, so a panic leaves nothing half-changed.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::Duration;

pub(crate) use parking_lot::MutexGuard;

/// As the standard library's, but without poisoning, whose checks took a twentieth of a schedule and cancel.
#[derive(Default)]
pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Mutex(parking_lot::Mutex::new(value))
    }
}

impl<T> UnwindSafe for Mutex<T> {}
impl<T> RefUnwindSafe for Mutex<T> {}

pub(crate) struct Condvar(parking_lot::Condvar);

impl Condvar {
    pub(crate) const fn new() -> Self {
        Condvar(parking_lot::Condvar::new())
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// Locks a mutex: spins with backoff while another thread holds it, then blocks.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.0.lock()
}

/// Waits for a notification, at most `limit`; without a limit, forever.
pub(crate) fn wait<'a, T>(
    condvar: &Condvar,
    mut guard: MutexGuard<'a, T>,
    limit: Option<Duration>,
) -> MutexGuard<'a, T> {
    match limit {
        Some(limit) => {
            let span = planted!(
                "engine.waits-end-after-a-tenth-of-a-second",
                limit.min(Duration::from_millis(100)),
                limit
            );
            condvar.0.wait_for(&mut guard, span);
        }
        None => condvar.0.wait(&mut guard),
    }
    guard
}
