//! Checks correctness: timers that must fire at their deadlines, and timers that must not fire.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::league::{Readings, Turn};
use crate::rng::Rng;
use crate::timer::contestant::{Contestant, Seat};
use crate::timer::sink;

const TIMERS: u64 = 4000;
/// The range of the deadlines, some of which are in the past.
const SPREAD: Duration = Duration::from_millis(400);
/// Payloads from here on belong to cancelled timers.
const CANCELLED: u64 = 1 << 32;
/// A tick of the coarsest contestant, plus the time to wake a thread on a busy system.
const GRACE: Duration = Duration::from_millis(60);

/// The callbacks' records: a payload, and the moment.
static SEEN: Mutex<Vec<(u64, Instant)>> = Mutex::new(Vec::new());

pub fn replay<C: Contestant>(_turn: &Turn) -> Readings {
    sink::listen(|payload| {
        let now = Instant::now();
        SEEN.lock().unwrap_or_else(PoisonError::into_inner).push((payload, now));
    });
    let contestant = C::new();
    let mut seat = contestant.sit(0);
    let mut rng = Rng::new(3);
    let first = Instant::now() + Duration::from_millis(50);
    let mut dues = Vec::new();
    let mut armed = Vec::new();
    for payload in 0..TIMERS {
        let due = match rng.below(8) {
            0 => first,
            1 => first - Duration::from_millis(40),
            _ => first + Duration::from_nanos(rng.below(SPREAD.as_nanos() as u64)),
        };
        // Lateness counts from the deadline or the request, whichever is later.
        dues.push((due, due.max(Instant::now())));
        seat.fire_at(due, payload);
        if rng.below(4) == 0 {
            armed.push(seat.schedule(SPREAD / 2, CANCELLED + payload));
        }
    }
    armed.into_iter().for_each(|handle| _ = seat.cancel(handle));
    seat.settle();
    thread::sleep((first + SPREAD + 2 * GRACE).saturating_duration_since(Instant::now()));
    let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut early, mut late, mut ghosts) = (0, 0, 0);
    let mut fired = BTreeSet::new();
    for &(payload, at) in &*seen {
        let Some(&(due, from)) = dues.get(payload as usize) else {
            ghosts += 1;
            continue;
        };
        ghosts += usize::from(!fired.insert(payload));
        early += usize::from(at < due);
        late += usize::from(at > from + GRACE);
    }
    let lost = TIMERS as usize - fired.len();
    let counts = [("early", early), ("late", late), ("lost", lost), ("ghosts", ghosts)];
    counts.map(|(name, count)| (name, count as f64)).to_vec()
}
