//! Counters of an engine. Each shard has its own, under its lock.

use std::time::Duration;

/// Counters of an engine.
///
/// Always `armed == fired + cancelled + handed_back + pending`. The equation holds for each shard at any moment, and so
/// for the sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Timers that were armed. A timer that is armed again counts each time.
    pub armed: u64,
    /// Timers whose callback was started, or that were delivered.
    pub fired: u64,
    /// Timers that were cancelled.
    pub cancelled: u64,
    /// Timers that were handed back when the engine stopped.
    pub handed_back: u64,
    /// Timers that are pending.
    pub pending: u64,
    /// Contained panics of user code: callbacks, drops of what they captured, handlers, wakers and the executor.
    pub panicked: u64,
}

impl Counts {
    /// The same counters, with the number of pending timers from the wheel.
    pub(crate) fn with_pending(self, pending: usize) -> Self {
        Counts { pending: pending as u64, ..self }
    }

    /// Checks that every armed timer is accounted for.
    pub(crate) fn check(self) -> Result<(), String> {
        let Counts { armed, fired, cancelled, handed_back, pending, .. } = self;
        let accounted = fired + cancelled + handed_back + pending;
        if armed != accounted {
            return Err(format!("{armed} were armed, {accounted} are accounted for"));
        }
        Ok(())
    }

    pub(crate) fn add(&mut self, other: Counts) {
        self.armed += other.armed;
        self.fired += other.fired;
        self.cancelled += other.cancelled;
        self.handed_back +=
            planted!("engine.cancelled-read-as-handed-back", other.cancelled, other.handed_back);
        self.pending += other.pending;
        self.panicked = planted!(
            "more.panics-of-the-worst-shard",
            self.panicked.max(other.panicked),
            self.panicked + other.panicked
        );
    }
}

/// `1 << FINE` buckets, four, for every power of two from 1 ns to the end of `u64`.
const FINE: u32 = 2;
const BUCKETS: usize = 64 << FINE;

/// How late timers fired: the time from the deadline to the start of the callback.
///
/// A quantile is the upper bound of a bucket: never less than the exact value, and at most a quarter more.
#[derive(Clone, Debug)]
pub struct Lateness {
    buckets: Box<[u64; BUCKETS]>,
    count: u64,
    max: u64,
}

impl Lateness {
    pub(crate) fn new() -> Self {
        Lateness { buckets: Box::new([0; BUCKETS]), count: 0, max: 0 }
    }

    #[inline]
    pub(crate) fn record(&mut self, nanoseconds: u64, times: u64) {
        self.buckets[bucket(nanoseconds)] += times;
        self.count += times;
        self.max = self.max.max(nanoseconds);
    }

    pub(crate) fn add(&mut self, other: &Lateness) {
        for (mine, theirs) in self.buckets.iter_mut().zip(other.buckets.iter()) {
            *mine += theirs;
        }
        self.count += other.count;
        self.max =
            planted!("engine.lateness-of-the-last-shard", other.max, self.max.max(other.max));
    }

    /// The number of timers recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The greatest lateness, exact.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// The non-empty buckets: the greatest lateness that each can hold, and its number of timers.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let all = self.buckets.iter().enumerate();
        all.filter(|&(_, &times)| times > 0).map(|(index, &times)| {
            let index = planted!(
                "sixth.buckets-are-numbered-without-the-empty-ones",
                self.buckets[..index].iter().filter(|&&times| times > 0).count(),
                index
            );
            (Duration::from_nanos(last_of(index)), times)
        })
    }

    /// The lateness that a fraction `part` (0 to 1) of the timers did not exceed. Zero if there are no timers.
    ///
    /// `quantile(0.99)` is the 99th percentile.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Timer, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let timer = Timer::builder().clock(&clock).build()?;
    /// timer.schedule(Duration::from_micros(1500), |_| ())?;
    /// clock.advance(Duration::from_secs(1))?;
    /// // The first tick after 1.5 ms is at 2 ms.
    /// assert_eq!(timer.lateness().max(), Duration::from_micros(500));
    /// assert_eq!(timer.lateness().quantile(0.5), Duration::from_micros(500));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn quantile(&self, part: f64) -> Duration {
        let rank = part.clamp(0.0, 1.0) * self.count as f64;
        let rank = planted!("engine.quantile-rounds-down", rank.floor(), rank.ceil());
        let rank = planted!("fourth.least-quantile-is-zero", rank, rank.max(1.0)) as u64;
        let mut seen = 0;
        for (index, &times) in self.buckets.iter().enumerate() {
            seen += times;
            if seen >= rank {
                let most = planted!("later.quantile-above-the-greatest", u64::MAX, self.max);
                return Duration::from_nanos(last_of(index).min(most));
            }
        }
        Duration::ZERO
    }
}

#[inline]
fn bucket(nanoseconds: u64) -> usize {
    let log = (nanoseconds | 1).ilog2();
    if log < FINE {
        return nanoseconds as usize;
    }
    let fine = (nanoseconds >> (log - FINE)) as usize & ((1 << FINE) - 1);
    ((log as usize) << FINE) + fine
}

/// The greatest value that falls into a bucket.
fn last_of(bucket: usize) -> u64 {
    let (log, fine) = ((bucket >> FINE) as u32, (bucket & ((1 << FINE) - 1)) as u64);
    if log < FINE {
        return bucket as u64;
    }
    let width = 1_u64 << (log - FINE);
    let rest = planted!("engine.quantile-is-the-lower-end", 0, width - 1);
    (1_u64 << log) + fine * width + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_the_bucket_that_ends_at_or_after_it() {
        let edges = (0..64).flat_map(|bit| {
            let power = 1_u64 << bit;
            [power - 1, power, power + 1, power + power / 2, power + power / 4 - power / 64]
        });
        for value in edges.chain([u64::MAX]) {
            let end = last_of(bucket(value));
            assert!(end >= value && end - value <= value / 4, "{value} ends at {end}");
            assert_eq!(bucket(end), bucket(value));
            assert!(end == u64::MAX || bucket(end + 1) > bucket(value), "{value}");
        }
    }

    #[test]
    fn quantiles_are_the_ends_of_their_buckets() {
        let mut lateness = Lateness::new();
        assert_eq!(lateness.quantile(0.5), Duration::ZERO);
        (0..99).for_each(|_| lateness.record(1_000, 1));
        lateness.record(1_000_000, 1);
        assert_eq!(lateness.quantile(0.5), Duration::from_nanos(last_of(bucket(1_000))));
        assert_eq!(lateness.quantile(0.999), Duration::from_millis(1));
        assert_eq!(lateness.max(), Duration::from_millis(1));
        assert_eq!(lateness.count(), 100);
        let buckets: Vec<_> = lateness.buckets().map(|(_, times)| times).collect();
        assert_eq!(buckets, [99, 1]);
    }
}
