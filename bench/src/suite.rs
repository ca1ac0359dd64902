//! The run: every cell of the table, contestants taking turns, several rounds.

use indicatif::{ProgressBar, ProgressStyle};

use crate::bare;
use crate::cli::{Wheel, written};
use crate::entrant::Entrant;
use crate::load::{Load, Spread};
use crate::machine;
use crate::measure::{Measure, Op};
use crate::results::Results;

const OPS: [Op; 11] = [
    Op::Start,
    Op::Random,
    Op::InOrder,
    Op::Reschedule,
    Op::Cancel,
    Op::Life,
    Op::Poll,
    Op::Longest,
    Op::Next,
    Op::Pause,
    Op::Memory,
];
/// The crowded slot is filled with so many, or with the largest population asked for if that is less.
const CROWD: usize = 1_000_000;
/// Up to this population everybody runs once before the rounds that count.
const WARMED: usize = 10_000;

/// Runs what was asked for and returns all samples.
pub fn run(options: &Wheel, entrants: &[Box<dyn Entrant>]) -> Results {
    let mut results = Results::new(entrants);
    let cells = cells(options);
    let bar = progress(options, entrants, &cells);
    for (spread, population, ops) in cells {
        let load = Load::new(spread, population);
        let rounds = options.rounds(population);
        for op in ops {
            let warm_up = usize::from(population <= WARMED && op != Op::Memory);
            for round in 0..op.rounds(rounds, population) + warm_up {
                let mut turn = Turn { options, results: &mut results, entrants, bar: &bar };
                turn.take(op, &load, round, round < warm_up);
            }
        }
    }
    bar.finish_and_clear();
    results
}

struct Turn<'a> {
    options: &'a Wheel,
    results: &'a mut Results,
    entrants: &'a [Box<dyn Entrant>],
    bar: &'a ProgressBar,
}

impl Turn<'_> {
    /// One round of one operation: everybody once, a different one first each time.
    fn take(&mut self, op: Op, load: &Load, round: usize, warm_up: bool) {
        let column = (load.spread, load.population);
        if !warm_up {
            let floor = match op {
                Op::Random => Some((Measure::CancelStartRandom, bare::random(load))),
                Op::InOrder => Some((Measure::CancelStartInOrder, bare::in_order(load))),
                Op::Cancel => Some((Measure::Cancel, machine::floor(load))),
                _ => None,
            };
            floor.into_iter().for_each(|(measure, ns)| self.results.add_floor(measure, column, ns));
        }
        for place in 0..self.entrants.len() {
            let index = (place + round) % self.entrants.len();
            let entrant = &self.entrants[index];
            if !self.options.admits(&**entrant, load.population) {
                continue;
            }
            self.bar.set_message(format!(
                "{op:?}, {}: {}",
                written(load.population),
                entrant.name()
            ));
            let readings = entrant.run(op, load);
            self.bar.inc(1);
            if !warm_up {
                readings
                    .into_iter()
                    .for_each(|(measure, value)| self.results.add(measure, column, index, value));
            }
        }
    }
}

/// Each spread and population with its operations.
fn cells(options: &Wheel) -> Vec<(Spread, usize, Vec<Op>)> {
    let populations = options.populations();
    let mut cells = Vec::new();
    for spread in [Spread::Uniform, Spread::Log, Spread::Crowd] {
        let ops: Vec<Op> = OPS
            .into_iter()
            .filter(|&op| options.asks_for(op) && op.spreads().contains(&spread))
            .collect();
        let sizes = match spread {
            Spread::Crowd => {
                populations.last().map(|&most| vec![most.min(CROWD)]).unwrap_or_default()
            }
            _ => populations.clone(),
        };
        if !ops.is_empty() {
            cells.extend(sizes.into_iter().map(|population| (spread, population, ops.clone())));
        }
    }
    cells
}

/// As long as the runs are many.
fn progress(
    options: &Wheel,
    entrants: &[Box<dyn Entrant>],
    cells: &[(Spread, usize, Vec<Op>)],
) -> ProgressBar {
    let runs = cells.iter().map(|(_, population, ops)| {
        let takers =
            entrants.iter().filter(|entrant| options.admits(&***entrant, *population)).count();
        let rounds = ops.iter().map(|&op| {
            let warm_up = usize::from(*population <= WARMED && op != Op::Memory);
            op.rounds(options.rounds(*population), *population) + warm_up
        });
        takers * rounds.sum::<usize>()
    });
    bar(runs.sum())
}

/// A bar on stderr, hidden when that is no terminal. It redraws between runs only, and has no thread of its own.
pub fn bar(runs: usize) -> ProgressBar {
    let bar = ProgressBar::new(runs as u64);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {elapsed_precise}  {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
