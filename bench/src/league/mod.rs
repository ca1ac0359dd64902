//! The league: the harness that runs the contestants of every family in turn, and records, prints and plots the
//! results.
//!
//! A family is a set of contestants and a set of rows. A row is one workload, run for each of its columns; it yields
//! figures. One run of one contestant, a [`Turn`], is a separate process (`turn`), and `run` alternates the
//! contestants. A [`report`] keeps every sample, with one sheet for each figure. `show` prints the sheets, and
//! `publish` writes them as Markdown.

pub mod publish;
pub mod report;
pub mod run;
mod show;
pub mod turn;

use serde::{Deserialize, Serialize};

use crate::cli::{League, written};

/// The kind of a contestant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Tourbillon's own.
    Ours,
    /// A library or program with which ours are compared.
    Peer,
    /// A heap, a tree or a list: the obvious code without a wheel.
    Baseline,
    /// No timer: only the work that no implementation can avoid.
    Floor,
}

/// A set of contestants and their workloads.
pub struct Family {
    /// Its name on the command line.
    pub name: &'static str,
    /// A description of the measurement, for readers of the tables.
    pub about: &'static str,
    /// The contestant by whose figures the others are divided; `None` for the best peer of each column.
    pub reference: Option<&'static str>,
    pub rows: &'static [Row],
    pub contestants: Vec<Contestant>,
}

/// An implementation that takes part.
pub struct Contestant {
    pub name: &'static str,
    pub kind: Kind,
    /// The settings it runs with.
    pub settings: &'static str,
    /// Runs a row once, in a separate process.
    pub run: fn(&Turn) -> Result<Readings, String>,
    /// Why it does not take part in a row; `None` if it does.
    pub absent: fn(&str, &Column) -> Option<&'static str>,
    /// Why it cannot run on this machine; `None` if it can.
    pub missing: fn(&League) -> Option<String>,
}

/// Figures by name.
pub type Readings = Vec<(&'static str, f64)>;

/// One run of one contestant.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Turn {
    pub family: String,
    pub row: String,
    pub contestant: String,
    pub column: Column,
    pub quick: bool,
    /// Jars of peers that were given on the command line.
    pub jars: Vec<String>,
}

/// What distinguishes the runs of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct Column {
    pub variant: String,
    pub timers: usize,
    pub threads: usize,
}

impl Column {
    /// The text of the header: only the parameters that differ between the columns.
    pub fn title(&self, others: &[Column]) -> String {
        let differs = |same: fn(&Column, &Column) -> bool| others.iter().any(|it| !same(it, self));
        let mut words = Vec::new();
        if differs(|left, right| left.variant == right.variant) {
            words.push(self.variant.clone());
        }
        if differs(|left, right| left.timers == right.timers) {
            words.push(written(self.timers));
        }
        if differs(|left, right| left.threads == right.threads) {
            words.push(format!("{} thr.", self.threads));
        }
        words.join(", ")
    }
}

/// One workload.
#[derive(Clone, Copy)]
pub struct Row {
    pub name: &'static str,
    pub figures: &'static [Figure],
    /// The runs per contestant, in a full run and with `--quick`. 0 skips the row unless it is requested by name.
    pub rounds: [usize; 2],
    /// The populations, in a full run and with `--quick`. The command line may choose others.
    pub timers: [&'static [usize]; 2],
    pub threads: &'static [usize],
    pub variants: &'static [&'static str],
    /// Whether all contestants run it at the same time.
    pub at_once: bool,
    /// Whether it runs only if it is requested by name.
    pub optional: bool,
    /// Whether contestants of a kind take part in a column.
    pub admits: fn(Kind, &Column) -> bool,
}

impl Row {
    pub const fn new(name: &'static str, figures: &'static [Figure]) -> Self {
        Row {
            name,
            figures,
            rounds: [3, 1],
            timers: [&[0]; 2],
            threads: &[1],
            variants: &[""],
            at_once: false,
            optional: false,
            admits: |kind, _| !matches!(kind, Kind::Floor),
        }
    }

    pub const fn rounds(self, full: usize, quick: usize) -> Self {
        Row { rounds: [full, quick], ..self }
    }

    pub const fn timers(self, full: &'static [usize], quick: &'static [usize]) -> Self {
        Row { timers: [full, quick], ..self }
    }

    pub const fn threads(self, threads: &'static [usize]) -> Self {
        Row { threads, ..self }
    }

    pub const fn variants(self, variants: &'static [&'static str]) -> Self {
        Row { variants, ..self }
    }

    pub const fn admits(self, admits: fn(Kind, &Column) -> bool) -> Self {
        Row { admits, ..self }
    }

    pub const fn at_once(self) -> Self {
        Row { at_once: true, ..self }
    }

    pub const fn optional(self) -> Self {
        Row { optional: true, ..self }
    }

    /// The requested columns.
    pub fn columns(&self, asked: &League) -> Vec<Column> {
        // A list of defaults is replaced by the requested values; a single default is capped at the largest requested
        // one.
        let chosen = |own: &[usize], asked: &[usize]| match (own, asked.iter().max()) {
            (own, None) => own.to_vec(),
            ([own], Some(&most)) => vec![*own.min(&most)],
            (_, Some(_)) => asked.to_vec(),
        };
        let timers = chosen(self.timers[usize::from(asked.quick)], &asked.populations);
        let threads = chosen(self.threads, &asked.threads);
        let mut columns = Vec::new();
        for &variant in self.variants {
            for &threads in &threads {
                for &timers in &timers {
                    columns.push(Column { variant: variant.to_owned(), timers, threads });
                }
            }
        }
        columns
    }
}

/// One number that a run yields.
#[derive(Clone, Copy)]
pub struct Figure {
    pub name: &'static str,
    pub title: &'static str,
    pub unit: Unit,
    /// The target for one of our contestants.
    pub aim: fn(&str, &Column) -> Option<Aim>,
}

impl Figure {
    pub const fn new(name: &'static str, unit: Unit, title: &'static str) -> Self {
        Figure { name, title, unit, aim: |_, _| None }
    }

    pub const fn aim(self, aim: fn(&str, &Column) -> Option<Aim>) -> Self {
        Figure { aim, ..self }
    }
}

/// The unit of a figure, and how its value is chosen from the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Unit {
    #[serde(rename = "ns")]
    Nanoseconds,
    #[serde(rename = "µs")]
    Microseconds,
    /// The longest time within a run. Its value is the minimum over the rounds, because the larger ones were disturbed.
    #[serde(rename = "µs, longest")]
    Longest,
    #[serde(rename = "bytes")]
    Bytes,
    /// A rate: more is better.
    #[serde(rename = "a second")]
    Rate,
    #[serde(rename = "times")]
    Times,
    /// Events that must not happen. Its value is the maximum over the rounds.
    #[serde(rename = "count")]
    Count,
}

impl Unit {
    pub fn more_is_better(self) -> bool {
        self == Unit::Rate
    }

    pub fn name(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::Microseconds | Unit::Longest => "µs",
            Unit::Bytes => "bytes",
            Unit::Rate => "a second",
            Unit::Times => "times",
            Unit::Count => "",
        }
    }
}

/// The target of one of our figures.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// At most this multiple of the reference's value.
    Share(f64),
    AtMost(f64),
    AtLeast(f64),
}
