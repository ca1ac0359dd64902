//! The longest single call: how long a caller may have to wait while a million or ten million timers are pending.

use std::time::Instant;

use super::churn::pinned;
use super::{Delays, pairs};
use crate::league::{Readings, Turn};
use crate::rng::Rng;
use crate::timer::contestant::{Contestant, Seat};

pub fn calls<C: Contestant>(turn: &Turn) -> Readings {
    let contestant = C::new();
    pinned(&contestant, 0, |mut seat| {
        let mut delays = Delays::new(0);
        let mut longest = [0.0_f64; 2];
        let mut timed = |verb: usize, begin: Instant| {
            longest[verb] = longest[verb].max(begin.elapsed().as_nanos() as f64 / 1000.0);
        };
        let mut handles: Vec<Option<C::Handle>> = Vec::with_capacity(turn.column.timers);
        for payload in 0..turn.column.timers as u64 {
            let after = delays.next();
            let begin = Instant::now();
            let handle = seat.schedule(after, payload);
            timed(0, begin);
            handles.push(Some(handle));
        }
        let mut rng = Rng::new(1);
        for payload in 0..pairs(turn) as u64 {
            let place = rng.below(handles.len() as u64) as usize;
            if let Some(handle) = handles[place].take() {
                let begin = Instant::now();
                seat.cancel(handle);
                timed(1, begin);
            }
            handles[place] = Some(seat.schedule(delays.next(), payload));
        }
        vec![("longest-schedule", longest[0]), ("longest-cancel", longest[1])]
    })
}
