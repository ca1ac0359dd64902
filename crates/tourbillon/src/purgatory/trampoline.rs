//! Tracks the purgatories' user code on this thread, and queues actions until that code has returned.
//!
//! An action may complete other operations, whose actions complete others, and so on. Conditions are tried at once, at
//! any depth. Actions run one after the other: an action that user code causes is queued until that user code has
//! returned. So a chain of any length takes no more stack than a single action.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use crate::Timer;
use crate::sync::thread_local;

thread_local! {
    // Separate from the queue: these cells need no drop, so an access takes a few instructions, and they exist until
    // the thread has ended.
    static TRAMPOLINE: Trampoline = const { Trampoline::new() };
    static LATER: RefCell<VecDeque<Box<dyn FnOnce()>>> = const { RefCell::new(VecDeque::new()) };
}

struct Trampoline {
    /// The nesting depth of user code on this thread.
    depth: Cell<usize>,
    /// The number of conditions on the thread's stack.
    trying: Cell<usize>,
    /// The number of queued actions.
    waiting: Cell<usize>,
}

impl Trampoline {
    const fn new() -> Self {
        Trampoline { depth: Cell::new(0), trying: Cell::new(0), waiting: Cell::new(0) }
    }
}

/// Runs an action, or queues it if the thread is inside user code. Contains the action's panic.
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
    // The queue of an ending thread may be destroyed already. Actions then run at once, nested.
    match LATER.try_with(|queue| queue.borrow_mut().extend(later.take())) {
        Ok(()) => TRAMPOLINE.with(|thread| thread.waiting.set(thread.waiting.get() + 1)),
        Err(_) => later.into_iter().for_each(within),
    }
}

/// Tries a condition; a panic counts as not met. Actions that it causes stay queued, because the thread still holds the
/// operation.
#[inline]
pub(super) fn attempt(timer: &Timer, condition: impl FnOnce() -> bool) -> bool {
    TRAMPOLINE.with(|thread| thread.trying.set(thread.trying.get() + 1));
    let met = planted!(
        "sixth.action-runs-inside-the-condition-that-caused-it",
        timer.contain(condition),
        within(|| timer.contain(condition))
    );
    TRAMPOLINE.with(|thread| thread.trying.set(thread.trying.get() - 1));
    met.unwrap_or(planted!("purgatory.panicked-condition-is-met", true, false))
}

/// Runs the queued actions, unless the thread is inside user code. The caller holds no operation.
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
    TRAMPOLINE.with(|thread| {
        planted!(
            "sixth.action-is-taken-for-a-condition",
            thread.depth.get() > 0,
            thread.trying.get() > 0
        )
    })
}

/// Runs user code, which does not unwind, and counts its depth.
#[inline]
fn within<R>(foreign: impl FnOnce() -> R) -> R {
    TRAMPOLINE.with(|thread| thread.depth.set(thread.depth.get() + 1));
    let result = foreign();
    TRAMPOLINE.with(|thread| thread.depth.set(thread.depth.get() - 1));
    result
}
