//! The models of the engine, and their twins.
//!
//! loom tries every order of a few steps, shuttle many orders of many. Both need the crate built with a flag of its
//! own. A model that cannot fail is a defect: for each there is at least one twin, a patch in `planted/loom` or
//! `planted/shuttle` whose name begins with the model's; the model must fail on the patched copy. Each twin is built
//! anew, so they are commands of their own; the models alone are part of the suite.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::planted::{lay_out, patches, plant, scratch};
use crate::shell::{Outcome, capture_within, cargo, run_seen};

/// A fault may make a model turn for ever: that is caught too.
const PATIENCE: Duration = Duration::from_secs(120);

/// A model checker, and the module of the engine that its models are in.
pub(crate) struct Checker {
    flag: &'static str,
    module: &'static str,
}

pub(crate) const LOOM: Checker = Checker { flag: "loom", module: "models" };
pub(crate) const SHUTTLE: Checker = Checker { flag: "shuttle", module: "schedules" };

impl Checker {
    /// Runs the models, which must hold, and their twins, which must fail: those with `part` in their name.
    pub(crate) fn run(&self, part: &str) -> Outcome {
        let models = self.models()?;
        let folder = format!("planted/{}", self.flag);
        let twins = patches(&folder, part)?;
        let mut without: BTreeSet<&String> = models.iter().collect();
        let scratch = scratch();
        for twin in &twins {
            let name = twin.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let Some(model) = models.iter().find(|model| name.starts_with(last_part(model))) else {
                return Err(format!("{folder}/{name}.patch begins with the name of no model"));
            };
            let fault = plant(&scratch, twin)?;
            let began = Instant::now();
            let mut command = self.command(&format!("{}::{model}", self.module));
            // Some faults show in one of thousands of schedules.
            command.env("TOURBILLON_SCHEDULES", "20000");
            let verdict = match capture_within(&mut command, PATIENCE)? {
                Some((text, true)) if text.contains("1 passed") => {
                    return Err(format!("NOT CAUGHT by {model}: {fault}"));
                }
                // It says nothing of the fault: loom's threads have small stacks.
                Some((text, _)) if text.contains("overflowed its stack") => {
                    return Err(format!("{model} does not fit on its stack with {name}.patch"));
                }
                Some((text, _)) if !text.contains("running 1 test") => {
                    return Err(format!("{folder}/{name}.patch must build"));
                }
                Some(_) => "caught by",
                None => "never ends, caught by",
            };
            let seconds = began.elapsed().as_secs_f64();
            println!("{fault:<72} {verdict} {model} ({seconds:.0} s)");
            without.remove(model);
        }
        if let Some(model) = without.first().filter(|_| part.is_empty()) {
            return Err(format!("{model} has no twin in {folder}: can it fail?"));
        }
        println!(
            "{}: {} models hold, {} of {} twins fail",
            self.flag,
            models.len(),
            twins.len(),
            twins.len()
        );
        Ok(())
    }

    /// Runs the models, and returns their names, with the modules that they are in.
    pub(crate) fn models(&self) -> Outcome<Vec<String>> {
        lay_out(&scratch())?;
        let mut models = Vec::new();
        let prefix = format!("test {}::", self.module);
        run_seen(self.command(self.module).arg("--nocapture"), |line| {
            let name = line.strip_prefix(&prefix).and_then(|rest| rest.split(' ').next());
            models.extend(name.map(str::to_string));
        })?;
        if models.is_empty() {
            return Err(format!("no {} model was run", self.flag));
        }
        Ok(models)
    }

    /// The tests of the engine, built for the checker. In the copy, with a fault and without: two trees that share what
    /// is built would take each other's for their own.
    fn command(&self, filter: &str) -> Command {
        let mut command = cargo(&["test", "--profile", "checked", "-p", "tourbillon", "--lib"]);
        command.args(["--features", "tasks"]);
        command.args([filter, "--", "--test-threads=2"]);
        command.env("RUSTFLAGS", format!("--cfg {}", self.flag)).env("RUST_BACKTRACE", "0");
        command.current_dir(scratch().join("copy"));
        command.env("CARGO_TARGET_DIR", scratch().join(self.flag));
        command
    }
}

/// The name of a model, without the modules that it is in.
fn last_part(model: &str) -> &str {
    model.rsplit("::").next().unwrap_or(model)
}
