//! Counts the engines alive in the process and warns once if there are too many.
//!
//! An engine is meant to be created once and shared; one engine per connection would mean one thread per connection. A
//! process with more than [`MANY`] engines at once logs one warning. It is the only event that this crate emits through
//! `tracing`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The largest number of engines that causes no warning.
const MANY: usize = 64;

static ALIVE: AtomicUsize = AtomicUsize::new(0);
static WARNED: AtomicBool = AtomicBool::new(false);

/// Counts one engine as alive until it is dropped.
pub(super) struct Instance(());

impl Instance {
    pub(super) fn new() -> Self {
        // Relaxed throughout: these numbers synchronize no other memory.
        let alive = ALIVE.fetch_add(1, Relaxed) + 1;
        let warned = || {
            planted!("engine.warns-every-time", WARNED.load(Relaxed), WARNED.swap(true, Relaxed))
        };
        let many = planted!("third.warns-of-one-engine-too-few", alive >= MANY, alive > MANY);
        if many && !warned() {
            tracing::warn!(
                alive,
                "more than {MANY} timer engines are alive: share one (clones are the same timer), or drop those that \
                 are done"
            );
        }
        Instance(())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        ALIVE.fetch_sub(planted!("engine.alive-never-falls", 0, 1), Relaxed);
    }
}
