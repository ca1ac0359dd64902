//! What was measured: samples by measure, spread, population and contestant; medians, and who is best.

use std::collections::{BTreeMap, BTreeSet};

use crate::contestant::Kind;
use crate::entrant::Entrant;
use crate::load::Spread;
use crate::measure::{Measure, Unit};
use crate::trace::Faults;

/// One column of a table.
pub type Column = (Spread, usize);

/// A contestant, as the report names it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Contender {
    pub name: &'static str,
    pub kind: Kind,
    pub settings: &'static str,
    pub most: usize,
    pub why_not_more: &'static str,
    pub faults: Faults,
}

/// The samples of one cell, summed up.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Summary {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub rounds: usize,
}

impl Summary {
    /// # Panics
    ///
    /// If there are no samples.
    pub fn of(samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (rounds, middle) = (sorted.len(), sorted.len() / 2);
        let median = if rounds % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Summary { median, min: sorted[0], max: sorted[rounds - 1], rounds }
    }
}

#[derive(Default)]
pub struct Results {
    pub contenders: Vec<Contender>,
    samples: BTreeMap<(Measure, Column, usize), Vec<f64>>,
    floors: BTreeMap<(Measure, Column), Vec<f64>>,
}

impl Results {
    pub fn new(entrants: &[Box<dyn Entrant>]) -> Self {
        let contenders = entrants.iter().map(|entrant| {
            let (most, why_not_more) = entrant.most();
            let faults = entrant.replay();
            let (name, kind, settings) = (entrant.name(), entrant.kind(), entrant.settings());
            Contender { name, kind, settings, most, why_not_more, faults }
        });
        Results { contenders: contenders.collect(), ..Results::default() }
    }

    pub fn add(&mut self, measure: Measure, column: Column, contender: usize, value: f64) {
        self.samples.entry((measure, column, contender)).or_default().push(value);
    }

    pub fn add_floor(&mut self, measure: Measure, column: Column, value: f64) {
        self.floors.entry((measure, column)).or_default().push(value);
    }

    /// The columns in which anybody has a value.
    pub fn columns(&self, measure: Measure) -> BTreeSet<Column> {
        self.samples.keys().filter(|key| key.0 == measure).map(|key| key.1).collect()
    }

    pub fn summary(&self, measure: Measure, column: Column, contender: usize) -> Option<Summary> {
        self.samples.get(&(measure, column, contender)).map(|samples| Summary::of(samples))
    }

    /// The figure that counts: the median; of a longest time the least, for the others were disturbed.
    pub fn value(&self, measure: Measure, column: Column, contender: usize) -> Option<f64> {
        let summary = self.summary(measure, column, contender)?;
        Some(if measure.unit() == Unit::Longest { summary.min } else { summary.median })
    }

    pub fn floor(&self, measure: Measure, column: Column) -> Option<Summary> {
        self.floors.get(&(measure, column)).map(|samples| Summary::of(samples))
    }

    /// How many times the floor a contestant takes.
    pub fn distance(&self, measure: Measure, column: Column, contender: usize) -> Option<f64> {
        Some(self.value(measure, column, contender)? / self.floor(measure, column)?.median)
    }

    /// The best of the peer wheels.
    pub fn best_peer(&self, measure: Measure, column: Column) -> Option<(usize, f64)> {
        let peers = (0..self.contenders.len())
            .filter(|&index| self.contenders[index].kind == Kind::PeerWheel);
        peers
            .filter_map(|index| Some((index, self.value(measure, column, index)?)))
            .min_by(|left, right| left.1.total_cmp(&right.1))
    }

    /// A contestant's figure divided by that of the best peer wheel.
    pub fn ratio(&self, measure: Measure, column: Column, contender: usize) -> Option<f64> {
        Some(self.value(measure, column, contender)? / self.best_peer(measure, column)?.1)
    }

    /// The contestants that are Tourbillon's.
    pub fn ours(&self) -> impl Iterator<Item = usize> {
        (0..self.contenders.len()).filter(|&index| self.contenders[index].kind == Kind::Ours)
    }
}
