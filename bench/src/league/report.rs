//! The results: every sample, one sheet for each figure, with the machine and the command line.
//!
//! `--json` writes it and `bench plot` reads it, so every table and plot can be regenerated from it.

use serde::{Deserialize, Serialize};

use super::{Aim, Column, Contestant, Family, Figure, Kind, Row, Unit};
use crate::machine::Machine;
use crate::results::Summary;
use crate::system::Waits;

#[derive(Debug, Deserialize, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub command: String,
    /// In UTC.
    pub date: String,
    pub quick: bool,
    /// Whether Ctrl-C ended the run.
    pub ended_early: bool,
    pub waits: Waits,
    pub families: Vec<Listed>,
    pub sheets: Vec<Sheet>,
}

/// A family in the report.
#[derive(Debug, Deserialize, Serialize)]
pub struct Listed {
    pub name: String,
    pub about: String,
    pub contestants: Vec<Contender>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Contender {
    pub name: String,
    pub kind: Kind,
    pub settings: String,
    /// The differences between its trace and the oracle's; empty if there are none.
    pub faults: String,
    /// Why it did not take part, if it did not.
    pub missing: Option<String>,
}

/// One table: a line for each contestant, a cell for each column.
#[derive(Debug, Deserialize, Serialize)]
pub struct Sheet {
    pub family: String,
    pub row: String,
    pub figure: String,
    pub title: String,
    pub unit: Unit,
    /// `None` for the best peer of each column.
    pub reference: Option<String>,
    pub columns: Vec<Column>,
    pub lines: Vec<Line>,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Line {
    pub contestant: String,
    pub kind: Kind,
    pub cells: Vec<Cell>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Cell {
    pub samples: Vec<f64>,
    pub aim: Option<Aim>,
    /// Why there is no sample.
    pub absent: Option<String>,
}

impl Report {
    /// Adds the sheets of a row, without samples.
    pub fn open(
        &mut self,
        family: &Family,
        row: &Row,
        columns: &[Column],
        present: &[&Contestant],
    ) {
        for figure in row.figures {
            // An empty reason is not shown.
            let admitted = present.iter().filter(|it| {
                let shows =
                    |column| (it.absent)(row.name, column).is_none_or(|why| !why.is_empty());
                columns.iter().any(|column| (row.admits)(it.kind, column) && shows(column))
            });
            let lines = admitted.map(|contestant| line(figure, columns, contestant)).collect();
            self.sheets.push(Sheet {
                family: family.name.to_owned(),
                row: row.name.to_owned(),
                figure: figure.name.to_owned(),
                title: figure.title.to_owned(),
                unit: figure.unit,
                reference: family.reference.map(str::to_owned),
                columns: columns.to_vec(),
                lines,
            });
        }
    }

    /// Records the outcome of a turn.
    pub fn add(
        &mut self,
        (family, row): (&str, &str),
        column: &Column,
        contestant: &str,
        outcome: Result<Vec<(String, f64)>, String>,
    ) {
        let sheets = self.sheets.iter_mut().filter(|it| it.family == family && it.row == row);
        for sheet in sheets {
            let Some(at) = sheet.columns.iter().position(|other| other == column) else { continue };
            let line = sheet.lines.iter_mut().find(|line| line.contestant == contestant);
            let Some(cell) = line.and_then(|line| line.cells.get_mut(at)) else { continue };
            match &outcome {
                Ok(readings) => {
                    let own = readings.iter().filter(|(figure, _)| *figure == sheet.figure);
                    cell.samples.extend(own.map(|&(_, value)| value));
                }
                Err(why) => cell.absent = Some(why.clone()),
            }
        }
    }

    /// Our wheels whose trace shows faults. Under virtual time, a busy machine cannot cause them.
    ///
    /// Without the feature `peers` all wheels are our code.
    pub fn wrong(&self) -> Vec<String> {
        let wheels = self.families.iter().filter(|family| family.name == "wheel");
        let is_own = |it: &&Contender| it.kind != Kind::Peer || cfg!(not(feature = "peers"));
        let own = wheels.flat_map(|family| &family.contestants).filter(is_own);
        let faulty = own.filter(|it| !it.faults.is_empty());
        faulty.map(|it| format!("{}: {}", it.name, it.faults)).collect()
    }

    pub fn sheet(&self, family: &str, figure: &str) -> Option<&Sheet> {
        self.sheets.iter().find(|sheet| sheet.family == family && sheet.figure == figure)
    }
}

fn line(figure: &Figure, columns: &[Column], contestant: &Contestant) -> Line {
    let held = |column| {
        let is_ours = contestant.kind == Kind::Ours;
        is_ours.then(|| (figure.aim)(contestant.name, column)).flatten()
    };
    let cell = |column| Cell { aim: held(column), ..Cell::default() };
    let cells = columns.iter().map(cell).collect();
    Line { contestant: contestant.name.to_owned(), kind: contestant.kind, cells }
}

impl Sheet {
    /// Whether no contestant has run it.
    pub fn is_empty(&self) -> bool {
        let is_empty = |cell: &Cell| cell.samples.is_empty() && cell.absent.is_none();
        self.lines.iter().flat_map(|line| &line.cells).all(is_empty)
    }

    /// The value of a cell, chosen from its samples.
    pub fn value(&self, line: &Line, column: usize) -> Option<f64> {
        let cell = line.cells.get(column).filter(|cell| !cell.samples.is_empty())?;
        let summary = Summary::of(&cell.samples);
        Some(match self.unit {
            Unit::Longest => summary.min,
            Unit::Count => summary.max,
            _ => summary.median,
        })
    }

    /// The best peer of a column, and its value.
    pub fn best_peer(&self, column: usize) -> Option<(&Line, f64)> {
        let peers = self.lines.iter().filter(|line| line.kind == Kind::Peer);
        let values = peers.filter_map(|line| Some((line, self.value(line, column)?)));
        let sign = if self.unit.more_is_better() { -1.0 } else { 1.0 };
        values.min_by(|left, right| (sign * left.1).total_cmp(&(sign * right.1)))
    }

    /// The value by which the others are divided.
    pub fn reference(&self, column: usize) -> Option<f64> {
        let Some(name) = &self.reference else { return Some(self.best_peer(column)?.1) };
        self.value(self.lines.iter().find(|line| line.contestant == *name)?, column)
    }

    /// A value divided by the reference's.
    pub fn ratio(&self, line: &Line, column: usize) -> Option<f64> {
        let ratio = self.value(line, column)? / self.reference(column)?;
        ratio.is_finite().then_some(ratio)
    }

    /// Whether one of ours is more than 1 % worse than the best peer.
    pub fn loses(&self, line: &Line, column: usize) -> bool {
        let (Some(ours), Some((_, best))) = (self.value(line, column), self.best_peer(column))
        else {
            return false;
        };
        let worse =
            if self.unit.more_is_better() { ours < best / 1.01 } else { ours > best * 1.01 };
        line.kind == Kind::Ours && worse
    }

    /// The target of one of our contestants, the measured value, and whether the target was met.
    pub fn verdict(&self, line: &Line, column: usize) -> Option<(Aim, f64, bool)> {
        let aim = line.cells.get(column)?.aim?;
        let value = match aim {
            Aim::Share(_) => self.ratio(line, column)?,
            Aim::AtMost(_) | Aim::AtLeast(_) => self.value(line, column)?,
        };
        let met = match aim {
            Aim::Share(most) | Aim::AtMost(most) => value <= most,
            Aim::AtLeast(least) => value >= least,
        };
        Some((aim, value, met))
    }
}
