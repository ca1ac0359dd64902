//! User code completes an operation, wherever that code is called: when the verb that called it returns, the action of
//! the operation has run.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use crate::common::{Log, SECOND, within};
use crate::{Flag, Op, purgatory};
use tourbillon::{Purgatory, Timer, VirtualClock, Wait};

/// Runs once, in the place.
type Inside = Box<dyn FnOnce() + Send>;

/// A place where user code is called, and a function that makes it run there.
type Place = fn(Purgatory<u64, Op>, Timer, VirtualClock, Inside);

/// Runs `inside` at the first call.
fn once(inside: Inside) -> impl FnMut() + Send + 'static {
    let mut inside = Some(inside);
    move || inside.take().into_iter().for_each(|inside| inside())
}

/// A condition that runs `inside` once the flag is set, and then is met or not.
fn condition(flag: &Flag, holds: bool, inside: Inside) -> impl FnMut() -> bool + Send + 'static {
    let (flag, mut inside) = (flag.clone(), once(inside));
    move || {
        if flag.is_set() {
            inside();
        }
        flag.is_set() && holds
    }
}

/// A closure that waits for the flag, and runs `inside` when it receives its outcome.
fn told(purgatory: &Purgatory<u64, Op>, inside: Inside) -> Flag {
    let flag = Flag::new();
    let met = flag.clone();
    let condition = move || met.is_set().then_some(());
    assert!(purgatory.when([1], SECOND, condition, move |_| inside()).is_ok());
    flag
}

/// A task that waits for the flag, and whose waker runs `inside`.
fn woken(purgatory: &Purgatory<u64, Op>, inside: Inside) -> (Flag, Wait<()>) {
    struct Wakes(Mutex<Option<Inside>>);
    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            let inside = self.0.lock().unwrap().take();
            inside.into_iter().for_each(|inside| inside());
        }
    }
    let flag = Flag::new();
    let met = flag.clone();
    let mut wait = purgatory.wait([1], SECOND, move || met.is_set().then_some(()));
    let waker = Waker::from(Arc::new(Wakes(Mutex::new(Some(inside)))));
    assert!(Pin::new(&mut wait).poll(&mut Context::from_waker(&waker)).is_pending());
    (flag, wait)
}

/// Runs `inside` when dropped.
struct Drops(Option<Inside>);

impl Drop for Drops {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|inside| inside());
    }
}

