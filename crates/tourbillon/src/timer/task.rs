//! What a `Timer` keeps in the wheel: a callback, alone or together with the state that its handles read.
//!
//! A callback that was armed by key lies in the wheel itself, if it is [small](super::small). One with a handle shares
//! an allocation with its state, so that the handle's answers are exact as long as it lives:
//!
//! | state | written | by |
//! |---|---|---|
//! | pending | under the shard's lock | who arms it, again too |
//! | running | under the shard's lock, with the claim | who runs it |
//! | fired | after the callback has returned or panicked, if it is running still | who runs it |
//! | cancelled | under the shard's lock, with the removal; or during a run, if it can repeat | who cancels |
//! | handed back | under the shard's lock, with the removal | who stops the engine |

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use tourbillon_wheel as wheel;

use super::cell::{Cell, Keys, Many, One};
use super::context::Context;
use super::small::Small;
use crate::clock::EngineClock;
use crate::contain::contain;
use crate::engine::shard::Shard;
use crate::sync::{Mutex, lock};
use crate::wall::Plan;

pub(crate) enum Task {
    Owned(Small),
    Shared(Arc<dyn Shared>),
    Alarm(Arc<dyn Alarm>),
}

/// What has become of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// It waits for its deadline, or for a thread to run on.
    Pending,
    /// Its callback has started and not yet ended.
    Running,
    /// Its callback has ended, by returning or by a panic.
    Fired,
    /// It was cancelled, and will never start (again).
    Cancelled,
    /// The engine was stopped before it started.
    HandedBack,
}

impl Task {
    /// Writes the state that its handles read. The shard's lock is held.
    #[inline]
    pub(crate) fn mark(&self, state: State) {
        if let Task::Shared(shared) = self {
            shared.cell().set(state);
        }
    }

    /// Reads a byte of the callback's memory, so that it is near when the callback runs.
    #[inline]
    pub(crate) fn touch(&self) {
        match self {
            Task::Owned(callback) => callback.touch(),
            // Both of its ends: they may lie in two cache lines.
            Task::Shared(shared) => {
                black_box(shared.cell().get() as u8 ^ Arc::strong_count(shared) as u8);
            }
            Task::Alarm(alarm) => {
                black_box(alarm.touch());
            }
        }
    }

    /// Whether it can arm itself again.
    pub(crate) fn can_repeat(&self) -> bool {
        matches!(self, Task::Shared(shared) if shared.can_repeat())
    }

    /// It was moved: it no longer waits for the wall clock. The shard's lock is held.
    #[inline]
    pub(crate) fn moved(&self) {
        if let Task::Shared(shared) = self {
            if let Some(plan) = shared.wall() {
                plan.moved();
            }
        }
    }

    /// If the timer waits for the wall clock, and that is not there yet: how long it has to wait still. If not, it
    /// starts. The shard's lock is held.
    pub(crate) fn not_yet(&self, clock: &EngineClock) -> Option<Duration> {
        let Task::Shared(shared) = self else { return None };
        shared.wall()?.start(clock)
    }

    /// Drops the callback. Foreign code: no lock is held, and the caller contains it.
    pub(crate) fn discard(self, shard: &Shard<Task>) {
        match self {
            Task::Owned(callback) => drop(callback),
            Task::Shared(shared) => shared.discard(shard),
            Task::Alarm(alarm) => alarm.forget(),
        }
    }

    /// The engine was stopped: tells a callback that listens. No lock is held.
    pub(crate) fn handed_back(&self, shard: &Shard<Task>) {
        match self {
            Task::Shared(shared) if shared.listens() => shared.discard(shard),
            Task::Alarm(alarm) => drop(contain(shard, || alarm.forget())),
            _ => {}
        }
    }
}

/// What another face keeps in the wheel: something of ours, which sees to the user's code itself.
pub(crate) trait Alarm: Send + Sync {
    /// The deadline has come. Where callbacks run, with no lock held.
    fn ring(&self);
    /// It will not ring any more; told at least once, with no lock held.
    fn forget(&self);
    /// Reads a byte of it.
    fn touch(&self) -> u8;
}

