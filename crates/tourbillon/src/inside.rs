//! Which callbacks the current thread is inside of.
//!
//! A stop must not wait for the callback that it is called from, and a virtual clock cannot be advanced by one. A
//! thread may be inside callbacks of several engines at once, one within the other.

use std::cell::RefCell;

use crate::sync::thread_local;

thread_local! {
    static INSIDE: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone, Copy)]
struct Place {
    engine: usize,
    /// The virtual clock of the engine, or 0.
    clock: usize,
}

/// While it lives, the thread is inside a callback of the engine.
pub(crate) struct Inside(());

impl Inside {
    #[inline]
    pub(crate) fn enter(engine: usize, clock: usize) -> Self {
        let _ = INSIDE.try_with(|places| places.borrow_mut().push(Place { engine, clock }));
        Inside(())
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|places| {
            let mut places = places.borrow_mut();
            planted!("engine.inner-callback-ends-the-outer", places.drain(..).last(), places.pop())
        });
    }
}

/// How many callbacks of the engine the thread is inside of.
pub(crate) fn depth(engine: usize) -> usize {
    look(|places| {
        let from = planted!(
            "engine.only-the-innermost-callback-counts",
            places.len().saturating_sub(1),
            0
        );
        let places = &places[from..];
        places.iter().filter(|place| place.engine == engine).count()
    })
}

/// Whether the thread is inside a callback of any engine on the clock.
pub(crate) fn any_on(clock: usize) -> bool {
    look(|places| {
        let from =
            planted!("later.advance-in-a-nested-callback-hangs", places.len().saturating_sub(1), 0);
        places[from..].iter().any(|place| place.clock == clock)
    })
}

/// A thread that ends, and has lost this already, is inside of nothing.
fn look<R: Default>(at: impl FnOnce(&[Place]) -> R) -> R {
    INSIDE.try_with(|places| at(&places.borrow())).unwrap_or_default()
}
