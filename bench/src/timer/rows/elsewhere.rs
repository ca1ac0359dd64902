//! Cancelling timers on a different thread from the one that scheduled them.

use std::collections::VecDeque;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use super::churn::{per, pinned};
use super::{Delays, MANY, MILLION, pairs};
use crate::league::{Readings, Turn};
use crate::timer::contestant::{Contestant, Seat};

/// The number of handles passed on at a time: large enough for the cost of the channel to be negligible.
const CHUNK: usize = 1000;

pub fn both<C: Contestant>(turn: &Turn) -> Readings {
    vec![("elsewhere", at_rest::<C>()), ("passed-on", at_once::<C>(turn))]
}

/// One thread schedules all timers, then another cancels them all.
fn at_rest<C: Contestant>() -> f64 {
    let contestant = C::new();
    let handles: Vec<C::Handle> = pinned(&contestant, 1, |mut seat| {
        let mut delays = Delays::new(0);
        let handles =
            (0..MILLION).map(|timer| seat.schedule(delays.next(), timer as u64)).collect();
        seat.settle();
        handles
    });
    pinned(&contestant, 0, |mut seat| {
        let begin = Instant::now();
        cancel_all(&mut seat, handles);
        seat.settle();
        per(begin.elapsed(), MILLION)
    })
}

/// One thread schedules timers while another cancels the oldest.
fn at_once<C: Contestant>(turn: &Turn) -> f64 {
    let contestant = C::new();
    let (pass, passed) = mpsc::sync_channel::<Vec<C::Handle>>(16);
    let (before, chunks) = (MANY / CHUNK, pairs(turn) / CHUNK);
    thread::scope(|scope| {
        let contestant = &contestant;
        scope.spawn(move || {
            pinned(contestant, 1, |mut seat| {
                let mut delays = Delays::new(0);
                for _ in 0..2 * before + chunks {
                    let chunk = (0..CHUNK).map(|timer| seat.schedule(delays.next(), timer as u64));
                    pass.send(chunk.collect()).expect("the other thread takes them");
                }
            });
        });
        pinned(contestant, 0, move |mut seat| {
            let mut pending: VecDeque<Vec<C::Handle>> = passed.iter().take(before).collect();
            let mut take = |chunks: usize| {
                for _ in 0..chunks {
                    pending.extend(passed.recv());
                    let oldest = pending.pop_front().unwrap_or_default();
                    cancel_all(&mut seat, oldest);
                }
                seat.settle();
            };
            take(before);
            let begin = Instant::now();
            take(chunks);
            per(begin.elapsed(), chunks * CHUNK)
        })
    })
}

fn cancel_all<S: Seat>(seat: &mut S, handles: Vec<S::Handle>) {
    let gone =
        handles.into_iter().filter_map(|handle| (!seat.cancel(handle)).then_some(())).count();
    assert_eq!(gone, 0, "timers that were lost");
}
