//! The tables, for people: one for each measure, a row for each contestant, rows that we lose like all others.

use crate::cli::written;
use crate::load::Spread;
use crate::machine::Machine;
use crate::measure::{Measure, Unit};
use crate::results::{Column, Results};

/// A text table: the first column to the left, the others to the right, a remark after the last.
pub struct Table {
    title: String,
    rows: Vec<(Vec<String>, String)>,
}

impl Table {
    pub fn new(title: impl Into<String>, header: Vec<String>) -> Self {
        Table { title: title.into(), rows: vec![(header, String::new())] }
    }

    pub fn row(&mut self, cells: Vec<String>, remark: impl Into<String>) {
        self.rows.push((cells, remark.into()));
    }

    pub fn print(&self) {
        let columns = self.rows.iter().map(|row| row.0.len()).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.0.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        println!("\n{}", self.title);
        for (cells, remark) in &self.rows {
            let mut line = String::new();
            for (column, cell) in cells.iter().enumerate() {
                let width = widths[column];
                line += &if column == 0 {
                    format!("  {cell:<width$}")
                } else {
                    format!("  {cell:>width$}")
                };
            }
            println!("{}", format!("{line}  {remark}").trim_end());
        }
    }
}

/// Who takes part, with which settings, and whether it is right.
pub fn contenders(results: &Results, machine: &Machine) {
    let core =
        machine.pinned_to.map_or("not pinned".to_owned(), |core| format!("pinned to core {core}"));
    let Machine { cpu, cores, memory_gib, .. } = machine;
    println!(
        "{cpu}, {cores} cores, {memory_gib:.1} GiB, {core}; virtual time, tick 1 ms, payload u32"
    );
    for (column, spread) in
        [("60 s", Spread::Uniform), ("log", Spread::Log), ("one slot", Spread::Crowd)]
    {
        println!("  {column}: delays {}", spread.title());
    }
    let started = results.contenders.first().map_or(0, |contender| contender.faults.started);
    let header = ["contestant", "trace", "most timers"].map(str::to_owned).to_vec();
    let mut table = Table::new(
        format!("contestants; the trace starts about {started} timers beside an oracle"),
        header,
    );
    for contender in &results.contenders {
        let most =
            if contender.most == usize::MAX { String::new() } else { written(contender.most) };
        let why = if most.is_empty() {
            String::new()
        } else {
            format!("; no more: {}", contender.why_not_more)
        };
        let cells = vec![contender.name.to_owned(), contender.faults.to_string(), most];
        table.row(cells, format!("{}{why}", contender.settings));
    }
    table.print();
}

/// The table of one measure.
pub fn measure(results: &Results, measure: Measure) {
    let columns: Vec<Column> = results.columns(measure).into_iter().collect();
    if columns.is_empty() {
        return;
    }
    let mut table = Table::new(measure.title(), header(&columns));
    // A table of what only some can do lists only those.
    let silent =
        |index| columns.iter().all(|&column| results.value(measure, column, index).is_none());
    let partial = matches!(measure, Measure::PauseSlice | Measure::ChurnedDead);
    for (index, contender) in results.contenders.iter().enumerate() {
        if partial && silent(index) {
            continue;
        }
        let cells = columns.iter().map(|&column| {
            let best = results.best_peer(measure, column).is_some_and(|best| best.0 == index);
            let value = results.value(measure, column, index);
            value.map_or("–".to_owned(), |value| {
                format!("{}{}", if best { "*" } else { "" }, figure(value, measure))
            })
        });
        let remark =
            if contender.faults.none() { String::new() } else { format!("({})", contender.faults) };
        table.row([contender.name.to_owned()].into_iter().chain(cells).collect(), remark);
    }
    for index in results.ours().filter(|_| !partial) {
        let ratios = columns.iter().map(|&column| results.ratio(measure, column, index));
        let name = format!("{} / best peer wheel (*)", results.contenders[index].name);
        table.row([name].into_iter().chain(ratios.map(ratio)).collect(), "");
    }
    if let Some(name) = measure.floor() {
        floor(results, (measure, name), &columns, &mut table);
    }
    table.print();
}

/// What it could cost at least, and how far from that ours are.
fn floor(
    results: &Results,
    (measure, name): (Measure, &str),
    columns: &[Column],
    table: &mut Table,
) {
    let floors = columns.iter().map(|&column| {
        let floor = results.floor(measure, column);
        floor.map_or("–".to_owned(), |floor| figure(floor.median, measure))
    });
    table.row([format!("floor: {name}")].into_iter().chain(floors).collect(), "");
    for index in results.ours() {
        let distances = columns.iter().map(|&column| results.distance(measure, column, index));
        let name = format!("{} / floor", results.contenders[index].name);
        table.row([name].into_iter().chain(distances.map(ratio)).collect(), "");
    }
}

fn header(columns: &[Column]) -> Vec<String> {
    let names = columns.iter().map(|(spread, population)| match spread {
        Spread::Uniform => format!("60 s: {}", written(*population)),
        Spread::Log => format!("log: {}", written(*population)),
        Spread::Crowd => format!("one slot: {}", written(*population)),
    });
    [String::new()].into_iter().chain(names).collect()
}

fn ratio(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |value| {
        if value < 0.1 { format!("{value:.4}") } else { format!("{value:.2}") }
    })
}

fn figure(value: f64, measure: Measure) -> String {
    let value = if measure.unit() == Unit::Longest { value / 1000.0 } else { value };
    if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}
