//! Futures: each is dropped before it is polled, while it waits, and when it is over; moved, refused, and stopped.

use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tourbillon::tasks::{self, SleepError};
use tourbillon::{Timer, VirtualClock};

use crate::common::{HOUR, SECOND};
use crate::faces::{DUE, OFTEN};
use crate::{
    Case, LIMIT, Make, ROUNDS, Round, all_places, cases as named, give_back, take_all_places,
};

/// A task that only its wakers keep alive.
struct Task([u8; 512]);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        std::hint::black_box(&self.0);
    }
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    let waker = Waker::from(Arc::new(Task([7; 512])));
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}

pub(crate) fn cases() -> Vec<Case> {
    let rows: [(&str, Make); 5] = [
        ("Sleep and Timeout", sleeps),
        ("Interval", intervals),
        ("DelayQueue of tasks", queue),
        ("tasks of a timer that is stopped", stopped),
        ("the default engine", by_default),
    ];
    let names = DUE.map(|way| format!("DelayQueue of tasks, what is due is {way}"));
    let due = named(&names.each_ref().map(String::as_str), ROUNDS, due_queue);
    let rows = rows.into_iter().flat_map(|(name, make)| named(&[name], ROUNDS, make));
    rows.chain(due).collect()
}

fn timer() -> (Timer, VirtualClock) {
    let clock = VirtualClock::new();
    let builder = Timer::builder().on_driver().shards(1).limit(LIMIT).clock(&clock);
    (builder.build().unwrap(), clock)
}

fn sleeps(_: usize) -> Round {
    let (timer, clock) = timer();
    Box::new(move || {
        drop(timer.sleep(SECOND));
        let mut waits = timer.sleep(SECOND);
        assert!(poll(&mut waits).is_pending() && poll(&mut waits).is_pending());
        waits.reset_after(HOUR);
        drop(waits);
        let mut ends = timer.sleep(SECOND);
        assert!(poll(&mut ends).is_pending());
        clock.advance(SECOND).unwrap();
        assert_eq!(poll(&mut ends), Poll::Ready(Ok(())));
        ends.reset_after(SECOND);
        assert!(poll(&mut ends).is_pending());
        let mut limited = pin!(timer.timeout(SECOND, pending::<()>()));
        assert!(poll(&mut limited).is_pending());
        clock.advance(SECOND).unwrap();
        assert!(poll(&mut limited).is_ready());
        let mut ready = Box::pin(timer.timeout(HOUR, std::future::ready(vec![7_u8; 2048])));
        assert!(poll(&mut ready).is_ready());
        let keys = take_all_places(&timer);
        assert_eq!(poll(&mut timer.sleep(SECOND)), Poll::Ready(Err(SleepError::Full)));
        give_back(&timer, keys);
        drop(ends);
        all_places(&timer);
    })
}

fn intervals(_: usize) -> Round {
    let (timer, clock) = timer();
    Box::new(move || {
        let mut interval = timer.interval(SECOND);
        let mut tick = || poll(&mut Box::pin(interval.tick()));
        assert!(tick().is_ready() && tick().is_pending());
        clock.advance(SECOND * 3).unwrap();
        assert!(tick().is_ready() && tick().is_ready() && tick().is_ready() && tick().is_pending());
        interval.reset_after(HOUR);
        drop(interval);
        all_places(&timer);
    })
}

fn queue(_: usize) -> Round {
    let (timer, clock) = timer();
    let mut kept = timer.delay_queue();
    let mut number = 0;
    Box::new(move || {
        number += 1;
        let mut short = timer.delay_queue();
        for queue in [&mut kept, &mut short] {
            let mut insert = |key: &str, after| {
                let key = format!("{key} {number}");
                queue.insert(key.clone(), vec![7_u8; 2048], after).unwrap();
                key
            };
            let (first, second) = (insert("first", SECOND), insert("second", HOUR));
            insert("second", HOUR * 2);
            assert!(poll(&mut Box::pin(queue.next())).is_pending());
            assert!(queue.reset(&second, SECOND * 2));
            clock.advance(SECOND).unwrap();
            assert!(poll(&mut Box::pin(queue.next())).is_ready());
            assert!(queue.remove(&first).is_none() && queue.remove(&second).is_some());
        }
        short.insert("third".to_owned(), Vec::new(), SECOND).unwrap();
        assert!(poll(&mut Box::pin(short.next())).is_pending());
        short.clear();
        short.insert("fourth".to_owned(), vec![7; 100], SECOND).unwrap();
        assert!(poll(&mut Box::pin(short.next())).is_pending());
        drop(short);
        all_places(&timer);
    })
}

/// The first due item is taken.
fn due_queue(way: usize) -> Round {
    let (timer, clock) = timer();
    let mut queue = timer.delay_queue();
    (0..3).for_each(|key| assert_eq!(queue.insert(key, key, SECOND).unwrap(), None));
    assert!(poll(&mut Box::pin(queue.next())).is_pending());
    clock.advance(SECOND).unwrap();
    assert!(poll(&mut Box::pin(queue.next())).is_ready());
    Box::new(move || {
        for _ in 0..OFTEN {
            if DUE[way] == "moved" {
                assert!(queue.reset(&2, Duration::ZERO));
            } else {
                assert_eq!(queue.insert(3, 3, Duration::ZERO).unwrap(), None);
                assert_eq!(queue.remove(&3), Some(3));
            }
        }
        assert_eq!((queue.len(), queue.peek()), (2, Some((&1, &1))));
    })
}

fn stopped(_: usize) -> Round {
    let mut round = 0;
    Box::new(move || {
        round += 1;
        let builder = Timer::builder().shards(1);
        // With the system's clock, tasks have a thread.
        let timer = match round % 4 {
            0 => builder.build().unwrap(),
            _ => builder.clock(&VirtualClock::new()).build().unwrap(),
        };
        let mut sleeps = [timer.sleep(HOUR), timer.sleep(HOUR), timer.sleep(HOUR)];
        assert!(sleeps[..2].iter_mut().all(|sleep| poll(sleep).is_pending()));
        let mut queue = timer.delay_queue();
        queue.insert(1, vec![7; 100], HOUR).unwrap();
        assert!(poll(&mut Box::pin(queue.next())).is_pending());
        if round % 2 == 0 {
            timer.stop();
        } else {
            drop(timer);
        }
        for sleep in &mut sleeps[1..] {
            assert_eq!(poll(sleep), Poll::Ready(Err(SleepError::Stopped)));
        }
    })
}

fn by_default(_: usize) -> Round {
    Box::new(|| {
        let mut waits = tasks::sleep(HOUR);
        assert!(poll(&mut waits).is_pending());
        drop(waits);
        let mut limited = Box::pin(tasks::timeout(HOUR, pending::<()>()));
        assert!(poll(&mut limited).is_pending());
        let mut queue = tasks::DelayQueue::new();
        queue.insert(1, vec![7; 100], HOUR).unwrap();
        assert!(poll(&mut Box::pin(queue.next())).is_pending());
        let mut interval = tasks::interval(Duration::MAX);
        assert!(poll(&mut Box::pin(interval.tick())).is_ready());
        assert!(poll(&mut Box::pin(interval.tick())).is_pending());
    })
}
