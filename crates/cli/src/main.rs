//! The command `tourbillon`: owns the terminal and the exit code, and leaves the rest to the library.
//!
//! Exit codes: 0 good, 1 an expectation did not hold, 2 bad input or output that could not be written.
#![forbid(unsafe_code)]

mod args;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::Parser;
use tourbillon_cli::replay::{self, Verdict};
use tourbillon_cli::trace;

fn main() -> ExitCode {
    let done = match args::Cli::parse().command {
        args::Command::Replay(args) => replay_files(&args),
        args::Command::Trace(args) => trace_timer(args),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        // Whoever reads has seen enough, as in `tourbillon replay FILE | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("cannot write: {error}"));
            ExitCode::from(Verdict::Error.code())
        }
    }
}

fn replay_files(args: &args::Replay) -> io::Result<u8> {
    // A replay may print millions of lines: a large buffer, and no lock taken for each.
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let verdict = replay::files(&args.files, args.quiet, &mut out, &mut io::stderr().lock())?;
    Ok(verdict.code())
}

fn trace_timer(args: args::Trace) -> io::Result<u8> {
    match trace::trace(&args.settings()) {
        Ok(text) => {
            // Colours on a terminal, unless NO_COLOR says otherwise; plain text elsewhere.
            let mut out = anstream::AutoStream::auto(io::stdout().lock());
            out.write_all(&text)?;
            out.flush()?;
            Ok(Verdict::Passed.code())
        }
        Err(message) => {
            complain(&message);
            Ok(Verdict::Error.code())
        }
    }
}

fn complain(message: &str) {
    // If not even stderr can be written, the exit code has to say it all.
    let _ = writeln!(io::stderr(), "tourbillon: {message}");
}
