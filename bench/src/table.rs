//! Text tables.

/// A text table: the first column is left-aligned, the others right-aligned, with a remark after the last.
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
