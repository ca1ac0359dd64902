//! Callbacks that share an allocation with their state: those that may run again, and those that wait for the wall
//! clock. Their handles ask there what has become of them, and which key they have now.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use tourbillon_wheel as wheel;

use super::context::Context;
use super::leases::State;
use super::wall::Plan;
use crate::contain::contain;
use crate::sync::atomic::{AtomicU8, Ordering::Acquire, Ordering::Release};
use crate::sync::{Mutex, lock};
use crate::timer::TimerShard;

/// A callback that its handles share.
pub(crate) trait Shared: Send + Sync {
    fn cell(&self) -> &Cell;
    /// The key that it has now, if `first` was the first.
    fn key(&self, first: wheel::Key) -> wheel::Key;
    /// It was armed again, with this key. The shard's lock is held.
    fn rearm(&self, key: wheel::Key);
    /// Runs the callback, and answers whether it is to be armed again.
    fn run(&self, context: &Context<'_>) -> bool;
    /// Drops the callback.
    fn discard(&self, shard: &TimerShard);
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
    /// The key that it has now, if it was armed more than once.
    key: Mutex<Option<wheel::Key>>,
    callback: Mutex<Option<C>>,
}

/// A callback that runs once.
pub(crate) struct AtMoment<F>(pub(crate) F);
/// A callback that may arm itself again.
pub(crate) struct Again<F>(pub(crate) F);

pub(crate) trait Callback: Send + Sized {
    /// Whether it can arm itself again.
    const CAN_REPEAT: bool = true;
    /// Whether it wants to know, at once, that it will not run any more.
    const LISTENS: bool = false;
    /// Runs, and comes back if it is to be armed again.
    fn call(self, context: &Context<'_>) -> Option<Self>;
    /// It will not run any more; its state says why. No lock is held.
    fn dropped(self, _state: State, _shard: &TimerShard) {
        drop(self);
    }
}

impl<F: FnOnce(&Context<'_>) + Send> Callback for AtMoment<F> {
    const CAN_REPEAT: bool = false;

    fn call(self, context: &Context<'_>) -> Option<Self> {
        (self.0)(context);
        None
    }
}

impl<F: FnMut(&Context<'_>) + Send> Callback for Again<F> {
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
    planted!("timer.second-panic-hides-the-first", drop(callback), {
        contain(context.shard, || drop(callback));
    });
    resume_unwind(payload)
}

impl<C: Callback> WithState<C> {
    pub(crate) fn new(callback: C) -> Self {
        WithState { cell: Cell::new(), key: Mutex::new(None), callback: Mutex::new(Some(callback)) }
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
        lock(&self.key).unwrap_or(first)
    }

    fn rearm(&self, key: wheel::Key) {
        *lock(&self.key) = Some(key);
        self.cell.set(State::Pending);
    }

    fn run(&self, context: &Context<'_>) -> bool {
        // Out of its mutex while it runs: foreign code runs with empty hands.
        let Some(callback) = self.take() else { return false };
        let Some(again) = callback.call(context) else { return false };
        *lock(&self.callback) = Some(again);
        true
    }

    fn discard(&self, shard: &TimerShard) {
        // Most callbacks own nothing: then there is nothing to do, and the lock would be most of the cost.
        let listens = planted!("timer.listener-that-owns-nothing-is-not-told", false, C::LISTENS);
        if listens || std::mem::needs_drop::<C>() {
            if let Some(callback) = self.take() {
                callback.dropped(self.cell.get(), shard);
            }
        }
    }

    fn can_repeat(&self) -> bool {
        C::CAN_REPEAT
    }

    fn listens(&self) -> bool {
        C::LISTENS
    }
}

/// The state of a timer.
pub(crate) struct Cell(AtomicU8);

impl Cell {
    pub(super) fn new() -> Self {
        Cell(AtomicU8::new(State::Pending as u8))
    }

    pub(crate) fn get(&self) -> State {
        // Pairs with the store below: who sees "fired" sees what the callback did.
        State::ALL[usize::from(self.0.load(Acquire))]
    }

    /// The shard's lock is held.
    #[inline]
    pub(crate) fn set(&self, state: State) {
        // Not an exchange: all writers but `fired` hold the lock, and that one only follows `running`.
        self.0.store(state as u8, Release);
    }

    /// The callback has ended; if it was cancelled meanwhile, it stays so. The shard's lock is held if it can repeat.
    #[inline]
    pub(crate) fn fired(&self) {
        if planted!("timer.cancelled-in-run-says-fired", true, self.get() == State::Running) {
            self.set(State::Fired);
        }
    }
}
