//! Delays between attempts, and when to give up. A plain value that needs no clock, timer or job.
//!
//! ```text
//!   failure        1      2      3      4          5
//!   delay        100 ms 200 ms 400 ms 800 ms   1 s (`most`)  …     first × factor each time, at most `most`
//!   with jitter   73 ms  12 ms 398 ms …                            drawn each time, at most the delay
//! ```
//!
//! Invariant: `delay` is the delay after the next failure, before `most` and jitter apply. All values are in
//! nanoseconds and saturate: no setting and no number of failures makes them wrap or panic.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use crate::clock::nanoseconds;

/// Exponential backoff with jitter, and limits on the number of attempts and on time.
///
/// Call [`next_delay`](Backoff::next_delay) once for every failure. A clone continues from the original's state; a
/// fresh backoff may serve as a template: each clone [draws](Backoff::jitter) its own jitter.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::Backoff;
///
/// let mut backoff = Backoff::new(Duration::from_millis(100)).most(Duration::from_millis(300)).tries(5);
/// let mut elapsed = Duration::ZERO;
/// let mut delays = Vec::new();
/// while let Some(delay) = backoff.next_delay(elapsed) {
///     delays.push(delay.as_millis());
///     elapsed += delay;
/// }
/// assert_eq!(delays, [100, 200, 300, 300], "five tries, four delays between them");
/// ```
#[derive(Clone, Debug)]
#[must_use = "a backoff does nothing until it is asked"]
pub struct Backoff {
    /// `first`, `most` and `delay` are in nanoseconds.
    first: u64,
    most: u64,
    factor: f64,
    jitter: Jitter,
    tries: u32,
    within: Duration,
    seed: Option<u64>,
    /// The number of failed attempts.
    failed: u32,
    delay: u64,
    /// Created when first drawn from.
    random: Option<Random>,
}

/// How much of a delay is random.
///
/// Jitter spreads out the retries of callers that failed at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Jitter {
    /// None: the exact delay.
    #[default]
    None,
    /// Half of the delay, plus a random part of the second half.
    Equal,
    /// Anything from zero to the delay.
    ///
    /// Spreads retries the most. A retry may follow at once (with a timer: at the next tick).
    Full,
}

const MINUTE: Duration = Duration::from_secs(60);

impl Backoff {
    /// Starts with `first` and doubles up to one minute. It has no jitter and never gives up.
    pub fn new(first: Duration) -> Self {
        let first = nanoseconds(first);
        Backoff {
            first,
            most: nanoseconds(MINUTE),
            factor: 2.0,
            jitter: Jitter::None,
            tries: u32::MAX,
            within: Duration::MAX,
            seed: None,
            failed: 0,
            delay: first,
            random: None,
        }
    }

    /// Sets the factor between a delay and the next. Default: 2.
    ///
    /// With 1, all delays are the same. A value below 1 or NaN counts as 1.
    pub fn factor(mut self, factor: f64) -> Self {
        self.factor = factor.max(1.0);
        self
    }

    /// Sets the upper bound of all delays, the first included. Default: one minute.
    pub fn most(mut self, most: Duration) -> Self {
        self.most = nanoseconds(most);
        self
    }

