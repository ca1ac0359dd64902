//! Starting, cancelling and moving timers at a fixed time.

use std::hint::black_box;
use std::time::Instant;

use super::{Keys, close, fill, filled, nanos};
use crate::league::Readings;
use crate::wheel::contestant::Contestant;
use crate::wheel::load::Load;

/// Fills an empty contestant, including its growth.
pub fn start<C: Contestant>(load: &Load) -> Readings {
    let mut spent = 0.0;
    for _ in 0..load.repeats() {
        let mut timers = C::new(load.population);
        let mut keys = Keys::<C>::with_capacity(load.population);
        // Touched beforehand, so that page faults of the harness's own memory are not timed.
        keys.resize_with(load.population, || None);
        keys.clear();
        let begin = Instant::now();
        fill(&mut timers, &mut keys, load);
        spent += nanos(begin);
        close(timers, keys);
    }
    vec![("start", spent / (load.repeats() * load.population) as f64)]
}

#[inline]
fn replace<C: Contestant>(timers: &mut C, keys: &mut Keys<C>, timer: u32, delay: u32) {
    let slot = &mut keys[timer as usize];
    if let Some(key) = slot.take() {
        black_box(timers.cancel(key));
    }
    *slot = Some(timers.start(delay.into(), timer));
}

pub fn random<C: Contestant>(load: &Load) -> Readings {
    let (mut timers, mut keys) = filled::<C>(load);
    let (before, counted) = load.churn(C::LAZY);
    let operations = || load.picks.iter().zip(&load.delays);
    for (&timer, &delay) in operations().rev().take(before) {
        replace(&mut timers, &mut keys, timer, delay);
    }
    let begin = Instant::now();
    for (&timer, &delay) in operations().take(counted) {
        replace(&mut timers, &mut keys, timer, delay);
    }
    let spent = nanos(begin);
    close(timers, keys);
    vec![("random", spent / counted as f64)]
}

pub fn in_order<C: Contestant>(load: &Load) -> Readings {
    let (mut timers, mut keys) = filled::<C>(load);
    let (before, counted) = load.churn(C::LAZY);
    let oldest = || (0..load.population as u32).cycle();
    for (timer, &delay) in oldest().zip(load.delays.iter().rev()).take(before) {
        replace(&mut timers, &mut keys, timer, delay);
    }
    let begin = Instant::now();
    for (timer, &delay) in oldest().zip(&load.delays).take(counted) {
        replace(&mut timers, &mut keys, timer, delay);
    }
    let spent = nanos(begin);
    close(timers, keys);
    vec![("in-order", spent / counted as f64)]
}

pub fn reschedule<C: Contestant>(load: &Load) -> Readings {
    let count = load.once_each(C::LAZY);
    let later = load.later();
    let mut spent = 0.0;
    for _ in 0..load.repeats() {
        let (mut timers, mut keys) = filled::<C>(load);
        let begin = Instant::now();
        for (&timer, &due) in load.picks.iter().zip(later).take(count) {
            let slot = &mut keys[timer as usize];
            *slot = slot.take().map(|key| timers.reschedule(key, due.into()));
        }
        spent += nanos(begin);
        close(timers, keys);
    }
    vec![("reschedule", spent / (load.repeats() * count) as f64)]
}

/// The keys are stored in the order of use, so that only the contestant's own memory is accessed randomly.
pub fn cancel<C: Contestant>(load: &Load) -> Readings {
    let count = load.once_each(C::LAZY);
    let order = load.permutation();
    let mut spent = 0.0;
    for _ in 0..load.repeats() {
        let (mut timers, mut keys) = filled::<C>(load);
        let mut doomed: Keys<C> =
            order[..count].iter().map(|&timer| keys[timer as usize].take()).collect();
        let begin = Instant::now();
        for slot in &mut doomed {
            if let Some(key) = slot.take() {
                black_box(timers.cancel(key));
            }
        }
        spent += nanos(begin);
        close(timers, keys);
    }
    vec![("cancel", spent / (load.repeats() * count) as f64)]
}
