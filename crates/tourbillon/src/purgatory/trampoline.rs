//! What the current thread is in the midst of: foreign code of purgatories, and what waits for its return.
//!
//! An action may complete other operations, whose actions complete others, and so on. Conditions are tried at once,
//! wherever the thread is; actions run one after the other: those that come up within foreign code wait until that has
//! returned. So a chain of any length takes no more stack than a single one.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use crate::Timer;
use crate::sync::thread_local;

thread_local! {
    // Apart from the queue: these need no drop, so to look at them costs a few instructions, and they are there as long
    // as the thread is.
    static TRAMPOLINE: Trampoline = const { Trampoline::new() };
    static LATER: RefCell<VecDeque<Box<dyn FnOnce()>>> = const { RefCell::new(VecDeque::new()) };
}

struct Trampoline {
    /// How many pieces of foreign code the thread is inside of, one within the other.
    depth: Cell<usize>,
    /// How many conditions it is inside of.
    trying: Cell<usize>,
    /// How many actions wait.
    waiting: Cell<usize>,
}

impl Trampoline {
    const fn new() -> Self {
        Trampoline { depth: Cell::new(0), trying: Cell::new(0), waiting: Cell::new(0) }
    }
}

/// Runs an action: now, or when the foreign code that the thread is inside of has returned. A panic of it is contained.
pub(super) fn act(timer: &Timer, action: impl FnOnce() + 'static) {
    if planted!("purgatory.actions-nest", true, TRAMPOLINE.with(|thread| thread.depth.get() == 0)) {
        within(|| timer.contain(action));
        planted!("third.actions-of-an-action-wait-on", (), catch_up());
        return;
    }
    let contained = timer.clone();
    let mut later: Option<Box<dyn FnOnce()>> = Some(Box::new(move || {
        planted!("purgatory.queued-action-panics-out", action(), {
            contained.contain(action);
        });
    }));
    // A thread that ends may have lost its queue already: there actions run at once, one within the other.
    match LATER.try_with(|queue| queue.borrow_mut().extend(later.take())) {
        Ok(()) => TRAMPOLINE.with(|thread| thread.waiting.set(thread.waiting.get() + 1)),
        Err(_) => later.into_iter().for_each(within),
    }
}

/// Tries a condition. One that panics is not met. Actions that came up in it wait on: the thread holds the operation
/// still.
#[inline]
pub(super) fn attempt(timer: &Timer, condition: impl FnOnce() -> bool) -> bool {
    TRAMPOLINE.with(|thread| thread.trying.set(thread.trying.get() + 1));
    let met = within(|| timer.contain(condition));
    TRAMPOLINE.with(|thread| thread.trying.set(thread.trying.get() - 1));
    met.unwrap_or(planted!("purgatory.panicked-condition-is-met", true, false))
}

/// Runs the actions that wait, if the thread is inside of no foreign code. It holds no operation.
#[inline]
pub(super) fn catch_up() {
    while TRAMPOLINE.with(|thread| thread.depth.get() == 0 && thread.waiting.get() > 0) {
        run_next();
    }
}

#[cold]
fn run_next() {
    let next = LATER.try_with(|queue| {
        let mut queue = queue.borrow_mut();
        let next = planted!("purgatory.last-action-first", queue.pop_back(), queue.pop_front());
        if queue.is_empty() && queue.capacity() > 64 {
            *queue = VecDeque::new();
        }
        next
    });
    TRAMPOLINE.with(|thread| thread.waiting.set(thread.waiting.get() - 1));
    next.ok().flatten().into_iter().for_each(within);
}

/// Whether the thread is inside a condition.
pub(super) fn is_trying() -> bool {
    TRAMPOLINE.with(|thread| thread.trying.get() > 0)
}

/// Runs foreign code, which does not unwind.
#[inline]
fn within<R>(foreign: impl FnOnce() -> R) -> R {
    TRAMPOLINE.with(|thread| thread.depth.set(thread.depth.get() + 1));
    let result = foreign();
    TRAMPOLINE.with(|thread| thread.depth.set(thread.depth.get() - 1));
    result
}
