//! Tracks which callbacks the current thread is inside of.
//!
//! A stop must not wait for the callback that it is called from, and a callback cannot advance its own virtual clock. A
//! thread may be inside nested callbacks of several engines.

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

/// Guard: while it lives, the current thread is inside a callback of the engine.
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

/// The number of callbacks of the engine that the current thread is inside of.
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
