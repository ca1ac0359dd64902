//! Kafka's `TimerTest`, `TimerTaskListTest`, `TimingWheelTest`, `SystemTimerReaperTest` and `DelayedOperationTest`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use tourbillon::{
    Builder, Delayed, DelayedOperation, Outcome, Purgatory, State, Timer, VirtualClock, Watched,
};

use crate::common::{HOUR, Log, MS, SECOND, within};

fn kafka() -> (Timer, VirtualClock) {
    let clock = VirtualClock::new();
    (Builder::kafka().on_driver().clock(&clock).build().unwrap(), clock)
}

#[test]
fn what_has_expired_when_it_is_added_runs_at_once() {
    let (timer, clock) = kafka();
    clock.advance(HOUR).unwrap();
    for past in [Duration::ZERO, MS, HOUR] {
        let timeout = timer.schedule_at(clock.now() - past, |_| ()).unwrap();
        clock.advance(Duration::ZERO).unwrap();
        assert_eq!(timeout.state(), State::Fired, "{past:?} ago");
    }
    assert!(timer.is_empty());
}

/// Over several rings of twenty, in order of time.
#[test]
fn tasks_expire_in_the_order_of_time_over_several_rings() {
    let (timer, clock) = kafka();
    let log = Log::new();
    let delays = [0, 1, 2, 19, 20, 21, 22, 399, 400, 401, 402, 7999, 8000, 8001, 8002];
    for ms in delays.into_iter().rev().chain([21, 22, 401]) {
        let log = log.clone();
        timer.arm(MS * ms, move |_| log.add(ms)).unwrap();
    }
    let mut expected: Vec<u32> = delays.into_iter().chain([21, 22, 401]).collect();
    expected.sort_unstable();
    let mut seen = 0;
    for ms in 0..=8002 {
        assert_eq!(timer.len(), expected.len() - seen, "before {ms} ms");
        clock.advance(if ms == 0 { Duration::ZERO } else { MS }).unwrap();
        seen += expected.iter().filter(|&&due| due == ms).count();
        assert_eq!(log.len(), seen, "at {ms} ms");
    }
    assert_eq!(log.take(), expected);
}

#[test]
fn a_cancelled_task_leaves_its_slot_and_never_runs() {
    let (timer, clock) = kafka();
    let tasks: Vec<_> = (0..10).map(|_| timer.schedule(5 * MS, |_| ()).unwrap()).collect();
    assert!(tasks.iter().step_by(2).all(|task| task.cancel()));
    let slots: usize = timer.snapshot().slots().map(|slot| slot.timers).sum();
    assert_eq!((slots, timer.len()), (5, 5));
    assert_eq!(tasks[1].remaining(), Some(5 * MS));
    clock.advance(5 * MS).unwrap();
    assert_eq!(timer.counts().fired, 5);
}

/// There is no reaper: the engine drives itself. In real time, milliseconds.
#[test]
fn nobody_has_to_advance_the_clock() {
    let timer = Builder::kafka().build().unwrap();
    let results = [1, 20, 50].map(|ms| timer.compute(MS * ms, move |_| ms).unwrap());
    assert_eq!(results.map(|result| result.wait()), [Ok(1), Ok(20), Ok(50)]);
    assert!(timer.stop().is_empty());
}

struct Op {
    ready: Arc<AtomicBool>,
    log: Log<&'static str>,
}

impl DelayedOperation for Op {
    fn try_complete(&mut self) -> bool {
        self.ready.load(SeqCst)
    }
    fn on_complete(&mut self) {
        self.log.add("complete");
    }
    fn on_expiration(&mut self) {
        self.log.add("expired");
    }
}

type Ops = Purgatory<&'static str, Delayed<Op>>;

fn purgatory() -> (Ops, VirtualClock, Log<&'static str>) {
    let (timer, clock) = kafka();
    let purgatory = Purgatory::new(&timer);
    (purgatory, clock, Log::new())
}

