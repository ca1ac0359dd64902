//! What the contestants are asked to do: the deadlines and the random picks, made before any clock runs.
//!
//! A [`Load`] is made once for a population and a distribution and shown to everybody, so that all meet the
//! same timers in the same order and no generator runs inside a timed loop.

use std::cell::OnceCell;

use crate::rng::Rng;

/// The ms of the first minute: whole lives are stepped ms by ms so far, then from deadline to deadline.
pub const STEPPED: u64 = 60_000;
/// The begin and the width of the crowded slot. Every wheel here files this stretch in one slot of an upper
/// level: 2^26 is a multiple of a slot's width for slots of 64, 256 and for levels 3, 5 or 8 bits apart.
pub const CROWD: (u64, u64) = (1 << 26, 1 << 18);
/// In a load for polling, nothing is due before this moment, and no wheel has a slot to hand down before it.
pub const QUIET: u64 = 8192;
/// Where a contestant leaves nothing behind when it cancels, so many operations are enough to know the cost.
const ENOUGH: usize = 2_000_000;
/// And so many are needed where the population is small.
const LEAST: usize = 300_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spread {
    /// Uniform over 60 s.
    Uniform,
    /// Log-uniform from 1 ms to 1 day.
    Log,
    /// All in one slot of an upper level.
    Crowd,
}

impl Spread {
    fn delay(self, rng: &mut Rng) -> u32 {
        match self {
            Spread::Uniform => 1 + rng.below(STEPPED) as u32,
            Spread::Log => ((86_400_000_f64.ln() * rng.unit()).exp() as u32).max(1),
            Spread::Crowd => (CROWD.0 + rng.below(CROWD.1)) as u32,
        }
    }
}

pub struct Load {
    pub spread: Spread,
    pub population: usize,
    /// When timer `i` is first due.
    pub dues: Vec<u32>,
    /// Timers picked at random, one for each operation of a churn.
    pub picks: Vec<u32>,
    /// The delay of each operation of a churn.
    pub delays: Vec<u32>,
    later: OnceCell<Vec<u32>>,
    permutation: OnceCell<Vec<u32>>,
    by_due: OnceCell<Vec<u32>>,
    steps: OnceCell<Vec<u64>>,
}

impl Load {
    pub fn new(spread: Spread, population: usize) -> Self {
        let mut rng = Rng::new(population as u64 + spread as u64);
        let operations = population.max(LEAST);
        Load {
            spread,
            population,
            dues: (0..population).map(|_| spread.delay(&mut rng)).collect(),
            picks: (0..operations).map(|_| rng.below(population as u64) as u32).collect(),
            delays: (0..operations).map(|_| spread.delay(&mut rng)).collect(),
            later: OnceCell::new(),
            permutation: OnceCell::new(),
            by_due: OnceCell::new(),
            steps: OnceCell::new(),
        }
    }

    /// Operations of a churn before the clock runs, and while it runs. Who leaves something behind is measured
    /// once that has come to a balance, and for long enough to meet the cleaning up.
    pub fn churn(&self, lazy: bool) -> (usize, usize) {
        match (lazy, self.population <= ENOUGH) {
            (true, _) => (self.population, self.picks.len()),
            (false, true) => (0, self.picks.len()),
            (false, false) => (0, ENOUGH),
        }
    }

    /// Operations that are done to each timer once: all, or enough of them.
    pub fn once_each(&self, lazy: bool) -> usize {
        if lazy { self.population } else { self.population.min(ENOUGH) }
    }

    /// How many times a run over the whole population is repeated, so that a small one takes long enough.
    pub fn repeats(&self) -> usize {
        (LEAST / self.population).max(1)
    }

    /// The deadline that operation `j` moves timer `picks[j]` to: its last one plus a delay, always later. A
    /// clock that has moved on by less than the timeout gives the same moves, without firing anything.
    pub fn later(&self) -> &[u32] {
        self.later.get_or_init(|| {
            let mut dues = self.dues.clone();
            let moves = self.picks.iter().zip(&self.delays).take(self.population);
            moves
                .map(|(&timer, &delay)| {
                    let due = &mut dues[timer as usize];
                    *due += delay;
                    *due
                })
                .collect()
        })
    }

    /// Every timer once, in random order.
    pub fn permutation(&self) -> &[u32] {
        self.permutation.get_or_init(|| {
            let mut timers: Vec<u32> = (0..self.population as u32).collect();
            Rng::new(7).shuffle(&mut timers);
            timers
        })
    }

    /// Every timer once, the earliest first.
    pub fn by_due(&self) -> &[u32] {
        self.by_due.get_or_init(|| {
            let mut timers: Vec<u32> = (0..self.population as u32).collect();
            timers.sort_by_key(|&timer| self.dues[timer as usize]);
            timers
        })
    }

    /// The moments that a whole life is advanced to.
    pub fn steps(&self) -> &[u64] {
        self.steps.get_or_init(|| {
            let stepped = if self.spread == Spread::Crowd { 0 } else { STEPPED };
            let mut jumps: Vec<u64> =
                self.dues.iter().map(|&due| due.into()).filter(|&due| due > stepped).collect();
            jumps.sort_unstable();
            jumps.dedup();
            (1..=stepped).chain(jumps).collect()
        })
    }
}
