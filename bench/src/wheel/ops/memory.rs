//! Bytes per timer, by the counting allocator: after filling without a capacity hint, and after a long churn.

use std::hint::black_box;

use super::{Keys, close, fill};
use crate::counting;
use crate::league::Readings;
use crate::rng::Rng;
use crate::wheel::contestant::Contestant;
use crate::wheel::load::Load;

/// Operations per timer in the churn.
const CHURN: usize = 10;
/// The largest population for the churn: more timers take minutes and show nothing new.
const MOST: usize = 1_000_000;

pub fn bytes<C: Contestant>(load: &Load) -> Readings {
    // Allocates the harness's own memory first, so that it is not counted.
    let mut keys = Keys::<C>::with_capacity(load.population);
    let before = counting::mark();
    let a_timer = |bytes: usize| (bytes - before) as f64 / load.population as f64;
    let mut timers = C::new(load.population);
    fill(&mut timers, &mut keys, load);
    let mut readings =
        vec![("filled", a_timer(counting::live())), ("filled-peak", a_timer(counting::peak()))];
    if load.population <= MOST {
        counting::mark();
        churn(&mut timers, &mut keys, load);
        readings.push(("churned", a_timer(counting::live())));
        readings.push(("churned-peak", a_timer(counting::peak())));
        let dead = timers.dead().map(|dead| ("churned-dead", dead as f64 / load.population as f64));
        readings.extend(dead);
    }
    close(timers, keys);
    readings
}

/// Half of the operations cancel and start a timer, half move one, to earlier as often as to later.
fn churn<C: Contestant>(timers: &mut C, keys: &mut Keys<C>, load: &Load) {
    let mut rng = Rng::new(11);
    for _ in 0..CHURN * load.population {
        let timer = rng.below(load.population as u64) as usize;
        let due = load.delays[rng.below(load.delays.len() as u64) as usize].into();
        let Some(key) = keys[timer].take() else { continue };
        keys[timer] = Some(if rng.below(2) == 0 {
            black_box(timers.cancel(key));
            timers.start(due, timer as u32)
        } else {
            timers.reschedule(key, due)
        });
    }
}
