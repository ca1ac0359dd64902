//! Takers, for which a virtual clock waits, and queries of a queue.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use tourbillon::{DelayQueue, TakeError, Taker, Timer, VirtualClock};

use crate::common::asleep::{Tid, await_asleep, spawn_known};
use crate::common::{HOUR, Log, SECOND, case, within};

fn queue<T: Send + 'static>() -> (DelayQueue<T>, VirtualClock) {
    let clock = VirtualClock::new();
    (Timer::builder().clock(&clock).queue().unwrap(), clock)
}

/// The clock waits for a taker that has not begun its first take, and for the processing of its value.
#[test]
fn an_advance_waits_for_takers_and_their_work() {
    for _ in 0..50 {
        within(|| {
            let (queue, clock) = queue();
            let log = Log::new();
            for worker in 0..2 {
                let (taker, own, log, back) =
                    (queue.taker(), clock.clone(), log.clone(), queue.clone());
                thread::spawn(move || {
                    while let Ok(fired) = taker.take_entry() {
                        thread::yield_now();
                        assert_eq!(fired.deadline(), own.now(), "worker {worker} is at its moment");
                        log.add(fired.value);
                        if fired.value == 1 {
                            // Due within the same advance.
                            back.put(SECOND, 10).unwrap();
                        }
                    }
                });
            }
            (1..=3).for_each(|n| _ = queue.put(SECOND * n, n).unwrap());
            clock.advance(5 * SECOND).unwrap();
            let mut seen = log.take();
            seen.sort_unstable();
            assert_eq!(seen, [1, 2, 3, 10]);
            queue.close();
        });
    }
}

#[test]
fn a_taker_that_is_dropped_holds_nobody_up() {
    within(|| {
        let (queue, clock) = queue();
        queue.put(SECOND, "nobody wants it").unwrap();
        let taker = queue.taker();
        assert_eq!(taker.take_within(Duration::ZERO), Err(TakeError::NothingDue));
        drop(taker);
        clock.advance(SECOND).unwrap();
        assert_eq!(queue.len(), 1);
    });
}

#[test]
fn a_taker_with_a_limit_comes_back_without_a_value() {
    within(|| {
        let (queue, clock) = queue::<u32>();
        let (taker, empty) = (queue.taker(), Arc::new(AtomicU32::new(0)));
        let count = empty.clone();
        let worker = thread::spawn(move || {
            while taker.take_within(SECOND) == Err(TakeError::NothingDue)
                && count.fetch_add(1, SeqCst) < 2
            {}
        });
        while !worker.is_finished() {
            clock.advance(SECOND).unwrap();
        }
        assert_eq!(empty.load(SeqCst), 3);
    });
}

#[test]
fn a_queue_can_be_looked_at_and_emptied() {
    let (queue, clock) = queue();
    assert_eq!((queue.peek(), queue.next_deadline()), (None, None));
    let keys: Vec<_> = [3, 1, 2].iter().map(|&n| queue.put(SECOND * n, n).unwrap()).collect();
    let never = queue.put(Duration::MAX, 9).unwrap();
    assert_eq!(queue.peek().unwrap().key, keys[1]);
    assert_eq!(queue.next_deadline(), Some(clock.now() + SECOND));
    let order: Vec<_> = queue.pending().iter().map(|value| value.key).collect();
    assert_eq!(order, [keys[1], keys[2], keys[0], never]);
    // The query has moved the hand ahead of the clock: still no value is early, and the order is kept.
    let first = queue.put(SECOND / 2, 0).unwrap();
    assert_eq!(queue.peek().unwrap().key, first);
    assert_eq!(queue.try_take(), Err(TakeError::NothingDue));
    clock.advance(2 * SECOND).unwrap();
    let due: Vec<_> = queue.drain_due(2).into_iter().map(|fired| fired.value).collect();
    assert_eq!(due, [0, 1]);
    assert_eq!(queue.peek().unwrap().key, keys[2], "due, and not taken");
    assert!(queue.contains(keys[2]) && !queue.contains(first));
    let rest: Vec<_> = queue.drain().into_iter().map(|fired| (fired.key, fired.value)).collect();
    assert_eq!(rest, [(keys[2], 2), (keys[0], 3), (never, 9)]);
    assert!(queue.is_empty() && queue.check().is_ok());
    queue.extend([(SECOND, 1), (HOUR, 2)]);
    queue.clear();
    assert_eq!((queue.len(), queue.check()), (0, Ok(())));
    let counts = queue.counts();
    assert_eq!(counts.armed, counts.fired + counts.cancelled);
    queue.put(Duration::ZERO, 7).unwrap();
    assert_eq!(queue.take(), Ok(7), "it is open still");
}

#[test]
fn a_look_at_what_no_clock_reaches() {
    let (queue, _clock) = queue();
    let key = queue.put(Duration::MAX, ()).unwrap();
    assert_eq!(queue.peek().map(|next| next.key), Some(key));
    assert_eq!(queue.pending().len(), 1);
}

