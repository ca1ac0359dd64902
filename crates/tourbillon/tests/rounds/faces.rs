//! The other faces for threads: keys, retries, queues, the typed engine and the purgatory, with large values, ended in
//! each possible way.

use std::thread;
use std::time::Duration;

use tourbillon::{
    Attempt, Backoff, BootClock, DelayQueue, Engine, KeyedTimer, Operation, Outcome, Purgatory,
    Retried, Timer, VirtualClock,
};

use crate::common::asleep::spawn_asleep;
use crate::common::{HOUR, SECOND, panic_quietly};
use crate::{Case, LIMIT, Make, ROUNDS, Round, all_places, cases as named};

/// With this many keys, each of at most 256 tables has had one: a table keeps its first memory.
const ALL_TABLES: usize = 1 << 13;

/// What happens to a value that is due while no thread takes it.
pub(crate) const DUE: [&str; 2] = ["moved", "removed"];
/// This often in a round: a queue keeps an account of some of them.
pub(crate) const OFTEN: usize = 300;

/// Large enough to be boxed, or to fill a node of its own.
type Large = [u8; 2048];
const LARGE: Large = [7; 2048];

fn timer() -> (Timer, VirtualClock) {
    let clock = VirtualClock::new();
    let builder = Timer::builder().on_driver().shards(1).limit(LIMIT).clock(&clock);
    (builder.build().unwrap(), clock)
}

pub(crate) fn cases() -> Vec<Case> {
    let rows: [(&str, Make); 9] = [
        ("KeyedTimer", keyed),
        ("Timer::retry", retries),
        ("DelayQueue of threads", queue),
        ("DelayQueue that is closed", closed_queue),
        ("Engine", engine),
        ("Engine that is stopped", stopped_engine),
        ("Purgatory", purgatory),
        ("Purgatory that is stopped", stopped_purgatory),
        ("all of them on a timer that is stopped", stopped_timer),
    ];
    let names = DUE.map(|way| format!("DelayQueue of threads, what is due is {way}"));
    let due = named(&names.each_ref().map(String::as_str), ROUNDS, due_queue);
    let rows = rows.into_iter().flat_map(|(name, make)| named(&[name], ROUNDS, make));
    rows.chain(due).collect()
}

fn keyed(_: usize) -> Round {
    let (timer, clock) = timer();
    let timers: KeyedTimer<String> = KeyedTimer::new(&timer);
    for first in 0..ALL_TABLES {
        timers.schedule(format!("first {first}"), HOUR, |_| ()).unwrap();
        assert_eq!(timers.clear(), 1);
    }
    let mut number = 0;
    Box::new(move || {
        number += 1;
        // A different key each time: a table must not keep keys that are gone.
        let key = format!("key {number}");
        let large = move |_: &tourbillon::Context<'_>| _ = std::hint::black_box(&LARGE);
        let held = (vec![7; 100], LARGE);
        let drops = move |_: &tourbillon::Context<'_>| _ = std::hint::black_box(&held);
        timers.schedule(key.clone(), HOUR, large).unwrap();
        assert!(timers.schedule(key.clone(), HOUR, drops).unwrap(), "replaced");
        assert!(timers.schedule_if_absent(key.clone(), HOUR, large).unwrap().is_some());
        assert!(timers.cancel(&key));
        timers.schedule(key.clone(), HOUR, large).unwrap();
        timers.reschedule(&key, SECOND).unwrap();
        clock.advance(SECOND).unwrap();
        assert!(!timers.is_pending(&key), "it has fired");
        for outcome in [Retried::Cancelled, Retried::GaveUp { error: 3, tries: 2 }] {
            let job = |attempt: &Attempt| if attempt.number() == 9 { Ok(()) } else { Err(3) };
            let then = move |told| assert_eq!(told, outcome);
            timers.retry(key.clone(), Backoff::new(SECOND).tries(2), job, then).unwrap();
            clock.advance(Duration::ZERO).unwrap();
            if outcome == Retried::Cancelled {
                assert!(timers.cancel(&key));
            }
            clock.advance(SECOND).unwrap();
        }
        timers.schedule(key, HOUR, |_| ()).unwrap();
        assert_eq!(timers.clear(), 1);
        assert_eq!((timers.len(), timer.counts().panicked), (0, 0));
        all_places(&timer);
        // And one that is dropped with a pending timer.
        let other: KeyedTimer<u32> = KeyedTimer::new(&timer);
        other.schedule(1, HOUR, large).unwrap();
        drop(other);
        assert!(timer.is_empty());
    })
}

