//! Which callbacks the current thread is inside of.
//!
//! A stop must not wait for the callback that it is called from, and a virtual clock cannot be advanced by one. A
//! thread may be inside callbacks of several engines at once, one within the other.

use std::cell::RefCell;

use crate::sync::thread_local;

thread_local! {
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone, Copy)]
struct Frame {
    engine: usize,
    /// The virtual clock of the engine, or 0.
    clock: usize,
}

/// While it lives, the thread is inside a callback of the engine.
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

/// How many callbacks of the engine the thread is inside of.
pub(crate) fn depth(engine: usize) -> usize {
    with_frames(|frames| {
        let from = planted!(
            "engine.only-the-innermost-callback-counts",
            frames.len().saturating_sub(1),
            0
        );
        let frames = &frames[from..];
        frames.iter().filter(|frame| frame.engine == engine).count()
    })
}

/// Whether the thread is inside a callback of any engine on the clock.
pub(crate) fn any_on(clock: usize) -> bool {
    with_frames(|frames| {
        let from =
            planted!("later.advance-in-a-nested-callback-hangs", frames.len().saturating_sub(1), 0);
        frames[from..].iter().any(|frame| frame.clock == clock)
    })
}

/// A thread that ends, and has lost this already, is inside of nothing.
fn with_frames<R: Default>(at: impl FnOnce(&[Frame]) -> R) -> R {
    FRAMES.try_with(|frames| at(&frames.borrow())).unwrap_or_default()
}