/// A worker that drains the queue while the clock waits for a taker lets the advance continue.
#[test]
fn a_drain_lets_an_advance_go_on() {
    within(|| {
        let (queue, clock) = queue();
        queue.put(SECOND, 1).unwrap();
        queue.put(SECOND, 2).unwrap();
        let (own, drained) = (queue.clone(), clock.clone());
        let worker = thread::spawn(move || {
            let first = own.take().unwrap();
            let rest = own.drain().len() + own.drain_due(9).len();
            (first, rest, drained.elapsed())
        });
        while !worker.is_finished() {
            clock.advance(SECOND).unwrap();
        }
        worker.join().unwrap();
        assert!(queue.is_empty());
    });
}

type Take = (&'static str, fn(&Taker<u32>) -> u32);

const TAKES: [Take; 3] = [
    ("take", |taker| taker.take().unwrap()),
    ("take_entry", |taker| taker.take_entry().unwrap().value),
    ("take_within", |taker| taker.take_within(HOUR).unwrap()),
];

/// A taker may take its value before the clock looks at the queue. The clock finds nothing due, and still waits.
#[test]
fn an_advance_waits_for_a_taker_that_took_at_once() {
    for (name, take) in TAKES {
        case(name, move || {
            let clock = VirtualClock::new();
            // Made first: at each step, the clock turns it before it looks at the queue.
            let timer = Timer::builder().clock(&clock).on_driver().build().unwrap();
            let queue = Timer::builder().clock(&clock).queue().unwrap();
            let ((start, started), (took, taken)) = (mpsc::channel(), mpsc::channel());
            let returns = Arc::new(AtomicBool::new(false));
            let ends = returns.clone();
            let callback = move |_: &tourbillon::Context<'_>| {
                start.send(()).unwrap();
                taken.recv().unwrap();
                ends.store(true, SeqCst);
            };
            timer.arm(SECOND, callback).unwrap();
            queue.put(SECOND, 7).unwrap();
            let (taker, own, advancing) = (queue.taker(), clock.clone(), Tid::own());
            let worker = thread::spawn(move || {
                started.recv().unwrap();
                let value = take(&taker);
                took.send(()).unwrap();
                while !returns.load(SeqCst) {
                    thread::yield_now();
                }
                // The advance goes as far as it can while this thread is at work.
                await_asleep(&[advancing]);
                (value, own.elapsed())
            });
            clock.advance(HOUR).unwrap();
            assert_eq!(worker.join().unwrap(), (7, SECOND), "time stands still while it works");
        });
    }
}

/// What a thread took, and when. The limit is in seconds after the clock's beginning.
struct Took {
    limit: u64,
    value: Option<u64>,
    at: Duration,
}

/// Threads with limits, some of them equal, and values for some of them. A value is the second at which it is due.
fn take_once(taker: bool, limits: &[u64], values: &[u64]) -> Vec<Took> {
    let (queue, clock) = queue();
    values.iter().for_each(|&value| _ = queue.put(SECOND * value as u32, value).unwrap());
    let take = |&limit: &u64| {
        let (taker, own) = (taker.then(|| queue.taker()), clock.clone());
        let (queue, within) = (queue.clone(), SECOND * limit as u32);
        spawn_known(move || {
            let taken = match &taker {
                Some(taker) => taker.take_within(within),
                None => queue.take_within(within),
            };
            // While its taker exists, the clock waits.
            let (value, at) = (taken.ok(), own.elapsed());
            drop(taker);
            Took { limit, value, at }
        })
    };
    let (tids, threads): (Vec<_>, Vec<_>) = limits.iter().map(take).unzip();
    await_asleep(&tids);
    clock.advance(HOUR).unwrap();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

#[test]
fn each_of_many_takers_leaves_with_its_value_or_at_its_limit() {
    let mut random = fastrand::Rng::with_seed(1);
    for round in 0..100 {
        let limits: Vec<u64> = (0..random.usize(2..6)).map(|_| random.u64(1..5)).collect();
        let values: Vec<u64> = (0..random.usize(0..5)).map(|_| random.u64(1..5)).collect();
        let taker = round % 2 == 0;
        case(format!("takers: {taker}, limits {limits:?}, values {values:?}"), move || {
            let all = take_once(taker, &limits, &values);
            let taken = |value: u64| all.iter().filter(|took| took.value == Some(value)).count();
            for &Took { limit, value, at } in &all {
                assert!(value.is_none_or(|value| value <= limit), "after its limit");
                // Any other thread than a taker may read the clock later.
                let left = SECOND * value.unwrap_or(limit) as u32;
                assert!(at == left || !taker && at > left, "it leaves at {at:?}, not {left:?}");
                let before = values.iter().filter(|&&due| due <= limit && value.is_none());
                for &due in before {
                    let all = values.iter().filter(|&&other| other == due).count();
                    assert_eq!(taken(due), all, "it leaves without a value that is due");
                }
            }
        });
    }
}
