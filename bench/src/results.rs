//! Summaries of samples.

/// The summary of the samples of one cell.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Summary {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub rounds: usize,
}

impl Summary {
    /// # Panics
    ///
    /// If there are no samples.
    pub fn of(samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (rounds, middle) = (sorted.len(), sorted.len() / 2);
        let median = if rounds % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Summary { median, min: sorted[0], max: sorted[rounds - 1], rounds }
    }
}
