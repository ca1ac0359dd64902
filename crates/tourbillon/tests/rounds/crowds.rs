//! A crowd of timers comes and goes: with the last of it, its memory is released, without a call for that.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use tourbillon::{Backoff, KeyedTimer, Purgatory, Repeat, Timeout, Timer, VirtualClock, WaitError};

use crate::allocator::held;
use crate::common::{HOUR, SECOND, YEAR, case};

/// More timers than an engine keeps memory for.
const CROWD: u32 = 20_000;

/// More handles than an engine keeps memory for.
const HELD: usize = 9_000;

/// A crowd may leave behind at most this fraction of the memory that it needed.
const PART: usize = 20;

/// Makes a crowd, calls `there`, and ends the crowd.
type Crowd = (&'static str, fn(&Timer, &VirtualClock, &dyn Fn()));

/// A few hundred moments: a virtual clock stops at each.
fn far(n: u32) -> Duration {
    HOUR + SECOND * (n / 100)
}

const CROWDS: &[Crowd] = &[
    ("keys, fired", |timer, clock, there| {
        (0..CROWD).for_each(|n| _ = timer.arm(far(n), |_| ()).unwrap());
        there();
        clock.advance(far(CROWD)).unwrap();
    }),
    ("keys, cancelled", |timer, _, there| {
        let keys: Vec<_> = (0..CROWD).map(|n| timer.arm(far(n), |_| ()).unwrap()).collect();
        there();
        assert!(keys.into_iter().all(|key| timer.cancel(key)));
    }),
    ("handles, fired", |timer, clock, there| {
        let all: Vec<_> = (0..CROWD).map(|n| timer.schedule(far(n), |_| ()).unwrap()).collect();
        there();
        clock.advance(far(CROWD)).unwrap();
        assert!(all.iter().all(|handle| !handle.is_pending()));
    }),
    ("handles, cancelled", |timer, _, there| {
        let all: Vec<_> = (0..CROWD).map(|n| timer.schedule(far(n), |_| ()).unwrap()).collect();
        there();
        assert!(all.iter().all(|handle| handle.cancel()));
    }),
    ("repeating, cancelled", |timer, clock, there| {
        let all: Vec<_> =
            (0..CROWD).map(|_| timer.schedule_repeating(HOUR, |run| _ = run.again(HOUR))).collect();
        clock.advance(HOUR).unwrap();
        there();
        assert!(all.into_iter().all(|handle| handle.unwrap().cancel()));
    }),
    ("wall clock, cancelled", |timer, _, there| {
        let at = timer.wall_now();
        let all: Vec<_> =
            (0..CROWD).map(|n| timer.schedule_wall(at + far(n), |_| ()).unwrap()).collect();
        there();
        assert!(all.iter().all(|handle| handle.cancel()));
    }),
    ("values, fired", |_, clock, there| {
        let engine = Timer::builder().clock(clock).shards(1).deliver(|_| ()).unwrap();
        (0..CROWD).for_each(|n| _ = engine.schedule(far(n), n).unwrap());
        there();
        clock.advance(far(CROWD)).unwrap();
        std::mem::forget(engine);
    }),
    ("values, cancelled", |_, clock, there| {
        let engine = Timer::builder().clock(clock).shards(1).deliver(|_| ()).unwrap();
        let keys: Vec<_> = (0..CROWD).map(|n| engine.schedule(far(n), n).unwrap()).collect();
        there();
        assert!(keys.into_iter().all(|key| engine.cancel(key).is_some()));
        std::mem::forget(engine);
    }),
    ("queue, taken", |_, clock, there| {
        let queue = Timer::builder().clock(clock).queue().unwrap();
        (0..CROWD).for_each(|n| _ = queue.put(far(n), n).unwrap());
        there();
        clock.advance(far(CROWD)).unwrap();
        assert!((0..CROWD).all(|_| queue.take().is_ok()));
        std::mem::forget(queue);
    }),
    ("queue, removed", |_, clock, there| {
        let queue = Timer::builder().clock(clock).queue().unwrap();
        let keys: Vec<_> = (0..CROWD).map(|n| queue.put(far(n), n).unwrap()).collect();
        there();
        assert!(keys.into_iter().all(|key| queue.remove(key).is_some()));
        std::mem::forget(queue);
    }),
    ("names, fired", |timer, clock, there| {
        let timers = KeyedTimer::new(timer);
        (0..CROWD).for_each(|n| _ = timers.schedule(n, far(n), |_| ()).unwrap());
        there();
        clock.advance(far(CROWD)).unwrap();
        std::mem::forget(timers);
    }),
    ("names, cancelled", |timer, _, there| {
        let timers = KeyedTimer::new(timer);
        (0..CROWD).for_each(|n| _ = timers.schedule(n, far(n), |_| ()).unwrap());
        there();
        assert!((0..CROWD).all(|n| timers.cancel(&n)));
        std::mem::forget(timers);
    }),
    ("names, cleared", |timer, _, there| {
        let timers = KeyedTimer::new(timer);
        (0..CROWD).for_each(|n| _ = timers.schedule(n, far(n), |_| ()).unwrap());
        there();
        assert_eq!(timers.clear(), CROWD as usize);
        std::mem::forget(timers);
    }),
    ("operations, expired", |timer, clock, there| {
        let purgatory = watched(timer);
        there();
        clock.advance(far(CROWD)).unwrap();
        assert_eq!((purgatory.delayed(), purgatory.watched()), (0, 0));
        std::mem::forget(purgatory);
    }),
    ("operations, cancelled", |timer, _, there| {
        let purgatory = watched(timer);
        there();
        (0..CROWD).for_each(|n| _ = purgatory.cancel_key(&n));
        assert_eq!((purgatory.delayed(), purgatory.watched()), (0, 0));
        std::mem::forget(purgatory);
    }),
    ("sleeps, over", |timer, clock, there| {
        let mut all: Vec<_> = (0..CROWD).map(|n| timer.sleep(far(n))).collect();
        assert!(all.iter_mut().all(is_pending));
        there();
        clock.advance(far(CROWD)).unwrap();
        assert!(all.iter_mut().all(|sleep| !is_pending(sleep)));
    }),
    ("sleeps, dropped", |timer, _, there| {
        let mut all: Vec<_> = (0..CROWD).map(|n| timer.sleep(far(n))).collect();
        assert!(all.iter_mut().all(is_pending));
        there();
    }),
];

/// Makes a crowd, calls `there`, ends all of it but one, and releases the memory with `shrink`.
const REMAINDERS: &[Crowd] = &[
    ("keys", |timer, _, there| {
        let mut keys: Vec<_> = (0..CROWD).map(|n| timer.arm(far(n), |_| ()).unwrap()).collect();
        there();
        let one = keys.swap_remove(100);
        assert!(keys.into_iter().all(|key| timer.cancel(key)));
        timer.shrink();
        assert!(timer.is_pending(one));
    }),
    ("handles", |timer, _, there| {
        let all = (0..CROWD).map(|n| timer.schedule(far(n), |_| ()).unwrap());
        let mut all: Vec<_> = all.collect();
        there();
        let one = all.swap_remove(100);
        all.into_iter().for_each(|handle| assert!(handle.cancel()));
        timer.shrink();
        assert!(one.is_pending());
    }),
    ("values", |_, clock, there| {
        let engine = Timer::builder().clock(clock).shards(1).deliver(|_| ()).unwrap();
        let mut keys: Vec<_> = (0..CROWD).map(|n| engine.schedule(far(n), n).unwrap()).collect();
        there();
        let one = keys.swap_remove(100);
        assert!(keys.into_iter().all(|key| engine.cancel(key).is_some()));
        engine.shrink();
        assert!(engine.is_pending(one));
        std::mem::forget(engine);
    }),
    ("queue", |_, clock, there| {
        let queue = Timer::builder().clock(clock).queue().unwrap();
        let mut keys: Vec<_> = (0..CROWD).map(|n| queue.put(far(n), n).unwrap()).collect();
        there();
        keys.swap_remove(100);
        assert!(keys.into_iter().all(|key| queue.remove(key).is_some()));
        queue.shrink();
        assert_eq!(queue.len(), 1);
        std::mem::forget(queue);
    }),
    ("names", |timer, _, there| {
        let timers = KeyedTimer::new(timer);
        (0..CROWD).for_each(|n| _ = timers.schedule(n, far(n), |_| ()).unwrap());
        there();
        assert!((1..CROWD).all(|n| timers.cancel(&n)));
        timer.shrink();
        assert!(timers.is_pending(&0));
        std::mem::forget(timers);
    }),
    ("sleeps", |timer, _, there| {
        let mut all: Vec<_> = (0..CROWD).map(|n| timer.sleep(far(n))).collect();
        assert!(all.iter_mut().all(is_pending));
        there();
        let mut one = all.swap_remove(100);
        drop(all);
        timer.shrink();
        assert!(is_pending(&mut one));
        std::mem::forget(one);
    }),
];

/// Called by each of a crowd when it runs.
type Run = Arc<dyn Fn() + Send + Sync>;

/// A verb that returns a handle: it runs once, after the given delay.
type Verb = (&'static str, fn(&Timer, Duration, Run) -> Timeout);

const HANDLES: &[Verb] = &[
    ("schedule", |timer, after, run| timer.schedule(after, move |_| run()).unwrap()),
    ("schedule_at", |timer, after, run| {
        timer.schedule_at(timer.now() + after, move |_| run()).unwrap()
    }),
    ("schedule_repeating", |timer, after, run| {
        timer.schedule_repeating(after, move |_| run()).unwrap()
    }),
    ("repeat", |timer, after, run| {
        let ends = move |context: &tourbillon::Context<'_>| {
            run();
            _ = context.timeout().unwrap().cancel();
        };
        timer.repeat(Repeat::every(after), ends).unwrap()
    }),
    ("schedule_wall", |timer, after, run| {
        timer.schedule_wall(timer.wall_now() + after, move |_| run()).unwrap()
    }),
    ("compute", |timer, after, run| {
        timer.compute(after, move |_| run()).unwrap().timeout().clone()
    }),
    ("retry", |timer, after, run| {
        let job = move |_: &tourbillon::Attempt| {
            run();
            Ok::<_, ()>(())
        };
        let retry = timer.retry(Backoff::new(after), job).unwrap();
        retry.timeout()
    }),
];

/// How a crowd of handles ends. In the last way, the last run drops the handles.
type Goes = (&'static str, fn(&VirtualClock, Vec<Timeout>));

const WAYS: &[Goes] = &[
    ("cancelled", |_, all| assert!(all.iter().all(Timeout::cancel))),
    ("cancelled, dropped one by one", |_, all| {
        all.into_iter().for_each(|handle| assert!(handle.cancel()));
    }),
    ("cancelled by a clone", |_, all| {
        let clones = all.clone();
        drop(all);
        assert!(clones.into_iter().all(|handle| handle.cancel()));
    }),
    ("fired", |clock, all| {
        clock.advance(far(CROWD)).unwrap();
        assert!(all.iter().all(|handle| !handle.is_pending()));
    }),
    ("fired without a handle", |clock, all| {
        drop(all);
        clock.advance(far(CROWD)).unwrap();
    }),
    (IN_A_RUN, |clock, _| clock.advance(far(CROWD)).unwrap()),
];

const IN_A_RUN: &str = "fired, and dropped by the last run";

fn is_pending<F: Future + Unpin>(future: &mut F) -> bool {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

/// A purgatory with a crowd of operations, each under two keys.
fn watched(timer: &Timer) -> Purgatory<u32> {
    let purgatory = Purgatory::new(timer);
    for n in 0..CROWD {
        let then = |_: Result<(), WaitError>| ();
        purgatory.when([n, n + 1], far(n), || None, then).unwrap();
    }
    purgatory
}

#[test]
fn the_memory_of_a_crowd_goes_with_the_last_of_it() {
    each(CROWDS);
}

#[test]
fn one_that_stays_keeps_no_more_than_its_own_memory() {
    each(REMAINDERS);
}

/// A timer without a handle stays, and the wheel with it; but the memory of the handles is released with the last of
/// them.
#[test]
fn handles_that_are_gone_leave_no_memory() {
    let _alone = crate::alone();
    let clock = VirtualClock::new();
    let timer = Timer::builder().clock(&clock).shards(1).on_driver().build().unwrap();
    let one = timer.arm(YEAR, |_| ()).unwrap();
    // The wheel grows first, to the size for a crowd that fires one by one, or all at once.
    for after in [far, |_| Duration::ZERO] {
        (0..CROWD).for_each(|n| _ = timer.arm(after(n), |_| ()).unwrap());
        clock.advance(far(CROWD)).unwrap();
    }
    for &(verb, schedule) in HANDLES {
        for &(way, go) in WAYS {
            let (timer, clock) = (timer.clone(), clock.clone());
            case(format!("{verb}, {way}"), move || {
                let before = held();
                let (ran, kept): (_, Arc<Mutex<Vec<_>>>) = (AtomicUsize::new(0), Arc::default());
                let own = kept.clone();
                let run: Run = Arc::new(move || {
                    if ran.fetch_add(1, Relaxed) + 1 == HELD {
                        *own.lock().unwrap() = Vec::new();
                    }
                });
                let all = (0..HELD as u32).map(|n| schedule(&timer, far(n), run.clone()));
                let mut all: Vec<_> = all.collect();
                drop(run);
                if way == IN_A_RUN {
                    *kept.lock().unwrap() = std::mem::take(&mut all);
                }
                go(&clock, all);
                drop(kept);
                let left = held().saturating_sub(before);
                assert!(left < HELD, "{left} bytes are left of {HELD} handles");
                assert!(timer.is_pending(one) && timer.check().is_ok());
            });
        }
    }
}

/// While an action runs, the actions of other operations are queued.
#[test]
fn actions_that_have_waited_leave_no_memory() {
    let _alone = crate::alone();
    let timer = Timer::builder().clock(&VirtualClock::new()).build().unwrap();
    let purgatory: Purgatory<u32> = Purgatory::new(&timer);
    let (before, peak) = (held(), Arc::new(AtomicUsize::new(0)));
    let (own, told) = (purgatory.clone(), peak.clone());
    let then = move |_: Result<(), WaitError>| {
        for n in 0..CROWD {
            own.when([n], HOUR, || Some(()), |_| ()).unwrap();
        }
        told.store(held(), Relaxed);
    };
    purgatory.when([0], HOUR, || Some(()), then).unwrap();
    let (needed, left) = (peak.load(Relaxed) - before, held().saturating_sub(before));
    assert!(left < needed / PART, "{left} bytes of {needed} are left");
}

fn each(crowds: &'static [Crowd]) {
    let _alone = crate::alone();
    for &(name, crowd) in crowds {
        case(name, move || {
            let clock = VirtualClock::new();
            let timer = Timer::builder().clock(&clock).shards(1).on_driver().build().unwrap();
            let (before, peak) = (held(), std::cell::Cell::new(0));
            crowd(&timer, &clock, &|| peak.set(held()));
            let (needed, left) = (peak.get() - before, held().saturating_sub(before));
            assert!(left < needed / PART, "{left} bytes of {needed} are left");
        });
    }
}
