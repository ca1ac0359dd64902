//! Lines of the table: a measured figure, its unit, and its target.

use serde::Serialize;

use crate::table::Table;

/// One figure of a row.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Line {
    row: &'static str,
    what: String,
    value: f64,
    unit: &'static str,
    target: Option<Target>,
    /// Whether it meets its target.
    holds: Option<bool>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

use Target::{AtLeast, AtMost};

impl Line {
    pub(crate) fn is_missed(&self) -> bool {
        self.holds == Some(false)
    }
}

/// The lines of one row, as they are measured.
pub(crate) struct Lines {
    row: &'static str,
    pub(crate) lines: Vec<Line>,
}

impl Lines {
    pub(crate) fn new(row: &'static str) -> Self {
        Lines { row, lines: Vec::new() }
    }

    /// A figure without a target.
    pub(crate) fn say(&mut self, what: impl Into<String>, value: f64, unit: &'static str) {
        self.push(what.into(), value, unit, None);
    }

    pub(crate) fn at_least(
        &mut self,
        what: impl Into<String>,
        value: f64,
        unit: &'static str,
        target: f64,
    ) {
        self.push(what.into(), value, unit, Some(AtLeast(target)));
    }

    pub(crate) fn at_most(
        &mut self,
        what: impl Into<String>,
        value: f64,
        unit: &'static str,
        target: f64,
    ) {
        self.push(what.into(), value, unit, Some(AtMost(target)));
    }

    /// A remark without a figure.
    pub(crate) fn remark(&mut self, what: String) {
        self.push(what, f64::NAN, "", None);
    }

    fn push(&mut self, what: String, value: f64, unit: &'static str, target: Option<Target>) {
        let holds = target.map(|target| match target {
            AtLeast(least) => value >= least,
            AtMost(most) => value <= most,
        });
        self.lines.push(Line { row: self.row, what, value, unit, target, holds });
    }

    pub(crate) fn print(&self) {
        let header = ["", "measured", "target"].map(str::to_owned).to_vec();
        let mut table = Table::new(self.row, header);
        for line in &self.lines {
            let value = match line.value.is_nan() {
                true => String::new(),
                false => format!("{} {}", written(line.value), line.unit),
            };
            let target = match line.target {
                Some(AtLeast(least)) => format!("≥ {}", written(least)),
                Some(AtMost(most)) => format!("≤ {}", written(most)),
                None => String::new(),
            };
            let remark = if line.is_missed() { "MISSED" } else { "" };
            table.row(vec![line.what.clone(), value.trim_end().to_owned(), target], remark);
        }
        table.print();
    }
}

/// Formats a value with its significant digits.
fn written(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}
