//! The future of a wait: the value that its condition returned, or the reason why there is none.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use super::error::WaitError;
use super::node::Withdraw;
use super::trampoline::act;
use super::work::Listen;
use crate::Timer;
use crate::contain::drop_quietly;
use crate::sync::{Mutex, lock};

/// A wait in a [`Purgatory`](crate::Purgatory), as a future or for a thread.
///
/// It resolves to the condition's value, or to the reason why there is none.
///
/// Returned by [`Purgatory::wait`](crate::Purgatory::wait). Any runtime may poll it. Dropping it withdraws it at once
/// from all its keys and from the wheel.
#[must_use = "dropped at once, it is withdrawn at once"]
pub struct Wait<T> {
    letter: Arc<Letter<T>>,
    /// The entry in the purgatory, which exists until there is an outcome.
    entry: Option<Weak<dyn Withdraw>>,
}

/// Where the outcome is stored.
pub(super) struct Letter<T> {
    state: Mutex<LetterState<T>>,
}

enum LetterState<T> {
    Awaited(Option<Waker>),
    Here(Result<T, WaitError>),
    Taken,
}

impl<T> Letter<T> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Letter { state: Mutex::new(LetterState::Awaited(None)) })
    }

    fn poll(&self, waker: &Waker) -> Poll<Result<T, WaitError>> {
        // Wakers are user code: clone before locking, and drop the one that is not kept after unlocking.
        let mut spare = Some(waker.clone());
        let mut state = lock(&self.state);
        let here = match &mut *state {
            LetterState::Awaited(kept) => {
                planted!(
                    "purgatory.first-waker-kept",
                    *kept = kept.take().or(spare.take()),
                    std::mem::swap(kept, &mut spare)
                );
                None
            }
            here => Some(std::mem::replace(here, LetterState::Taken)),
        };
        drop(state);
        // The waker may be another task's: a panic of its drop must neither end this task nor lose the outcome.
        planted!("third.other-tasks-waker-panics-out", drop(spare), drop_quietly(spare));
        match here {
            None => Poll::Pending,
            Some(LetterState::Here(outcome)) => Poll::Ready(outcome),
            Some(LetterState::Awaited(_) | LetterState::Taken) => {
                panic!("polled after it was ready")
            }
        }
    }

    /// Drops the waker: the future is gone.
    fn forget_waker(&self) {
        let waker = match &mut *lock(&self.state) {
            LetterState::Awaited(waker) => waker.take(),
            LetterState::Here(_) | LetterState::Taken => None,
        };
        drop_quietly(waker);
    }
}

impl<T: Send + 'static> Listen<T> for Arc<Letter<T>> {
    /// Stores the outcome at once, even inside user code, because this thread may wait for it. The wake, and the drop
    /// of a value that is no longer awaited, are user code, so both run as actions.
    fn hear(self, outcome: Result<T, WaitError>, timer: &Timer) {
        let before = std::mem::replace(&mut *lock(&self.state), LetterState::Here(outcome));
        if let LetterState::Awaited(Some(waker)) = before {
            planted!("purgatory.waker-panics-out", waker.wake(), act(timer, move || waker.wake()));
        }
        if let Some(unread) = Arc::into_inner(self) {
            planted!(
                "later.unread-value-panics-out",
                drop(unread),
                act(timer, move || drop(unread))
            );
        }
    }
}

impl<T> Wait<T> {
    pub(super) fn new(letter: Arc<Letter<T>>, entry: Option<Weak<dyn Withdraw>>) -> Self {
        Wait { letter, entry }
    }
}

impl<T> Future for Wait<T> {
    type Output = Result<T, WaitError>;

    /// # Panics
    /// If it is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = self.letter.poll(context.waker());
        if outcome.is_ready() {
            self.entry = None;
        }
        outcome
    }
}

impl<T> Drop for Wait<T> {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take().and_then(|entry| entry.upgrade()) {
            planted!("purgatory.dropped-wait-stays", drop(entry), entry.withdraw());
        }
        self.letter.forget_waker();
    }
}

impl<T> fmt::Debug for Wait<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ready = !matches!(*lock(&self.letter.state), LetterState::Awaited(_));
        f.debug_struct("Wait").field("ready", &ready).finish_non_exhaustive()
    }
}
