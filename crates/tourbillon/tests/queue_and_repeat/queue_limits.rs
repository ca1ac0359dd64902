//! Time limits of takers, by a clock that is set by hand: they expire exactly on time. Only the waits for threads to
//! sleep are in real time.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tourbillon::{DelayQueue, TakeError, Timer};

use crate::common::asleep::spawn_asleep;
use crate::common::{HOUR, HandClock, MS, SECOND, case, within};

/// Whether a taker with a limit returns when the clock reaches that limit exactly; it may have begun to wait too late.
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

/// Alone it is the leader; with others, which have no limit, it is a follower.
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

/// With the system's clock, too, a follower has its own limit.
#[test]
fn a_limit_passes_behind_whoever_waits_without_one() {
    let queue: DelayQueue<u8> = Timer::builder().queue().unwrap();
    let leads = queue.clone();
    let first = spawn_asleep(move || leads.take());
    // The limit counts from now, not from the beginning of the queue.
    let age = SECOND / 2;
    thread::sleep(age);
    let (follows, begin) = (queue.clone(), Instant::now());
    assert_eq!(within(move || follows.take_within(20 * MS)), Err(TakeError::NothingDue));
    assert!(begin.elapsed() < age, "it took {:?}", begin.elapsed());
    queue.put(Duration::ZERO, 7).unwrap();
    assert_eq!(first.join().unwrap(), Ok(7));
}

/// A take with a limit.
type Takes = (&'static str, fn(&DelayQueue<u8>, Duration) -> Option<TakeError>);

const TAKES: [Takes; 4] = [
    ("take_within", |queue, limit| queue.take_within(limit).err()),
    ("take_entry_within", |queue, limit| queue.take_entry_within(limit).err()),
    ("Taker::take_within", |queue, limit| queue.taker().take_within(limit).err()),
    ("Taker::take_within, twice", |queue, limit| {
        let taker = queue.taker();
        taker.take_within(limit).err().and(taker.take_within(limit).err())
    }),
];

/// With the system's clock, a take ends at its limit if nothing is due, whatever is due later.
#[test]
fn a_limit_passes_whatever_is_due_later() {
    for (verb, take) in TAKES {
        for later in [vec![], vec![HOUR], vec![HOUR, 2 * HOUR], vec![Duration::MAX]] {
            for limit in [Duration::ZERO, 20 * MS] {
                let later = later.clone();
                case(format!("{verb} within {limit:?}, values due in {later:?}"), move || {
                    let queue: DelayQueue<u8> = Timer::builder().queue().unwrap();
                    later.iter().for_each(|after| _ = queue.put(*after, 7).unwrap());
                    let begin = Instant::now();
                    assert_eq!(take(&queue, limit), Some(TakeError::NothingDue));
                    assert!(begin.elapsed() >= limit, "too early");
                });
            }
        }
    }
}