/// A callback with a handle.
pub(crate) trait Shared: Send + Sync {
    fn cell(&self) -> &Cell;
    /// The key that it has now, if `first` was the first.
    fn key(&self, first: wheel::Key) -> wheel::Key;
    /// It was armed again, with this key. The shard's lock is held.
    fn rearm(&self, key: wheel::Key);
    /// Runs the callback, and answers whether it is to be armed again.
    fn run(&self, context: &Context<'_>) -> bool;
    /// Drops the callback.
    fn discard(&self, shard: &Shard<Task>);
    /// Whether it can arm itself again.
    fn can_repeat(&self) -> bool;
    /// Whether it wants to know that it will not run any more.
    fn listens(&self) -> bool;
    /// When it runs by the wall clock, if it waits for that.
    fn wall(&self) -> Option<&Plan> {
        None
    }
}

/// What can give the callback back.
pub(crate) trait Holds<C>: Shared + 'static {
    /// The callback, if it is not running and was not dropped.
    fn take(&self) -> Option<C>;
}

/// The allocation that a callback shares with its state.
pub(crate) struct WithState<C: Callback> {
    cell: Cell,
    keys: C::Keys,
    callback: Mutex<Option<C>>,
}

/// A callback that runs once.
pub(crate) struct Once<F>(pub(crate) F);
/// A callback that may arm itself again.
pub(crate) struct Again<F>(pub(crate) F);

pub(crate) trait Callback: Send + Sized {
    /// [`Many`] if it can arm itself again.
    type Keys: Keys;
    /// Whether it wants to know, at once, that it will not run any more.
    const LISTENS: bool = false;
    /// Runs, and comes back if it is to be armed again.
    fn call(self, context: &Context<'_>) -> Option<Self>;
    /// It will not run any more; its state says why. No lock is held.
    fn dropped(self, _state: State, _shard: &Shard<Task>) {
        drop(self);
    }
}

impl<F: FnOnce(&Context<'_>) + Send> Callback for Once<F> {
    type Keys = One;

    fn call(self, context: &Context<'_>) -> Option<Self> {
        (self.0)(context);
        None
    }
}

impl<F: FnMut(&Context<'_>) + Send> Callback for Again<F> {
    type Keys = Many;

    fn call(self, context: &Context<'_>) -> Option<Self> {
        let callback = call_again(self.0, context);
        context.wants_again().then_some(Again(callback))
    }
}

/// Calls it, and gives it back unless it panics.
pub(crate) fn call_again<F: FnMut(&Context<'_>)>(mut callback: F, context: &Context<'_>) -> F {
    let called = catch_unwind(AssertUnwindSafe(|| callback(context)));
    let Err(payload) = called else { return callback };
    // What it captured is dropped after the panic and not during it: a second one would abort.
    contain(context.shard, || drop(callback));
    resume_unwind(payload)
}

impl<C: Callback> WithState<C> {
    pub(crate) fn new(callback: C) -> Self {
        WithState { cell: Cell::new(), keys: C::Keys::new(), callback: Mutex::new(Some(callback)) }
    }
}

impl<C: Callback + 'static> Holds<C> for WithState<C> {
    fn take(&self) -> Option<C> {
        lock(&self.callback).take()
    }
}

impl<C: Callback + 'static> Shared for WithState<C> {
    fn cell(&self) -> &Cell {
        &self.cell
    }

    fn key(&self, first: wheel::Key) -> wheel::Key {
        self.keys.last().unwrap_or(first)
    }

    fn rearm(&self, key: wheel::Key) {
        self.keys.add(key);
        self.cell.set(State::Pending);
    }

    fn run(&self, context: &Context<'_>) -> bool {
        // Out of its mutex while it runs: foreign code runs with empty hands.
        let Some(callback) = self.take() else { return false };
        let Some(again) = callback.call(context) else { return false };
        *lock(&self.callback) = Some(again);
        true
    }

    fn discard(&self, shard: &Shard<Task>) {
        // Most callbacks own nothing: then there is nothing to do, and the lock would be most of the cost.
        if C::LISTENS || std::mem::needs_drop::<C>() {
            if let Some(callback) = self.take() {
                callback.dropped(self.cell.get(), shard);
            }
        }
    }

    fn can_repeat(&self) -> bool {
        C::Keys::CAN_REPEAT
    }

    fn listens(&self) -> bool {
        C::LISTENS
    }
}
