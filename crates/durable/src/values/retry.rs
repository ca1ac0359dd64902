//! Retry: how many attempts an occurrence gets, and the backoff between them.

use super::{Span, ValueError};

/// The number of attempts of an occurrence, and their exponential backoff.
///
/// The delay after the n-th failed attempt is `min(longest, first × factor^(n−1)) × (1 … 1 + jitter)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// Maximum number of attempts of an occurrence, at least 1.
    pub attempts: u32,
    /// The delay after the first failure.
    pub first: Span,
    /// The factor from each delay to the next, 1 to 1 000 000.
    pub factor: f64,
    /// The longest delay, before jitter.
    pub longest: Span,
    /// The random part added to a delay, as a fraction of it, 0 to 1.
    pub jitter: f64,
}

/// 10 attempts; the delay is 1 s, doubled after each failure up to an hour, plus up to a tenth of jitter.
impl Default for Retry {
    fn default() -> Self {
        let (first, longest) = (Span::from_secs(1), Span::from_secs(3600));
        Retry { attempts: 10, first, factor: 2.0, longest, jitter: 0.1 }
    }
}

/// Changes to some fields of a [`Retry`]; the other fields stay unchanged.
///
/// ```
/// use tourbillon_durable::values::{Retry, RetryChange};
/// let change = RetryChange { attempts: Some(3), ..RetryChange::default() };
/// assert_eq!(change.over(Retry::default()), Retry { attempts: 3, ..Retry::default() });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RetryChange {
    /// Maximum number of attempts of an occurrence.
    pub attempts: Option<u32>,
    /// The delay after the first failure.
    pub first: Option<Span>,
    /// The factor from each delay to the next.
    pub factor: Option<f64>,
    /// The longest delay, before jitter.
    pub longest: Option<Span>,
    /// The random part added to a delay, as a fraction of it.
    pub jitter: Option<f64>,
}

impl RetryChange {
    /// Applies the changes to `base`.
    pub fn over(self, base: Retry) -> Retry {
        Retry {
            attempts: self.attempts.unwrap_or(base.attempts),
            first: self.first.unwrap_or(base.first),
            factor: self.factor.unwrap_or(base.factor),
            longest: self.longest.unwrap_or(base.longest),
            jitter: self.jitter.unwrap_or(base.jitter),
        }
    }
}

/// Changes every field.
impl From<Retry> for RetryChange {
    fn from(retry: Retry) -> Self {
        let Retry { attempts, first, factor, longest, jitter } = retry;
        RetryChange {
            attempts: Some(attempts),
            first: Some(first),
            factor: Some(factor),
            longest: Some(longest),
            jitter: Some(jitter),
        }
    }
}

impl Retry {
    /// Checks its limits.
    ///
    /// # Errors
    /// No attempts, a factor outside 1 to 1 000 000, a jitter outside 0 to 1, or NaN.
    ///
    /// ```
    /// use tourbillon_durable::values::Retry;
    /// assert!(Retry { attempts: 0, ..Retry::default() }.checked().is_err());
    /// ```
    pub fn checked(self) -> Result<Self, ValueError> {
        if self.attempts == 0 {
            return Err(ValueError::new("retry.attempts", "0", "at least 1"));
        }
        if !(1.0..=1e6).contains(&self.factor) {
            return Err(ValueError::new("retry.factor", &self.factor.to_string(), "1 to 1000000"));
        }
        if !(0.0..=1.0).contains(&self.jitter) {
            return Err(ValueError::new("retry.jitter", &self.jitter.to_string(), "0 to 1"));
        }
        Ok(self)
    }

    /// The delay after the n-th failure, n from 1. `seed` decides the jitter, so the shard needs no random source.
    pub fn delay(&self, failed: u32, seed: u64) -> Span {
        let exponent = i32::try_from(failed.saturating_sub(1)).unwrap_or(i32::MAX);
        let longest = self.longest.millis() as f64;
        // The product is infinite for large exponents, and NaN for 0 × infinity. `min` returns `longest` for both.
        let base = (self.first.millis() as f64 * self.factor.powi(exponent)).min(longest);
        let chance = (mix(seed) >> 11) as f64 / (1_u64 << 53) as f64;
        Span::from_millis((base * (1.0 + self.jitter * chance)).ceil() as u64)
    }
}

/// The finaliser of SplitMix64: neighbouring seeds give unrelated numbers.
fn mix(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_longest_and_jitter_only_adds() {
        let plain = Retry { jitter: 0.0, ..Retry::default() };
        let seconds = |failed| plain.delay(failed, 7).millis() / 1000;
        assert_eq!([1, 2, 3, 12, 13, 99, u32::MAX].map(seconds), [1, 2, 4, 2048, 3600, 3600, 3600]);
        for seed in 0..1000 {
            let delay = Retry::default().delay(1, seed).millis();
            assert!((1000..=1100).contains(&delay), "{delay}");
        }
        let nothing = Retry { first: Span::ZERO, ..plain };
        assert!(nothing.delay(u32::MAX, 0) <= nothing.longest);
    }
}
