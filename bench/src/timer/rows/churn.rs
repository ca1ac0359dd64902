//! Scheduling, cancelling and moving timers that do not fire.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::{Delays, MILLION, pairs};
use crate::league::{Readings, Turn};
use crate::machine;
use crate::rng::Rng;
use crate::system;
use crate::timer::contestant::{Contestant, Seat};

const HOUR: Duration = Duration::from_secs(3600);
/// The delay of short timers, the number pending, and the interval at which an awake driver wakes.
const SHORT: Duration = Duration::from_millis(10);
const FEW: usize = 64;
const OFTEN: Duration = Duration::from_millis(2);
/// How far ahead an awake driver has timers.
const AWAKE: Duration = Duration::from_secs(20);

/// Pending timers, the oldest at `oldest`.
struct Ring<H> {
    handles: Vec<Option<H>>,
    oldest: usize,
    /// The number of timers that were no longer pending when they were cancelled.
    gone: usize,
}

impl<H> Ring<H> {
    fn filled(
        seat: &mut impl Seat<Handle = H>,
        timers: usize,
        mut delay: impl FnMut() -> Duration,
    ) -> Self {
        let handles = (0..timers).map(|timer| Some(seat.schedule(delay(), timer as u64))).collect();
        Ring { handles, oldest: 0, gone: 0 }
    }

    /// Schedules a timer and cancels the oldest, `pairs` times.
    #[inline]
    fn turn(
        &mut self,
        seat: &mut impl Seat<Handle = H>,
        pairs: usize,
        mut delay: impl FnMut() -> Duration,
    ) {
        for _ in 0..pairs {
            let new = seat.schedule(delay(), self.oldest as u64);
            if let Some(oldest) = self.handles[self.oldest].replace(new) {
                self.gone += usize::from(!seat.cancel(oldest));
            }
            self.oldest = if self.oldest + 1 == self.handles.len() { 0 } else { self.oldest + 1 };
        }
    }
}

/// Times a turn, after one as warm-up.
fn timed<H>(
    seat: &mut impl Seat<Handle = H>,
    ring: &mut Ring<H>,
    pairs: usize,
    mut delay: impl FnMut() -> Duration,
    ready: impl FnOnce(),
) -> (Instant, Instant) {
    ring.turn(seat, ring.handles.len(), &mut delay);
    seat.settle();
    ready();
    let begin = Instant::now();
    ring.turn(seat, pairs, &mut delay);
    seat.settle();
    (begin, Instant::now())
}

/// Runs `work` on a new pinned thread, with a seat.
pub fn pinned<C: Contestant, R: Send>(
    contestant: &C,
    number: usize,
    work: impl FnOnce(C::Seat<'_>) -> R + Send,
) -> R {
    let body = || {
        machine::pin_thread(number);
        let result = work(contestant.sit(number));
        system::note_waits();
        result
    };
    thread::scope(|scope| scope.spawn(body).join().expect("no panic"))
}

/// Schedules one and cancels the oldest, on several threads at once: nanoseconds of wall time per pair.
pub fn pair<C: Contestant>(turn: &Turn) -> Readings {
    let (timers, threads, pairs) = (turn.column.timers, turn.column.threads, pairs(turn));
    let contestant = C::new();
    let barrier = Barrier::new(threads);
    let worker = |number: usize| {
        pinned(&contestant, number, |mut seat| {
            let mut delays = Delays::new(number);
            let mut ring = Ring::filled(&mut seat, timers / threads, || delays.next());
            let ready = || _ = barrier.wait();
            let spent = timed(&mut seat, &mut ring, pairs, || delays.next(), ready);
            assert_eq!(ring.gone, 0, "timers that were lost");
            // Other threads may still be timed: tearing down now would change their load.
            barrier.wait();
            spent
        })
    };
    vec![("pair", per(together(threads, worker), threads * pairs))]
}

/// The time from the first thread's begin to the last thread's end.
pub fn together(threads: usize, worker: impl Fn(usize) -> (Instant, Instant) + Sync) -> Duration {
    let worker = &worker;
    let spent: Vec<(Instant, Instant)> = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..threads).map(|number| scope.spawn(move || worker(number))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let begin = spent.iter().map(|spent| spent.0).min().expect("a thread");
    spent.iter().map(|spent| spent.1).max().expect("a thread") - begin
}

pub fn reschedule<C: Contestant>(turn: &Turn) -> Readings {
    let contestant = C::new();
    pinned(&contestant, 0, |mut seat| {
        let mut delays = Delays::new(0);
        let mut ring = Ring::filled(&mut seat, MILLION, || delays.next());
        let mut rng = Rng::new(1);
        let mut run = |delay: &mut dyn FnMut() -> Duration| {
            let begin = Instant::now();
            for _ in 0..pairs(turn) {
                let timer = rng.below(MILLION as u64) as usize;
                if let Some(handle) = &mut ring.handles[timer] {
                    seat.reschedule(handle, delay());
                }
            }
            per(begin.elapsed(), pairs(turn))
        };
        // First to random delays; after that, a timeout longer than all of them is always a move to later.
        let moved = run(&mut || delays.next());
        let later = run(&mut || Duration::from_secs(126));
        vec![("moved", moved), ("moved-later", later)]
    })
}

/// Timers of 10 ms, with a driver that wakes often and with one that would otherwise sleep for an hour.
///
/// A few may fire, if the thread has to wait for a core.
pub fn short<C: Contestant>(turn: &Turn) -> Readings {
    let churn = |others: &[Duration]| {
        let contestant = C::new();
        let mut seat = contestant.sit(1);
        let now = Instant::now();
        for (payload, &after) in others.iter().enumerate() {
            seat.fire_at(now + after, payload as u64);
        }
        seat.settle();
        thread::sleep(Duration::from_millis(20));
        pinned(&contestant, 0, |mut seat| {
            let mut ring = Ring::filled(&mut seat, FEW, || SHORT);
            let (begin, end) = timed(&mut seat, &mut ring, pairs(turn) / 2, || SHORT, || ());
            per(end - begin, pairs(turn) / 2)
        })
    };
    let often: Vec<Duration> =
        (1..).map(|n| OFTEN * n).take_while(|&after| after < AWAKE).collect();
    let (awake, asleep) = (churn(&often), churn(&[HOUR]));
    vec![("awake", awake), ("asleep", asleep), ("asleep-share", asleep / awake)]
}

/// Nanoseconds per operation.
pub fn per(spent: Duration, operations: usize) -> f64 {
    spent.as_nanos() as f64 / operations as f64
}
