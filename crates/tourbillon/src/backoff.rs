//! How long to wait between tries, and when to give up: a small value that knows no clock, no timer and no job.
//!
//! ```text
//!   failure        1      2      3      4          5
//!   delay        100 ms 200 ms 400 ms 800 ms   1 s (`most`)  …     first × factor each time, never above `most`
//!   with jitter   73 ms  12 ms 398 ms …                            drawn anew each time, never above the delay
//! ```
//!
//! Invariant: `delay` is what the next failure is answered with, before `most` and jitter. Everything is counted in
//! nanoseconds and saturates: no setting and no number of failures makes it wrap or panic.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use crate::clock::nanoseconds;

/// How long to wait before each further try: exponentially longer, with jitter, and with limits on tries and on time.
///
/// It is asked once for every failure. A clone goes on from where the original is; a fresh one may serve as a template,
/// and its clones [draw](Backoff::jitter) each for itself.
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
    /// Nanoseconds.
    first: u64,
    most: u64,
    factor: f64,
    jitter: Jitter,
    tries: u32,
    within: Duration,
    seed: Option<u64>,
    /// Tries that have failed.
    failed: u32,
    delay: u64,
    /// Made when it is first drawn from.
    random: Option<Random>,
}

/// How much of a delay is left to chance, so that those who failed together do not come back together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Jitter {
    /// The delay as it is.
    #[default]
    None,
    /// Half of the delay, and anything from nothing to the other half.
    Equal,
    /// Anything from nothing to the delay: spreads the most, and may try again at once (a timer: at the next tick).
    Full,
}

const MINUTE: Duration = Duration::from_secs(60);

impl Backoff {
    /// First so long, then twice as long each time up to a minute, without jitter and without end.
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

    /// How many times longer each delay is than the one before. 2 if not set; with 1 all are the same. Less than 1, or
    /// what is no number, counts as 1.
    pub fn factor(mut self, factor: f64) -> Self {
        self.factor = factor.max(1.0);
        self
    }

    /// No delay is longer than this, the first one included. A minute if not set.
    pub fn most(mut self, most: Duration) -> Self {
        self.most = nanoseconds(most);
        self
    }

    /// How much of each delay is left to chance. Nothing if not set.
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

    /// Draws jitter from this seed: the same delays in every run, for tests and simulations. A seed that nobody knows
    /// if not set, and another one for each clone that is made before the first delay.
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

    /// Gives up after so many tries, the first one included. No limit if not set; 0 counts as 1.
    pub fn tries(mut self, tries: u32) -> Self {
        self.tries = tries;
        self
    }

    /// Gives up rather than try again later than so long after the first try began. No limit if not set.
    ///
    /// It is the delay that is held to this: a timer starts the try at the tick after it, and as late as it is.
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

    /// A try has failed, so long after the first one began: how long to wait before the next. `None` if it is time to
    /// give up.
    ///
    /// Each answer counts as one more failure. It never panics, and after the first `None` that comes of the tries it
    /// answers nothing else.
    pub fn next_delay(&mut self, elapsed: Duration) -> Option<Duration> {
        self.failed = self.failed.saturating_add(1);
        // A count that has reached its end cannot tell one try from the next: then there is no limit.
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
            // Up, so that one nanosecond grows as well. A float becomes the nearest number that there is: nothing
            // overflows.
            let longer = delay as f64 * self.factor;
            self.delay = planted!("backoff.tiny-delay-never-grows", longer, longer.ceil()) as u64;
        }
        let delay = Duration::from_nanos(self.jittered(delay));
        let end =
            planted!("backoff.long-elapsed-panics", elapsed + delay, elapsed.saturating_add(delay));
        planted!("later.try-at-the-very-limit-left-out", end < self.within, end <= self.within)
            .then_some(delay)
    }

    /// As if nothing had failed yet. What is drawn goes on from where it is.
    pub fn reset(&mut self) {
        self.failed = planted!("third.reset-keeps-the-failures", self.failed, 0);
        self.delay = planted!("backoff.reset-keeps-the-delay", self.delay, self.first);
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

/// SplitMix64: eight bytes, and good enough to spread tries. Who wants to guess them gains nothing.
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn new(seed: Option<u64>) -> Self {
        // The keys of the standard library's hash maps, which it draws from the system.
        Random(seed.unwrap_or_else(|| RandomState::new().build_hasher().finish()))
    }

    /// A number from 0 to `most`, both included.
    fn up_to(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        // The upper half of the product is spread evenly, to within one part in 2^64.
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
        // Too many digits for a float.
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
        // Nothing times anything, infinitely many times: still nothing.
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
