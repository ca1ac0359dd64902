//! Everything that was measured, for programs: the file that `--json` writes.

use serde::Serialize;

use crate::contestant::Kind;
use crate::family::Family;
use crate::huge::Huge;
use crate::load::Spread;
use crate::machine::Machine;
use crate::measure::{Measure, Unit};
use crate::results::{Contender, Results, Summary};

#[derive(Serialize)]
pub struct Report<'a> {
    pub machine: &'a Machine,
    pub contestants: &'a [Contender],
    pub cells: Vec<Cell>,
    pub floor: Vec<Floor>,
    pub family: Option<&'a Family>,
    pub huge: Option<&'a Huge>,
}

/// One figure of one contestant.
#[derive(Serialize)]
pub struct Cell {
    pub contestant: &'static str,
    pub kind: Kind,
    pub measure: Measure,
    pub title: &'static str,
    pub unit: Unit,
    pub spread: Spread,
    pub population: usize,
    #[serde(flatten)]
    pub summary: Summary,
    /// To the best peer wheel of the same run.
    pub ratio: Option<f64>,
    pub best_peer: bool,
}

/// What an operation could cost at least, and how many times that ours take.
#[derive(Serialize)]
pub struct Floor {
    pub measure: Measure,
    pub title: &'static str,
    pub spread: Spread,
    pub population: usize,
    #[serde(flatten)]
    pub ns: Summary,
    pub distances: Vec<(&'static str, f64)>,
}

impl<'a> Report<'a> {
    pub fn new(
        machine: &'a Machine,
        results: &'a Results,
        family: Option<&'a Family>,
        huge: Option<&'a Huge>,
    ) -> Report<'a> {
        let contestants = &results.contenders;
        Report { machine, contestants, cells: cells(results), floor: floors(results), family, huge }
    }
}

fn cells(results: &Results) -> Vec<Cell> {
    let mut cells = Vec::new();
    for measure in Measure::ALL {
        for column in results.columns(measure) {
            let best = results.best_peer(measure, column).map(|best| best.0);
            for (index, contender) in results.contenders.iter().enumerate() {
                let Some(summary) = results.summary(measure, column, index) else { continue };
                cells.push(Cell {
                    contestant: contender.name,
                    kind: contender.kind,
                    measure,
                    title: measure.title(),
                    unit: measure.unit(),
                    spread: column.0,
                    population: column.1,
                    summary,
                    ratio: results.ratio(measure, column, index),
                    best_peer: best == Some(index),
                });
            }
        }
    }
    cells
}

fn floors(results: &Results) -> Vec<Floor> {
    let mut floors = Vec::new();
    for measure in Measure::ALL {
        let Some(title) = measure.floor() else { continue };
        for column in results.columns(measure) {
            let Some(ns) = results.floor(measure, column) else { continue };
            let ours = results.ours().filter_map(|index| {
                Some((results.contenders[index].name, results.distance(measure, column, index)?))
            });
            let (spread, population) = column;
            floors.push(Floor {
                measure,
                title,
                spread,
                population,
                ns,
                distances: ours.collect(),
            });
        }
    }
    floors
}
