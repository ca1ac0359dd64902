//! What was measured: samples by figure and contestant, medians, ratios, and whether targets were met.

use std::collections::BTreeMap;

use super::contestant::{Contender, Kind};
use super::figure::{Figure, Row, Target};
use crate::results::Summary;
use crate::timer::system::Waits;

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
    pub fn new(contenders: Vec<Contender>) -> Self {
        let (samples, absent) = (BTreeMap::new(), BTreeMap::new());
        Scores { contenders, samples, absent, waits: Waits::default() }
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

    pub fn of_tokio(&self, figure: Figure, contender: usize) -> Option<f64> {
        let tokio = self.contenders.iter().position(|other| other.kind == Kind::Tokio)?;
        let ratio = self.summary(figure, contender)?.median / self.summary(figure, tokio)?.median;
        (figure.compares() && contender != tokio).then_some(ratio)
    }

    /// The target, if it can be judged by what was run.
    pub fn verdict(&self, figure: Figure, contender: usize) -> Option<Verdict> {
        let target = figure.target(self.contenders[contender].kind)?;
        let (value, most) = match target {
            Target::OfTokio(most) => (self.of_tokio(figure, contender)?, most),
            Target::AtMost(most) => (self.summary(figure, contender)?.median, most),
        };
        Some(Verdict { target, value, met: value <= most })
    }
}
