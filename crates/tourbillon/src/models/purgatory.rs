//! A purgatory and one operation: check, expiry, cancel and stop in every order.
//!
//! Time is virtual: the thread that advances the clock runs the timeout. A *trial* is one call of the condition.

use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::time::Duration;

use loom::thread;

use super::check as within_bounds;
use crate::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use crate::{Operation, Outcome, Purgatory, Timer, VirtualClock, WatchError};

const TICK: Duration = Duration::from_millis(1);

/// A fixed hasher: a model must be reproducible.
type Shared = Purgatory<u8, Eventful, BuildHasherDefault<DefaultHasher>>;

/// Waits for `needed` events, and counts how it ends.
struct Eventful {
    events: Arc<AtomicUsize>,
    needed: usize,
    ends: Arc<Ends>,
}

struct Ends {
    completed: AtomicUsize,
    expired: AtomicUsize,
}

impl Operation for Eventful {
    fn try_complete(&mut self) -> bool {
        self.events.load(SeqCst) >= self.needed
    }

    fn on_complete(self) {
        self.ends.completed.fetch_add(1, SeqCst);
    }

    fn on_expire(self) {
        self.ends.expired.fetch_add(1, SeqCst);
    }
}

/// Two threads, in every possible order.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = None;
    builder.check(model);
}

#[derive(Clone)]
struct Model {
    clock: VirtualClock,
    timer: Timer,
    purgatory: Shared,
    events: Arc<AtomicUsize>,
    ends: Arc<Ends>,
}

impl Model {
    fn new() -> Self {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).shards(1).on_driver().build().unwrap();
        let purgatory = Purgatory::with_hasher(&timer, BuildHasherDefault::default());
        let ends = Ends { completed: AtomicUsize::new(0), expired: AtomicUsize::new(0) };
        let events = Arc::new(AtomicUsize::new(0));
        Model { clock, timer, purgatory, events, ends: Arc::new(ends) }
    }

    fn add(&self) -> Result<Outcome, WatchError<Eventful>> {
        self.add_for(1)
    }

    fn add_for(&self, needed: usize) -> Result<Outcome, WatchError<Eventful>> {
        let (events, ends) = (self.events.clone(), self.ends.clone());
        let operation = Eventful { events, needed, ends };
        self.purgatory.try_complete_else_watch(operation, [1, 2], TICK)
    }

    /// Counts an event and checks the key.
    fn event(&self, key: u8) -> usize {
        self.events.fetch_add(1, SeqCst);
        self.purgatory.check(&key)
    }

    fn beside<R: 'static>(&self, run: impl FnOnce(Model) -> R + 'static) -> thread::JoinHandle<R> {
        let model = self.clone();
        thread::spawn(move || run(model))
    }

    /// The numbers completed and expired. Asserts that nothing is left.
    fn ends(&self) -> (usize, usize) {
        let left = (self.purgatory.watched(), self.purgatory.delayed(), self.timer.len());
        assert_eq!(left, (0, 0, 0));
        (self.ends.completed.load(SeqCst), self.ends.expired.load(SeqCst))
    }
}

/// One event, at any moment while the operation is added: the operation completes, not by its timeout.
#[test]
fn an_event_during_the_adding_is_not_missed() {
    check(|| {
        let model = Model::new();
        let event = model.beside(|model| model.event(2));
        let outcome = model.add().unwrap();
        let by_event = event.join().unwrap();
        assert_eq!(usize::from(outcome == Outcome::Completed) + by_event, 1);
        assert_eq!(model.ends(), (1, 0));
    });
}

/// The operation needs two events, under two keys: the last one completes it, even during the trial for the first.
#[test]
fn two_checks_complete_it_once() {
    check(|| {
        let model = Model::new();
        model.add_for(2).unwrap();
        let other = model.beside(|model| model.event(2));
        let completed = model.event(1) + other.join().unwrap();
        assert_eq!((completed, model.ends()), (1, (1, 0)));
    });
}

/// An event during the timeout: the operation completes or expires, and an event before the timeout counts.
#[test]
fn complete_and_expire_exclude_each_other() {
    check(|| {
        let model = Model::new();
        model.add().unwrap();
        let time = model.beside(|model| model.clock.advance(TICK).unwrap());
        let completed = model.event(1);
        time.join().unwrap();
        let ends = model.ends();
        assert!(ends == (1, 0) || ends == (0, 1) && completed == 0, "{ends:?}, {completed}");
    });
}

/// A check without an event during the timeout: the operation expires, whichever thread tries it last.
#[test]
fn a_timeout_that_meets_a_trial_is_not_forgotten() {
    check(|| {
        let model = Model::new();
        model.add().unwrap();
        let time = model.beside(|model| model.clock.advance(TICK).unwrap());
        assert_eq!(model.purgatory.check(&1), 0);
        time.join().unwrap();
        assert_eq!(model.ends(), (0, 1));
    });
}

/// A cancel during an event: exactly one of them gets the operation.
#[test]
fn a_cancel_that_meets_an_event_has_it_or_not() {
    check(|| {
        let model = Model::new();
        model.add().unwrap();
        let event = model.beside(|model| model.event(2));
        let back = model.purgatory.cancel_key(&1).len();
        let completed = event.join().unwrap();
        assert_eq!((back + completed, model.ends()), (1, (completed, 0)));
    });
}

/// A cancel during a trial that fails: the cancel waits for the trial, and gets the operation.
#[test]
fn a_cancel_that_meets_a_trial_has_it() {
    check(|| {
        let model = Model::new();
        model.add().unwrap();
        let trial = model.beside(|model| model.purgatory.check(&2));
        let back = model.purgatory.cancel_key(&1).len();
        assert_eq!((trial.join().unwrap(), back, model.ends()), (0, 1, (0, 0)));
    });
}

/// A stop while the operation is added: exactly one of the two calls hands the operation back.
#[test]
fn a_stop_that_meets_the_adding_leaves_nothing() {
    check(|| {
        let model = Model::new();
        let add = model.beside(|model| model.add().is_err());
        let back = model.purgatory.stop().len();
        let refused = usize::from(add.join().unwrap());
        assert_eq!((back + refused, model.ends()), (1, (0, 0)));
    });
}

/// A check, the timeout and a cancel at once, without an event: the timeout or the cancel gets the operation.
#[test]
fn check_expire_and_cancel_at_once() {
    within_bounds(|| {
        let model = Model::new();
        model.add().unwrap();
        let time = model.beside(|model| model.clock.advance(TICK).unwrap());
        let checks = model.beside(|model| model.purgatory.check(&2));
        let back = model.purgatory.cancel_key(&1).len();
        assert_eq!(checks.join().unwrap(), 0);
        time.join().unwrap();
        assert_eq!(model.ends(), (0, 1 - back));
    });
}
