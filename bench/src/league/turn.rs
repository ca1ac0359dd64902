//! One run of one contestant, in a separate process.
//!
//! In a shared process, each contestant would pay for the remains of the previous one: a million freed blocks that the
//! allocator merges later, threads that are still ending. With a separate process, a run that hangs or panics is just a
//! missing figure.

use std::io::Read;
use std::process::{self, Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{panic, thread};

use serde::{Deserialize, Serialize};

use super::{Family, Turn};
use crate::system::{self, Waits};

/// A run that takes longer is ended.
const LIMIT: Duration = Duration::from_secs(90);

/// The result of a run.
#[derive(Deserialize, Serialize)]
pub struct Outcome {
    /// The figures by name, or why there are none.
    pub readings: Result<Vec<(String, f64)>, String>,
    pub waits: Waits,
}

/// Performs the run, in the separate process.
///
/// # Errors
///
/// There is no such contestant.
pub fn run(turn: &str, families: &[Family]) -> Result<(), String> {
    end_at_panic();
    let turn: Turn = serde_json::from_str(turn).map_err(|error| error.to_string())?;
    let family = families.iter().find(|family| family.name == turn.family);
    let contestants = family.map_or(&[][..], |family| &family.contestants);
    let contestant = contestants.iter().find(|contestant| contestant.name == turn.contestant);
    let readings = (contestant.ok_or("there is no such contestant")?.run)(&turn).map(|readings| {
        readings.into_iter().map(|(figure, value)| (figure.to_owned(), value)).collect()
    });
    let outcome = Outcome { readings, waits: system::waits() };
    serde_json::to_writer(std::io::stdout(), &outcome).map_err(|error| error.to_string())
}

/// Ends the process at a panic. Otherwise other threads might wait for the panicked one, and the run would not end.
fn end_at_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        report(panic);
        process::exit(101);
    }));
}

/// A run in progress.
pub struct Running {
    process: Child,
    printed: mpsc::Receiver<String>,
    end: Instant,
}

impl Running {
    pub fn start(turn: &Turn) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let turn = serde_json::to_string(turn).map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        let mut process = command
            .args(["turn", &turn])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut output = process.stdout.take().ok_or("it has no output")?;
        let (sender, printed) = mpsc::channel();
        // This thread blocks; a polling one would disturb the threads that measure.
        thread::spawn(move || {
            let mut text = String::new();
            // Unreadable output is no outcome, and the receiver is gone if the run was killed.
            let _ = output.read_to_string(&mut text);
            let _ = sender.send(text);
        });
        Ok(Running { process, printed, end: Instant::now() + LIMIT })
    }

    /// Waits for the end of the run, and kills it if it takes too long.
    ///
    /// # Errors
    ///
    /// The run printed no outcome.
    pub fn finish(mut self) -> Result<Outcome, String> {
        let text = self.printed.recv_timeout(self.end.saturating_duration_since(Instant::now()));
        if text.is_err() {
            self.process.kill().map_err(|error| error.to_string())?;
        }
        let status = self.process.wait().map_err(|error| error.to_string())?;
        let text = text.map_err(|_| format!("did not end within {LIMIT:?}"))?;
        serde_json::from_str(&text).map_err(|_| format!("failed, {status}"))
    }
}
