//! Locks, atomics and threads: of parking_lot and the standard library, or of a model checker in a model build.
//!
//! Use these types for all engine state that the models exercise, so that loom and shuttle see every access. The
//! standard library is used directly for reference counts, cells that are set once, plain counters that synchronize
//! nothing, and state of the process rather than of an engine, such as the wall-clock watch and the timers that replace
//! the default engine.

#[cfg(not(any(loom, shuttle)))]
mod locks;

#[cfg(not(any(loom, shuttle)))]
pub(crate) use locks::{Condvar, Mutex, MutexGuard, lock, wait};
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
pub(crate) use std::{sync::atomic, thread, thread_local};

/// loom's own macro does not accept a `const` block.
#[cfg(loom)]
macro_rules! local {
    ($(static $name:ident: $type:ty = const { $init:expr };)*) => {
        loom::thread_local! { $(static $name: $type = $init;)* }
    };
}
#[cfg(loom)]
pub(crate) use local as thread_local;

/// Locks a mutex.
#[cfg(any(loom, shuttle))]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Waits for a notification. The model checkers have no clock, so there is no limit: a thread of the model notifies
/// instead.
#[cfg(any(loom, shuttle))]
pub(crate) fn wait<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    _limit: Option<std::time::Duration>,
) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner())
}
