//! A slot: passes one value from the runtime's thread to one caller. The caller blocks or polls.
//!
//! | state | the caller | the runtime's thread |
//! |---|---|---|
//! | `Empty` | blocks, or has not polled | fills it |
//! | `Wanted` | has left a waker | fills it and wakes |
//! | `Full` | takes the value | is done |
//! | `Closed` | has taken the value or has gone | gets the value back |

use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::sync::{Condvar, Mutex, lock, wait};

pub(crate) struct Slot<T> {
    state: Mutex<State<T>>,
    filled: Condvar,
}

enum State<T> {
    Empty,
    Wanted(Waker),
    Full(T),
    Closed,
}

impl<T> Slot<T> {
    pub(crate) fn new() -> Self {
        Slot { state: Mutex::new(State::Empty), filled: Condvar::new() }
    }

    /// Fills the slot and wakes the caller. Returns the value if the caller has gone.
    pub(crate) fn fill(&self, value: T) -> Option<T> {
        let mut state = lock(&self.state);
        if let State::Closed = *state {
            return Some(value);
        }
        let before = std::mem::replace(&mut *state, State::Full(value));
        drop(state);
        // Wakes with no lock held: a waker is foreign code.
        match before {
            State::Wanted(waker) => waker.wake(),
            _ => self.filled.notify_all(),
        }
        None
    }

    /// Waits for the value, at most `limit`. `None` if the time has passed or the slot is closed.
    pub(crate) fn wait(&self, limit: Option<Duration>) -> Option<T> {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut state = lock(&self.state);
        loop {
            match std::mem::replace(&mut *state, State::Empty) {
                State::Full(value) => {
                    *state = State::Closed;
                    return Some(value);
                }
                State::Closed => {
                    *state = State::Closed;
                    return None;
                }
                State::Empty => {}
                // An earlier poll left this waker. The caller now blocks, so the waker need not be woken.
                State::Wanted(waker) => {
                    drop(state);
                    drop(waker);
                    state = lock(&self.state);
                    continue;
                }
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            state = wait(&self.filled, state, left);
        }
    }

    /// Takes the value, or registers the waker.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<T> {
        // Wakers are foreign code: cloned and dropped with no lock held.
        let waker = context.waker().clone();
        let mut state = lock(&self.state);
        match std::mem::replace(&mut *state, State::Closed) {
            State::Full(value) => Poll::Ready(value),
            State::Closed => Poll::Pending,
            before @ (State::Empty | State::Wanted(_)) => {
                *state = State::Wanted(waker);
                drop(state);
                drop(before);
                Poll::Pending
            }
        }
    }

    /// Closes the slot for the caller. Returns the value if it was there, and whether the slot was open.
    pub(crate) fn close(&self) -> (Option<T>, bool) {
        match std::mem::replace(&mut *lock(&self.state), State::Closed) {
            State::Full(value) => (Some(value), true),
            State::Closed => (None, false),
            State::Empty | State::Wanted(_) => (None, true),
        }
    }
}
