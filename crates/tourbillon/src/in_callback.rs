//! Tracks the callbacks on the current thread's stack.
//!
//! A stop must not wait for the callback that calls it, and a callback cannot advance its own virtual clock. A thread
//! may have nested callbacks of several engines on its stack.

use std::cell::RefCell;

use crate::sync::thread_local;

thread_local! {
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone, Copy)]
struct Frame {
    engine: usize,
    /// The id of the engine's virtual clock, or 0.
    clock: usize,
}

/// Guard: while it lives, a callback of the engine is on the current thread's stack.
pub(crate) struct InCallback(());

impl InCallback {
    #[inline]
    pub(crate) fn enter(engine: usize, clock: usize) -> Self {
        let _ = FRAMES.try_with(|frames| frames.borrow_mut().push(Frame { engine, clock }));
        InCallback(())
    }
}

impl Drop for InCallback {
    #[inline]
    fn drop(&mut self) {
        let _ = FRAMES.try_with(|frames| {
            let mut frames = frames.borrow_mut();
            planted!("engine.inner-callback-ends-the-outer", frames.drain(..).last(), frames.pop())
        });
    }
}

/// The number of the engine's callbacks on the current thread's stack.
pub(crate) fn depth(engine: usize) -> usize {
    with_frames(|frames| {
        let from = planted!(
            "engine.only-the-innermost-callback-counts",
            frames.len().saturating_sub(1),
            0
        );
        let frames = &frames[from..];
        let own = |frame: &&Frame| {
            planted!("fourth.callback-of-another-engine-counts", true, frame.engine == engine)
        };
        frames.iter().filter(own).count()
    })
}

/// Whether the current thread is inside a callback of any engine on the clock.
pub(crate) fn any_on(clock: usize) -> bool {
    with_frames(|frames| {
        let from =
            planted!("later.advance-in-a-nested-callback-hangs", frames.len().saturating_sub(1), 0);
        frames[from..].iter().any(|frame| frame.clock == clock)
    })
}

/// Calls `at` with the frames of this thread, or returns the default if its thread-local storage is already destroyed.
fn with_frames<R: Default>(at: impl FnOnce(&[Frame]) -> R) -> R {
    FRAMES.try_with(|frames| at(&frames.borrow())).unwrap_or_default()
}
