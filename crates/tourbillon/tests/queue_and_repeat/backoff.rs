//! The delays of a [`Backoff`] under random settings, failures and resets, compared with a formula of their own.
//!
//! What the generator draws is learnt from backoffs whose delay never changes: the n-th draw of a seed between two
//! bounds is the n-th delay of the backoff that has these bounds from the start. Nothing here depends on how it draws.

use std::time::Duration;

use tourbillon::{Backoff, Jitter};

const JITTERS: [Jitter; 3] = [Jitter::None, Jitter::Equal, Jitter::Full];
/// Factors as fractions: the formula computes with whole numbers.
const FACTORS: [(u64, u64); 5] = [(1, 1), (2, 1), (3, 2), (5, 4), (10, 1)];

/// The settings of a backoff, and where it is by the formula. Times are in nanoseconds.
#[derive(Debug)]
struct Model {
    first: u64,
    factor: (u64, u64),
    most: u64,
    jitter: Jitter,
    /// Zero without a limit.
    tries: u32,
    within: Option<u64>,
    seed: u64,
    /// The failures since the beginning or the last reset.
    failed: u32,
    /// The delays drawn since the beginning: a reset does not begin anew.
    drawn: usize,
}

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

impl Model {
    fn random(random: &mut fastrand::Rng) -> Self {
        let limit = random.u64(0..2_000_000);
        Model {
            first: random.u64(0..1000) * 10_u64.pow(random.u32(0..3)),
            factor: FACTORS[random.usize(..FACTORS.len())],
            most: random.u64(1..1_000_000),
            jitter: JITTERS[random.usize(..JITTERS.len())],
            tries: if random.bool() { 0 } else { random.u32(1..8) },
            within: random.bool().then_some(limit),
            seed: random.u64(..),
            failed: 0,
            drawn: 0,
        }
    }

    fn backoff(&self) -> Backoff {
        let (most, (up, down)) = (nanos(self.most), self.factor);
        let backoff = Backoff::new(nanos(self.first)).most(most).factor(up as f64 / down as f64);
        let backoff = backoff.jitter(self.jitter).seed(self.seed);
        let backoff = if self.tries > 0 { backoff.tries(self.tries) } else { backoff };
        self.within.map(nanos).into_iter().fold(backoff, Backoff::within)
    }

    /// The delay after the next failure, before jitter.
    fn longest(&self) -> u64 {
        let (up, down) = self.factor;
        let longer = |delay: u64, _| (delay * up).div_ceil(down).min(self.most);
        (0..self.failed).fold(self.first.min(self.most), longer)
    }

    /// The next delay of the generator.
    fn draw(&mut self) -> u64 {
        let longest = self.longest();
        let constant = Backoff::new(nanos(longest)).most(nanos(longest)).factor(1.0);
        let mut constant = constant.jitter(self.jitter).seed(self.seed);
        let mut draws = std::iter::repeat_with(|| constant.next_delay(Duration::ZERO).unwrap());
        let drawn = draws.nth(self.drawn).unwrap().as_nanos() as u64;
        self.drawn += 1;
        let least = match self.jitter {
            Jitter::Full => 0,
            Jitter::Equal => longest.div_ceil(2),
            _ => longest,
        };
        assert!((least..=longest).contains(&drawn), "{drawn}");
        drawn
    }

    /// What a failure so long after the beginning gives.
    fn fail(&mut self, elapsed: impl FnOnce(u64) -> u64) -> (Duration, Option<Duration>) {
        if self.tries > 0 && self.failed + 1 >= self.tries {
            // The limit on tries holds whenever the failure is.
            return (nanos(elapsed(0)), None);
        }
        let delay = self.draw();
        self.failed += 1;
        let elapsed = elapsed(delay);
        let is_in_time = self.within.is_none_or(|within| elapsed + delay <= within);
        (nanos(elapsed), is_in_time.then(|| nanos(delay)))
    }

    fn reset(&mut self) {
        self.failed = 0;
    }
}

#[test]
fn delays_are_those_of_the_formula() {
    let mut random = fastrand::Rng::with_seed(1);
    let (mut delayed, mut given_up) = (0, 0);
    for _ in 0..3000 {
        let mut model = Model::random(&mut random);
        let mut backoff = model.backoff();
        for step in 0..24 {
            if random.u32(0..8) == 0 {
                model.reset();
                backoff.reset();
                continue;
            }
            // With a limit of time, mostly a failure from which the next try is just in time, or just not.
            let (longest, within) = (model.longest(), model.within.unwrap_or(2_000_000));
            let (kind, any) = (random.u32(0..5), random.u64(0..=2 * longest));
            let (elapsed, expected) = model.fail(|delay| match kind {
                0 => 0,
                1 => within.saturating_sub(delay),
                2 => within.saturating_sub(delay) + 1,
                3 => within.saturating_sub(longest) + 1,
                _ => within.saturating_sub(any),
            });
            assert_eq!(
                backoff.next_delay(elapsed),
                expected,
                "step {step} at {elapsed:?}: {model:?}"
            );
            *if expected.is_some() { &mut delayed } else { &mut given_up } += 1;
        }
    }
    assert!(delayed > 10_000 && given_up > 10_000, "{delayed} delays, {given_up} times without");
}

/// A reset at any place changes the bounds of the delays, not what is drawn between them.
#[test]
fn a_reset_does_not_repeat_the_draws() {
    for jitter in [Jitter::Equal, Jitter::Full] {
        for seed in 0..50 {
            for every in 1..5 {
                let constant = Backoff::new(nanos(1 << 40)).factor(1.0).jitter(jitter).seed(seed);
                let (mut once, mut again) = (constant.clone(), constant);
                for draw in 0..20 {
                    if draw % every == 0 {
                        again.reset();
                    }
                    let draws = [&mut once, &mut again].map(|it| it.next_delay(Duration::ZERO));
                    assert_eq!(draws[0], draws[1], "seed {seed}, a reset every {every}: {draw}");
                }
            }
        }
    }
}
