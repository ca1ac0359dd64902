//! What the current thread is in the midst of: foreign code of purgatories, and what waits for its return.
//!
//! An action may complete other operations, whose actions complete others, and so on. Conditions are tried at once,
//! wherever the thread is; actions run one after the other: those that come up within foreign code wait until that has
//! returned. So a chain of any length takes no more stack than a single one.

use std::cell::RefCell;
use std::collections::VecDeque;

use crate::Timer;
use crate::sync::thread_local;

thread_local! {
    static TURN: RefCell<Turn> = const { RefCell::new(Turn::new()) };
}

struct Turn {
    /// How many pieces of foreign code the thread is inside of, one within the other.
    depth: usize,
    /// How many conditions it is inside of.
    trying: usize,
    /// The actions that wait.
    later: VecDeque<Box<dyn FnOnce()>>,
}

impl Turn {
    const fn new() -> Self {
        Turn { depth: 0, trying: 0, later: VecDeque::new() }
    }

    /// The next action, if the thread is inside of nothing.
    #[inline]
    fn next(&mut self) -> Option<Box<dyn FnOnce()>> {
        if self.depth > 0 {
            return None;
        }
        let next = self.later.pop_front();
        if next.is_none() && self.later.capacity() > 64 {
            self.later = VecDeque::new();
        }
        next
    }
}

/// Runs an action: now, or when the foreign code that the thread is inside of has returned. A panic of it is contained.
pub(super) fn act(timer: &Timer, action: impl FnOnce() + 'static) {
    if look(|turn| turn.depth > 0) {
        let timer = timer.clone();
        let later = Box::new(move || {
            timer.contain(action);
        });
        change(|turn| turn.later.push_back(later));
    } else {
        within(|| timer.contain(action));
        catch_up();
    }
}

/// Tries a condition. One that panics is not met. Actions that came up in it wait on: the thread holds the operation
/// still.
pub(super) fn attempt(timer: &Timer, condition: impl FnOnce() -> bool) -> bool {
    change(|turn| {
        turn.depth += 1;
        turn.trying += 1;
    });
    let met = timer.contain(condition);
    change(|turn| {
        turn.depth -= 1;
        turn.trying -= 1;
    });
    met.unwrap_or(false)
}

/// Runs the actions that wait, if the thread is inside of no foreign code. It holds no operation.
pub(super) fn catch_up() {
    while let Some(later) = change(Turn::next).flatten() {
        within(later);
    }
}

/// Whether the thread is inside a condition.
pub(super) fn is_trying() -> bool {
    look(|turn| turn.trying > 0)
}

/// Runs foreign code, which does not unwind.
fn within<R>(foreign: impl FnOnce() -> R) -> R {
    change(|turn| turn.depth += 1);
    let result = foreign();
    change(|turn| turn.depth -= 1);
    result
}

/// `None` on a thread that ends and has lost this already: there actions run at once, one within the other.
fn change<R>(how: impl FnOnce(&mut Turn) -> R) -> Option<R> {
    TURN.try_with(|turn| how(&mut turn.borrow_mut())).ok()
}

fn look<R: Default>(at: impl FnOnce(&Turn) -> R) -> R {
    TURN.try_with(|turn| at(&turn.borrow())).unwrap_or_default()
}