const PLACES: &[(&str, Place)] = &[
    ("a condition, when it is added", |purgatory, _, _, inside| {
        let flag = Flag::new();
        flag.set();
        let op = Op::new(condition(&flag, false, inside), |_| ());
        purgatory.try_complete_else_watch(op, [1], SECOND).unwrap();
    }),
    ("a condition, when it is checked", |purgatory, _, _, inside| {
        let flag = Flag::new();
        let op = Op::new(condition(&flag, false, inside), |_| ());
        purgatory.try_complete_else_watch(op, [1], SECOND).unwrap();
        flag.set();
        assert_eq!(purgatory.check(&1), 0);
        std::mem::forget(purgatory);
    }),
    ("a condition, at the timeout", |purgatory, _, clock, inside| {
        let flag = Flag::new();
        let op = Op::new(condition(&flag, false, inside), |_| ());
        purgatory.try_complete_else_watch(op, [1], SECOND).unwrap();
        flag.set();
        clock.advance(SECOND).unwrap();
    }),
    ("a condition that is met", |purgatory, _, _, inside| {
        let flag = Flag::new();
        let op = Op::new(condition(&flag, true, inside), |_| ());
        purgatory.try_complete_else_watch(op, [1], SECOND).unwrap();
        flag.set();
        assert_eq!(purgatory.check(&1), 1);
    }),
    ("a completion, when it is added", |purgatory, _, _, inside| {
        let op = Op::new(|| true, move |_| inside());
        purgatory.try_complete_else_watch(op, [1], SECOND).unwrap();
    }),
    ("a completion, when it is checked", |purgatory, _, _, inside| {
        let flag = Flag::new();
        let met = flag.clone();
        let op = Op::new(move || met.is_set(), move |_| inside());
        purgatory.try_complete_else_watch(op, [1], SECOND).unwrap();
        flag.set();
        assert_eq!(purgatory.check(&1), 1);
    }),
    ("an expiry", |purgatory, _, clock, inside| {
        let op = Op::new(|| false, move |_| inside());
        purgatory.try_complete_else_watch(op, [1], SECOND).unwrap();
        clock.advance(SECOND).unwrap();
    }),
    ("a closure that is told of its value at once", |purgatory, _, _, inside| {
        assert!(purgatory.when([1], SECOND, || Some(()), move |_| inside()).is_ok());
    }),
    ("a closure that is told of its value", |purgatory, _, _, inside| {
        told(&purgatory, inside).set();
        assert_eq!(purgatory.check(&1), 1);
    }),
    ("a closure that is told of its expiry", |purgatory, _, clock, inside| {
        told(&purgatory, inside);
        clock.advance(SECOND).unwrap();
    }),
    ("a closure that is told of a cancel", |purgatory, _, _, inside| {
        told(&purgatory, inside);
        assert!(purgatory.cancel_key(&1).is_empty());
    }),
    ("a closure that is told of a stop", |purgatory, _, _, inside| {
        told(&purgatory, inside);
        assert!(purgatory.stop().is_empty());
    }),
    ("a closure that is told of the stop of the timer", |purgatory, timer, _, inside| {
        told(&purgatory, inside);
        drop(timer.stop());
    }),
    ("a closure that is told of the last clone", |purgatory, _, _, inside| {
        told(&purgatory, inside);
        drop(purgatory);
    }),
    ("a waker, for a value", |purgatory, _, _, inside| {
        let (flag, _wait) = woken(&purgatory, inside);
        flag.set();
        assert_eq!(purgatory.check(&1), 1);
    }),
    ("a waker, for an expiry", |purgatory, _, clock, inside| {
        let (_flag, _wait) = woken(&purgatory, inside);
        clock.advance(SECOND).unwrap();
    }),
    ("a waker, for a cancel", |purgatory, _, _, inside| {
        let (_flag, _wait) = woken(&purgatory, inside);
        assert!(purgatory.cancel_key(&1).is_empty());
    }),
    ("a waker, for a stop", |purgatory, _, _, inside| {
        let (_flag, _wait) = woken(&purgatory, inside);
        assert!(purgatory.stop().is_empty());
    }),
    ("a waker, for the stop of the timer", |purgatory, timer, _, inside| {
        let (_flag, _wait) = woken(&purgatory, inside);
        drop(timer.stop());
    }),
    ("the drop of a condition", |purgatory, _, _, inside| {
        let drops = Drops(Some(inside));
        let condition = move || {
            let _held = &drops;
            None::<()>
        };
        assert!(purgatory.when([1], SECOND, condition, |_| ()).is_ok());
        assert!(purgatory.cancel_key(&1).is_empty());
    }),
    ("the drop of a condition that is withdrawn", |purgatory, _, _, inside| {
        let drops = Drops(Some(inside));
        let condition = move || {
            let _held = &drops;
            None::<()>
        };
        drop(purgatory.wait([1], SECOND, condition));
    }),
    ("the drop of a value that nobody reads", |purgatory, _, _, inside| {
        let (flag, value) = (Flag::new(), Arc::new(Mutex::new(Some(Drops(Some(inside))))));
        let met = flag.clone();
        let condition = move || value.lock().unwrap().take().filter(|_| met.is_set());
        flag.set();
        drop(purgatory.wait([1], SECOND, condition));
    }),
];

#[test]
fn what_is_completed_inside_has_run_when_the_verb_returns() {
    for &(place, call) in PLACES {
        within(move || {
            let (purgatory, timer, clock) = purgatory();
            // On another timer: the first may be stopped.
            let (other, _its_timer, _its_clock) = crate::purgatory();
            let (log, flag) = (Log::new(), Flag::new());
            let (told, met) = (log.clone(), flag.clone());
            let op = Op::new(move || met.is_set(), move |_| told.add(1));
            other.try_complete_else_watch(op, [2], SECOND).unwrap();
            let checks = other.clone();
            let inside = move || {
                flag.set();
                assert_eq!(checks.check(&2), 1);
            };
            call(purgatory, timer, clock, Box::new(inside));
            assert_eq!(log.len(), 1, "{place}: its action has not run");
        });
    }
}