    /// Sets how much of each delay is random. Default: none.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Backoff, Jitter};
    ///
    /// let second = Duration::from_secs(1);
    /// let mut backoff = Backoff::new(second).jitter(Jitter::Equal);
    /// let delay = backoff.next_delay(Duration::ZERO).unwrap();
    /// assert!(delay >= second / 2 && delay <= second);
    /// ```
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// Draws jitter from this seed: the same delays in every run, for tests and simulations.
    ///
    /// By default the seed is random, and different for each clone made before the first delay.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::{Backoff, Jitter};
    ///
    /// let mut one = Backoff::new(Duration::from_secs(1)).jitter(Jitter::Full).seed(7);
    /// let mut other = one.clone();
    /// assert_eq!(one.next_delay(Duration::ZERO), other.next_delay(Duration::ZERO));
    /// ```
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self.random = planted!("backoff.seed-after-a-draw-is-ignored", self.random, None);
        self
    }

    /// Gives up after `tries` attempts, including the first. Default: no limit. 0 counts as 1.
    pub fn tries(mut self, tries: u32) -> Self {
        self.tries = tries;
        self
    }

    /// Gives up if the next attempt would start later than `limit` after the first attempt began. Default: no limit.
    ///
    /// The check uses the delay alone; a timer starts the attempt at the following tick, plus its own lateness.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::Backoff;
    ///
    /// let mut backoff = Backoff::new(Duration::from_secs(4)).within(Duration::from_secs(10));
    /// assert!(backoff.next_delay(Duration::from_secs(6)).is_some(), "tried again after ten seconds");
    /// assert!(backoff.next_delay(Duration::from_secs(10)).is_none(), "that would be after eighteen");
    /// ```
    pub fn within(mut self, limit: Duration) -> Self {
        self.within = limit;
        self
    }

    /// Records a failure; returns the delay before the next attempt, or `None` to give up.
    ///
    /// `elapsed` is the time since the first attempt began.
    ///
    /// It never panics. Once the limit on attempts is reached, it always returns `None`.
    pub fn next_delay(&mut self, elapsed: Duration) -> Option<Duration> {
        self.failed = self.failed.saturating_add(1);
        // The counter saturates and cannot count further attempts, so a limit of `u32::MAX` means no limit.
        let enough = planted!(
            "backoff.one-try-too-many",
            self.failed > self.tries,
            self.failed >= self.tries
        );
        if enough && self.tries != u32::MAX {
            return None;
        }
        let most = planted!(
            "backoff.first-delay-above-the-most",
            if self.failed > 1 { self.most } else { u64::MAX },
            self.most
        );
        let delay = self.delay.min(most);
        self.delay = delay;
        if self.factor > 1.0 {
            // Rounded up, so that even a delay of one nanosecond grows. The conversion from a float saturates.
            let grows =
                planted!("fourth.the-jittered-delay-is-what-grows", self.jittered(delay), delay);
            let factor =
                planted!("sixth.factor-loses-its-fraction", self.factor.trunc(), self.factor);
            let longer = grows as f64 * factor;
            self.delay = planted!("backoff.tiny-delay-never-grows", longer, longer.ceil()) as u64;
        }
        let drawn = Duration::from_nanos(self.jittered(delay));
        let wait = planted!(
            "fifth.limit-of-time-minds-the-longest-delay",
            Duration::from_nanos(delay),
            drawn
        );
        let end =
            planted!("backoff.long-elapsed-panics", elapsed + wait, elapsed.saturating_add(wait));
        planted!("later.try-at-the-very-limit-left-out", end < self.within, end <= self.within)
            .then_some(drawn)
    }

    /// Resets the delay and the number of failures. The random sequence continues.
    pub fn reset(&mut self) {
        self.failed = planted!("third.reset-keeps-the-failures", self.failed, 0);
        self.delay = planted!("backoff.reset-keeps-the-delay", self.delay, self.first);
        planted!("fourth.reset-begins-the-jitter-anew", self.random = None, ());
    }

    fn jittered(&mut self, delay: u64) -> u64 {
        let chance = match self.jitter {
            Jitter::None => return delay,
            Jitter::Equal => delay / 2,
            Jitter::Full => delay,
        };
        let seed = self.seed;
        let random = self.random.get_or_insert_with(|| Random::new(seed));
        let drawn = random.up_to(chance);
        planted!("more.equal-jitter-keeps-the-wrong-half", drawn, delay - drawn)
    }
}

