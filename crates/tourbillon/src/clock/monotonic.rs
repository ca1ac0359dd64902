//! The system's monotonic clock, read as a number.
//!
//! On Linux it is read with `clock_gettime`, elsewhere through [`Instant`].

use std::time::Instant;

use tourbillon_wheel::Time;

use super::BEGIN;

/// The beginning of an engine's time, as a raw reading and as an [`Instant`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Begin {
    pub(super) instant: Instant,
    /// The raw reading at time zero. It wraps around: time zero lies 73 years before the engine's creation.
    raw: u64,
}

impl Begin {
    pub(super) fn new() -> Self {
        let (instant, raw) = together(Instant::now, raw);
        Begin { instant, raw: raw.wrapping_sub(BEGIN.units()) }
    }

    /// The current time.
    #[inline]
    pub(super) fn time(self) -> Time {
        Time::new(raw().wrapping_sub(self.raw))
    }
}

/// Two readings at most this many nanoseconds apart count as simultaneous.
const CLOSE: u64 = 1_000;
/// The maximum number of attempts. If no pair of readings is close enough, the closest pair is used.
const TRIES: usize = 1_000;

/// Reads both clocks at nearly the same moment: `Instant` between two readings of the raw clock.
///
/// If the thread were preempted between the readings, the engine would have that error for its whole life. So this
/// retries until the two raw readings are close, and returns the closest pair found.
///
/// Returns the later of the two raw readings, so that the raw clock never reaches an `Instant` early.
pub(super) fn together(
    mut instant: impl FnMut() -> Instant,
    mut raw: impl FnMut() -> u64,
) -> (Instant, u64) {
    let mut read = || {
        let before = raw();
        let instant = instant();
        let after = raw();
        (
            after.saturating_sub(before),
            instant,
            planted!("blind.begins-a-moment-early", before, after),
        )
    };
    let mut best = read();
    for _ in 1..TRIES {
        if best.0 <= CLOSE {
            break;
        }
        let next = read();
        if next.0 < best.0 {
            best = next;
        }
    }
    (best.1, best.2)
}

/// The reading of `Instant` as a number: half the instructions of subtracting two instants.
#[cfg(target_os = "linux")]
#[inline]
fn raw() -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    let id = planted!("clock.reads-the-coarse-clock", ClockId::MonotonicCoarse, ClockId::Monotonic);
    let now = clock_gettime(id);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

#[cfg(not(target_os = "linux"))]
#[inline]
fn raw() -> u64 {
    use std::sync::OnceLock;
    static ZERO: OnceLock<Instant> = OnceLock::new();
    super::nanoseconds(ZERO.get_or_init(Instant::now).elapsed())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;

    /// The gap that `together` returns if successive readings take these numbers of nanoseconds, in cyclic order.
    fn gap(pauses: &[u64]) -> u64 {
        let (zero, now, nth) = (Instant::now(), Cell::new(0), Cell::new(0));
        let pass = || {
            now.set(now.get() + pauses[nth.get() % pauses.len()]);
            nth.set(nth.get() + 1);
            now.get()
        };
        let (instant, raw) = together(|| zero + Duration::from_nanos(pass()), pass);
        raw - (instant - zero).as_nanos() as u64
    }

    #[test]
    fn a_thread_that_loses_its_processor_reads_again() {
        let half_a_second = 500_000_000;
        assert_eq!(gap(&[20]), 20);
        assert_eq!(gap(&[20, half_a_second, 20, 20, 20, 20]), 20);
        assert_eq!(gap(&[20, 20, half_a_second, 20, 20, 20]), 20);
        // No pair is close enough, so the closest is used.
        let all: Vec<u64> = (0..30).flat_map(|n| [1, 50_000 - n, 50_000 - n]).collect();
        assert_eq!(gap(&all), 49_971);
    }

    /// None of a hundred engines is off by more than 50 µs, even on a loaded machine.
    #[test]
    fn time_begins_when_the_instant_says() {
        for _ in 0..100 {
            let begin = Begin::new();
            let before = begin.instant.elapsed();
            let elapsed = Duration::from_nanos(begin.time().units() - BEGIN.units());
            let after = begin.instant.elapsed();
            assert!(before <= elapsed + Duration::from_micros(50), "{before:?} {elapsed:?}");
            assert!(elapsed <= after, "never early: {elapsed:?} {after:?}");
        }
    }
}
