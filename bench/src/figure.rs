//! A figure: one table of one number for each contestant, beside the first.

use serde::Serialize;

use crate::results::Summary;
use crate::table::Table;

/// One table.
#[derive(Serialize)]
pub struct Figure {
    title: String,
    cells: Vec<Cell>,
}

#[derive(Serialize)]
struct Cell {
    contestant: &'static str,
    #[serde(flatten)]
    summary: Summary,
    /// Times the median of the first.
    ratio: f64,
}

impl Figure {
    pub fn new<'a>(
        title: &str,
        samples: impl Iterator<Item = (&'static str, &'a Vec<f64>)>,
    ) -> Self {
        let mut cells: Vec<Cell> = Vec::new();
        for (contestant, samples) in samples {
            let summary = Summary::of(samples);
            let first = cells.first().map_or(summary.median, |first| first.summary.median);
            cells.push(Cell { contestant, summary, ratio: summary.median / first });
        }
        Figure { title: title.to_owned(), cells }
    }

    pub fn print(&self) {
        let header = ["", "median", "least", "most", "/ first"].map(str::to_owned).to_vec();
        let mut table = Table::new(self.title.clone(), header);
        for Cell { contestant, summary, ratio } in &self.cells {
            let Summary { median, min, max, .. } = *summary;
            let [median, min, max] = [median, min, max].map(|value| format!("{value:.0}"));
            let row = vec![(*contestant).to_owned(), median, min, max, format!("{ratio:.2}")];
            table.row(row, "");
        }
        table.print();
    }
}
