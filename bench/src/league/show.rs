//! The scores, for people and for programs: a table a figure, and the file that `--json` writes.

use serde::Serialize;

use super::scores::{Scores, Verdict};
use super::{Contender, Figure, KindOf, Row, Target};
use crate::machine::Machine;
use crate::results::Summary;
use crate::table::Table;

/// On a quiet machine, threads wait for a core less than this share of their time.
const QUIET: f64 = 0.03;

/// Who takes part, and with which settings.
pub fn contenders<R: Row>(scores: &Scores<R>, machine: &Machine, about: &str) {
    let Machine { cpu, cores, memory_gib, .. } = machine;
    println!("{cpu}, {cores} cores, {memory_gib:.1} GiB; {about}");
    let mut table = Table::new("contestants", vec![String::new()]);
    for contender in &scores.contenders {
        table.row(vec![contender.name.to_owned()], contender.settings);
    }
    table.print();
}

/// How many targets were met, and whether the figures deserve trust.
pub fn summing_up<R: Row>(scores: &Scores<R>, rows: &[R]) {
    let mut verdicts = Vec::new();
    for &figure in rows.iter().flat_map(|row| row.figures()) {
        for contender in 0..scores.contenders.len() {
            verdicts.extend(scores.verdicts(figure, contender));
        }
    }
    let met = verdicts.iter().filter(|verdict| verdict.met).count();
    println!("\n{met} of {} targets met", verdicts.len());
    if let Some(waited) = scores.waits.share() {
        let remark = if waited > QUIET { ": the machine was BUSY, compare no times" } else { "" };
        println!(
            "threads that measured waited for a core {:.1} % of the time{remark}",
            waited * 100.0
        );
    }
}

/// The tables of one row.
pub fn row<R: Row>(scores: &Scores<R>, row: R) {
    for &figure in row.figures() {
        let header = ["", "median", "least", "most", "/ tokio"].map(str::to_owned).to_vec();
        let mut table = Table::new(figure.title(), header);
        for (index, contender) in scores.contenders.iter().enumerate() {
            let name = contender.name.to_owned();
            if let Some(Summary { median, min, max, .. }) = scores.summary(figure, index) {
                let ratio = scores.of_tokio(figure, index);
                let ratio = ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
                let [median, min, max] = [median, min, max].map(written);
                let verdicts: Vec<String> =
                    scores.verdicts(figure, index).into_iter().map(judged).collect();
                table.row(vec![name, median, min, max, ratio], verdicts.join("; "));
            } else if let Some(why) = scores.absent(row, index) {
                table.row(vec![name, "–".to_owned()], why);
            }
        }
        table.print();
    }
}

fn written(value: f64) -> String {
    if value.abs() < 10.0 && value != value.trunc() {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

fn judged<F>(verdict: Verdict<F>) -> String {
    let value = verdict.value;
    let text = match verdict.target {
        Target::OfTokio(most) => format!("{value:.2} ≤ {most} of tokio's"),
        Target::Throughput(_, least) => {
            format!("{value:.2} ≥ {least:.1} times one thread's throughput")
        }
        Target::OfOwn(_, most) => format!("{value:.2} ≤ {most} of its own before"),
        Target::AtMost(most) => format!("{value:.2} ≤ {most}"),
    };
    if verdict.met { text } else { format!("MISSED {text}") }
}

#[derive(Serialize)]
pub struct Report<'a, R: Row> {
    machine: &'a Machine,
    quick: bool,
    /// The share of their time that threads which measured waited for a core.
    waited: Option<f64>,
    contestants: &'a [Contender<KindOf<R>>],
    cells: Vec<Cell<'a, R>>,
}

/// One figure of one contestant, or why there is none.
#[derive(Serialize)]
struct Cell<'a, R: Row> {
    row: R,
    figure: R::Figure,
    title: &'static str,
    contestant: &'static str,
    #[serde(flatten)]
    summary: Option<Summary>,
    of_tokio: Option<f64>,
    verdicts: Vec<Verdict<R::Figure>>,
    absent: Option<&'a str>,
}

impl<'a, R: Row> Report<'a, R> {
    pub fn new(machine: &'a Machine, quick: bool, rows: &[R], scores: &'a Scores<R>) -> Self {
        let mut cells = Vec::new();
        for &row in rows {
            for &figure in row.figures() {
                for (index, contender) in scores.contenders.iter().enumerate() {
                    let summary = scores.summary(figure, index);
                    let absent = scores.absent(row, index).filter(|_| summary.is_none());
                    if summary.is_none() && absent.is_none() {
                        continue;
                    }
                    cells.push(Cell {
                        row,
                        figure,
                        title: figure.title(),
                        contestant: contender.name,
                        summary,
                        of_tokio: scores.of_tokio(figure, index),
                        verdicts: scores.verdicts(figure, index),
                        absent,
                    });
                }
            }
        }
        let waited = scores.waits.share();
        Report { machine, quick, waited, contestants: &scores.contenders, cells }
    }
}
