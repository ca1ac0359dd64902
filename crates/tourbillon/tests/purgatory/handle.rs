//! The handle of one operation, and operations as Kafka defines them.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use tourbillon::{Delayed, DelayedOperation, Operation, Purgatory, Timer, VirtualClock, Watched};

use crate::common::{Log, SECOND, case, within};

struct Op {
    name: &'static str,
    ready: Arc<AtomicBool>,
    log: Log<(&'static str, &'static str)>,
    /// Signals that the trial has begun, and waits for a signal to end it.
    gate: Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>,
}

impl Operation for Op {
    fn try_complete(&mut self) -> bool {
        if let Some((begun, end)) = &self.gate {
            let _ = begun.send(());
            let _ = end.recv();
        }
        self.ready.load(SeqCst)
    }
    fn on_complete(self) {
        self.log.add((self.name, "completed"));
    }
    fn on_expire(self) {
        self.log.add((self.name, "expired"));
    }
}

struct World {
    clock: VirtualClock,
    timer: Timer,
    purgatory: Purgatory<u32, Op>,
    ready: Arc<AtomicBool>,
    log: Log<(&'static str, &'static str)>,
}

impl World {
    fn new() -> Self {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).build().unwrap();
        let purgatory = Purgatory::new(&timer);
        World { clock, timer, purgatory, ready: Arc::default(), log: Log::new() }
    }

    fn op(&self, name: &'static str) -> Op {
        Op { name, ready: self.ready.clone(), log: self.log.clone(), gate: None }
    }
}

#[test]
fn a_handle_knows_how_its_operation_has_ended() {
    let world = World::new();
    let watch = |name| world.purgatory.watch(world.op(name), [1, 2], SECOND).unwrap();
    let (forced, cancelled, expires) = (watch("forced"), watch("cancelled"), watch("expires"));
    assert!(!forced.is_over() && !forced.is_completed());
    assert!(forced.complete());
    assert!(!forced.complete(), "once");
    assert_eq!(cancelled.cancel().map(|op| op.name), Some("cancelled"));
    assert!(cancelled.cancel().is_none() && !cancelled.complete());
    assert_eq!(world.purgatory.watched(), 2);
    world.clock.advance(SECOND).unwrap();
    world.ready.store(true, SeqCst);
    let at_once = watch("at once");
    assert_eq!(
        world.log.take(),
        [("forced", "completed"), ("expires", "expired"), ("at once", "completed")]
    );
    assert!(at_once.is_completed() && at_once.cancel().is_none() && !at_once.complete());
    let ends =
        [&forced, &cancelled, &expires].map(|handle| (handle.is_over(), handle.is_completed()));
    assert_eq!(ends, [(true, true), (true, false), (true, false)]);
    assert_eq!((world.purgatory.watched(), world.timer.len()), (0, 0));
}

#[test]
fn what_a_check_completes_is_completed() {
    let world = World::new();
    let handle = world.purgatory.watch(world.op("checked"), [1], SECOND).unwrap();
    world.ready.store(true, SeqCst);
    assert_eq!(world.purgatory.check(&1), 1);
    assert!(handle.is_completed() && !handle.complete() && handle.cancel().is_none());
}

/// Another thread tries the condition while the operation is completed by its handle, and again while it is cancelled.
#[test]
fn forced_and_cancelled_in_the_midst_of_a_trial() {
    for force in [true, false] {
        within(move || {
            let world = World::new();
            let ((begun, begins), (end, ends)) = (mpsc::channel(), mpsc::channel());
            let mut op = world.op("tried");
            op.gate = Some((begun, ends));
            // Two trials before it is watched, and one for the check.
            (0..2).for_each(|_| end.send(()).unwrap());
            let handle = world.purgatory.watch(op, [1], SECOND).unwrap();
            (0..2).for_each(|_| begins.recv().unwrap());
            let checking = world.purgatory.clone();
            let checker = thread::spawn(move || checking.check(&1));
            begins.recv().unwrap();
            if force {
                assert!(handle.complete() && !handle.is_over(), "when the trial has ended");
                end.send(()).unwrap();
                assert_eq!(checker.join().unwrap(), 1);
                assert!(handle.is_completed());
                assert_eq!(world.log.take(), [("tried", "completed")]);
            } else {
                let ender = thread::spawn(move || end.send(()).unwrap());
                assert_eq!(handle.cancel().map(|op| op.name), Some("tried"));
                ender.join().unwrap();
                assert_eq!(checker.join().unwrap(), 0);
                assert_eq!(world.log.len(), 0);
            }
        });
    }
}

