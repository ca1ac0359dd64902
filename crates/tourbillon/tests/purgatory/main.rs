//! What a purgatory promises, under virtual time where possible.

#[path = "../common/mod.rs"]
mod common;

mod cases;
mod events;
mod handle;
mod keys;
mod many_keys;
mod model;
mod nested;
mod panics;
mod protocol;
mod races;
mod reentry;
mod rewatch;
mod stopping;
#[cfg(target_os = "linux")]
mod threads;
mod trials;
mod waits;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::common::{Dropped, Drops, Log};
use tourbillon::{Operation, Purgatory, Timer, VirtualClock};

/// How an operation has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Completed,
    Expired,
}

/// An operation made of closures, with a name.
pub(crate) struct Op {
    pub(crate) name: usize,
    condition: Box<dyn FnMut() -> bool + Send>,
    end: Box<dyn FnOnce(End) + Send>,
    _dropped: Option<Dropped>,
}

impl Op {
    pub(crate) fn new(
        condition: impl FnMut() -> bool + Send + 'static,
        end: impl FnOnce(End) + Send + 'static,
    ) -> Self {
        Op { name: 0, condition: Box::new(condition), end: Box::new(end), _dropped: None }
    }

    /// Its condition is the flag; its name and its end are logged.
    pub(crate) fn flagged(name: usize, flag: &Flag, log: &Log<(usize, End)>) -> Self {
        let (flag, log) = (flag.clone(), log.clone());
        Op { name, ..Op::new(move || flag.is_set(), move |end| log.add((name, end))) }
    }

    /// Its condition is never met, and it must not end by itself.
    pub(crate) fn never(name: usize) -> Self {
        Op { name, ..Op::new(|| false, |end| panic!("{end:?}")) }
    }

    pub(crate) fn counted(self, drops: &Drops) -> Self {
        Op { _dropped: Some(drops.one()), ..self }
    }
}

impl Operation for Op {
    fn try_complete(&mut self) -> bool {
        (self.condition)()
    }

    fn on_complete(self) {
        (self.end)(End::Completed);
    }

    fn on_expire(self) {
        (self.end)(End::Expired);
    }
}

/// An event that has happened or not.
#[derive(Clone)]
pub(crate) struct Flag(Arc<AtomicBool>);

impl Flag {
    pub(crate) fn new() -> Self {
        Flag(Arc::new(AtomicBool::new(false)))
    }

    pub(crate) fn set(&self) {
        self.0.store(true, SeqCst);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(SeqCst)
    }
}

/// A purgatory on its own timer, whose callbacks run on the thread that advances the clock.
pub(crate) fn purgatory() -> (Purgatory<u64, Op>, Timer, VirtualClock) {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).on_driver().build().unwrap();
    (Purgatory::new(&timer), timer, clock)
}

/// Asserts that the purgatory and the timer are empty.
#[track_caller]
pub(crate) fn is_empty(purgatory: &Purgatory<u64, Op>, timer: &Timer) {
    assert_eq!((purgatory.watched(), purgatory.delayed(), timer.len()), (0, 0, 0));
    common::accounted(timer);
}
