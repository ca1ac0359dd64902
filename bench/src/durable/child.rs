//! A separate process that opens a store, so that its memory is that of the timers alone, and it can be killed.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use super::face::{Face, text};
use super::now;
use super::pending::MONTH;
use super::place::memory;
use crate::counting;

/// One run of a child.
#[derive(Args)]
pub struct Child {
    role: Role,
    directory: PathBuf,
    timers: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Fills a store.
    Fill,
    /// Opens a store and receives the due timers.
    First,
}

/// Does its work, prints figures, and waits to be killed.
///
/// # Errors
///
/// The store has failed.
pub fn run(child: &Child) -> Result<(), String> {
    counting::stop();
    let face = Face::open(&child.directory)?;
    match child.role {
        Role::Fill => {
            let spent = face.fill(child.timers, MONTH, 10)?;
            // Due when the store is opened again. Nobody receives them before.
            face.fill(100, (1, 1000), 0)?;
            tell("clock", now() as f64);
            tell("seconds", spent.as_secs_f64());
        }
        Role::First => {
            let first = face.queue.receive(1, Duration::from_secs(60)).wait().map_err(text)?;
            tell("delivered", first.len() as f64);
            std::mem::forget(first);
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    let (now, peak) = memory();
    tell("memory", now);
    tell("peak", peak);
    tell("done", 0.0);
    // Returns when the parent has ended.
    let _ = std::io::stdin().read(&mut [0]);
    std::process::exit(0);
}

fn tell(name: &str, value: f64) {
    println!("{name} {value}");
    let _ = std::io::stdout().flush();
}

/// A running child.
pub(super) struct Running {
    process: std::process::Child,
    _input: Option<ChildStdin>,
    begun: Instant,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Running {
    pub(super) fn start(role: &str, directory: &Path, timers: usize) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(text)?;
        let mut command = Command::new(program);
        command.args(["durable-child", role]).arg(directory).arg(timers.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let begun = Instant::now();
        let mut process = command.spawn().map_err(text)?;
        let input = process.stdin.take();
        let output = process.stdout.take().ok_or("it has no output")?;
        Ok(Running { process, _input: input, begun, lines: BufReader::new(output).lines() })
    }

    /// The next figure with this name, and when it arrived, counted from the start of the process.
    pub(super) fn figure(&mut self, name: &str) -> Result<(f64, Duration), String> {
        for line in self.lines.by_ref() {
            let line = line.map_err(text)?;
            if let Some((what, value)) = line.split_once(' ')
                && what == name
            {
                return Ok((value.parse().map_err(text)?, self.begun.elapsed()));
            }
        }
        Err(format!("the child ended before it printed {name}"))
    }

    /// kill -9.
    pub(super) fn kill(mut self) -> Result<(), String> {
        self.process.kill().map_err(text)?;
        self.process.wait().map(drop).map_err(text)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
