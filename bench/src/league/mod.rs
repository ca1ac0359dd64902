//! What `bench timer` and `bench task` share: contestants take turns, each in a process of its own; the samples are
//! compared with tokio's, and ours are held to targets.
//!
//! A bench brings its rows, its figures and its contestants; `turn` runs one of them once, `scores` keeps and judges
//! the samples, `show` prints them.

mod scores;
mod show;
pub mod turn;

use std::fmt::Debug;
use std::fs::File;
use std::marker::PhantomData;

use clap::ValueEnum;
use indicatif::ProgressBar;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{machine, suite, write};
use scores::Scores;
use turn::{Outcome, Running};

/// One workload, as named on the command line.
pub trait Row: Copy + Debug + Ord + Send + Serialize + Sync + ValueEnum + 'static {
    type Figure: Figure;
    /// In the order of the tables. What a table compares with comes before it.
    fn figures(self) -> &'static [Self::Figure];
    /// How often everybody runs it; `asked` is what the command line says.
    fn rounds(self, quick: bool, asked: Option<u16>) -> usize;
    /// Whether all contestants run it at the same time.
    fn is_for_all_at_once(self) -> bool {
        false
    }
    /// Whether such a contestant has a place in it.
    fn is_for(self, _kind: KindOf<Self>) -> bool {
        true
    }
}

/// One figure that a run gives.
pub trait Figure: Copy + Ord + Serialize + DeserializeOwned + 'static {
    type Kind: Kind;
    fn title(self) -> &'static str;
    /// Whether the ratio to tokio's says something.
    fn compares(self) -> bool;
    /// What such a contestant is held to.
    fn targets(self, kind: Self::Kind) -> Vec<Target<Self>>;
}

/// Whose a contestant is.
pub trait Kind: Copy + Serialize {
    fn is_tokio(self) -> bool;
}

pub type KindOf<R> = <<R as Row>::Figure as Figure>::Kind;

/// What one run of one row gave.
pub type Readings<R> = Vec<(<R as Row>::Figure, f64)>;

/// What a figure of ours is held to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target<F> {
    /// So much of tokio's.
    OfTokio(f64),
    /// So much of its own other figure.
    OfOwn(F, f64),
    /// So many times the throughput of its own other figure.
    Throughput(F, f64),
    AtMost(f64),
}

/// A contestant, as the report names it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Contender<K> {
    pub name: &'static str,
    pub kind: K,
    pub settings: &'static str,
}

/// A contestant as the harness holds it, its type forgotten.
pub trait Entrant<R: Row> {
    fn contender(&self) -> Contender<KindOf<R>>;
    /// Why it has no part in a row.
    fn absent(&self, row: R) -> Option<&'static str>;
    /// Runs the row once, on a fresh contestant.
    ///
    /// # Errors
    ///
    /// Why there is no figure.
    fn run(&self, row: R, quick: bool) -> Result<Readings<R>, &'static str>;
}

/// Everybody who takes part.
pub type Entrants<R> = Vec<Box<dyn Entrant<R>>>;

/// Any contestant: each bench says how its own are run.
pub struct Of<C>(PhantomData<C>);

impl<C: 'static> Of<C> {
    pub fn boxed<R: Row>() -> Box<dyn Entrant<R>>
    where
        Of<C>: Entrant<R>,
    {
        Box::new(Of::<C>(PhantomData))
    }
}

/// A bench as it was asked for.
pub struct Contest<R: Row> {
    /// The command that runs one turn.
    pub turn: &'static str,
    /// How it is measured, for the reader of the table.
    pub about: &'static str,
    pub entrants: Entrants<R>,
    pub rows: Vec<R>,
    pub quick: bool,
    pub rounds: Option<u16>,
}

impl<R: Row> Contest<R> {
    /// Lets everybody take turns, prints what came of it, and writes it if wanted.
    ///
    /// # Errors
    ///
    /// What is wrong with the file.
    pub fn hold(&self, file: Option<File>) -> Result<(), String> {
        let machine = machine::describe();
        let contenders = self.entrants.iter().map(|entrant| entrant.contender()).collect();
        let mut scores = Scores::new(contenders);
        show::contenders(&scores, &machine, self.about);
        let rounds = |row: R| row.rounds(self.quick, self.rounds);
        let all: usize = self.rows.iter().map(|&row| rounds(row)).sum();
        let bar = suite::bar(all * self.entrants.len());
        for &row in &self.rows {
            for round in 0..rounds(row) {
                self.round(row, round, &mut scores, &bar);
            }
            bar.suspend(|| show::row(&scores, row));
        }
        bar.finish_and_clear();
        show::summing_up(&scores, &self.rows);
        write(file, &show::Report::new(&machine, self.quick, &self.rows, &scores))
    }

    /// Everybody once, a different one first each time.
    fn round(&self, row: R, round: usize, scores: &mut Scores<R>, bar: &ProgressBar) {
        let mut order: Vec<usize> = (0..self.entrants.len()).collect();
        order.rotate_left(round % self.entrants.len());
        let together = if row.is_for_all_at_once() { order.len() } else { 1 };
        for indices in order.chunks(together) {
            let start = |&index: &usize| (index, self.start(row, index, bar));
            let running: Vec<_> = indices.iter().map(start).collect();
            for (index, running) in running {
                if let Some(running) = running {
                    note(row, index, running.and_then(Running::finish), scores);
                }
                bar.inc(1);
            }
        }
    }

    /// `None` if it has no place in the row.
    fn start(&self, row: R, index: usize, bar: &ProgressBar) -> Option<Result<Running, String>> {
        let entrant = &self.entrants[index];
        let Contender { name, kind, .. } = entrant.contender();
        bar.set_message(format!("{row:?}: {name}"));
        let start = || Running::start(self.turn, name, &row, self.quick);
        let absent = entrant.absent(row).map(|why| Err(why.to_owned()));
        row.is_for(kind).then(|| absent.unwrap_or_else(start))
    }
}

fn note<R: Row>(
    row: R,
    index: usize,
    outcome: Result<Outcome<R::Figure>, String>,
    scores: &mut Scores<R>,
) {
    let readings = outcome.and_then(|outcome| {
        scores.waits.add(outcome.waits);
        outcome.readings
    });
    match readings {
        Ok(readings) => {
            readings.into_iter().for_each(|(figure, value)| scores.add(figure, index, value));
        }
        Err(why) => scores.add_absent(row, index, why),
    }
}
