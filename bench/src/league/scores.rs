//! What was measured: samples by figure and contestant, medians, ratios, and whether targets were met.

use std::collections::BTreeMap;

use super::{Contender, Figure, Kind, KindOf, Row, Target};
use crate::results::Summary;
use crate::system::Waits;

pub struct Scores<R: Row> {
    pub contenders: Vec<Contender<KindOf<R>>>,
    samples: BTreeMap<(R::Figure, usize), Vec<f64>>,
    absent: BTreeMap<(R, usize), String>,
    pub waits: Waits,
}

/// A target, and what came of it.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Verdict<F> {
    pub target: Target<F>,
    /// The ratio, or the figure itself.
    pub value: f64,
    pub met: bool,
}

impl<R: Row> Scores<R> {
    pub fn new(contenders: Vec<Contender<KindOf<R>>>) -> Self {
        let (samples, absent) = (BTreeMap::new(), BTreeMap::new());
        Scores { contenders, samples, absent, waits: Waits::default() }
    }

    pub fn add(&mut self, figure: R::Figure, contender: usize, value: f64) {
        self.samples.entry((figure, contender)).or_default().push(value);
    }

    pub fn add_absent(&mut self, row: R, contender: usize, why: String) {
        self.absent.insert((row, contender), why);
    }

    pub fn absent(&self, row: R, contender: usize) -> Option<&str> {
        self.absent.get(&(row, contender)).map(String::as_str)
    }

    pub fn summary(&self, figure: R::Figure, contender: usize) -> Option<Summary> {
        self.samples.get(&(figure, contender)).map(|samples| Summary::of(samples))
    }

    /// The figure that counts: the median. Of what must never happen, the most.
    fn value(&self, figure: R::Figure, contender: usize) -> Option<f64> {
        let summary = self.summary(figure, contender)?;
        Some(if figure.compares() { summary.median } else { summary.max })
    }

    pub fn of_tokio(&self, figure: R::Figure, contender: usize) -> Option<f64> {
        let tokio = self.contenders.iter().position(|other| other.kind.is_tokio())?;
        let ratio = self.value(figure, contender)? / self.value(figure, tokio)?;
        (figure.compares() && contender != tokio).then_some(ratio)
    }

    /// The targets that can be judged by what was run.
    pub fn verdicts(&self, figure: R::Figure, contender: usize) -> Vec<Verdict<R::Figure>> {
        let targets = figure.targets(self.contenders[contender].kind).into_iter();
        let of_own = |other| Some(self.value(figure, contender)? / self.value(other, contender)?);
        let judged = targets.filter_map(|target| {
            let (value, met) = match target {
                Target::OfTokio(most) => {
                    let ratio = self.of_tokio(figure, contender)?;
                    (ratio, ratio <= most)
                }
                Target::OfOwn(other, most) => {
                    let ratio = of_own(other)?;
                    (ratio, ratio <= most)
                }
                Target::Throughput(other, least) => {
                    let times = of_own(other)?.recip();
                    (times, times >= least)
                }
                Target::AtMost(most) => {
                    let value = self.value(figure, contender)?;
                    (value, value <= most)
                }
            };
            Some(Verdict { target, value, met })
        });
        judged.collect()
    }
}