/// A timeout that comes while a trial runs, after the handle completed the operation, does not make it expire.
#[test]
fn forced_in_a_trial_is_not_overruled_by_the_timeout() {
    within(|| {
        let world = World::new();
        let ((begun, begins), (end, ends)) = (mpsc::channel(), mpsc::channel());
        let mut op = world.op("tried");
        op.gate = Some((begun, ends));
        (0..2).for_each(|_| end.send(()).unwrap());
        let handle = world.purgatory.watch(op, [1], SECOND).unwrap();
        (0..2).for_each(|_| begins.recv().unwrap());
        let checking = world.purgatory.clone();
        let checker = thread::spawn(move || checking.check(&1));
        begins.recv().unwrap();
        assert!(handle.complete());
        world.clock.advance(SECOND).unwrap();
        drop(end);
        checker.join().unwrap();
        assert_eq!(world.log.take(), [("tried", "completed")]);
    });
}

struct Answering(bool, Log<&'static str>);

impl DelayedOperation for Answering {
    fn try_complete(&mut self) -> bool {
        self.0
    }
    fn on_complete(&mut self) {
        self.1.add("complete");
    }
    fn on_expiration(&mut self) {
        self.1.add("expiration");
    }
}

#[test]
fn a_delayed_operation_is_answered_however_it_ends() {
    let (clock, log) = (VirtualClock::new(), Log::new());
    let purgatory = Purgatory::new(&Timer::builder().clock(&clock).build().unwrap());
    let watch = |ready| {
        let operation = Delayed(Answering(ready, log.clone()));
        purgatory.try_complete_else_watch(operation, [1], SECOND).unwrap();
    };
    watch(true);
    assert_eq!(log.take(), ["complete"]);
    watch(false);
    clock.advance(SECOND).unwrap();
    assert_eq!(log.take(), ["complete", "expiration"]);
}

/// An operation whose condition runs the given closure once, and is not met.
struct Told {
    deed: Arc<Mutex<Option<Deed>>>,
    log: Log<&'static str>,
}

type Deed = Box<dyn FnOnce() + Send>;

impl Operation for Told {
    fn try_complete(&mut self) -> bool {
        let deed = self.deed.lock().unwrap().take();
        deed.into_iter().for_each(|deed| deed());
        false
    }
    fn on_complete(self) {
        self.log.add("completed");
    }
    fn on_expire(self) {
        self.log.add("expired");
    }
}

/// A condition that uses a handle never waits: neither for its own trial, nor for itself.
#[test]
fn inside_a_condition_a_handle_waits_for_nobody() {
    type Verb = (&'static str, fn(&Watched<Told>) -> bool, [bool; 2], [bool; 2]);
    // The result of the verb, and whether the operation is over then: for the operation that is tried, and for another
    // one.
    let verbs: [Verb; 4] = [
        ("cancel", |watched| watched.cancel().is_some(), [false, false], [true, true]),
        ("complete", Watched::complete, [true, true], [true, true]),
        ("is_over", Watched::is_over, [false, false], [false, false]),
        ("is_completed", Watched::is_completed, [false, false], [false, false]),
    ];
    for (name, verb, tried, another) in verbs {
        for (own, [returns, is_over]) in [(true, tried), (false, another)] {
            case(format!("{name} of its own: {own}"), move || {
                let world = World::new();
                let purgatory = Purgatory::new(&world.timer);
                let deed = Arc::new(Mutex::new(None));
                let watch = |key, deed: &Arc<Mutex<Option<Deed>>>| {
                    let told = Told { deed: deed.clone(), log: Log::new() };
                    Arc::new(purgatory.watch(told, [key], SECOND).unwrap())
                };
                let (mine, other) = (watch(1, &deed), watch(2, &Arc::default()));
                let (told, heard) = mpsc::channel();
                let target = if own { mine.clone() } else { other.clone() };
                let used = target.clone();
                *deed.lock().unwrap() = Some(Box::new(move || told.send(verb(&used)).unwrap()));
                purgatory.check(&1);
                assert_eq!(heard.try_recv(), Ok(returns));
                assert_eq!(target.is_over(), is_over);
                // An operation that is not over is still watched.
                assert_eq!(target.cancel().is_some(), !is_over);
            });
        }
    }
}
