//! What a purgatory does for those who wait: an operation of the user's, or a condition and who wants its value.

use super::error::WaitError;
use super::operation::Operation;
use super::turn::act;
use crate::Timer;

/// All of it is foreign code but for `back`.
pub(super) trait Work<O>: Send + Sized + 'static {
    /// Whether there is an operation to be handed back.
    const RETURNS: bool;

    /// Tries the condition.
    fn attempt(&mut self) -> bool;
    fn complete(self);
    fn expire(self);
    /// It ends otherwise: the operation, or a word to who waits.
    fn back(self, why: WaitError, timer: &Timer) -> Option<O>;
}

/// An operation.
pub(super) struct Own<O>(pub(super) O);

impl<O: Operation> Work<O> for Own<O> {
    const RETURNS: bool = true;

    fn attempt(&mut self) -> bool {
        self.0.try_complete()
    }

    fn complete(self) {
        self.0.on_complete();
    }

    fn expire(self) {
        self.0.on_expire();
    }

    fn back(self, _: WaitError, _: &Timer) -> Option<O> {
        Some(self.0)
    }
}

/// A condition that gives a value, and a closure that is told the outcome.
pub(super) struct When<T, C, F> {
    pub(super) condition: C,
    pub(super) then: F,
    found: Option<T>,
}

impl<T, C, F> When<T, C, F> {
    pub(super) fn new(condition: C, then: F) -> Self {
        When { condition, then, found: None }
    }
}

impl<O, T, C, F> Work<O> for When<T, C, F>
where
    T: Send + 'static,
    C: FnMut() -> Option<T> + Send + 'static,
    F: FnOnce(Result<T, WaitError>) + Send + 'static,
{
    const RETURNS: bool = false;

    fn attempt(&mut self) -> bool {
        self.found = (self.condition)();
        self.found.is_some()
    }

    fn complete(self) {
        if let Some(found) = self.found {
            (self.then)(Ok(found));
        }
    }

    fn expire(self) {
        (self.then)(Err(WaitError::Expired));
    }

    fn back(self, why: WaitError, timer: &Timer) -> Option<O> {
        act(timer, move || (self.then)(Err(why)));
        None
    }
}