fn retries(_: usize) -> Round {
    let (timer, clock) = timer();
    Box::new(move || {
        let backoff = Backoff::new(SECOND).tries(3);
        let failing = |_: &Attempt| {
            std::hint::black_box(&LARGE);
            Err::<Large, _>(vec![LARGE])
        };
        let pass = || clock.advance(SECOND * 4).unwrap();
        let gives_up = timer.retry(backoff.clone(), failing).unwrap();
        pass();
        assert!(matches!(gives_up.wait(), Retried::GaveUp { tries: 3, .. }));
        let succeeds = timer.retry(backoff.clone(), |_| Ok::<_, ()>(vec![7; 100])).unwrap();
        pass();
        assert!(matches!(succeeds.wait(), Retried::Success(_)));
        let cancelled = timer.retry(backoff.clone(), failing).unwrap();
        clock.advance(Duration::ZERO).unwrap();
        assert!(cancelled.cancel() && matches!(cancelled.wait(), Retried::Cancelled));
        let panics =
            timer.retry(backoff.clone(), |_| -> Result<(), ()> { panic_quietly() }).unwrap();
        pass();
        assert_eq!(panics.wait(), Retried::Panicked);
        // The outcome is not read.
        drop(timer.retry(backoff.clone(), failing).unwrap());
        pass();
        let then =
            |outcome: Retried<(), Vec<Large>>| assert!(matches!(outcome, Retried::GaveUp { .. }));
        let job = |attempt: &Attempt| {
            attempt.give_up();
            Err(vec![LARGE])
        };
        timer.retry_then(backoff, job, then).unwrap();
        pass();
        assert!(timer.is_empty());
        all_places(&timer);
    })
}

fn queue(_: usize) -> Round {
    let clock = VirtualClock::new();
    let queue = Timer::builder().clock(&clock).limit(LIMIT).queue::<Vec<Large>>().unwrap();
    let mut round = 0;
    Box::new(move || {
        round += 1;
        let put = |after| queue.put(after, vec![LARGE]).unwrap();
        assert!(queue.remove(put(HOUR)).is_some());
        put(Duration::ZERO);
        assert!(queue.try_take().is_ok());
        let moved = put(HOUR);
        queue.reschedule(moved, SECOND).unwrap();
        clock.advance(SECOND).unwrap();
        assert!(queue.take_within(SECOND).is_ok());
        if round % 4 == 0 {
            let takes = queue.clone();
            let taker = thread::spawn(move || takes.take());
            thread::yield_now();
            put(SECOND);
            clock.advance(SECOND).unwrap();
            assert!(taker.join().unwrap().is_ok());
        }
        let keys: Vec<_> = (0..LIMIT).map(|_| put(HOUR)).collect();
        assert!(queue.put(HOUR, Vec::new()).is_err(), "full");
        keys.into_iter().for_each(|key| drop(queue.remove(key).unwrap()));
        assert_eq!(queue.check(), Ok(()));
    })
}

fn due_queue(way: usize) -> Round {
    let clock = VirtualClock::new();
    let queue = Timer::builder().clock(&clock).queue::<u32>().unwrap();
    let first = queue.put(SECOND, 1).unwrap();
    let second = queue.put(SECOND, 2).unwrap();
    clock.advance(SECOND).unwrap();
    Box::new(move || {
        assert_eq!(queue.peek().unwrap().key, first);
        for _ in 0..OFTEN {
            match DUE[way] {
                "moved" => queue.reschedule(second, Duration::ZERO).unwrap(),
                _ => assert_eq!(queue.remove(queue.put(Duration::ZERO, 3).unwrap()), Some(3)),
            }
        }
        assert_eq!((queue.peek().unwrap().key, queue.len(), queue.check()), (first, 2, Ok(())));
    })
}

fn closed_queue(_: usize) -> Round {
    let mut round = 0;
    Box::new(move || {
        round += 1;
        let builder = Timer::builder();
        let builder = if round % 2 == 0 { builder } else { builder.clock(BootClock) };
        let queue: DelayQueue<Vec<Large>> = builder.queue().unwrap();
        queue.put(HOUR, vec![LARGE]).unwrap();
        if round % 4 < 2 {
            let takes = queue.clone();
            let taker = spawn_asleep(move || takes.take());
            assert_eq!(queue.close().len(), 1);
            assert!(taker.join().unwrap().is_err());
        }
    })
}

fn engine(_: usize) -> Round {
    let clock = VirtualClock::new();
    let builder = || Timer::builder().clock(&clock).shards(1).limit(LIMIT);
    let engine: Engine<Vec<Large>> = builder().deliver(|batch| batch.for_each(drop)).unwrap();
    // A handler that does not consume its batch.
    let leaves: Engine<Vec<Large>> = builder().deliver(|_| ()).unwrap();
    Box::new(move || {
        for engine in [&engine, &leaves] {
            let schedule = |after| engine.schedule(after, vec![LARGE]).unwrap();
            assert!(engine.cancel(schedule(HOUR)).is_some());
            schedule(SECOND);
            let moved = schedule(HOUR);
            engine.reschedule(moved, SECOND).unwrap();
            clock.advance(SECOND).unwrap();
            assert!(engine.is_empty());
            let keys: Vec<_> = (0..LIMIT).map(|_| schedule(HOUR)).collect();
            assert!(engine.schedule(HOUR, Vec::new()).is_err(), "full");
            keys.into_iter().for_each(|key| drop(engine.cancel(key).unwrap()));
            assert_eq!(engine.check(), Ok(()));
        }
    })
}

