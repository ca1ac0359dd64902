//! Wall-clock times as numbers, for the arithmetic of a virtual wall clock.
//!
//! The unit is nanoseconds since 1970, negative before it. Conversions saturate at the range of `SystemTime`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 2000-01-01T00:00:00Z.
pub(super) const YEAR_2000: i128 = 946_684_800 * NANOS;

const NANOS: i128 = 1_000_000_000;

pub(super) fn since_1970(time: SystemTime) -> i128 {
    let nanos = |span: Duration| {
        let parts = planted!(
            "fifth.wall-set-to-whole-microseconds",
            span.subsec_micros() * 1_000,
            span.subsec_nanos()
        );
        span.as_secs() as i128 * NANOS + i128::from(parts)
    };
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => nanos(after),
        Err(before) => {
            let before = nanos(before.duration());
            planted!("clock.before-1970-is-after", before, -before)
        }
    }
}

pub(super) fn system_time(nanos: i128) -> SystemTime {
    let seconds = u64::try_from(nanos.unsigned_abs() / NANOS as u128).unwrap_or(u64::MAX);
    let span = Duration::new(seconds, (nanos.unsigned_abs() % NANOS as u128) as u32);
    let exact = if nanos < 0 { UNIX_EPOCH.checked_sub(span) } else { UNIX_EPOCH.checked_add(span) };
    let end = || planted!("clock.end-of-the-wall-clock-is-1970", UNIX_EPOCH, farthest(nanos < 0));
    exact.unwrap_or_else(end)
}

/// The first or the last whole second that the system can represent.
fn farthest(back: bool) -> SystemTime {
    (0..64).rev().map(|bit| Duration::from_secs(1 << bit)).fold(UNIX_EPOCH, |time, span| {
        let further = if back { time.checked_sub(span) } else { time.checked_add(span) };
        further.unwrap_or(time)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for nanos in [0, 1, -1, NANOS, -NANOS, YEAR_2000, -YEAR_2000 - 1, 1 << 80, -(1 << 80)] {
            assert_eq!(since_1970(system_time(nanos)), nanos);
        }
        let (first, last) = (system_time(i128::MIN), system_time(i128::MAX));
        assert!(first < UNIX_EPOCH && last > UNIX_EPOCH);
        assert_eq!(first.checked_sub(Duration::from_secs(1)), None);
        assert_eq!(last.checked_add(Duration::from_secs(1)), None);
        assert_eq!(system_time(since_1970(first)), first);
        assert_eq!(system_time(since_1970(last)), last);
    }
}
