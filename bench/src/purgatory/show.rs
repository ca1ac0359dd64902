//! The medians, for people and for programs: a table a figure, and the file that `--json` writes.

use std::collections::BTreeMap;

use serde::Serialize;

use super::figure::{Figure, Row, Target};
use crate::machine::Machine;
use crate::results::Summary;
use crate::table::Table;

/// Samples by figure and contestant. Ours is the first.
#[derive(Default)]
pub struct Scores(BTreeMap<(Figure, usize), Vec<f64>>);

/// A name, and settings.
type Names<'a> = &'a [(&'static str, &'static str)];

impl Scores {
    pub fn add(&mut self, figure: Figure, contestant: usize, value: f64) {
        self.0.entry((figure, contestant)).or_default().push(value);
    }

    fn summary(&self, figure: Figure, contestant: usize) -> Option<Summary> {
        self.0.get(&(figure, contestant)).map(|samples| Summary::of(samples))
    }

    /// How many times better than the other ours is.
    fn times(&self, figure: Figure) -> Option<f64> {
        let [ours, other] = [0, 1].map(|index| self.summary(figure, index));
        let (ours, other) = (ours?.median, other?.median);
        if ours <= 0.0 || other <= 0.0 {
            return None;
        }
        Some(if figure.is_rate() { ours / other } else { other / ours })
    }

    fn verdict(&self, figure: Figure) -> Option<(Target, bool)> {
        let (target, ours) = (figure.target()?, self.summary(figure, 0)?);
        Some((target, target.is_met(ours.median)))
    }
}

pub fn contestants(machine: &Machine, names: Names<'_>) {
    let Machine { cpu, cores, memory_gib, .. } = machine;
    println!(
        "{cpu}, {cores} cores, {memory_gib:.1} GiB; virtual time, but for the row with threads"
    );
    let mut table = Table::new("contestants", vec![String::new()]);
    for &(name, settings) in names {
        table.row(vec![name.to_owned()], settings);
    }
    table.print();
}

/// The tables of one row.
pub fn row(scores: &Scores, row: Row, names: Names<'_>) {
    for &figure in row.figures() {
        let header = ["", "median", "least", "most", "better"].map(str::to_owned).to_vec();
        let mut table = Table::new(figure.title(), header);
        for (index, (name, _)) in names.iter().enumerate() {
            let Some(Summary { median, min, max, .. }) = scores.summary(figure, index) else {
                continue;
            };
            let times = scores.times(figure).filter(|_| index == 0);
            let times = times.map_or(String::new(), |times| format!("{times:.2} ×"));
            let [median, min, max] = [median, min, max].map(written);
            let verdict = scores.verdict(figure).filter(|_| index == 0).map(judged);
            let cells = vec![(*name).to_owned(), median, min, max, times];
            table.row(cells, verdict.unwrap_or_default());
        }
        table.print();
    }
}

/// How many targets were met.
pub fn summing_up(scores: &Scores, rows: &[Row]) {
    let figures = rows.iter().flat_map(|row| row.figures());
    let verdicts: Vec<bool> =
        figures.filter_map(|&figure| scores.verdict(figure)).map(|verdict| verdict.1).collect();
    let met = verdicts.iter().filter(|met| **met).count();
    println!("\n{met} of {} targets met", verdicts.len());
}

fn written(value: f64) -> String {
    match value.abs() {
        small if small < 10.0 && small != small.trunc() => format!("{value:.2}"),
        large if large >= 1e6 => format!("{:.2} M", value / 1e6),
        _ => format!("{value:.0}"),
    }
}

fn judged((target, met): (Target, bool)) -> String {
    let text = match target {
        Target::AtLeast(least) => format!("at least {}", written(least)),
        Target::AtMost(most) => format!("at most {}", written(most)),
    };
    if met { text } else { format!("MISSED {text}") }
}

#[derive(Serialize)]
pub struct Report<'a> {
    machine: &'a Machine,
    quick: bool,
    contestants: Names<'a>,
    cells: Vec<Cell>,
}

/// One figure of one contestant.
#[derive(Serialize)]
struct Cell {
    row: Row,
    figure: Figure,
    title: &'static str,
    contestant: &'static str,
    #[serde(flatten)]
    summary: Summary,
    /// Of ours: how many times better than the other.
    times_better: Option<f64>,
    target: Option<Target>,
    met: Option<bool>,
}

impl<'a> Report<'a> {
    pub fn new(
        machine: &'a Machine,
        quick: bool,
        scores: &Scores,
        rows: &[Row],
        names: Names<'a>,
    ) -> Self {
        let mut cells = Vec::new();
        for &row in rows {
            for &figure in row.figures() {
                for (index, &(contestant, _)) in names.iter().enumerate() {
                    let Some(summary) = scores.summary(figure, index) else { continue };
                    let verdict = scores.verdict(figure).filter(|_| index == 0);
                    cells.push(Cell {
                        row,
                        figure,
                        title: figure.title().trim_start(),
                        contestant,
                        summary,
                        times_better: scores.times(figure).filter(|_| index == 0),
                        target: verdict.map(|verdict| verdict.0),
                        met: verdict.map(|verdict| verdict.1),
                    });
                }
            }
        }
        Report { machine, quick, contestants: names, cells }
    }
}
