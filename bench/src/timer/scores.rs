//! What was measured: samples by figure and contestant, medians, ratios, and whether targets were met.

use std::collections::BTreeMap;

use super::contestant::Kind;
use super::entrant::{Contender, Entrant};
use super::figure::{Figure, Row, Target};
use super::system::Waits;
use crate::results::Summary;

pub struct Scores {
    pub contenders: Vec<Contender>,
    samples: BTreeMap<(Figure, usize), Vec<f64>>,
    absent: BTreeMap<(Row, usize), String>,
    pub waits: Waits,
}

/// A target, and what came of it.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Verdict {
    pub target: Target,
    /// The ratio, or the figure itself.
    pub value: f64,
    pub met: bool,
}

impl Scores {
    pub fn new(entrants: &[Box<dyn Entrant>]) -> Self {
        Scores {
            contenders: entrants.iter().map(|entrant| entrant.contender()).collect(),
            samples: BTreeMap::new(),
            absent: BTreeMap::new(),
            waits: Waits::default(),
        }
    }

    pub fn add(&mut self, figure: Figure, contender: usize, value: f64) {
        self.samples.entry((figure, contender)).or_default().push(value);
    }

    pub fn add_absent(&mut self, row: Row, contender: usize, why: String) {
        self.absent.insert((row, contender), why);
    }

    pub fn absent(&self, row: Row, contender: usize) -> Option<&str> {
        self.absent.get(&(row, contender)).map(String::as_str)
    }

    pub fn summary(&self, figure: Figure, contender: usize) -> Option<Summary> {
        self.samples.get(&(figure, contender)).map(|samples| Summary::of(samples))
    }

    /// The figure that counts: the median. Of what must never happen, the most.
    pub fn value(&self, figure: Figure, contender: usize) -> Option<f64> {
        let summary = self.summary(figure, contender)?;
        Some(if figure.compares() { summary.median } else { summary.max })
    }

    pub fn of_tokio(&self, figure: Figure, contender: usize) -> Option<f64> {
        let tokio = self.contenders.iter().position(|other| other.kind == Kind::Tokio)?;
        let ratio = self.value(figure, contender)? / self.value(figure, tokio)?;
        (figure.compares() && contender != tokio).then_some(ratio)
    }

    /// The targets that can be judged by what was run.
    pub fn verdicts(&self, figure: Figure, contender: usize) -> Vec<Verdict> {
        let targets = figure.targets(self.contenders[contender].kind).into_iter();
        let judged = targets.filter_map(|target| {
            let (value, most) = match target {
                Target::OfTokio(most) => (self.of_tokio(figure, contender)?, most),
                Target::OfOwn(other, most) => {
                    (self.value(figure, contender)? / self.value(other, contender)?, most)
                }
                Target::AtMost(most) => (self.value(figure, contender)?, most),
            };
            Some(Verdict { target, value, met: value <= most })
        });
        judged.collect()
    }
}
