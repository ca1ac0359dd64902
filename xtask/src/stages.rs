//! The duration of each stage of a long chore, printed when it ends and as a table at the end.

use std::time::Instant;

use crate::shell::Outcome;

/// The stages that have ended.
pub(crate) struct Stages {
    began: Instant,
    ended: Vec<(&'static str, f64)>,
}

impl Stages {
    pub(crate) fn new() -> Self {
        Stages { began: Instant::now(), ended: Vec::new() }
    }

    /// Runs a stage.
    pub(crate) fn run<T>(
        &mut self,
        name: &'static str,
        stage: impl FnOnce() -> Outcome<T>,
    ) -> Outcome<T> {
        let began = Instant::now();
        let done = stage()?;
        let seconds = began.elapsed().as_secs_f64();
        println!("{name}: {seconds:.0} s");
        self.ended.push((name, seconds));
        Ok(done)
    }

    /// Prints the table.
    pub(crate) fn print(&self) {
        println!("\nseconds");
        for (name, seconds) in &self.ended {
            println!("{seconds:>7.0}  {name}");
        }
        println!("{:>7.0}  in all", self.began.elapsed().as_secs_f64());
    }
}