/// SplitMix64: eight bytes of state, random enough to spread attempts. It need not be unpredictable.
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn new(seed: Option<u64>) -> Self {
        // Seeded with the keys of the standard library's hash maps, which come from the system.
        let drawn = || RandomState::new().build_hasher().finish();
        Random(planted!(
            "blind.all-draw-the-same-jitter",
            seed.unwrap_or(0),
            seed.unwrap_or_else(drawn)
        ))
    }

    /// A number from 0 to `most`, both included.
    fn up_to(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        // The upper half of the product is uniform to within one part in 2^64.
        ((u128::from(mixed) * (u128::from(most) + 1)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const ZERO: Duration = Duration::ZERO;

    fn delays(mut backoff: Backoff, count: usize) -> Vec<Duration> {
        (0..count).map_while(|_| backoff.next_delay(ZERO)).collect()
    }

    #[test]
    fn delays_grow_to_the_most() {
        let seconds = |backoff: Backoff| -> Vec<u64> {
            delays(backoff, 5).iter().map(Duration::as_secs).collect()
        };
        assert_eq!(seconds(Backoff::new(SECOND)), [1, 2, 4, 8, 16]);
        assert_eq!(seconds(Backoff::new(SECOND).factor(1.0)), [1; 5]);
        assert_eq!(seconds(Backoff::new(SECOND).factor(10.0)), [1, 10, 60, 60, 60]);
        assert_eq!(seconds(Backoff::new(SECOND * 90)), [60; 5]);
        assert_eq!(seconds(Backoff::new(SECOND).factor(1.5).most(SECOND * 3)), [1, 1, 2, 3, 3]);
    }

    #[test]
    fn the_smallest_delay_grows_and_one_that_stays_is_exact() {
        let smallest = Backoff::new(Duration::from_nanos(1)).factor(1.5);
        let nanoseconds: Vec<_> = delays(smallest, 5).iter().map(Duration::as_nanos).collect();
        assert_eq!(nanoseconds, [1, 2, 3, 5, 8]);
        // Has too many digits for a float.
        let long = Duration::from_nanos((1 << 53) + 1);
        assert_eq!(delays(Backoff::new(long).most(Duration::MAX).factor(1.0), 3), [long; 3]);
    }

    #[test]
    fn odd_values_are_harmless() {
        for factor in [f64::NAN, f64::NEG_INFINITY, -3.0, 0.0, 0.5] {
            assert_eq!(delays(Backoff::new(SECOND).factor(factor), 3), [SECOND; 3], "{factor}");
        }
        let minute = SECOND * 60;
        let at_once = Backoff::new(SECOND).factor(f64::INFINITY);
        assert_eq!(delays(at_once, 3), [SECOND, minute, minute]);
        // Zero multiplied by any factor, any number of times, stays zero.
        assert_eq!(delays(Backoff::new(ZERO).factor(f64::INFINITY), 3), [ZERO; 3]);
        assert_eq!(delays(Backoff::new(SECOND).most(ZERO).jitter(Jitter::Full), 3), [ZERO; 3]);
        for jitter in [Jitter::None, Jitter::Equal, Jitter::Full] {
            let mut longest = Backoff::new(Duration::MAX).most(Duration::MAX).jitter(jitter);
            for _ in 0..1000 {
                assert!(longest.next_delay(Duration::MAX).is_some());
            }
        }
        let mut tiny = Backoff::new(Duration::from_nanos(1)).jitter(Jitter::Equal);
        assert_eq!(tiny.next_delay(ZERO), Some(Duration::from_nanos(1)));
    }

    #[test]
    fn tries_and_time_are_limited() {
        for (tries, delayed) in [(0, 0), (1, 0), (2, 1), (5, 4)] {
            assert_eq!(delays(Backoff::new(SECOND).tries(tries), 9).len(), delayed, "{tries}");
        }
        let mut given_up = Backoff::new(SECOND).tries(2);
        assert!(given_up.next_delay(ZERO).is_some());
        assert!((0..9).all(|_| given_up.next_delay(ZERO).is_none()));
        given_up.reset();
        assert_eq!(given_up.next_delay(ZERO), Some(SECOND));

        let limited = Backoff::new(SECOND).within(SECOND * 3);
        assert_eq!(limited.clone().next_delay(SECOND * 2), Some(SECOND), "exactly in time");
        let late = SECOND * 2 + Duration::from_nanos(1);
        assert_eq!(limited.clone().next_delay(late), None);
        assert_eq!(limited.clone().within(ZERO).next_delay(ZERO), None);
    }

    #[test]
    fn endless_tries_never_end() {
        let mut endless = Backoff { failed: u32::MAX - 2, ..Backoff::new(SECOND) };
        assert!((0..9).all(|_| endless.next_delay(ZERO).is_some()));
    }

    #[test]
    fn jitter_stays_in_its_bounds_and_reaches_them() {
        for (jitter, least) in [(Jitter::Equal, 50), (Jitter::Full, 0)] {
            let backoff = Backoff::new(Duration::from_nanos(100)).factor(1.0).jitter(jitter);
            let drawn = delays(backoff.seed(1), 10_000);
            let nanoseconds = drawn.iter().map(Duration::as_nanos);
            assert_eq!(nanoseconds.clone().min(), Some(least), "{jitter:?}");
            assert_eq!(nanoseconds.clone().max(), Some(100), "{jitter:?}");
            let mean = nanoseconds.sum::<u128>() as f64 / 10_000.0;
            let middle = (least + 100) as f64 / 2.0;
            assert!((mean - middle).abs() < 1.5, "{jitter:?} has a mean of {mean}");
        }
    }

    #[test]
    fn a_seed_repeats_itself_and_a_template_does_not() {
        let template = Backoff::new(SECOND).most(SECOND * 1000).jitter(Jitter::Full);
        assert_eq!(delays(template.clone().seed(3), 8), delays(template.clone().seed(3), 8));
        assert_ne!(delays(template.clone().seed(3), 8), delays(template.clone().seed(4), 8));
        assert_ne!(delays(template.clone(), 8), delays(template.clone(), 8), "each for itself");
        let mut used = template;
        used.next_delay(ZERO);
        assert_eq!(delays(used.clone(), 8), delays(used, 8), "a clone goes on as the original");
    }
}
