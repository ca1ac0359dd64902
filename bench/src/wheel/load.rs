//! The work for the contestants: deadlines and random picks, generated before any timing.
//!
//! A [`Load`] depends only on a population and a distribution, so all contestants get the same timers in the same
//! order, and no generator runs inside a timed loop.

use std::cell::OnceCell;

use crate::rng::Rng;

/// Whole lives step through the first minute ms by ms, then from deadline to deadline.
pub const STEPPED: u64 = 60_000;
/// The begin and the width of the crowded slot.
///
/// Every wheel here stores this range in one slot of an upper level: 2^26 is a multiple of the width of such a slot,
/// for 64 or 256 slots and for levels that are 3, 5 or 8 bits apart.
pub const CROWD: (u64, u64) = (1 << 26, 1 << 18);
/// In a load for polling, no timer is due and no slot cascades before this moment.
pub const QUIET: u64 = 8192;
/// If a contestant's cancel leaves nothing behind, this many operations suffice to measure the cost.
const ENOUGH: usize = 2_000_000;
/// The minimum number of operations, for small populations.
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

    /// The number of untimed and of timed operations of a churn.
    ///
    /// A lazy contestant, whose cancel leaves an entry behind, is timed after the number of such entries is stable, and
    /// for long enough to include their removal.
    pub fn churn(&self, lazy: bool) -> (usize, usize) {
        match (lazy, self.population <= ENOUGH) {
            (true, _) => (self.population, self.picks.len()),
            (false, true) => (0, self.picks.len()),
            (false, false) => (0, ENOUGH),
        }
    }

    /// The number of operations if each timer gets one: the whole population, or enough of it.
    pub fn once_each(&self, lazy: bool) -> usize {
        if lazy { self.population } else { self.population.min(ENOUGH) }
    }

    /// How often a run over the whole population is repeated, so that a run over few timers takes long enough.
    pub fn repeats(&self) -> usize {
        (LEAST / self.population).max(1)
    }

    /// The deadline to which operation `j` moves timer `picks[j]`: its previous deadline plus a delay.
    ///
    /// Always later, and nothing fires. A clock that advances by less than a timeout would lead to the same moves.
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

    /// The moments to which a whole life advances.
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