fn stopped_engine(_: usize) -> Round {
    let mut round = 0;
    Box::new(move || {
        round += 1;
        if round % 2 == 0 {
            let (engine, mut driver) = Timer::builder().deliver_driven(|_| ()).unwrap();
            driver.wake_fd().unwrap();
            engine.schedule(HOUR, vec![LARGE]).unwrap();
            driver.turn();
            return if round % 4 == 0 { drop(driver) } else { drop(engine) };
        }
        let engine = Timer::builder().shards(1).deliver(|_| ()).unwrap();
        engine.schedule(HOUR, vec![LARGE]).unwrap();
        if round % 4 == 1 {
            assert_eq!(engine.stop().len(), 1);
        }
    })
}

/// Holds large values, and is completed at its fourth trial.
struct Holds(u32, Vec<Large>);

impl Operation for Holds {
    fn try_complete(&mut self) -> bool {
        self.0 += 1;
        self.0 % 4 == 0
    }

    fn on_complete(self) {
        drop(self.1);
    }

    fn on_expire(self) {
        drop(self.1);
    }
}

fn watch(purgatory: &Purgatory<String, Holds>, keys: [String; 2]) {
    let watched = purgatory.try_complete_else_watch(Holds(0, vec![LARGE]), keys, SECOND);
    assert_eq!(watched.unwrap(), Outcome::Watched);
}

fn purgatory(_: usize) -> Round {
    let (timer, clock) = timer();
    let purgatory: Purgatory<String, Holds> = Purgatory::new(&timer);
    for first in 0..ALL_TABLES {
        let key = || format!("first {first}");
        purgatory.when([key()], HOUR, || None::<()>, |_| ()).unwrap();
        purgatory.cancel_key(&key());
    }
    let mut number = 0;
    Box::new(move || {
        number += 1;
        let keys = || [format!("key {number}"), format!("other {number}")];
        let pass = || clock.advance(SECOND).unwrap();
        watch(&purgatory, keys());
        purgatory.check(&keys()[0]);
        assert_eq!(purgatory.check(&keys()[1]), 1, "completed");
        watch(&purgatory, keys());
        pass();
        watch(&purgatory, keys());
        assert_eq!(purgatory.cancel_key(&keys()[1]).len(), 1);
        let none = || {
            std::hint::black_box(&LARGE);
            None::<Large>
        };
        purgatory.when(keys(), SECOND, none, |_| ()).unwrap();
        purgatory.when(keys(), HOUR, none, |_| ()).unwrap();
        pass();
        purgatory.cancel_key(&keys()[0]);
        drop(purgatory.wait(keys(), HOUR, none));
        let wait = purgatory.wait(keys(), SECOND, none);
        pass();
        assert!(futures_lite::future::block_on(wait).is_err());
        assert_eq!((purgatory.delayed(), purgatory.watched()), (0, 0));
        all_places(&timer);
    })
}

fn stopped_purgatory(_: usize) -> Round {
    let (timer, _clock) = timer();
    let mut round = 0;
    Box::new(move || {
        round += 1;
        let purgatory: Purgatory<String, Holds> = Purgatory::new(&timer);
        watch(&purgatory, ["one".into(), "two".into()]);
        let wait = purgatory.wait(["one".to_owned()], HOUR, || None::<()>);
        match round % 3 {
            0 => assert_eq!(purgatory.stop().len(), 1),
            1 => drop((purgatory, wait)),
            _ => drop((wait, purgatory)),
        }
        all_places(&timer);
    })
}

/// The timer is dropped first: what the faces hold is ended with an error or dropped, and nothing waits forever.
fn stopped_timer(_: usize) -> Round {
    let mut round = 0;
    Box::new(move || {
        round += 1;
        let clock = VirtualClock::new();
        let timer = Timer::builder().on_driver().shards(1).clock(&clock).build().unwrap();
        let (timers, held) = (KeyedTimer::new(&timer), (vec![7; 100], LARGE));
        let drops = move |_: &tourbillon::Context<'_>| _ = std::hint::black_box(&held);
        timers.schedule(1, HOUR, drops).unwrap();
        timers.schedule(2, HOUR, |_| _ = std::hint::black_box(&LARGE)).unwrap();
        let fails = |_: &Attempt| Err::<(), _>(vec![LARGE]);
        let stopped = |outcome| assert!(matches!(outcome, Retried::Stopped));
        timers.retry(3, Backoff::new(HOUR), fails, stopped).unwrap();
        let retry = timer.retry(Backoff::new(HOUR), fails).unwrap();
        let purgatory: Purgatory<String, Holds> = Purgatory::new(&timer);
        watch(&purgatory, ["one".into(), "two".into()]);
        purgatory.when(["one".to_owned()], HOUR, || None::<()>, |_| ()).unwrap();
        clock.advance(Duration::ZERO).unwrap();
        match round % 2 {
            0 => drop(timer.stop()),
            _ => assert!(timer.stop_within(Duration::ZERO).finished),
        }
        assert!(timers.is_empty() && matches!(retry.wait(), Retried::Stopped));
        assert_eq!((purgatory.delayed(), timer.counts().panicked), (1, 0));
    })
}
