//! Keys are user code, too: their comparisons and drops.
//!
//! One test is in real time: it compares the durations of two calls, neither of which waits.

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use crate::common::{Drops, Log, PanicsWhenDropped, SECOND, panic_quietly, within};
use crate::{End, Flag, Op, is_empty, purgatory};
use tourbillon::{Purgatory, Timer, VirtualClock};

type Action = Box<dyn FnOnce() + Send>;

/// A key that runs a closure when dropped, and whose comparisons may panic.
struct Key {
    number: u32,
    moody: bool,
    drops: Mutex<Option<Action>>,
}

impl Key {
    fn new(number: u32) -> Self {
        Key { number, moody: false, drops: Mutex::new(None) }
    }

    fn moody(number: u32) -> Self {
        Key { number, moody: true, drops: Mutex::new(None) }
    }

    fn when_dropped(mut self, action: impl FnOnce() + Send + 'static) -> Self {
        self.drops = Mutex::new(Some(Box::new(action)));
        self
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        if self.moody || other.moody {
            panic_quietly();
        }
        self.number == other.number
    }
}

impl Eq for Key {}

impl Drop for Key {
    fn drop(&mut self) {
        let action = self.drops.lock().unwrap().take();
        if let Some(action) = action {
            action();
        }
    }
}

fn keyed() -> (Purgatory<Key, Op>, Timer) {
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).on_driver().build().unwrap();
    (Purgatory::new(&timer), timer)
}

/// A key that is in the table already is not needed, and dropped.
#[test]
fn the_drop_of_a_key_that_was_not_needed_may_cancel() {
    within(|| {
        let (purgatory, timer) = keyed();
        purgatory.try_complete_else_watch(Op::never(0), [Key::new(1)], SECOND).unwrap();
        let (own, back) = (purgatory.clone(), Log::new());
        let told = back.clone();
        let key = Key::new(1).when_dropped(move || {
            own.cancel_key(&Key::new(1)).iter().for_each(|op| told.add(op.name));
        });
        let keys = [key, Key::new(2)];
        purgatory.try_complete_else_watch(Op::never(1), keys, SECOND).unwrap();
        assert_eq!(back.take(), [0, 1]);
        assert_eq!((purgatory.watched(), purgatory.delayed(), timer.len()), (0, 0, 0));
    });
}

#[test]
fn the_drop_of_a_key_whose_comparison_panicked_holds_no_lock() {
    within(|| {
        let (purgatory, timer) = keyed();
        purgatory.try_complete_else_watch(Op::never(0), [Key::new(1)], SECOND).unwrap();
        let (own, seen) = (purgatory.clone(), Log::new());
        let told = seen.clone();
        let key = Key::moody(1).when_dropped(move || told.add(own.watched()));
        let added = catch_unwind(AssertUnwindSafe(|| {
            purgatory.try_complete_else_watch(Op::never(1), [Key::new(2), key], SECOND)
        }));
        assert!(added.is_err());
        assert_eq!(seen.take(), [1], "it had left the other key");
        assert_eq!((purgatory.watched(), timer.len()), (1, 1));
    });
}

/// A panic during an unwind would abort the process.
#[test]
fn a_comparison_and_the_drops_of_keys_and_operation_may_all_panic() {
    let (purgatory, timer) = keyed();
    purgatory.try_complete_else_watch(Op::never(0), [Key::new(1)], SECOND).unwrap();
    let fragile = |key: Key| key.when_dropped(|| panic_quietly());
    let held = PanicsWhenDropped;
    let condition = move || {
        let _held = &held;
        false
    };
    let added = catch_unwind(AssertUnwindSafe(|| {
        let keys = [fragile(Key::new(2)), fragile(Key::moody(1)), fragile(Key::new(3))];
        purgatory.try_complete_else_watch(Op::new(condition, |_| ()), keys, SECOND)
    }));
    assert!(added.is_err());
    assert_eq!((purgatory.watched(), timer.len()), (1, 1));
    assert_eq!(timer.counts().panicked, 4);
}

