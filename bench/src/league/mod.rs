//! The league: how contestants of every family take turns, and what is kept, printed and plotted of it.
//!
//! A family is a set of contestants and of rows. A row is one workload, run for each of its columns; it gives figures.
//! One run of one contestant, a [`Turn`], is a process of its own (`turn`); `run` lets them alternate; a [`report`]
//! keeps every sample, one sheet for each figure; `show` prints the sheets, `publish` writes them as Markdown.

pub mod publish;
pub mod report;
pub mod run;
mod show;
pub mod turn;

use serde::{Deserialize, Serialize};

use crate::cli::{League, written};

/// Whose a contestant is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Tourbillon's own.
    Ours,
    /// What ours are compared with.
    Peer,
    /// A heap, a tree, a list: what one would write without a wheel.
    Baseline,
    /// No timer: what one cannot do without.
    Floor,
}

/// Contestants, and what they are made to do.
pub struct Family {
    /// As the command line names it.
    pub name: &'static str,
    /// How it is measured, for the reader of the tables.
    pub about: &'static str,
    /// The contestant whose figures the others are divided by; `None` is the best peer of each column.
    pub reference: Option<&'static str>,
    pub rows: &'static [Row],
    pub contestants: Vec<Contestant>,
}

/// What takes part.
pub struct Contestant {
    pub name: &'static str,
    pub kind: Kind,
    /// The settings it runs with.
    pub settings: &'static str,
    /// Runs a row once, in a process of its own.
    pub run: fn(&Turn) -> Result<Readings, String>,
    /// Why it has no part in a row, or `None`.
    pub absent: fn(&str, &Column) -> Option<&'static str>,
    /// Why it cannot run here, or `None`.
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
    /// What the header says, where that is not the same in all columns.
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
    /// How often everybody runs it: in a full run, and with `--quick`, where 0 leaves it out unless it is named.
    pub rounds: [usize; 2],
    /// Populations: in a full run, and with `--quick`. The command line may choose others.
    pub timers: [&'static [usize]; 2],
    pub threads: &'static [usize],
    pub variants: &'static [&'static str],
    /// All contestants run it at the same time.
    pub at_once: bool,
    /// It runs only if it is named.
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

    /// The columns that were asked for.
    pub fn columns(&self, asked: &League) -> Vec<Column> {
        // Several are replaced by those that were asked for; a single one is at most the largest of them.
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

/// One number that a run gives.
#[derive(Clone, Copy)]
pub struct Figure {
    pub name: &'static str,
    pub title: &'static str,
    pub unit: Unit,
    /// What one of ours is held to.
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

/// What a figure counts, and which of its samples is its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Unit {
    #[serde(rename = "ns")]
    Nanoseconds,
    #[serde(rename = "µs")]
    Microseconds,
    /// A single longest time: the least of the rounds counts, the others were disturbed.
    #[serde(rename = "µs, longest")]
    Longest,
    #[serde(rename = "bytes")]
    Bytes,
    /// More is better.
    #[serde(rename = "a second")]
    Rate,
    #[serde(rename = "times")]
    Times,
    /// What must not happen: the most of the rounds counts.
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

/// What a figure of ours is held to.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// So much of the reference's.
    Share(f64),
    AtMost(f64),
    AtLeast(f64),
}
