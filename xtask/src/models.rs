//! The models of the engine, and their twins (models that must fail).
//!
//! loom tries every interleaving of a few steps, shuttle many interleavings of many steps. Each needs the crate built
//! with its own flag.
//!
//! A model that cannot fail is a defect. So each model has at least one twin: the same model in a process that
//! activates a planted fault (`planted/loom.txt`, `planted/shuttle.txt`). One build contains all faults. The models run
//! without a fault and must hold; every twin must fail.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::planted::twins::{FLAGS, Twin, list, twins};
use crate::sample::Sample;
use crate::scratch;
use crate::shell::{Outcome, Stream, capture_within, cargo, root, run_seen, tracked};

/// A fault may make a model loop forever, which counts as a failure of the twin.
const PATIENCE: Duration = Duration::from_secs(120);

/// A model checker, and the engine module with its models.
pub(crate) struct Checker {
    pub(crate) flag: &'static str,
    module: &'static str,
}

pub(crate) const LOOM: Checker = Checker { flag: FLAGS[0], module: "models" };
pub(crate) const SHUTTLE: Checker = Checker { flag: FLAGS[1], module: "schedules" };

impl Checker {
    /// Runs the models, which must hold, and twins, which must fail.
    ///
    /// The twins are those with `part` in the name of the model or the fault.
    pub(crate) fn run(&self, part: &str) -> Outcome {
        let models = self.models()?;
        let mut twins = twins(self.flag)?;
        twins.retain(|twin| twin.model.contains(part) || twin.fault.contains(part));
        if twins.is_empty() {
            return Err(format!("no twin in {} has {part:?} in its name", list(self.flag)));
        }
        let survivors = self.try_all(&twins)?;
        let (flag, all) = (self.flag, twins.len());
        let failed = all - survivors.len();
        println!("{flag}: {} models hold, {failed} of {all} twins fail", models.len());
        as_outcome(&survivors)
    }

    /// Runs one twin, selected by the sample.
    pub(crate) fn some(&self, sample: &Sample) -> Outcome {
        let twins = sample.choose(twins(self.flag)?, 1);
        as_outcome(&self.try_all(&twins)?)
    }

    /// Runs the models. Returns their names with their modules.
    pub(crate) fn models(&self) -> Outcome<Vec<String>> {
        let mut found = Vec::new();
        self.check(&mut found)?;
        if !found.is_empty() {
            return Err(found.join("\n"));
        }
        let mut models = Vec::new();
        let prefix = format!("test {}::", self.module);
        let mut command = self.command(self.module, "none");
        run_seen(command.arg("--nocapture"), Stream::Output, |line| {
            let name = line.strip_prefix(&prefix).and_then(|rest| rest.split(' ').next());
            models.extend(name.map(str::to_string));
            true
        })?;
        let ran = models.iter().map(|model| last_part(model).to_string()).collect();
        if self.names()? != ran {
            return Err(format!("not the models of the source, but these were run: {models:?}"));
        }
        Ok(models)
    }

    /// Reports models without a twin and twins without a model. Reads only the source.
    pub(crate) fn check(&self, found: &mut Vec<String>) -> Outcome {
        let (names, list) = (self.names()?, list(self.flag));
        let twins: BTreeSet<String> =
            twins(self.flag)?.into_iter().map(|twin| twin.model).collect();
        let alone = names.difference(&twins);
        found.extend(alone.map(|model| format!("{list}: {model} has no twin: can it fail?")));
        let stray = twins.difference(&names);
        found.extend(stray.map(|model| format!("{list}: there is no model {model}")));
        Ok(())
    }

    /// The names of the models in the source, without modules.
    fn names(&self) -> Outcome<BTreeSet<String>> {
        let module = format!("crates/tourbillon/src/{}", self.module);
        let mut names = BTreeSet::new();
        for file in
            tracked()?.into_iter().filter(|file| file.with_extension("").starts_with(&module))
        {
            let text = fs::read_to_string(root().join(&file)).unwrap_or_default();
            let tests = text.split("#[test]\nfn ").skip(1);
            names.extend(tests.filter_map(|test| Some(test.split_once('(')?.0.to_string())));
        }
        Ok(names)
    }

    /// Runs the twins and prints a row for each. Returns those that did not fail.
    fn try_all(&self, twins: &[Twin]) -> Outcome<Vec<String>> {
        let mut survivors = Vec::new();
        for Twin { model, fault, .. } in twins {
            let began = Instant::now();
            let verdict = self.verdict(model, fault)?;
            let seconds = began.elapsed().as_secs_f64();
            println!("{fault:<48} {} {model} ({seconds:.1} s)", verdict.unwrap_or("NOT CAUGHT by"));
            if verdict.is_none() {
                survivors.push(format!("{fault} by {model}"));
            }
        }
        Ok(survivors)
    }

    /// How the model fails with that fault; `None` if it does not.
    fn verdict(&self, model: &str, fault: &str) -> Outcome<Option<&'static str>> {
        let mut command = self.command(model, fault);
        // Some faults appear in one of thousands of schedules.
        command.env("TOURBILLON_SCHEDULES", "20000");
        let errors = self.folder().join("stderr");
        let file = fs::create_dir_all(self.folder()).and_then(|()| File::create(&errors));
        command.stderr(file.map_err(|error| format!("{}: {error}", errors.display()))?);
        let Some((mut text, fine)) = capture_within(&mut command, PATIENCE)? else {
            return Ok(Some("never ends, caught by"));
        };
        text.push_str(&String::from_utf8_lossy(&fs::read(&errors).unwrap_or_default()));
        if !text.contains("running 1 test\n") {
            return Err(format!("{}: {model} must be one model, and run", list(self.flag)));
        }
        // A stack overflow is no verdict on the fault: loom's threads have small stacks.
        if text.contains("overflowed its stack") || text.contains("SIGSEGV") {
            return Err(format!("{model} does not fit on its stack with {fault}"));
        }
        Ok((!fine).then_some("caught by"))
    }

    /// The command for the models with `filter` in their name: built for the checker, with the chosen fault.
    fn command(&self, filter: &str, fault: &str) -> Command {
        let mut command = cargo(&["test", "-p", "tourbillon", "--lib"]);
        command.args(["--features", "tasks"]);
        command.args([filter, "--", "--test-threads=2"]);
        command.env("RUSTFLAGS", format!("--cfg {} --cfg planted", self.flag));
        // The models run millions of schedules, on stacks of a few kilobytes.
        command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        command.env("CARGO_TARGET_DIR", self.folder());
        command.env("TOURBILLON_PLANTED", fault).env("RUST_BACKTRACE", "0");
        command
    }

    /// The target folder of this checker, separate from builds without its flag.
    fn folder(&self) -> PathBuf {
        scratch::folder().join(self.flag)
    }
}

fn as_outcome(survivors: &[String]) -> Outcome {
    if survivors.is_empty() {
        return Ok(());
    }
    Err(format!("not caught: {}", survivors.join(", ")))
}

/// The name of a model, without modules.
fn last_part(model: &str) -> &str {
    model.rsplit("::").next().unwrap_or(model)
}