/// The first trial completes another operation, whose action is queued; then adding panics.
#[test]
fn an_action_that_waits_runs_when_the_adding_panics() {
    let log = Log::new();
    let told = log.clone();
    let adding = thread::spawn(move || {
        let (purgatory, _timer) = keyed();
        let (flag, count) = (Flag::new(), Arc::new(AtomicUsize::new(0)));
        let waits = Op::flagged(7, &flag, &told);
        purgatory.try_complete_else_watch(waits, [Key::new(2)], SECOND).unwrap();
        let (own, completed) = (purgatory.clone(), count.clone());
        let condition = move || {
            flag.set();
            completed.fetch_add(own.check(&Key::new(2)), SeqCst);
            false
        };
        purgatory.try_complete_else_watch(Op::never(0), [Key::new(1)], SECOND).unwrap();
        let added = catch_unwind(AssertUnwindSafe(|| {
            let op = Op::new(condition, |_| ());
            purgatory.try_complete_else_watch(op, [Key::moody(1)], SECOND)
        }));
        assert!(added.is_err());
        count.load(SeqCst)
    });
    assert_eq!(adding.join().unwrap(), 1, "it is decided");
    assert_eq!(log.take(), [(7, End::Completed)]);
}

#[test]
fn many_keys_given_twice_cost_little_more_than_once() {
    const KEYS: u64 = 50_000;
    let (purgatory, timer, _clock) = purgatory();
    let took = |keys: Vec<u64>| {
        let begin = Instant::now();
        purgatory.try_complete_else_watch(Op::never(0), keys, SECOND).unwrap();
        let took = begin.elapsed();
        assert_eq!(purgatory.watched(), KEYS as usize);
        purgatory.cancel_key(&0);
        took
    };
    // The best of three: other programs may slow down either call.
    let is_little = |_| {
        let once = took((0..KEYS).collect());
        let twice = took((0..KEYS).chain(0..KEYS).collect());
        println!("{once:?}, {twice:?}");
        twice < once * 20
    };
    assert!((0..3).any(is_little));
    is_empty(&purgatory, &timer);
}

#[test]
fn a_key_whose_drop_panics_harms_nobody() {
    let (purgatory, timer) = keyed();
    let (log, flag) = (Log::new(), Flag::new());
    let fragile = |number| {
        // A panic during an unwind would abort the process.
        Key::new(number).when_dropped(|| {
            if !thread::panicking() {
                panic_quietly();
            }
        })
    };
    for name in 0..3 {
        // The key of the second operation is not needed; the key of the first is dropped with the last of them.
        let op = Op::flagged(name, &flag, &log);
        purgatory.try_complete_else_watch(op, [fragile(1), Key::new(2)], SECOND).unwrap();
    }
    assert_eq!(timer.counts().panicked, 2);
    flag.set();
    assert_eq!((purgatory.check(&Key::new(2)), purgatory.watched()), (3, 0));
    assert_eq!((log.len(), timer.counts().panicked), (3, 3));
    purgatory.try_complete_else_watch(Op::never(4), [fragile(1)], SECOND).unwrap();
    assert_eq!((purgatory.stop().len(), timer.counts().panicked), (1, 4));
}

#[test]
fn a_key_whose_comparison_panics_leaves_nothing_behind() {
    let (purgatory, timer) = keyed();
    let drops = Drops::new();
    purgatory.try_complete_else_watch(Op::never(0), [Key::new(2)], SECOND).unwrap();
    let keys = [Key::new(1), Key::moody(2), Key::new(3)];
    let op = Op::never(1).counted(&drops);
    let added =
        catch_unwind(AssertUnwindSafe(|| purgatory.try_complete_else_watch(op, keys, SECOND)));
    assert!(added.is_err(), "the panic is the caller's");
    assert_eq!((purgatory.watched(), purgatory.delayed(), timer.len()), (1, 1, 1));
    assert_eq!(drops.count(), 1);
    assert_eq!(purgatory.cancel_key(&Key::new(2)).len(), 1);
    assert_eq!((purgatory.watched(), timer.len()), (0, 0));
}