fn watch(
    purgatory: &Ops,
    log: &Log<&'static str>,
    keys: &[&'static str],
    timeout: Duration,
) -> (Watched<Delayed<Op>>, Arc<AtomicBool>) {
    let ready = Arc::new(AtomicBool::new(false));
    let op = Delayed(Op { ready: ready.clone(), log: log.clone() });
    (purgatory.watch(op, keys.iter().copied(), timeout).unwrap(), ready)
}

#[test]
fn requests_are_satisfied_by_a_check_of_their_key() {
    let (purgatory, _clock, log) = purgatory();
    assert_eq!(purgatory.check("one"), 0);
    let (one, first) = watch(&purgatory, &log, &["one"], HOUR);
    let (_, second) = watch(&purgatory, &log, &["two"], HOUR);
    assert_eq!((purgatory.check("one"), purgatory.check("two")), (0, 0));
    first.store(true, SeqCst);
    assert_eq!((purgatory.check("one"), purgatory.check("one")), (1, 0));
    assert!(one.is_completed());
    second.store(true, SeqCst);
    assert_eq!((purgatory.check("two"), purgatory.check("two")), (1, 0));
    let op = Delayed(Op { ready: second, log: log.clone() });
    assert_eq!(purgatory.try_complete_else_watch(op, ["two"], HOUR).unwrap(), Outcome::Completed);
    assert_eq!(log.take(), ["complete"; 3]);
}

#[test]
fn a_request_that_expires_is_completed_too() {
    let (purgatory, clock, log) = purgatory();
    let (short, _) = watch(&purgatory, &log, &["one"], 20 * MS);
    let (long, _) = watch(&purgatory, &log, &["two"], HOUR);
    clock.advance(19 * MS).unwrap();
    assert!(!short.is_over());
    clock.advance(MS).unwrap();
    assert!(short.is_over() && !long.is_over());
    assert_eq!(log.take(), ["complete", "expired"], "as there, through the adapter");
}

/// There is nothing to purge: a completed operation has already been removed under every key.
#[test]
fn what_is_completed_is_gone_from_every_key() {
    let (purgatory, _clock, log) = purgatory();
    let (_first, _) = watch(&purgatory, &log, &["a"], HOUR);
    let (second, _) = watch(&purgatory, &log, &["a", "b"], HOUR);
    let (third, _) = watch(&purgatory, &log, &["a", "b", "c"], HOUR);
    assert_eq!((purgatory.delayed(), purgatory.watched()), (3, 6));
    assert!(second.complete());
    assert_eq!((purgatory.delayed(), purgatory.watched()), (2, 4));
    assert!(third.complete());
    assert_eq!((purgatory.delayed(), purgatory.watched()), (1, 1));
}

#[test]
fn the_requests_of_a_key_are_cancelled_and_come_back() {
    let (purgatory, _clock, log) = purgatory();
    assert!(purgatory.cancel_key("nobody's").is_empty());
    for key in ["one", "one", "two"] {
        watch(&purgatory, &log, &[key], HOUR);
    }
    assert_eq!(purgatory.cancel_key("one").len(), 2);
    assert_eq!((purgatory.delayed(), purgatory.watched(), log.len()), (1, 1, 0));
}

/// The last of several events makes each operation completable, whichever thread tries it.
#[test]
fn no_event_is_lost_between_many_threads() {
    within(|| {
        let (purgatory, _clock, log) = purgatory();
        const EVENTS: u32 = 20;
        let ops: Vec<_> = (0..50)
            .map(|_| (watch(&purgatory, &log, &["key"], HOUR), Arc::new(AtomicU32::new(EVENTS))))
            .collect();
        let ops = Arc::new(ops);
        let threads: Vec<_> = (0..EVENTS)
            .map(|_| {
                let (ops, purgatory) = (ops.clone(), purgatory.clone());
                thread::spawn(move || {
                    for ((_, ready), left) in ops.iter() {
                        if left.fetch_sub(1, SeqCst) == 1 {
                            ready.store(true, SeqCst);
                        }
                        purgatory.check("key");
                        thread::yield_now();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(ops.iter().all(|((op, _), _)| op.is_completed()));
        assert_eq!((log.len(), purgatory.watched()), (50, 0));
    });
}

#[test]
fn a_condition_decides_between_two_ways() {
    let (purgatory, clock, log) = purgatory();
    let (met, ready) = watch(&purgatory, &log, &["key"], SECOND);
    ready.store(true, SeqCst);
    clock.advance(SECOND).unwrap();
    assert!(met.is_completed(), "tried one last time at its timeout");
    assert_eq!(log.take(), ["complete"]);
}
