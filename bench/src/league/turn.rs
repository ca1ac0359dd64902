//! One run of one contestant, in a process of its own.
//!
//! What a contestant leaves behind would be paid for by the next: a million freed blocks that the allocator merges
//! when somebody else asks, threads that are still ending. It also makes a run that hangs or panics a missing figure.

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

/// What a run tells.
#[derive(Deserialize, Serialize)]
pub struct Outcome {
    /// Or why there are none.
    pub readings: Result<Vec<(String, f64)>, String>,
    pub waits: Waits,
}

/// The run itself, in its own process.
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

/// A thread that panics would leave those waiting that it was to meet, and a run has to end.
fn end_at_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        report(panic);
        process::exit(101);
    }));
}

/// A run that is under way.
pub struct Running {
    process: Child,
    told: mpsc::Receiver<String>,
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
        let (tell, told) = mpsc::channel();
        // A thread that blocks, instead of one that looks again and again beside those that measure.
        thread::spawn(move || {
            let mut text = String::new();
            // What cannot be read is no outcome, and nobody listens to a run that was ended.
            let _ = output.read_to_string(&mut text);
            let _ = tell.send(text);
        });
        Ok(Running { process, told, end: Instant::now() + LIMIT })
    }

    /// Waits for the end, and ends it if it takes too long.
    ///
    /// # Errors
    ///
    /// It told nothing.
    pub fn finish(mut self) -> Result<Outcome, String> {
        let text = self.told.recv_timeout(self.end.saturating_duration_since(Instant::now()));
        if text.is_err() {
            self.process.kill().map_err(|error| error.to_string())?;
        }
        let status = self.process.wait().map_err(|error| error.to_string())?;
        let text = text.map_err(|_| format!("did not end within {LIMIT:?}"))?;
        serde_json::from_str(&text).map_err(|_| format!("failed, {status}"))
    }
}
