//! The kinds of waiters: a user's operation, or a condition and a listener for its value.

use super::error::WaitError;
use super::operation::Operation;
use super::trampoline::act;
use crate::Timer;

/// What a node contains. These functions call user code and contain its panics, except `attempt`. To end it, the caller
/// must hold neither a lock nor the operation.
pub(super) trait Work<O>: Send + Sized + 'static {
    /// Whether there is an operation to hand back.
    const RETURNS: bool;

    /// Tries the condition. User code; the caller contains its panics.
    fn attempt(&mut self) -> bool;
    fn complete(self, timer: &Timer);
    fn expire(self, timer: &Timer);
    /// Ends it without completion or expiry: returns the operation, or notifies the listener.
    fn back(self, why: WaitError, timer: &Timer) -> Option<O>;
}

/// An operation.
pub(super) struct Own<O>(pub(super) O);

impl<O: Operation> Work<O> for Own<O> {
    const RETURNS: bool = true;

    fn attempt(&mut self) -> bool {
        self.0.try_complete()
    }

    fn complete(self, timer: &Timer) {
        act(timer, move || self.0.on_complete());
    }

    fn expire(self, timer: &Timer) {
        act(timer, move || self.0.on_expire());
    }

    fn back(self, _: WaitError, _: &Timer) -> Option<O> {
        Some(self.0)
    }
}

/// A condition that returns a value, and the listener for the outcome.
pub(super) struct When<T, C, L> {
    pub(super) condition: C,
    pub(super) listener: L,
    found: Option<T>,
}

/// Receives an outcome.
pub(super) trait Listen<T>: Send + 'static {
    fn hear(self, outcome: Result<T, WaitError>, timer: &Timer);
}

/// A user's closure.
pub(super) struct Then<F>(pub(super) F);

impl<T, F> Listen<T> for Then<F>
where
    T: 'static,
    F: FnOnce(Result<T, WaitError>) + Send + 'static,
{
    fn hear(self, outcome: Result<T, WaitError>, timer: &Timer) {
        act(timer, move || (self.0)(outcome));
    }
}

impl<T, C, L: Listen<T>> When<T, C, L> {
    pub(super) fn new(condition: C, listener: L) -> Self {
        When { condition, listener, found: None }
    }

    /// Drops the condition, then notifies the listener, which may rely on that order. Panics are contained separately,
    /// because two panics at once would abort.
    fn tell(self, outcome: Result<T, WaitError>, timer: &Timer) {
        let When { condition, listener, .. } = self;
        let drop_condition = || {
            planted!("purgatory.drop-of-a-condition-panics-out", drop(condition), {
                timer.contain(|| drop(condition));
            });
        };
        let tell = || listener.hear(outcome, timer);
        planted!(
            "third.listener-hears-before-the-condition-is-gone",
            {
                tell();
                drop_condition();
            },
            {
                drop_condition();
                tell();
            }
        );
    }
}

impl<O, T, C, L> Work<O> for When<T, C, L>
where
    T: Send + 'static,
    C: FnMut() -> Option<T> + Send + 'static,
    L: Listen<T>,
{
    const RETURNS: bool = false;

    fn attempt(&mut self) -> bool {
        self.found = (self.condition)();
        self.found.is_some()
    }

    fn complete(mut self, timer: &Timer) {
        if let Some(found) = self.found.take() {
            self.tell(Ok(found), timer);
        }
    }

    fn expire(self, timer: &Timer) {
        planted!("purgatory.expired-not-told", (), self.tell(Err(WaitError::Expired), timer));
    }

    fn back(self, why: WaitError, timer: &Timer) -> Option<O> {
        self.tell(Err(why), timer);
        None
    }
}
