//! Limits of those who take, by a clock that is set by hand: they pass at their moment, and not after it. In real time
//! are only the waits for threads to come to rest.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tourbillon::{DelayQueue, TakeError, Timer};

use crate::common::asleep::spawn_asleep;
use crate::common::{HOUR, HandClock, MS, SECOND, within};

/// Whether a thread with a limit hears of it when the clock reaches it exactly. It may have come too late for that.
fn hears(others: usize, limit: Duration) -> bool {
    let clock = HandClock::new();
    let builder = Timer::builder().clock(clock.clone()).tick(Duration::from_nanos(1));
    let queue: DelayQueue<u8> = builder.queue().unwrap();
    let waiting: Vec<_> = (0..others)
        .map(|_| {
            let queue = queue.clone();
            thread::spawn(move || queue.take())
        })
        .collect();
    if others > 0 {
        clock.await_driver();
    }
    let ((begin, begun), (end, ended)) = (mpsc::channel(), mpsc::channel());
    let taker = queue.clone();
    thread::spawn(move || {
        begin.send(()).unwrap();
        end.send(taker.take_within(limit)).unwrap();
    });
    begun.recv().unwrap();
    thread::sleep(5 * MS);
    clock.forward(limit);
    let heard = ended.recv_timeout(SECOND / 4);
    clock.forward(HOUR);
    let late = ended.recv_timeout(20 * SECOND);
    let outcome = heard.or(late.map_err(|_| mpsc::RecvTimeoutError::Timeout));
    assert_eq!(outcome, Ok(Err(TakeError::NothingDue)), "it never hears of it");
    queue.close();
    let closed = |thread: thread::JoinHandle<_>| thread.join().unwrap() == Err(TakeError::Closed);
    assert!(waiting.into_iter().all(closed));
    heard.is_ok()
}

/// Alone it leads; with others, who have no limit, it follows.
#[test]
fn a_limit_that_a_clock_of_your_own_reaches_exactly_has_passed() {
    for others in 0..3 {
        for limit in [Duration::from_nanos(1), SECOND, HOUR] {
            within(move || {
                let hears = |_| hears(others, limit);
                assert!((0..4).any(hears), "{others} others, {limit:?}");
            });
        }
    }
}

/// By the system's clock, too: whoever follows another has a limit of its own.
#[test]
fn a_limit_passes_behind_whoever_waits_without_one() {
    let queue: DelayQueue<u8> = Timer::builder().queue().unwrap();
    let leads = queue.clone();
    let first = spawn_asleep(move || leads.take());
    // It is counted from now, and not from the beginning of the queue.
    let age = SECOND / 2;
    thread::sleep(age);
    let (follows, begin) = (queue.clone(), Instant::now());
    assert_eq!(within(move || follows.take_within(20 * MS)), Err(TakeError::NothingDue));
    assert!(begin.elapsed() < age, "it took {:?}", begin.elapsed());
    queue.put(Duration::ZERO, 7).unwrap();
    assert_eq!(first.join().unwrap(), Ok(7));
}
