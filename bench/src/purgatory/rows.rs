//! The workloads.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Acquire, Ordering::Release};
use std::thread;
use std::time::{Duration, Instant};

use super::contestant::{Contestant, Flags, Time};
use crate::league::{Readings, Turn};
use crate::rng::Rng;
use crate::{counting, machine};

const TIMEOUT: Duration = Duration::from_secs(30);
const MS: Duration = Duration::from_millis(1);

/// The keys of an operation: one of its own, and two that it shares with a hundred others in a million.
fn keys(number: usize) -> [u64; 3] {
    let number = number as u64;
    [(1 << 40) + number, (2 << 40) + number % 9973, (3 << 40) + number % 9967]
}

pub fn run<C: Contestant>(turn: &Turn) -> Readings {
    let (row, quick) = (turn.row.as_str(), turn.quick);
    if matches!(row, "stream" | "check" | "threads") {
        // These rows do not measure bytes.
        counting::stop();
    }
    if row == "threads" {
        return threads::<C>(quick);
    }
    machine::pin_thread(0);
    match row {
        "stream" => stream::<C>(quick),
        "million" => million::<C>(quick, turn.column.variant == "random"),
        "check" => check::<C>(quick, turn.column.timers),
        _ => growth::<C>(quick),
    }
}

/// Nanoseconds per operation, for `count` operations since `begin`.
fn each(begin: Instant, count: usize) -> f64 {
    begin.elapsed().as_nanos() as f64 / count as f64
}

/// Watches `count` operations from `first` on, and completes each one `behind` operations later.
fn flow<C: Contestant>(contestant: &C, flags: &Flags, first: usize, count: usize, behind: usize) {
    for number in first..first + count {
        contestant.add(number as u32, keys(number), TIMEOUT);
        if let Some(oldest) = number.checked_sub(behind) {
            flags.set(oldest);
            assert_eq!(contestant.check(keys(oldest)[0]), 1);
        }
    }
}

fn stream<C: Contestant>(quick: bool) -> Readings {
    const BEHIND: usize = 10_000;
    let count = if quick { 300_000 } else { 2_000_000 };
    let flags = Flags::new(BEHIND * 2 + count);
    let contestant = C::new(flags, Time::Virtual);
    // Warms up until all memory has been used once.
    flow(&contestant, flags, 0, BEHIND * 2, BEHIND);
    let begin = Instant::now();
    flow(&contestant, flags, BEHIND * 2, count, BEHIND);
    vec![("stream-rate", 1e9 / each(begin, count))]
}

fn million<C: Contestant>(quick: bool, random: bool) -> Readings {
    let count = if quick { 100_000 } else { 1_000_000 };
    let flags = Flags::new(count);
    let mut rng = Rng::new(7);
    let mut order: Vec<usize> = (0..count).collect();
    let mut timeouts = vec![TIMEOUT; count];
    if random {
        rng.shuffle(&mut order);
        timeouts.fill_with(|| TIMEOUT + MS * rng.below(30_000) as u32);
    }
    let before = counting::mark();
    let contestant = C::new(flags, Time::Virtual);

    let begin = Instant::now();
    for (number, &timeout) in timeouts.iter().enumerate() {
        contestant.add(number as u32, keys(number), timeout);
        // The operations arrive over ten seconds.
        if number % (count / 10_000) == 0 {
            contestant.pass(MS);
        }
    }
    let watch = each(begin, count);
    let half = count / 2;
    let begin = Instant::now();
    for &number in order.iter().step_by(2) {
        flags.set(number);
        assert_eq!(contestant.check(keys(number)[0]), 1);
    }
    let complete = each(begin, half);
    let begin = Instant::now();
    // A second at a time, so that many operations expire together.
    (0..70).for_each(|_| contestant.pass(MS * 1000));
    let expire = each(begin, half);
    assert_eq!(flags.expired(), half);
    let peak = (counting::peak() - before) as f64 / count as f64;
    let left = counting::live().saturating_sub(before) as f64;

    let rate = 1e9 / (watch + f64::midpoint(complete, expire));
    vec![
        ("rate", rate),
        ("watch", watch),
        ("complete", complete),
        ("expire", expire),
        ("peak", peak),
        ("left", left),
    ]
}

fn check<C: Contestant>(quick: bool, waiting: usize) -> Readings {
    const KEY: u64 = 1;
    let flags = Flags::new(waiting);
    let contestant = C::new(flags, Time::Virtual);
    for number in 0..waiting {
        let [_, second, third] = keys(number);
        contestant.add(number as u32, [KEY, second, third], TIMEOUT);
    }
    let times = (if quick { 200_000 } else { 2_000_000 } / waiting).max(10);
    let begin = Instant::now();
    let completed: usize = (0..times).map(|_| contestant.check(KEY)).sum();
    let check = each(begin, times);
    assert_eq!(completed, 0);
    (0..waiting).for_each(|number| flags.set(number));
    let begin = Instant::now();
    assert_eq!(contestant.check(KEY), waiting);
    vec![("check", check), ("complete-all", each(begin, waiting))]
}

/// Two threads add operations; two others complete operations that were added before.
fn threads<C: Contestant>(quick: bool) -> Readings {
    let count = if quick { 100_000 } else { 500_000 };
    let flags = Flags::new(2 * count);
    let contestant = C::new(flags, Time::Real);
    let added = [const { AtomicUsize::new(0) }; 2];
    let start = Barrier::new(5);
    let wall = thread::scope(|scope| {
        let (contestant, added, start) = (&contestant, &added, &start);
        for (lane, added) in added.iter().enumerate() {
            scope.spawn(move || {
                start.wait();
                for number in lane * count..(lane + 1) * count {
                    contestant.add(number as u32, keys(number), TIMEOUT);
                    added.fetch_add(1, Release);
                }
            });
            scope.spawn(move || {
                start.wait();
                let mut done = 0;
                while done < count {
                    // Operations before this number are fully added: their flags are never set while they are being
                    // added.
                    let ready = added.load(Acquire);
                    for number in lane * count + done..lane * count + ready {
                        flags.set(number);
                        assert_eq!(contestant.check(keys(number)[0]), 1);
                    }
                    if done == ready {
                        thread::yield_now();
                    }
                    done = ready;
                }
            });
        }
        start.wait();
        Instant::now()
    });
    vec![("threads-rate", 1e9 / each(wall, 2 * count))]
}

/// One operation keeps waiting under two keys that all others use as well.
fn growth<C: Contestant>(quick: bool) -> Readings {
    let (first, rest) = if quick { (50_000, 200_000) } else { (100_000, 2_000_000) };
    let flags = Flags::new(first * 3 + rest);
    let before = counting::live();
    let contestant = C::new(flags, Time::Virtual);
    let last = first * 3 + rest - 1;
    contestant.add(last as u32, [1, 2, 3], TIMEOUT);
    let mut number = 0;
    let mut pass = |count: usize| {
        let begin = Instant::now();
        for _ in 0..count {
            contestant.add(number as u32, [(1 << 40) + number as u64, 1, 2], TIMEOUT);
            flags.set(number);
            assert_eq!(contestant.check((1 << 40) + number as u64), 1);
            number += 1;
        }
        each(begin, count)
    };
    // Warms up until all memory has been used once.
    pass(first - 1);
    let (early, _, late) = (pass(first), pass(rest), pass(first));
    contestant.pass(MS);
    let left = counting::live().saturating_sub(before) as f64;
    vec![("growth", late / early), ("growth-left", left)]
}
