//! Locks, atomics and threads: parking_lot's and the standard library's, or a model checker's in a model build.
//!
//! Engine state that the models exercise uses these, so that loom and shuttle see every access. Other code uses the
//! standard library directly: reference counts, cells that are set once, numbers that order nothing, and what belongs
//! to the process and not to an engine, such as the wall-clock watch and the timers that replace the default engine.

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

/// Waits for a notification. The model checkers have no clock: time is a thread of the model, which notifies.
#[cfg(any(loom, shuttle))]
pub(crate) fn wait<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    _limit: Option<std::time::Duration>,
) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner())
}
