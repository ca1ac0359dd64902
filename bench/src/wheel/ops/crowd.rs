//! A million timers in one slot of an upper level: the cost of finding the next deadline, and the longest pauses.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::{close, filled, nanos};
use crate::league::Readings;
use crate::wheel::contestant::{Contestant, Next};
use crate::wheel::load::Load;

/// The budget of the sliced pause.
const BUDGET: usize = 1000;
/// The time limit for contestants that scan.
const PATIENCE: Duration = Duration::from_millis(250);
const MOST: usize = 50_000;
/// The number of queries between two readings of the clock.
const BATCH: usize = 16;

pub fn next<C: Contestant>(load: &Load) -> Readings {
    let exact = ask::<C>(load, C::next_exact, |answer, truth| answer == truth);
    let bound = ask::<C>(load, C::next_bound, |answer, truth| answer <= truth);
    let measured = [("next-exact", exact), ("next-bound", bound)];
    measured.into_iter().filter_map(|(measure, spent)| Some((measure, spent?))).collect()
}

/// Repeatedly cancels the earliest timer and queries the next deadline. Returns the time per query.
///
/// # Panics
///
/// If an answer is wrong.
fn ask<C: Contestant>(
    load: &Load,
    next: fn(&mut C) -> Next,
    right: fn(u64, u64) -> bool,
) -> Option<f64> {
    // Checked on an empty contestant, so that the first query of the full one is timed.
    if next(&mut C::new(0)) == Next::Cannot {
        return None;
    }
    let (mut timers, mut keys) = filled::<C>(load);
    let order = load.by_due();
    let mut asked = 0;
    let begin = Instant::now();
    for (batch, following) in order.chunks(BATCH).zip(order[1..].chunks(BATCH)).take(MOST / BATCH) {
        for (&earliest, &second) in batch.iter().zip(following) {
            if let Some(key) = keys[earliest as usize].take() {
                black_box(timers.cancel(key));
            }
            let truth = load.dues[second as usize].into();
            match next(&mut timers) {
                Next::At(answer) if right(answer, truth) => asked += 1,
                wrong => panic!("{}: {wrong:?} where the next is due at {truth}", C::NAME),
            }
        }
        if begin.elapsed() > PATIENCE {
            break;
        }
    }
    let spent = nanos(begin);
    close(timers, keys);
    Some(spent / f64::from(asked))
}

pub fn pause<C: Contestant>(load: &Load) -> Readings {
    let mut readings =
        vec![("pause-advance", whole::<C>(load)), ("pause-cancel", cancel::<C>(load))];
    if C::SLICES {
        readings.push(("pause-slice", sliced::<C>(load)));
    }
    readings
}

/// The moments around the begin of the crowded slot, where the cascade happens and the first timers fire.
fn moments(load: &Load) -> impl Iterator<Item = u64> {
    let begin = crate::wheel::load::CROWD.0;
    let last = u64::from(load.dues.iter().copied().max().unwrap_or(0));
    [begin - 1].into_iter().chain(begin..begin + 2000).chain([last])
}

fn whole<C: Contestant>(load: &Load) -> f64 {
    let mut timers = C::new(load.population);
    for (payload, &due) in load.dues.iter().enumerate() {
        timers.start_forgotten(due.into(), payload as u32);
    }
    let mut longest = 0.0_f64;
    let mut fired = 0_usize;
    // The last jump fires all remaining timers. That is work and not a pause, so it is not timed.
    let mut moments: Vec<u64> = moments(load).collect();
    let last = moments.pop();
    for now in moments {
        let begin = Instant::now();
        timers.advance(now, &mut |payload| fired += usize::from(black_box(payload) < u32::MAX));
        longest = longest.max(nanos(begin));
    }
    timers.advance(last.unwrap_or(0), &mut |_| fired += 1);
    assert_eq!(fired, load.population, "{} lost timers", C::NAME);
    longest / 1000.0
}

fn sliced<C: Contestant>(load: &Load) -> f64 {
    let (mut timers, _keys) = filled::<C>(load);
    let mut longest = 0.0_f64;
    let mut fired = 0_usize;
    for now in moments(load) {
        loop {
            let begin = Instant::now();
            let more = timers.advance_slice(now, BUDGET, &mut |payload| {
                fired += usize::from(black_box(payload) < u32::MAX);
            });
            longest = longest.max(nanos(begin));
            if !more {
                break;
            }
        }
    }
    assert_eq!(fired, load.population, "{} lost timers", C::NAME);
    longest / 1000.0
}

fn cancel<C: Contestant>(load: &Load) -> f64 {
    let (mut timers, mut keys) = filled::<C>(load);
    let mut longest = 0.0_f64;
    for &timer in &load.permutation()[..load.population / 10 * 9] {
        if let Some(key) = keys[timer as usize].take() {
            let begin = Instant::now();
            black_box(timers.cancel(key));
            longest = longest.max(nanos(begin));
        }
    }
    close(timers, keys);
    longest / 1000.0
}
