//! How many engines are alive, and a word of warning when there are too many.
//!
//! An engine is made once and shared; who makes one for each connection has a thread for each. A program that has more
//! than [`MANY`] at once is told so, once in its life. That is all that this crate says through `tracing`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// More than so many at once are worth a word.
const MANY: usize = 64;

static ALIVE: AtomicUsize = AtomicUsize::new(0);
static WARNED: AtomicBool = AtomicBool::new(false);

/// One of the engines that are alive, until it is dropped.
pub(super) struct Instance(());

impl Instance {
    pub(super) fn new() -> Self {
        // Relaxed, all of it: these are numbers, and order nothing.
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
