//! The models of the engine, and their twins.
//!
//! loom tries every order of a few steps, shuttle many orders of many. Both need the crate built with a flag of its
//! own. A model that cannot fail is a defect: for each there is at least one twin, a patch in `planted/loom` or
//! `planted/shuttle` whose name begins with the model's; the model must fail on the patched copy. Each twin is built
//! anew, so they are commands of their own; the models alone are part of the suite.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::sample::Sample;
use crate::scratch;
use crate::shell::{Outcome, Stream, capture_within, cargo, run_seen};

/// A fault may make a model turn for ever: that is caught too.
const PATIENCE: Duration = Duration::from_secs(120);

/// A model checker, and the module of the engine that its models are in.
pub(crate) struct Checker {
    pub(crate) flag: &'static str,
    module: &'static str,
}

pub(crate) const LOOM: Checker = Checker { flag: "loom", module: "models" };
pub(crate) const SHUTTLE: Checker = Checker { flag: "shuttle", module: "schedules" };

impl Checker {
    /// Runs the models, which must hold, and their twins with `part` in their name, which must fail.
    pub(crate) fn run(&self, part: &str) -> Outcome {
        let models = self.models()?;
        let twins = scratch::patches(&self.folder(), part)?;
        if part.is_empty() {
            self.all_have_twins(&models, &twins)?;
        }
        twins.iter().try_for_each(|twin| self.fails(twin))?;
        let (flag, all) = (self.flag, twins.len());
        println!("{flag}: {} models hold, {all} of {all} twins fail", models.len());
        Ok(())
    }

    /// Runs one twin, chosen by the sample.
    pub(crate) fn some(&self, sample: &Sample) -> Outcome {
        let twins = sample.choose(scratch::patches(&self.folder(), "")?, 1);
        twins.iter().try_for_each(|twin| self.fails(twin))
    }

    fn folder(&self) -> String {
        format!("planted/{}", self.flag)
    }

    /// Each model has a twin, and each twin a model.
    fn all_have_twins(&self, models: &[String], twins: &[PathBuf]) -> Outcome {
        let names: Vec<&str> = models.iter().map(|model| last_part(model)).collect();
        let twins: Vec<String> = twins.iter().map(|twin| scratch::stem(twin)).collect();
        for model in &names {
            if !twins.iter().any(|twin| twin.starts_with(model)) {
                return Err(format!("{model} has no twin in {}: can it fail?", self.folder()));
            }
        }
        for twin in &twins {
            if !names.iter().any(|model| twin.starts_with(model)) {
                return Err(format!("{}/{twin}.patch begins with no model's name", self.folder()));
            }
        }
        Ok(())
    }

    /// Plants the twin's fault. The model whose name the twin's begins with must fail.
    fn fails(&self, twin: &std::path::Path) -> Outcome {
        let name = scratch::stem(twin);
        let model = name.split('-').next().unwrap_or(&name);
        let fault = scratch::plant(twin)?;
        let began = Instant::now();
        let mut command = self.command(model);
        // Some faults show in one of thousands of schedules.
        command.env("TOURBILLON_SCHEDULES", "20000").stderr(Stdio::null());
        let verdict = match capture_within(&mut command, PATIENCE)? {
            Some((text, true)) if text.contains(" 1 passed") => {
                return Err(format!("NOT CAUGHT by {model}: {fault}"));
            }
            // It says nothing of the fault: loom's threads have small stacks.
            Some((text, _)) if text.contains("overflowed its stack") => {
                return Err(format!("{model} does not fit on its stack with {name}.patch"));
            }
            Some((text, _)) if !text.contains("running 1 test\n") => {
                return Err(format!(
                    "{}/{name}.patch must build and run one model, {model}",
                    self.folder()
                ));
            }
            Some(_) => "caught by",
            None => "never ends, caught by",
        };
        let seconds = began.elapsed().as_secs_f64();
        println!("{fault:<72} {verdict} {model} ({seconds:.0} s)");
        Ok(())
    }

    /// Runs the models, and returns their names, with the modules that they are in.
    pub(crate) fn models(&self) -> Outcome<Vec<String>> {
        scratch::lay_out()?;
        let mut models = Vec::new();
        let prefix = format!("test {}::", self.module);
        run_seen(self.command(self.module).arg("--nocapture"), Stream::Output, |line| {
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
        command.current_dir(scratch::copy());
        command.env("CARGO_TARGET_DIR", scratch::folder().join(self.flag));
        command
    }
}

/// The name of a model, without the modules that it is in.
fn last_part(model: &str) -> &str {
    model.rsplit("::").next().unwrap_or(model)
}
